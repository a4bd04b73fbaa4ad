//! The programs the build needs beside the Rust toolchain: its WebAssembly targets, and a C compiler for the JavaScript
//! engine.
//!
//! Quick if nothing is missing. A package is installed only as root on Debian, after it was named with its reason, and
//! never with `--no-install`; otherwise the missing programs are named with the command that installs them.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::process::command;

/// Whether missing parts may be installed on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installing {
    /// Missing parts are installed where that is possible.
    Allowed,
    /// Missing parts are only named.
    Forbidden,
}

/// `wasm32-wasip2` is for tools, `wasm32-unknown-unknown` for the engine that imports nothing.
const TARGETS: [&str; 2] = ["wasm32-wasip2", "wasm32-unknown-unknown"];

/// A program that is needed.
struct Program {
    name: &'static str,
    /// The argument that makes it tell its version.
    version: &'static str,
    /// The Debian package it is in.
    package: &'static str,
    /// Its use, as the end of a sentence.
    reason: &'static str,
}

const fn program(name: &'static str, package: &'static str, reason: &'static str) -> Program {
    Program { name, version: "--version", package, reason }
}

/// The programs that build the engine's C sources.
const TO_BUILD: [Program; 2] = [
    program("clang", "clang", "compiles the JavaScript engine to WebAssembly"),
    program("ar", "binutils", "archives the objects of the JavaScript engine"),
];

/// The programs that tests use.
const TO_TEST: [Program; 8] = [
    program("jq", "jq", "is compared with the shell's"),
    program("column", "bsdextrautils", "is compared with the shell's"),
    Program { version: "-Version", ..program("ip", "iproute2", "gives tests a network of their own") },
    program("unshare", "util-linux", "gives tests a network of their own"),
    program("setsid", "util-linux", "gives tests a terminal of their own"),
    program("tar", "tar", "unpacks homes of earlier versions"),
    program("gzip", "gzip", "unpacks homes of earlier versions"),
    program("python3", "python3", "runs examples of the documentation"),
];

/// Installs missing parts, or names the command that does.
///
/// # Errors
/// If a part is missing that was not installed.
pub fn ensure(installing: Installing) -> Result<()> {
    ensure_targets(installing)?;
    ensure_programs(&TO_BUILD, installing)
}

/// The same for the programs that only tests use.
///
/// # Errors
/// If a program is missing that was not installed.
pub fn ensure_for_tests(installing: Installing) -> Result<()> {
    ensure_programs(&TO_TEST, installing)
}

fn ensure_targets(installing: Installing) -> Result<()> {
    let sysroot = command("rustc").args(["--print", "sysroot"]).output().context("cannot run `rustc`")?;
    let libraries = Path::new(&sysroot).join("lib/rustlib");
    let missing: Vec<&str> =
        TARGETS.into_iter().filter(|target| !libraries.join(target).join("lib").exists()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let by_hand = format!("install the targets by hand: `rustup target add {}`", missing.join(" "));
    if installing == Installing::Forbidden {
        bail!("the targets of the components are missing: {by_hand}");
    }
    println!("installing the targets {} of Rust, for the components", missing.join(" and "));
    command("rustup").args(["target", "add"]).args(&missing).run().context(by_hand)
}

fn ensure_programs(programs: &[Program], installing: Installing) -> Result<()> {
    let missing: Vec<&Program> =
        programs.iter().filter(|program| command(program.name).args([program.version]).output().is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages = packages_of(&missing);
    let by_hand = format!("apt-get update && apt-get install --yes --no-install-recommends {}", packages.join(" "));
    if installing == Installing::Forbidden || !can_install_packages() {
        bail!("programs are missing:\n{}install them (as root on Debian: `{by_hand}`)", reasons(&missing));
    }
    println!("these programs are missing, and are installed as Debian packages now (`--no-install` only names them):");
    print!("{}", reasons(&missing));
    println!("  `{by_hand}`");
    command("apt-get").args(["update", "--quiet"]).run()?;
    command("apt-get")
        .args(["install", "--yes", "--quiet", "--no-install-recommends"])
        .args(&packages)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .run()
        .with_context(|| format!("install them by hand: `{by_hand}`"))
}

/// The packages of these programs, each once.
fn packages_of(programs: &[&Program]) -> Vec<&'static str> {
    let mut packages: Vec<&str> = programs.iter().map(|program| program.package).collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

/// A line for each program: its name, its package and its use.
fn reasons(programs: &[&Program]) -> String {
    let line = |program: &&Program| {
        let Program { name, package, reason, .. } = program;
        format!("  {name} (package {package}) {reason}\n")
    };
    programs.iter().map(line).collect()
}

fn can_install_packages() -> bool {
    command("id").args(["-u"]).output().as_deref() == Some("0")
        && command("apt-get").args(["--version"]).output().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABSENT: Program = program("no-such-program-here", "no-such-package", "is not there");

    #[test]
    fn a_missing_program_is_only_named_where_nothing_may_be_installed() {
        let message = ensure_programs(&[ABSENT], Installing::Forbidden).unwrap_err().to_string();
        for part in ["no-such-program-here (package no-such-package) is not there", "apt-get install"] {
            assert!(message.contains(part), "{message}");
        }
        let present = program("cargo", "cargo", "is there");
        assert!(ensure_programs(&[present], Installing::Forbidden).is_ok());
    }

    #[test]
    fn a_package_with_several_programs_is_named_once() {
        let programs: Vec<&Program> = TO_TEST.iter().filter(|program| program.package == "util-linux").collect();
        assert_eq!(programs.len(), 2);
        assert_eq!(packages_of(&programs), ["util-linux"]);
        assert_eq!(reasons(&programs).lines().count(), 2);
    }
}

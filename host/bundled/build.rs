//! Lists the guests that `cargo xtask guests` built for the program.
//!
//! Without them a development build still succeeds, with a warning, so that `cargo check`, `cargo doc` and editors work
//! in a fresh clone; such a program refuses to use a bundled component. A release build fails, and so does a build with
//! `MOTOR_REQUIRE_GUESTS` set.

use std::path::PathBuf;
use std::{env, fs};

#[path = "src/listing.rs"]
mod listing;

/// A variable that makes missing guests an error, for builds whose program is to be run.
const REQUIRE: &str = "MOTOR_REQUIRE_GUESTS";

#[expect(clippy::disallowed_methods, reason = "cargo's variables")]
fn main() {
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else { panic!("cargo sets OUT_DIR") };
    let guests = listing::directory(&out, &env::var("TARGET").unwrap_or_default());
    // An empty directory, and not a missing one, which cargo would take for a change at each build.
    if let Err(error) = fs::create_dir_all(&guests) {
        panic!("cannot create `{}`: {error}", guests.display());
    }
    println!("cargo:rerun-if-changed={}", guests.display());
    let files = |ending| match listing::files(&guests, ending) {
        Ok(names) => names,
        Err(error) => panic!("cannot read `{}`: {error}", guests.display()),
    };
    let (names, code) = (files(listing::COMPONENT), files(listing::CODE));
    if names.is_empty() {
        // Only here: with guests, a change of the variable must not rebuild everything.
        println!("cargo:rerun-if-env-changed={REQUIRE}");
        let required = env::var_os(REQUIRE).is_some() || env::var("PROFILE").is_ok_and(|profile| profile == "release");
        assert!(!required, "the bundled guests are not built: run `cargo xtask guests` first");
        println!(
            "cargo:warning=the bundled guests are not built, and the program will refuse to use them: run `cargo xtask guests`"
        );
    }
    for name in names.iter().chain(&code) {
        println!("cargo:rerun-if-changed={}", guests.join(name).display());
    }
    let tables = [(names, listing::COMPONENT), (code, listing::CODE)]
        .map(|(names, ending)| listing::table(&guests, &names, ending));
    let engines = guests.with_file_name(listing::ENGINES);
    if let Err(error) = fs::create_dir_all(&engines) {
        panic!("cannot create `{}`: {error}", engines.display());
    }
    println!("cargo:rerun-if-changed={}", engines.display());
    let pinned = match listing::pinned(&engines) {
        Ok(table) => table,
        Err(error) => panic!("cannot read `{}`: {error}", engines.display()),
    };
    if let Err(error) = fs::write(out.join("components.rs"), tables.concat() + &pinned) {
        panic!("cannot write the list of guests: {error}");
    }
}

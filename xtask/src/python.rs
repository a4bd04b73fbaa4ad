//! The engines for Python: built once by their toolchain, compiled for this machine, and known to the next build of the program by
//! their hashes. They stay files beside it: 45 MB each, which few need.

use anyhow::Result;

use crate::guests;
use crate::place::Place;
use crate::toolchains::{self, ENGINE};

/// The components, by the names that the program knows them by.
const COMPONENTS: [&str; 2] = ["code-python.wasm", "code-python-connected.wasm"];

/// Builds the engines.
///
/// # Errors
/// If their toolchain cannot be had here, or fails.
pub fn build(place: &Place) -> Result<()> {
    toolchains::require(place, ENGINE)?;
    place_engines(place)
}

/// Puts the engines in their place if their toolchain is there.
pub fn build_if_installed(place: &Place) -> Result<()> {
    match toolchains::is_built(place, ENGINE) {
        true => place_engines(place),
        false => {
            println!("the engines for Python are not built: programs in Python are refused, and their tests skipped");
            Ok(())
        }
    }
}

fn place_engines(place: &Place) -> Result<()> {
    guests::fuse_engines(place, &toolchains::directory(place, ENGINE), &COMPONENTS)?;
    guests::compile_engines(place)
}

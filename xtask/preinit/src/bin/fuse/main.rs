//! Fuses the core modules of a component into one, as far as they are linked with each other alone.
//!
//! A toolchain that links shared libraries leaves a component of dozens of modules, and each call of a fresh instance pays for
//! linking them again: every import is copied, every table is filled, and no value of the linker is a constant. After this the
//! engine instantiates one module, whose tables and memory are images that are made when it is compiled.
//!
//! The segments of the fused module are applied before those of modules that stay. Toolchains give these a table of their own; a component
//! in which both write to one place would not be the same afterwards.
//!
//! Usage: `fuse IN.wasm OUT.wasm`. It must not know which component it is given.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

mod component;
mod linked;
mod module;
mod plan;
mod words;

fn main() -> Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [input, output] = arguments.as_slice() else { bail!("usage: `fuse IN.wasm OUT.wasm`") };
    let bytes = std::fs::read(input).with_context(|| format!("cannot read `{}`", input.display()))?;
    let fused = component::fuse(&bytes)?;
    std::fs::write(output, fused).with_context(|| format!("cannot write `{}`", output.display()))
}

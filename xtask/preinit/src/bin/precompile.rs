//! Compiles the bundled components for the program that they become part of: `precompile DIRECTORY` writes `NAME.code`
//! beside each `NAME.wasm`, for the processor of this machine. A file appears whole or not at all.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use wasmtime::Engine;

#[path = "../../../../host/runtime/src/compiler.rs"]
mod compiler;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory] = arguments.as_slice() else { bail!("usage: `precompile DIRECTORY`") };
    let engine = Engine::new(&compiler::for_bundled())?;
    for entry in std::fs::read_dir(directory).with_context(|| format!("cannot read `{directory}`"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            compile(&engine, &path).with_context(|| format!("cannot compile `{}`", path.display()))?;
        }
    }
    Ok(())
}

/// Level 19 takes half a minute for the shell, and saves a tenth; unpacking takes the same time at all levels.
const LEVEL: i32 = 9;

/// Writes the code, packed, behind the hash of its component, by which the program recognises it.
fn compile(engine: &Engine, component: &Path) -> Result<()> {
    let bytes = std::fs::read(component)?;
    let code = zstd::encode_all(engine.precompile_component(&bytes)?.as_slice(), LEVEL)?;
    let unfinished = component.with_extension("code.new");
    std::fs::write(&unfinished, [base::ContentHash::of(&bytes).as_bytes().as_slice(), &code].concat())?;
    Ok(std::fs::rename(&unfinished, component.with_extension("code"))?)
}

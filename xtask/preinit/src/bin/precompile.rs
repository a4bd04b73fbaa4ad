//! Compiles the bundled components for the program that they become part of: `precompile DIRECTORY` writes `NAME.code`
//! beside each `NAME.wasm`, for the processor of this machine, and the component itself, packed, as `NAME.packed`. A file appears
//! whole or not at all. With `--pin`, the hashes are written to `NAME.pin` in place of the packed component: files that stay
//! outside of the program are known to it by these.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use base::ContentHash;
use wasmtime::Engine;

#[path = "../../../../host/runtime/src/compiler.rs"]
mod compiler;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (directory, is_pinned) = match arguments.as_slice() {
        [directory] => (directory, false),
        [directory, pin] if pin == "--pin" => (directory, true),
        _ => bail!("usage: `precompile DIRECTORY [--pin]`"),
    };
    let engine = Engine::new(&compiler::for_bundled())?;
    for entry in std::fs::read_dir(directory).with_context(|| format!("cannot read `{directory}`"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            compile(&engine, &path, is_pinned).with_context(|| format!("cannot compile `{}`", path.display()))?;
        }
    }
    Ok(())
}

/// Level 19 takes half a minute for the shell, and saves a tenth; unpacking takes the same time at all levels.
const LEVEL: i32 = 9;

/// Writes the code and the component, packed, each behind the hash of the component, by which the program recognises it.
fn compile(engine: &Engine, component: &Path, is_pinned: bool) -> Result<()> {
    let bytes = std::fs::read(component)?;
    let hash = ContentHash::of(&bytes);
    let packed = |content: &[u8]| anyhow::Ok([hash.as_bytes().as_slice(), &zstd::encode_all(content, LEVEL)?].concat());
    let code = packed(&engine.precompile_component(&bytes)?)?;
    write(component, "code", &code)?;
    match is_pinned {
        true => write(component, "pin", format!("{} {}\n", hash.hex(), ContentHash::of(&code).hex()).as_bytes()),
        false => write(component, "packed", &packed(&bytes)?),
    }
}

fn write(component: &Path, extension: &str, content: &[u8]) -> Result<()> {
    let unfinished = component.with_extension("new");
    std::fs::write(&unfinished, content)?;
    Ok(std::fs::rename(&unfinished, component.with_extension(extension))?)
}

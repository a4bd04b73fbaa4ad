//! Compiles the bundled components for the program that they become part of: `precompile DIRECTORY` writes `NAME.code`
//! beside each `NAME.wasm`, for the processor of this machine. A file appears whole or not at all.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory] = arguments.as_slice() else { bail!("usage: `precompile DIRECTORY`") };
    for entry in std::fs::read_dir(directory).with_context(|| format!("cannot read `{directory}`"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            compile(&path).with_context(|| format!("cannot compile `{}`", path.display()))?;
        }
    }
    Ok(())
}

fn compile(component: &Path) -> Result<()> {
    let code = runtime::precompiled::precompile(&std::fs::read(component)?)?;
    let unfinished = component.with_extension("code.new");
    std::fs::write(&unfinished, code)?;
    Ok(std::fs::rename(&unfinished, component.with_extension("code"))?)
}

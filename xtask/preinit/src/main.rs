//! Turns a guest's core module into a component, pre-initialised where it has an init function: that runs here, at
//! build time, and memory and globals are snapshot before the resulting module is encoded as a component.
//!
//! Usage: `preinit CORE.wasm OUT.wasm [--init NAME]`. The init function runs without any import that works, and the
//! snapshot no longer exports it, so it cannot be called again. A module that imports nothing becomes a component that
//! imports nothing, or the build fails. It must not know which guest it is given.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

mod snapshot;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let request = Request::parse(std::env::args().skip(1))?;
    let core = std::fs::read(&request.core).with_context(|| format!("cannot read `{}`", request.core.display()))?;
    let component = componentise(core, request.init.as_deref()).await?;
    std::fs::write(&request.out, component).with_context(|| format!("cannot write `{}`", request.out.display()))
}

/// The arguments of the command line.
struct Request {
    core: PathBuf,
    out: PathBuf,
    init: Option<String>,
}

impl Request {
    fn parse(arguments: impl Iterator<Item = String>) -> Result<Self> {
        let arguments: Vec<String> = arguments.collect();
        match arguments.as_slice() {
            [core, out] => Ok(Self { core: core.into(), out: out.into(), init: None }),
            [core, out, flag, init] if flag == "--init" => {
                Ok(Self { core: core.into(), out: out.into(), init: Some(init.clone()) })
            }
            _ => bail!("usage: `preinit CORE.wasm OUT.wasm [--init NAME]`"),
        }
    }
}

async fn componentise(core: Vec<u8>, init: Option<&str>) -> Result<Vec<u8>> {
    let before = snapshot::imports_of_core(&core)?;
    let module = match init {
        Some(init) => snapshot::take(&core, init).await?,
        None => core,
    };
    let component = wit_component::ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .context("the module does not describe its world: build it with `wit-bindgen`")?
        .encode()
        .context("cannot encode the module as a component")?;
    let after = snapshot::imports_of_component(&component)?;
    if before.is_empty() && !after.is_empty() {
        bail!("the module imports nothing but the component imports {}", after.join(", "));
    }
    Ok(component)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line() {
        let parse = |line: &str| Request::parse(line.split(' ').map(str::to_owned));
        let request = parse("a.wasm b.wasm --init start").unwrap();
        assert_eq!((request.core, request.out), ("a.wasm".into(), "b.wasm".into()));
        assert_eq!(request.init.as_deref(), Some("start"));
        assert_eq!(parse("a.wasm b.wasm").unwrap().init, None);
        assert!(parse("a.wasm").is_err());
        assert!(parse("a.wasm b.wasm --start init").is_err());
    }
}

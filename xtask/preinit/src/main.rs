//! Turns a guest's core module into a pre-initialised component: runs its init function here, at build time, snapshots
//! its memory and globals, and encodes what results as a component.
//!
//! Usage: `preinit CORE.wasm OUT.wasm --init NAME`. The init function runs without any import that works, and the
//! snapshot no longer exports it, so nobody can call it again. It must not know which guest it is given.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

mod snapshot;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let request = Request::parse(std::env::args().skip(1))?;
    let core = std::fs::read(&request.core).with_context(|| format!("cannot read `{}`", request.core.display()))?;
    let component = preinitialise(&core, &request.init).await?;
    std::fs::write(&request.out, component).with_context(|| format!("cannot write `{}`", request.out.display()))
}

/// What the command line asks for.
struct Request {
    core: PathBuf,
    out: PathBuf,
    init: String,
}

impl Request {
    fn parse(arguments: impl Iterator<Item = String>) -> Result<Self> {
        let arguments: Vec<String> = arguments.collect();
        match arguments.as_slice() {
            [core, out, flag, init] if flag == "--init" => {
                Ok(Self { core: core.into(), out: out.into(), init: init.clone() })
            }
            _ => bail!("usage: `preinit CORE.wasm OUT.wasm --init NAME`"),
        }
    }
}

async fn preinitialise(core: &[u8], init: &str) -> Result<Vec<u8>> {
    let snapshot = snapshot::take(core, init).await?;
    let component = wit_component::ComponentEncoder::default()
        .validate(true)
        .module(&snapshot)
        .context("the module does not describe its world: build it with `wit-bindgen`")?
        .encode()
        .context("cannot encode the snapshot as a component")?;
    let (before, after) = (snapshot::imports_of_core(core)?, snapshot::imports_of_component(&component)?);
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
        assert_eq!((request.core, request.out, request.init), ("a.wasm".into(), "b.wasm".into(), "start".to_owned()));
        assert!(parse("a.wasm b.wasm").is_err());
        assert!(parse("a.wasm b.wasm --start init").is_err());
    }
}

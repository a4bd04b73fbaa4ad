//! Makes a component of a core module and the WIT it was written for, and keeps the comments of that WIT: WIT comments
//! do not survive in a component otherwise (SPEC HOST-3).
//!
//! Usage: `componentize IN.wasm WIT OUT.wasm`. `IN.wasm` may be a component already, whose documentation is then added. It
//! must not know which guest it is given.

use std::borrow::Cow;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use wasm_encoder::{CustomSection, Section as _};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{PackageMetadata, Resolve};

fn main() -> Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [input, wit, output] = arguments.as_slice() else { bail!("usage: `componentize IN.wasm WIT OUT.wasm`") };
    let bytes = std::fs::read(input).with_context(|| format!("cannot read `{}`", input.display()))?;
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(wit).with_context(|| format!("cannot read `{}`", wit.display()))?;
    let component = componentize(bytes, &resolve, package)?;
    std::fs::write(output, component).with_context(|| format!("cannot write `{}`", output.display()))
}

/// The component, with the documentation of the package.
fn componentize(mut bytes: Vec<u8>, resolve: &Resolve, package: wit_parser::PackageId) -> Result<Vec<u8>> {
    if is_core_module(&bytes) {
        let world = resolve.select_world(&[package], None).context("the package must have one world")?;
        embed_component_metadata(&mut bytes, resolve, world, StringEncoding::UTF8)?;
        bytes = ComponentEncoder::default().validate(true).module(&bytes)?.encode()?;
    }
    let docs = PackageMetadata::extract(resolve, package).encode()?;
    let section = CustomSection { name: Cow::Borrowed(PackageMetadata::SECTION_NAME), data: Cow::Owned(docs) };
    section.append_to(&mut bytes);
    Ok(bytes)
}

fn is_core_module(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\0asm\x01\0\0\0")
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIT: &str = "package a:b; /// Adds one.\nworld w { /// One more.\nexport more: func(to: u32) -> u32; }";
    const CORE: &str = "(module (func (export \"more\") (param i32) (result i32) local.get 0))";

    #[test]
    fn a_core_module_becomes_a_component_with_what_its_author_wrote() {
        let mut resolve = Resolve::default();
        let package = resolve.push_str("w.wit", WIT).unwrap();
        let component = componentize(wat::parse_str(CORE).unwrap(), &resolve, package).unwrap();
        assert!(component.starts_with(b"\0asm\x0d\0\x01\0"));
        let text = String::from_utf8_lossy(&component).into_owned();
        assert!(text.contains("package-docs") && text.contains("One more."), "{text}");
        // An input that is a component already keeps its code.
        let again = componentize(component.clone(), &resolve, package).unwrap();
        assert!(again.starts_with(&component) && again.len() > component.len());
        // A module that does not fit its WIT is refused here, not by its user.
        assert!(componentize(wat::parse_str("(module)").unwrap(), &resolve, package).is_err());
    }
}

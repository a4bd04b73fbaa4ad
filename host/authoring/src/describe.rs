//! Comments of a project's WIT in its component, for one that does not describe its tools itself (SPEC HOST-3): toolchains
//! drop them, and the host reads them from the section `package-docs`.

use std::path::Path;

use serde_json::Value;
use wasm_encoder::{CustomSection, Section as _};
use wasmparser::{Parser, Payload};
use wit_parser::{PackageMetadata, Resolve};

/// The interface through which a component describes its tools itself.
const DESCRIBES_ITSELF: &str = "motor:host/tools@";
/// The package of the WIT that every project has a copy of: only the project's own world in it is of interest.
const OF_HOST: &str = "motor:host";

/// The component with the comments of its exports, and as it is if it describes itself or has such comments already.
///
/// # Errors
/// If the component or the WIT cannot be read.
pub(crate) fn describe(component: Vec<u8>, wit: &Path, world: &str) -> Result<Vec<u8>, String> {
    let exports = match exports(&component).map_err(|error| format!("the built component: {error}"))? {
        Some(exports) if !exports.iter().any(|name| name.starts_with(DESCRIBES_ITSELF)) => exports,
        _ => return Ok(component),
    };
    let docs = docs(wit, world, &exports).map_err(|error| format!("the WIT in `{}`: {error}", wit.display()))?;
    let mut component = component;
    CustomSection { name: PackageMetadata::SECTION_NAME.into(), data: docs.into() }.append_to(&mut component);
    Ok(component)
}

/// The names of the exports; nothing for a component that has comments.
fn exports(component: &[u8]) -> wasmparser::Result<Option<Vec<String>>> {
    let (mut depth, mut names) = (0_u32, Vec::new());
    for payload in Parser::new(0).parse_all(component) {
        match payload? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CustomSection(section) if depth == 0 && section.name() == PackageMetadata::SECTION_NAME => {
                return Ok(None);
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    names.push(export?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(Some(names))
}

/// The section: the comments of the package, without the parts that belong to other components.
fn docs(wit: &Path, world: &str, exports: &[String]) -> Result<Vec<u8>, String> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(wit).map_err(|error| format!("{error:#}"))?;
    let encoded = PackageMetadata::extract(&resolve, package).encode().map_err(|error| error.to_string())?;
    let is_of_host = resolve
        .packages
        .get(package)
        .is_some_and(|package| format!("{}:{}", package.name.namespace, package.name.name) == OF_HOST);
    if !is_of_host {
        return Ok(encoded);
    }
    let (version, json) = encoded.split_first().ok_or("no documentation")?;
    let mut docs: Value = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    keep(&mut docs, "worlds", |name| name == world);
    keep(&mut docs, "interfaces", |name| exports.iter().any(|export| short(export) == name));
    let json = docs.to_string();
    Ok([&[*version], json.as_bytes()].concat())
}

fn keep(docs: &mut Value, of: &str, wanted: impl Fn(&str) -> bool) {
    if let Some(all) = docs.get_mut(of).and_then(Value::as_object_mut) {
        all.retain(|name, _| wanted(name));
    }
}

/// The name of an interface without its package and version.
fn short(export: &str) -> &str {
    let name = export.rsplit_once('/').map_or(export, |(_, name)| name);
    name.split_once('@').map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A component that exports a function of its world, and an interface with a function.
    const OWN: &str = r#"(component
        (core module $m (func (export "f") (param i32) (result i32) local.get 0))
        (core instance $i (instantiate $m))
        (func $f (param "to" u32) (result u32) (canon lift (core func $i "f")))
        (export "more" (func $f))
        (component $c (import "f" (func $f (param "to" u32) (result u32))) (export "less" (func $f)))
        (instance $less (instantiate $c (with "f" (func $f))))
        (export "motor:host/counting@0.1.2" (instance $less)))"#;
    const WORLD: &str = "/// Counts.\nworld project {\n  export counting;\n  /// One more.\n  export more: func(to: u32) -> u32;\n}\n\
                         /// Numbers.\ninterface counting {\n  /// One less.\n  less: func(to: u32) -> u32;\n}\n";

    fn text_of(component: &[u8]) -> String {
        let sections = Parser::new(0).parse_all(component).filter_map(|payload| match payload.unwrap() {
            Payload::CustomSection(section) if section.name() == "package-docs" => Some(section.data().to_vec()),
            _ => None,
        });
        String::from_utf8(sections.collect::<Vec<_>>().concat()).unwrap()
    }

    #[test]
    fn comments_of_the_projects_own_world_come_into_the_component_once() {
        let root = tempfile::tempdir().unwrap();
        crate::sdk::write_wit(root.path()).unwrap();
        let wit = root.path().join("wit");
        fs::write(wit.join("project.wit"), WORLD).unwrap();
        let component = wat::parse_str(OWN).unwrap();
        let described = describe(component.clone(), &wit, "project").unwrap();
        assert!(described.starts_with(&component));
        let text = text_of(&described);
        for part in ["Counts.", "One more.", "One less."] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("A component that offers tools"), "{text}");
        assert_eq!(describe(described.clone(), &wit, "project").unwrap(), described);
    }

    #[test]
    fn a_component_that_describes_itself_is_left_alone() {
        let component =
            wat::parse_str("(component (instance $tools) (export \"motor:host/tools@0.1.2\" (instance $tools)))")
                .unwrap();
        assert_eq!(describe(component.clone(), Path::new("/nowhere"), "tool").unwrap(), component);
    }

    #[test]
    fn a_package_of_its_own_is_kept_whole_and_a_broken_one_is_named() {
        let root = tempfile::tempdir().unwrap();
        let component = wat::parse_str(OWN).unwrap();
        fs::write(root.path().join("own.wit"), format!("/// All of it.\npackage a:b;\n{WORLD}")).unwrap();
        assert!(text_of(&describe(component.clone(), root.path(), "tool").unwrap()).contains("Counts."));
        fs::write(root.path().join("own.wit"), "package a:b; world").unwrap();
        let error = describe(component, root.path(), "tool").unwrap_err();
        assert!(error.contains("the WIT in `") && error.contains("expected an identifier"), "{error}");
        assert!(describe(b"\0asm".to_vec(), root.path(), "tool").is_err());
    }
}

//! The WIT, and the SDK for Rust as a crate of its own: copied into each project, so that a project needs neither this
//! repository nor a registry that has the SDK.

use std::path::Path;
use std::{fs, io};

use toml::{Table, Value};

/// A file of the program, by its path in a project.
pub(crate) type Embedded = (&'static str, &'static str);

macro_rules! embed {
    ($root:literal: $($file:literal),+ $(,)?) => {
        &[$(($file, include_str!(concat!("../../../", $root, "/", $file)))),+]
    };
}

/// The WIT that components are built against.
pub(crate) const WIT: &[Embedded] = embed!("wit": "about.wit", "interpreter.wit", "network.wit", "neuron.wit", "reflection.wit", "scripts.wit", "tools.wit", "types.wit", "worlds.wit");

/// The WIT of WASI in the version that the host links, for projects whose world names its interfaces.
const WASI: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/wasi.rs"));

/// The version of WASI that scaffolds name.
pub(crate) const WASI_VERSION: &str = "0.2.12";

/// The sources of the SDK.
const SDK: &[Embedded] = embed!(
    "guest-tools/sdk/src":
    "arguments.rs", "credentials.rs", "error.rs", "http.rs", "http/redirect.rs", "http/wasi.rs", "lib.rs", "log.rs", "nearest.rs",
    "progress.rs", "schema.rs", "testing.rs", "testing/sandbox.rs", "tool.rs", "workspace.rs",
);

/// The sources of the SDK's attribute `#[tool]`.
const MACROS: &[Embedded] = embed!("guest-tools/sdk-macros/src": "effects.rs", "expand.rs", "expand/tests.rs", "lib.rs", "options.rs", "text.rs");

const MACROS_MANIFEST: &str = include_str!("../../../guest-tools/sdk-macros/Cargo.toml");
const SDK_MANIFEST: &str = include_str!("../../../guest-tools/sdk/Cargo.toml");
const GUESTS_MANIFEST: &str = include_str!("../../../guest-tools/Cargo.toml");

/// The versions that the SDK is tested with.
pub(crate) const LOCK: &str = include_str!("../../../guest-tools/Cargo.lock");

/// Names of the crates in `vendor`: the SDK, and its attribute.
pub(crate) const CRATES: [&str; 2] = ["motor-sdk", "sdk-macros"];

/// Writes the SDK to `vendor/motor-sdk`, and its attribute beside it. It finds the WIT in `wit`, two directories above its own.
pub(crate) fn write_sdk(project: &Path) -> io::Result<()> {
    let sources = [(SDK, SDK_MANIFEST), (MACROS, MACROS_MANIFEST)];
    for (name, (sources, text)) in CRATES.into_iter().zip(sources) {
        let root = project.join("vendor").join(name);
        for (path, text) in sources {
            write(&root.join("src").join(path), text)?;
        }
        write(&root.join("Cargo.toml"), &manifest(text).map_err(io::Error::other)?)?;
    }
    Ok(())
}

/// Writes the WIT to `wit`.
pub(crate) fn write_wit(project: &Path) -> io::Result<()> {
    WIT.iter().try_for_each(|(path, text)| write(&project.join("wit").join(path), text))
}

/// Writes the WIT of WASI to `wit/deps`.
pub(crate) fn write_wasi(project: &Path) -> io::Result<()> {
    WASI.iter().try_for_each(|(path, text)| write(&project.join("wit/deps").join(path), text))
}

pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, text)
}

/// A crate's manifest with the values that it inherits from its workspace.
fn manifest(text: &str) -> Result<String, toml::de::Error> {
    let mut sdk: Table = toml::from_str(text)?;
    let guests: Table = toml::from_str(GUESTS_MANIFEST)?;
    let workspace = guests.get("workspace").and_then(Value::as_table).cloned().unwrap_or_default();
    let inherited = |section: &str| workspace.get(section).and_then(Value::as_table).cloned().unwrap_or_default();
    sdk.remove("lints");
    if let Some(Value::Table(package)) = sdk.get_mut("package") {
        inherit(package, &inherited("package"));
    }
    if let Some(Value::Table(dependencies)) = sdk.get_mut("dependencies") {
        inherit(dependencies, &inherited("dependencies"));
    }
    if let Some(Value::Table(targets)) = sdk.get_mut("target") {
        for (_, target) in targets.iter_mut() {
            if let Some(Value::Table(dependencies)) = target.get_mut("dependencies") {
                inherit(dependencies, &inherited("dependencies"));
            }
        }
    }
    Ok(sdk.to_string())
}

fn inherit(section: &mut Table, workspace: &Table) {
    for (name, value) in section.iter_mut() {
        let inherits = value.get("workspace").and_then(Value::as_bool) == Some(true);
        if let Some(own) = workspace.get(name).filter(|_| inherits) {
            *value = own.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn files(root: &Path, below: &Path) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for entry in fs::read_dir(below).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(files(root, &path));
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
        found
    }

    #[test]
    fn nothing_of_the_sdk_and_the_wit_is_left_out() {
        let repository = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        for (embedded, directory) in
            [(SDK, "guest-tools/sdk/src"), (MACROS, "guest-tools/sdk-macros/src"), (WIT, "wit")]
        {
            let root = repository.join(directory);
            let embedded: BTreeSet<String> = embedded.iter().map(|(path, _)| (*path).to_owned()).collect();
            assert_eq!(embedded, files(&root, &root), "{directory}");
        }
    }

    #[test]
    fn scaffolds_name_the_version_of_wasi_that_the_host_links() {
        assert_eq!(WASI.len(), 7, "cli, clocks, filesystem, http, io, random, sockets");
        for (path, text) in WASI {
            let package = path.trim_end_matches(".wit");
            assert!(text.starts_with(&format!("package wasi:{package}@{WASI_VERSION};")), "{path}: {text:.60}");
        }
        let templates = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/templates"));
        let mut named = 0;
        for file in files(templates, templates) {
            // JavaScript names them in the namespace of its build.
            let text = fs::read_to_string(templates.join(&file)).unwrap().replace("\"host:", "\"wasi:");
            for place in text.split("wasi:").skip(1).filter_map(|rest| rest.split_once('@')) {
                let is_interface = place.0.bytes().all(|byte| byte.is_ascii_lowercase() || b"-/".contains(&byte));
                assert!(!is_interface || place.1.starts_with(WASI_VERSION), "{file}: {}", place.0);
                named += usize::from(is_interface);
            }
        }
        assert!(
            named >= 10,
            "the templates for Python and JavaScript name interfaces of WASI, and only {named} were found"
        );
    }

    #[test]
    fn the_manifest_of_the_sdk_inherits_nothing() {
        let text = manifest(SDK_MANIFEST).unwrap();
        assert!(!text.contains("workspace"), "{text}");
        assert!(!manifest(MACROS_MANIFEST).unwrap().contains("workspace"));
        let manifest: Table = toml::from_str(&text).unwrap();
        assert_eq!(manifest["dependencies"]["wit-bindgen"]["version"].as_str(), Some("=0.61.1"));
        assert!(manifest["target"]["cfg(target_family = \"wasm\")"]["dependencies"]["wasip2"].is_str());
    }
}

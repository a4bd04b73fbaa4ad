//! The interfaces as one WIT package that other projects depend on: as text, or in the binary form of packages.

#[cfg(test)]
mod versions;

use base::{Refusal, RefusalCode};
use wit_parser::Resolve;

use crate::sdk::WIT;

/// The package as the text of one file, for `wit/deps/motor-host.wit` of another project.
#[must_use]
pub fn interfaces() -> String {
    let mut text = String::new();
    for (_, file) in WIT {
        // A file names its package once.
        let (header, items) = file.split_once('\n').unwrap_or_default();
        if text.is_empty() {
            text.push_str(header);
            text.push('\n');
        }
        text.push_str(items);
    }
    text
}

/// The package in binary form, with its comments, as registries of WIT packages and toolchains take it.
///
/// # Errors
/// If it cannot be encoded.
pub fn encoded_interfaces() -> Result<Vec<u8>, Refusal> {
    let mut resolve = Resolve::default();
    let encoded = resolve.push_str("motor-host.wit", &interfaces()).map_err(|error| format!("{error:#}"));
    let encoded =
        encoded.and_then(|package| wit_component::encode(&resolve, package).map_err(|error| format!("{error:#}")));
    encoded.map_err(|error| Refusal::new(RefusalCode::Failed, format!("the interfaces cannot be encoded: {error}")))
}

#[cfg(test)]
mod tests {
    use wit_parser::decoding::{DecodedWasm, decode};

    use super::*;

    const USER: &str = "package a:b;\nworld w {\n  include motor:host/tool@0.1.2;\n}\n";

    #[test]
    fn another_package_can_depend_on_the_text() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("deps")).unwrap();
        std::fs::write(root.path().join("deps/motor-host.wit"), interfaces()).unwrap();
        std::fs::write(root.path().join("own.wit"), USER).unwrap();
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_path(root.path()).unwrap();
        let world = resolve.select_world(&[package], None).unwrap();
        assert_eq!(resolve.worlds[world].exports.len(), 1);
    }

    #[test]
    fn the_binary_form_has_every_interface_and_its_comments() {
        let DecodedWasm::WitPackage(resolve, package) = decode(&encoded_interfaces().unwrap()).unwrap() else {
            panic!("not a package");
        };
        let package = &resolve.packages[package];
        assert_eq!(package.name.to_string(), "motor:host@0.1.2");
        for name in ["tools", "types", "log", "progress", "outbound", "credentials", "about"] {
            let interface = &resolve.interfaces[package.interfaces[name]];
            assert!(interface.docs.contents.is_some(), "{name}");
        }
        assert!(package.worlds.contains_key("tool"));
    }
}

//! Traces of toolchains in their components: parts that an author did not ask for, and that are not the author's tools.
//!
//! Nothing here grants anything: a component that fakes a trace gets the same rights as every other one, or fewer.

use std::collections::BTreeSet;

use wasmparser::ComponentAlias;
use wasmparser::component_types::ComponentFuncTypeId;
use wasmparser::types::TypesRef;

use super::Capability;

/// The custom section in which `motor build` gives up capabilities: their names as in JSON, each on a line. A toolchain
/// imports whole interfaces for its library, and the author's world asks for fewer.
pub(super) const GIVEN_UP: &str = "unused-capabilities";

/// Prefix of the names by which componentize-py links its interpreter. It writes no `producers` entry.
const PYTHON: &str = "libcomponentize_py_runtime.so:";

/// The functions that a toolchain exports to prepare a component at build time: interface, function and parameters. A
/// model that called one would restart the interpreter.
const SETUP: [(&str, &str, &[&str]); 2] = [
    ("exports", "init", &["app-name", "symbols", "stub-wasi"]),
    ("", "init", &["shim", "script", "entry-path", "disable-gc"]),
];

/// The abilities that a section of the name [`GIVEN_UP`] lists. Other words in it are ignored.
pub(super) fn given_up(section: &[u8]) -> BTreeSet<Capability> {
    let words = section.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let capabilities = words.filter_map(|word| serde_json::from_value(word.into()).ok());
    capabilities.filter(|capability: &Capability| capability.is_ability()).collect()
}

/// Whether an alias comes from componentize-py's linking, whose C library imports `wasi:sockets` in every component.
pub(super) fn is_python(alias: &ComponentAlias<'_>) -> bool {
    matches!(alias, ComponentAlias::CoreInstanceExport { name, .. } if name.starts_with(PYTHON))
}

/// Whether an exported function is the set-up of componentize-py or of the QuickJS build of componentize-js.
pub(super) fn is_setup(types: TypesRef<'_>, export: &str, function: &str, id: ComponentFuncTypeId) -> bool {
    let Some(ty) = types.get(id) else { return false };
    SETUP.iter().any(|(in_interface, name, parameters)| {
        *in_interface == export
            && *name == function
            && ty.params.iter().map(|(name, _)| name.as_str()).eq(parameters.iter().copied())
    })
}

//! A component's capabilities and tools, read from its bytes before any of it runs (SPEC HOST-4, HOST-7).
//!
//! Works on hostile bytes: it validates, never compiles, and refuses with one sentence that names the remedy. For a
//! component that targets none of our worlds it also derives the tools: its functions, with their types.

mod docs;
mod features;
mod functions;
mod imports;
pub(crate) mod name;
#[cfg(test)]
mod tests;
mod toolchain;
mod types;

use std::collections::BTreeSet;

use base::ContentHash;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wasmparser::component_types::{ComponentAnyTypeId, ComponentEntityType, ComponentItem};
use wasmparser::types::{Types, TypesRef};
use wasmparser::{Encoding, Parser, Payload};

pub use bindings::HOST_VERSION;
pub use functions::{FunctionTool, UnmappedFunction};
pub(crate) use functions::{Shape, Signature};
pub use imports::Capability;

use docs::Docs;
use imports::{host_version, is_of_later_host};

use crate::load_error::{LoadError, told};
use crate::tool::command;

/// Maximum number of imports, and of exports: they are listed in reviews.
const MAX_NAMES: usize = 1_000;
/// Maximum number of functions and types in imported interfaces together: each is compiled and linked, and stays in the host's memory. All
/// of WASI 0.2 has a few hundred.
const MAX_IMPORTED_ITEMS: usize = 10_000;
/// Maximum size of the names of all of these together, in bytes.
const MAX_NAME_BYTES: usize = 256 << 10;
/// Functions of exported interfaces that are listed, and the bytes of one name. The tools have bounds of their own.
const MAX_FUNCTIONS: usize = 2_000;
const MAX_FUNCTION_NAME: usize = 200;

/// The kind of a component, by its exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A component of our world `tool`, which lists its tools on request.
    Tool,
    /// A component of our world `skill`: a `tool` that also describes itself.
    Skill,
    /// An engine for code, without tools.
    Code,
    /// A reflector of the cortex, without tools.
    Reflector,
    /// A neuron, without tools.
    Neuron,
    /// A `wasi:cli/run` command: a tool with `args` and `stdin`.
    Command,
    /// A component of any other WIT: its functions are tools if their types have a JSON form.
    Functions,
}

impl Kind {
    /// The kind in snake case, the same as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Skill => "skill",
            Self::Code => "code",
            Self::Reflector => "reflector",
            Self::Neuron => "neuron",
            Self::Command => "command",
            Self::Functions => "functions",
        }
    }
}

/// One interface that a component imports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Import {
    /// Full name, such as `wasi:io/streams@0.2.6`.
    pub name: String,
    /// The capability that the interface grants.
    pub capability: Capability,
}

/// One interface or function that a component exports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Export {
    /// Full name, such as `motor:host/tools@0.1.2`.
    pub name: String,
    /// The functions of an exported interface, at most 2,000 over all interfaces; empty for a function.
    pub functions: Vec<String>,
}

/// The result of inspecting a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspection {
    /// Hash of exactly these bytes.
    pub hash: ContentHash,
    /// Size of the component in bytes.
    pub size_bytes: u64,
    /// Exported interfaces and functions, in order.
    pub exports: Vec<Export>,
    /// Imported interfaces, with their capabilities.
    pub imports: Vec<Import>,
    /// The kind of component, by its exports.
    pub kind: Kind,
    /// The functions that are tools, if it targets none of our worlds. A component of our worlds is run to list its
    /// tools ([`crate::ToolComponent::describe`]).
    pub functions: Vec<FunctionTool>,
    /// The functions that are not tools, at most 256 of them.
    pub unmapped: Vec<UnmappedFunction>,
    /// The author's documentation of the whole component, from its `package-docs`: untrusted text.
    pub docs: Option<String>,
}

impl Inspection {
    /// The capabilities of its imports together. It has no others.
    #[must_use]
    pub fn capabilities(&self) -> BTreeSet<Capability> {
        self.imports.iter().map(|import| import.capability).collect()
    }

    /// The capabilities that let it do anything.
    pub fn abilities(&self) -> impl Iterator<Item = Capability> {
        self.capabilities().into_iter().filter(|capability| capability.is_ability())
    }

    /// The names of the imports that it is not granted.
    pub(crate) fn unused(&self) -> impl Iterator<Item = &str> {
        let unused = self.imports.iter().filter(|import| import.capability == Capability::Unused);
        unused.map(|import| import.name.as_str())
    }

    /// The refusal of a component that cannot be linked. One that was built against a later version of our WIT may import a
    /// function that was added since.
    pub(crate) fn not_linked(&self, error: &wasmtime::Error) -> LoadError {
        let chain = format!("{error:#}");
        let is_named =
            |import: &&Import| is_of_later_host(&import.name) && chain.contains(&format!("`{}`", import.name));
        match self.imports.iter().find(is_named) {
            Some(import) => host_version(&import.name),
            None => LoadError::NotLinked { message: told(&error.root_cause().to_string()) },
        }
    }

    /// Abilities that it lacks for want of an import: `network`, `files`, `credentials`, `clock`, `random numbers`.
    #[must_use]
    pub fn cannot(&self) -> Vec<&'static str> {
        let has = self.capabilities();
        let all = [
            (Capability::Network, "network"),
            (Capability::Workspace, "files"),
            (Capability::Credentials, "credentials"),
            (Capability::Clock, "clock"),
            (Capability::Random, "random numbers"),
        ];
        all.into_iter().filter(|(capability, _)| !has.contains(capability)).map(|(_, name)| name).collect()
    }

    /// Whether it exports the interface `motor:host/NAME`.
    #[must_use]
    pub fn exports_host_interface(&self, name: &str) -> bool {
        self.host_export(name).is_some()
    }

    /// The exported interface `motor:host/NAME`, with its version.
    pub(crate) fn host_export(&self, name: &str) -> Option<&str> {
        let wanted = format!("motor:host/{name}@");
        self.exports.iter().map(|export| export.name.as_str()).find(|export| export.starts_with(&wanted))
    }

    /// Whether it exports anything that could be a tool. For a component of our worlds only its answer tells for sure.
    #[must_use]
    pub fn is_toolbox(&self) -> bool {
        match self.kind {
            Kind::Tool | Kind::Skill => true,
            Kind::Code | Kind::Reflector | Kind::Neuron => false,
            Kind::Command | Kind::Functions => !self.functions.is_empty(),
        }
    }
}

/// Inspects a component in this process: for the worker, and for tests. Untrusted bytes go through
/// [`crate::Runtime::inspect`].
///
/// # Errors
/// A [`LoadError`] that names the problem with the bytes and the remedy.
pub fn inspect(bytes: &[u8], most_bytes: u64) -> Result<Inspection, LoadError> {
    check_size(bytes, most_bytes)?;
    check_kind(bytes)?;
    read(bytes, &features::validate(bytes)?)
}

/// Inspects a bundled component without validating the bodies of its functions, which takes most of an inspection: it was compiled
/// when the program was built, or is compiled next, and the compiler validates them.
pub(crate) fn inspect_bundled(bytes: &[u8], most_bytes: u64) -> Result<Inspection, LoadError> {
    check_size(bytes, most_bytes)?;
    check_kind(bytes)?;
    read(bytes, &features::types(bytes)?)
}

fn read(bytes: &[u8], types: &Types) -> Result<Inspection, LoadError> {
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    let (mut depth, mut docs) = (0_u32, Docs::default());
    let (mut sockets, mut imports_unasked) = (None, false);
    let mut given_up = BTreeSet::new();
    let (mut name_bytes, mut imported_items, mut functions_left) = (0_usize, 0_usize, MAX_FUNCTIONS);
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(|error| corrupt(&error))?;
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CustomSection(section) if depth == 0 && section.name() == docs::SECTION => {
                docs.add(section.data());
            }
            Payload::CustomSection(section) if depth == 0 && section.name() == toolchain::GIVEN_UP => {
                given_up.append(&mut toolchain::given_up(section.data()));
            }
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    let name = import.map_err(|error| corrupt(&error))?.name.name;
                    check_names(&imports, &exports, &mut name_bytes, name)?;
                    check_items(types.as_ref(), name, &mut imported_items, &mut name_bytes)?;
                    let capability = match imports::capability(name) {
                        Err(refused) if imports::is_sockets(name) => {
                            sockets.get_or_insert(refused);
                            Capability::Unused
                        }
                        capability if has_abilities(types.as_ref(), name) => capability?,
                        capability => capability.map(|_| Capability::Types)?,
                    };
                    imports.push(Import { name: name.to_owned(), capability });
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    let name = export.map_err(|error| corrupt(&error))?.name.name;
                    check_names(&imports, &exports, &mut name_bytes, name)?;
                    imports::check_host_version(name)?;
                    let functions = names_of_functions(types.as_ref(), name, functions_left);
                    functions_left -= functions.len();
                    exports.push(Export { name: name.to_owned(), functions });
                }
            }
            Payload::ComponentAliasSection(section) if !imports_unasked => {
                imports_unasked = section.into_iter().flatten().any(|alias| toolchain::is_python(&alias));
            }
            _ => (),
        }
    }
    // An author who asked for sockets is told at once. Python's library always imports them: they are not granted there
    // either, and a call to one ends the tool.
    if let Some(refused) = sockets
        && !imports_unasked
    {
        return Err(refused);
    }
    for import in imports.iter_mut().filter(|import| given_up.contains(&import.capability)) {
        import.capability = Capability::Unused;
    }
    let mut inspection = Inspection {
        hash: ContentHash::of(bytes),
        size_bytes: bytes.len() as u64,
        kind: kind(&exports),
        exports,
        imports,
        functions: Vec::new(),
        unmapped: Vec::new(),
        docs: docs.whole(),
    };
    if matches!(inspection.kind, Kind::Command | Kind::Functions) {
        let capabilities = inspection.capabilities();
        let derived = functions::derive(types.as_ref(), &inspection.exports, &docs, &capabilities);
        (inspection.functions, inspection.unmapped) = derived;
    }
    Ok(inspection)
}

fn kind(exports: &[Export]) -> Kind {
    let host = |name: &str| exports.iter().any(|export| export.name.starts_with(&format!("motor:host/{name}@")));
    if host("tools") {
        if host("about") { Kind::Skill } else { Kind::Tool }
    } else if host("interpreter") {
        Kind::Code
    } else if host("reflection") {
        Kind::Reflector
    } else if host("reaction") {
        Kind::Neuron
    } else if exports.iter().any(|export| command::is_run(&export.name, "run")) {
        Kind::Command
    } else {
        Kind::Functions
    }
}

fn corrupt(error: &wasmparser::BinaryReaderError) -> LoadError {
    LoadError::Corrupt { offset: error.offset(), message: told(error.message()) }
}

/// Whether an import is more than types that another interface needs.
fn has_abilities(types: TypesRef<'_>, import: &str) -> bool {
    let is_type = |item: &ComponentItem| {
        let ComponentEntityType::Type { referenced, .. } = item.ty else { return false };
        !matches!(referenced, ComponentAnyTypeId::Resource(_))
    };
    match types.component_item_for_import(import).map(|item| item.ty) {
        Some(ComponentEntityType::Instance(id)) => {
            types.get(id).is_none_or(|found| !found.exports.values().all(is_type))
        }
        _ => true,
    }
}

fn names_of_functions(types: TypesRef<'_>, export: &str, max: usize) -> Vec<String> {
    let Some(item) = types.component_item_for_export(export) else { return Vec::new() };
    let ComponentEntityType::Instance(instance) = item.ty else { return Vec::new() };
    let exports = types.get(instance).map(|instance| &instance.exports);
    exports
        .into_iter()
        .flatten()
        .filter(|(_, item)| matches!(item.ty, ComponentEntityType::Func(_)))
        .map(|(name, _)| name.chars().take(MAX_FUNCTION_NAME).collect())
        .take(max)
        .collect()
}

/// Refuses empty input and input that is too large to be read.
pub(crate) fn check_size(bytes: &[u8], most_bytes: u64) -> Result<(), LoadError> {
    if bytes.len() as u64 > most_bytes {
        return Err(LoadError::TooLarge { size_bytes: bytes.len() as u64, most_bytes });
    }
    if bytes.is_empty() { Err(LoadError::Empty) } else { Ok(()) }
}

fn check_names(imports: &[Import], exports: &[Export], bytes: &mut usize, name: &str) -> Result<(), LoadError> {
    *bytes += name.len();
    let counts = [("imports", imports.len(), MAX_NAMES), ("exports", exports.len(), MAX_NAMES)];
    let bounds = counts.into_iter().chain([("bytes of names", *bytes, MAX_NAME_BYTES)]);
    match bounds.into_iter().find(|(_, number, max)| number >= max) {
        Some((what, _, max)) => Err(LoadError::TooManyNames { what: what.into(), max }),
        None => Ok(()),
    }
}

/// Refuses interfaces with too many functions and types, or too long names of them.
fn check_items(types: TypesRef<'_>, import: &str, items: &mut usize, bytes: &mut usize) -> Result<(), LoadError> {
    let too_many = |what: &'static str, max| Err(LoadError::TooManyNames { what: what.into(), max });
    let mut found: Vec<_> = types.component_item_for_import(import).map(|item| item.ty).into_iter().collect();
    while let Some(item) = found.pop() {
        let ComponentEntityType::Instance(id) = item else { continue };
        let exports = types.get(id).map(|instance| &instance.exports);
        for (name, item) in exports.into_iter().flatten() {
            *items += 1;
            *bytes += name.len();
            if *items > MAX_IMPORTED_ITEMS {
                return too_many("functions and types in its imports", MAX_IMPORTED_ITEMS);
            }
            if *bytes >= MAX_NAME_BYTES {
                return too_many("bytes of names", MAX_NAME_BYTES);
            }
            found.push(item.ty);
        }
    }
    Ok(())
}

/// Refuses core modules and other files that are commonly passed by mistake.
fn check_kind(bytes: &[u8]) -> Result<(), LoadError> {
    if !bytes.starts_with(b"\0asm") {
        return Err(LoadError::NotWebAssembly { looks_like: looks_like(bytes).into() });
    }
    match Parser::new(0).parse_all(bytes).next() {
        Some(Ok(Payload::Version { encoding: Encoding::Component, .. })) => Ok(()),
        Some(Ok(Payload::Version { encoding: Encoding::Module, .. })) => Err(LoadError::CoreModule),
        Some(Err(error)) => Err(corrupt(&error)),
        _ => Err(LoadError::Corrupt { offset: 0, message: "no version header".to_owned() }),
    }
}

fn looks_like(bytes: &[u8]) -> &'static str {
    match bytes {
        [0x7f, b'E', b'L', b'F', ..] => "a native program or precompiled code",
        [b'P', b'K', ..] => "a zip archive",
        [0x1f, 0x8b, ..] => "gzip data",
        _ if std::str::from_utf8(bytes).is_ok() => "a text file",
        _ => "something else",
    }
}

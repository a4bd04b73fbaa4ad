//! What a component can do, read off its bytes before anything of it runs (SPEC HOST-4, HOST-7).
//!
//! Works on hostile bytes: it validates, never compiles, and refuses with one sentence that says what to do. Of a
//! component that targets none of our worlds it also reads the tools: its functions, with their types.

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
use serde::{Deserialize, Serialize};
use wasmparser::component_types::ComponentEntityType;
use wasmparser::{Encoding, Parser, Payload, types::TypesRef};

pub use bindings::HOST_VERSION;
pub use functions::{FunctionTool, Unmapped};
pub(crate) use functions::{Shape, Signature};
pub use imports::Capability;

use docs::Docs;

use crate::load_error::{LoadError, told};
use crate::tool::command;

/// The imports, and the exports, that a component may have: they are listed in reviews.
const MAX_NAMES: usize = 1_000;
/// The bytes of their names together.
const MAX_NAME_BYTES: usize = 256 << 10;
/// Functions of exported interfaces that are listed, and the bytes of one name. The tools have bounds of their own.
const MAX_FUNCTIONS: usize = 2_000;
const MAX_FUNCTION_NAME: usize = 200;

/// What a component is to the host, by its exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Of our world `tool`: it lists its tools when it is asked.
    Tool,
    /// Of our world `skill`: a `tool` that also says what it is.
    Skill,
    /// An engine for code: no tools.
    Code,
    /// A `wasi:cli/run` command: a tool with `args` and `stdin`.
    Command,
    /// Of any other WIT: its functions are tools, as far as their types go.
    Functions,
}

impl Kind {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Skill => "skill",
            Self::Code => "code",
            Self::Command => "command",
            Self::Functions => "functions",
        }
    }
}

/// One imported interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// Its name, such as `wasi:io/streams@0.2.6`.
    pub name: String,
    /// What it lets the component do.
    pub capability: Capability,
}

/// One export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// Its name, such as `motor:host/tools@0.1.1`.
    pub name: String,
    /// The functions of an exported interface, at most 2,000 over all interfaces; empty for a function.
    pub functions: Vec<String>,
}

/// What a component is and could do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspection {
    /// Hash of exactly these bytes.
    pub hash: ContentHash,
    /// Their number.
    pub size_bytes: u64,
    /// What it offers.
    pub exports: Vec<Export>,
    /// What it needs.
    pub imports: Vec<Import>,
    /// What it is to the host.
    pub kind: Kind,
    /// The functions that are tools, when it is of none of our worlds. The others are asked, which runs them
    /// ([`crate::ToolComponent::describe`]).
    pub functions: Vec<FunctionTool>,
    /// The functions that are none, at most 256 of them.
    pub unmapped: Vec<Unmapped>,
    /// What its author says of it as a whole, from its `package-docs`: untrusted text.
    pub docs: Option<String>,
}

impl Inspection {
    /// The capabilities its imports add up to. What is not here it cannot do.
    #[must_use]
    pub fn capabilities(&self) -> BTreeSet<Capability> {
        self.imports.iter().map(|import| import.capability).collect()
    }

    /// What it cannot do, as it imports nothing for it: `network`, `files`, `credentials`, `clock`, `random numbers`.
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

    /// Whether it offers anything that could be a tool. Whether it really does is known when it was asked.
    #[must_use]
    pub fn is_toolbox(&self) -> bool {
        match self.kind {
            Kind::Tool | Kind::Skill => true,
            Kind::Code => false,
            Kind::Command | Kind::Functions => !self.functions.is_empty(),
        }
    }
}

/// Reads a component, in this process: for components of this program, and for the worker. Untrusted bytes go through
/// [`crate::Runtime::inspect`].
///
/// # Errors
/// A [`LoadError`] that says what is wrong with the bytes and what to do.
pub fn inspect(bytes: &[u8], most_bytes: u64) -> Result<Inspection, LoadError> {
    check_size(bytes, most_bytes)?;
    check_kind(bytes)?;
    let types = features::validate(bytes)?;
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    let (mut depth, mut docs) = (0_u32, Docs::default());
    let (mut sockets, mut imports_unasked) = (None, false);
    let (mut name_bytes, mut functions_left) = (0_usize, MAX_FUNCTIONS);
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(|error| corrupt(&error))?;
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CustomSection(section) if depth == 0 && section.name() == docs::SECTION => {
                docs.add(section.data());
            }
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    let name = import.map_err(|error| corrupt(&error))?.name.name;
                    check_names(&imports, &exports, &mut name_bytes, name)?;
                    let capability = match imports::capability(name) {
                        Err(refused) if imports::is_sockets(name) => {
                            sockets.get_or_insert(refused);
                            Capability::Sockets
                        }
                        capability => capability?,
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
    // An author who asked for sockets is told at once. Python's library imports them whether or not it is asked to: they
    // are not given either, and a call to one ends the tool.
    if let Some(refused) = sockets
        && !imports_unasked
    {
        return Err(refused);
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
    } else if exports.iter().any(|export| command::is_run(&export.name, "run")) {
        Kind::Command
    } else {
        Kind::Functions
    }
}

fn corrupt(error: &wasmparser::BinaryReaderError) -> LoadError {
    LoadError::Corrupt { offset: error.offset(), message: told(error.message()) }
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

/// Refuses what is too large to be looked at, and nothing at all.
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

/// Tells a component from the things people pass instead of one.
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

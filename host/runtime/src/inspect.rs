//! What a component can do, read off its bytes before anything of it runs (SPEC HOST-4, HOST-7).
//!
//! Works on hostile bytes: it validates, never compiles, and refuses with one sentence that says what to do.

use std::collections::BTreeSet;

use base::ContentHash;
use serde::Serialize;
use wasmparser::component_types::ComponentEntityType;
use wasmparser::{Encoding, Parser, Payload, Validator, WasmFeatures, types::TypesRef};

use crate::load::LoadError;

/// What an import lets a component do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Arguments, environment and standard streams: all empty or bounded here.
    CommandLine,
    /// Streams and polling: no power of their own.
    Streams,
    /// Wall clock and monotonic clock.
    Clock,
    /// Random numbers.
    Random,
    /// Files below `/workspace`.
    Workspace,
    /// Requests through the network gate.
    Network,
    /// Computing with secrets that the host keeps.
    Credentials,
    /// Lines in the run's log, and progress.
    Log,
    /// Nothing: shared types.
    Types,
}

impl Capability {
    /// One phrase for people.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::CommandLine => "command line (no arguments, output is captured)",
            Self::Streams => "streams",
            Self::Clock => "clock",
            Self::Random => "random numbers",
            Self::Workspace => "workspace (files below /workspace)",
            Self::Network => "network (requests to the domains that a run was granted)",
            Self::Credentials => "credentials (computing with those that a run was granted, without seeing them)",
            Self::Log => "log and progress",
            Self::Types => "shared types",
        }
    }
}

/// One imported interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Import {
    /// Its name, such as `wasi:io/streams@0.2.6`.
    pub name: String,
    /// What it lets the component do.
    pub capability: Capability,
}

/// One export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Export {
    /// Its name, such as `motor:host/tools@0.1.0`.
    pub name: String,
    /// The functions of an exported interface; empty for a function.
    pub functions: Vec<String>,
}

/// What a component is and could do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Inspection {
    /// Hash of exactly these bytes.
    pub hash: ContentHash,
    /// Their number.
    pub size_bytes: u64,
    /// What it offers.
    pub exports: Vec<Export>,
    /// What it needs.
    pub imports: Vec<Import>,
}

impl Inspection {
    /// The capabilities its imports add up to. What is not here it cannot do.
    #[must_use]
    pub fn capabilities(&self) -> BTreeSet<Capability> {
        self.imports.iter().map(|import| import.capability).collect()
    }

    /// Whether it exports the interface `motor:host/NAME`.
    #[must_use]
    pub fn exports_host_interface(&self, name: &str) -> bool {
        let wanted = format!("motor:host/{name}@");
        self.exports.iter().any(|export| export.name.starts_with(&wanted))
    }
}

/// The version of `motor:host` this host speaks.
pub const HOST_VERSION: &str = "0.1.0";

/// Proposals a component may use; the engine is configured to the same.
fn features() -> WasmFeatures {
    WasmFeatures::WASM2 | WasmFeatures::COMPONENT_MODEL
}

/// Reads a component.
///
/// # Errors
/// A [`LoadError`] that says what is wrong with the bytes and what to do.
pub fn inspect(bytes: &[u8], most_bytes: u64) -> Result<Inspection, LoadError> {
    check_kind(bytes, most_bytes)?;
    let types = Validator::new_with_features(features())
        .validate_all(bytes)
        .map_err(|error| LoadError::Corrupt { offset: error.offset(), message: error.message().to_owned() })?;
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(|error| corrupt(&error))?;
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    let name = import.map_err(|error| corrupt(&error))?.name.name;
                    imports.push(Import { name: name.to_owned(), capability: capability(name)? });
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    let name = export.map_err(|error| corrupt(&error))?.name.name;
                    check_host_version(name)?;
                    exports.push(Export { name: name.to_owned(), functions: functions(types.as_ref(), name) });
                }
            }
            _ => (),
        }
    }
    Ok(Inspection { hash: ContentHash::of(bytes), size_bytes: bytes.len() as u64, exports, imports })
}

fn corrupt(error: &wasmparser::BinaryReaderError) -> LoadError {
    LoadError::Corrupt { offset: error.offset(), message: error.message().to_owned() }
}

fn functions(types: TypesRef<'_>, export: &str) -> Vec<String> {
    let Some(item) = types.component_item_for_export(export) else { return Vec::new() };
    let ComponentEntityType::Instance(instance) = item.ty else { return Vec::new() };
    let exports = types.get(instance).map(|instance| &instance.exports);
    exports
        .into_iter()
        .flatten()
        .filter(|(_, item)| matches!(item.ty, ComponentEntityType::Func(_)))
        .map(|(name, _)| name.clone())
        .collect()
}

/// Tells a component from the things people pass instead of one.
fn check_kind(bytes: &[u8], most_bytes: u64) -> Result<(), LoadError> {
    if bytes.len() as u64 > most_bytes {
        return Err(LoadError::TooLarge { size_bytes: bytes.len() as u64, most_bytes });
    }
    if bytes.is_empty() {
        return Err(LoadError::Empty);
    }
    if !bytes.starts_with(b"\0asm") {
        return Err(LoadError::NotWebAssembly { looks_like: looks_like(bytes) });
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

fn capability(import: &str) -> Result<Capability, LoadError> {
    let refused = |why| LoadError::ForbiddenImport { import: import.to_owned(), why };
    let (package, version) = match import.split_once('@') {
        Some((package, version)) => (package, Some(version)),
        None => (import, None),
    };
    if let Some(interface) = package.strip_prefix("motor:host/") {
        check_host_version(import)?;
        return match interface {
            "types" => Ok(Capability::Types),
            "log" | "progress" => Ok(Capability::Log),
            "outbound" => Ok(Capability::Network),
            "credentials" => Ok(Capability::Credentials),
            _ => Err(refused(
                "this host offers `log`, `progress`, `outbound` and `credentials` of `motor:host`; build against its `wit/`",
            )),
        };
    }
    if let Some(interface) = package.strip_prefix("wasi:") {
        if !version.is_some_and(|version| version.starts_with("0.2.")) {
            return Err(LoadError::UnsupportedWasi { import: import.to_owned() });
        }
        let (package, interface) = interface.split_once('/').unwrap_or((interface, ""));
        return match package {
            "cli" => Ok(Capability::CommandLine),
            "io" => Ok(Capability::Streams),
            "clocks" => Ok(Capability::Clock),
            "random" => Ok(Capability::Random),
            "filesystem" => Ok(Capability::Workspace),
            "sockets" => {
                Err(refused("sockets are never given to a component; leave out what opens them (in Rust: `std::net`)"))
            }
            "http" if matches!(interface, "types" | "outgoing-handler") => Ok(Capability::Network),
            "http" => {
                Err(refused("a component asks, nobody asks it: of `wasi:http` it gets `types` and `outgoing-handler`"))
            }
            _ => Err(refused("this host does not offer that interface of WASI; build without it")),
        };
    }
    Err(refused("this host does not offer it; import only `wasi:` 0.2 and `motor:host` interfaces"))
}

/// A component built for another version of our WIT: a different minor version below 1.0 is another contract.
fn check_host_version(name: &str) -> Result<(), LoadError> {
    let Some(rest) = name.strip_prefix("motor:host/") else { return Ok(()) };
    let found = rest.split_once('@').map_or("none", |(_, version)| version);
    if found.starts_with("0.1.") {
        return Ok(());
    }
    Err(LoadError::HostVersion { found: found.to_owned(), interface: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(bytes: &[u8]) -> String {
        inspect(bytes, 1_000).unwrap_err().to_string()
    }

    #[test]
    fn says_what_is_wrong_with_what_is_no_component() {
        assert_eq!(refusal(b""), "the file is empty");
        assert!(refusal(b"hello").contains("a text file"), "{}", refusal(b"hello"));
        assert!(refusal(b"\x7fELF\x02").contains("native program"));
        assert!(refusal(b"\0asm\x01\0\0\0").contains("core module"));
        assert!(refusal(b"\0asm\x0d\0\x01\0garbage").contains("corrupt"));
        assert!(refusal(&[0; 2_000]).contains("2000 bytes"));
    }

    #[test]
    fn an_empty_component_needs_nothing() {
        let inspection = inspect(b"\0asm\x0d\0\x01\0", 1_000).unwrap();
        assert!(inspection.imports.is_empty() && inspection.exports.is_empty());
    }

    #[test]
    fn imports_are_granted_or_named() {
        assert_eq!(capability("wasi:io/streams@0.2.6").unwrap(), Capability::Streams);
        assert_eq!(capability("motor:host/log@0.1.0").unwrap(), Capability::Log);
        assert_eq!(capability("motor:host/credentials@0.1.0").unwrap(), Capability::Credentials);
        for network in ["wasi:http/types@0.2.0", "wasi:http/outgoing-handler@0.2.12", "motor:host/outbound@0.1.0"] {
            assert_eq!(capability(network).unwrap(), Capability::Network);
        }
        for (import, says) in [
            ("wasi:sockets/tcp@0.2.6", "std::net"),
            ("wasi:io/streams@0.3.0", "0.2"),
            ("wasi:nn/graph@0.2.0", "does not offer"),
            ("wasi:http/incoming-handler@0.2.0", "outgoing-handler"),
            ("wasi:http/proxy@0.2.0", "outgoing-handler"),
            ("wasi:http@0.2.0", "outgoing-handler"),
            ("wasi:http/handler@0.3.0", "0.2"),
            ("wasi:http/types@0.3.0-rc-2026-01-06", "0.2"),
            ("wasi:http/types@0.1.0", "0.2"),
            ("wasi:http/types", "0.2"),
            ("motor:host/credentials@0.2.0", "0.2.0"),
            ("motor:host/vault@0.1.0", "credentials"),
            ("motor:host/log@0.2.0", "0.2.0"),
            ("env", "does not offer"),
            ("evil:host/all@1.0.0", "does not offer"),
        ] {
            let error = capability(import).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains(import), "{import}: {error}");
        }
    }
}

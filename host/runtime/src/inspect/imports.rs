//! The capability of each import, and the imports that are never granted (SPEC HOST-2, HOST-7).
//!
//! An allowlist: any other import is refused with its name and the remedy.

use bindings::HOST_VERSION;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load_error::{LoadError, shown};

/// An ability that an import gives a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Arguments, environment and standard streams: all empty or bounded here.
    CommandLine,
    /// Streams and polling: no power of their own.
    Streams,
    /// Wall clock and monotonic clock.
    Clock,
    /// Random numbers, bounded in bytes.
    Random,
    /// Files and directories below `/workspace`.
    Workspace,
    /// Requests through the network gate.
    Network,
    /// Computing with secrets that the host keeps.
    Credentials,
    /// Handing scripts to the host. Only the bundled shell of a run is given an engine for them.
    Scripts,
    /// Lines in the run's log, and progress.
    Log,
    /// Shared types only, without any ability.
    Types,
    /// No ability: the toolchain imports it unasked, and a call to it ends the component. Sockets in Python, which are never granted,
    /// and the capabilities that the component gives up.
    Unused,
}

impl Capability {
    /// The stored and compared name; the same as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CommandLine => "command_line",
            Self::Streams => "streams",
            Self::Clock => "clock",
            Self::Random => "random",
            Self::Workspace => "workspace",
            Self::Network => "network",
            Self::Credentials => "credentials",
            Self::Scripts => "scripts",
            Self::Log => "log",
            Self::Types => "types",
            Self::Unused => "unused",
        }
    }

    /// Whether it lets the component do anything.
    #[must_use]
    pub fn is_ability(self) -> bool {
        !matches!(self, Self::Streams | Self::Types | Self::Unused)
    }

    /// Whether it reaches beyond the call itself: with none of these a component only computes.
    #[must_use]
    pub fn is_power(self) -> bool {
        matches!(self, Self::Network | Self::Workspace | Self::Credentials | Self::Scripts)
    }

    /// One phrase for people.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::CommandLine => "command line (arguments of the call, output is captured)",
            Self::Streams => "streams",
            Self::Clock => "clock",
            Self::Random => "random numbers",
            Self::Workspace => "workspace (files below /workspace)",
            Self::Network => "network (requests to the domains that a run was granted)",
            Self::Credentials => "credentials (computing with those that a run was granted, without seeing them)",
            Self::Scripts => "scripts (run by the host for the shell of a run, with what that run was granted)",
            Self::Log => "log and progress",
            Self::Types => "shared types",
            Self::Unused => "imports of the toolchain that are not granted: a call to one ends the tool",
        }
    }
}

pub(super) fn capability(import: &str) -> Result<Capability, LoadError> {
    let refused = |why: &'static str| LoadError::ForbiddenImport { import: shown(import), why: why.into() };
    if let Some(refused) = other_wasi(import) {
        return Err(refused);
    }
    let package = import.split_once('@').map_or(import, |(package, _)| package);
    if let Some(interface) = package.strip_prefix("motor:host/") {
        check_host_version(import)?;
        return match interface {
            "types" => Ok(Capability::Types),
            "log" | "progress" => Ok(Capability::Log),
            "outbound" => Ok(Capability::Network),
            "credentials" => Ok(Capability::Credentials),
            "scripts" => Ok(Capability::Scripts),
            _ if is_of_later_host(import) => Err(host_version(import)),
            _ => Err(refused(
                "this host offers `log`, `progress`, `outbound` and `credentials` of `motor:host`; build against its `wit/`",
            )),
        };
    }
    if let Some(interface) = package.strip_prefix("wasi:") {
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

/// Whether an import is of `wasi:sockets`, in a supported version.
pub(super) fn is_sockets(import: &str) -> bool {
    import.starts_with("wasi:sockets/") && other_wasi(import).is_none()
}

/// The refusal of an interface of an unsupported WASI.
pub(super) fn other_wasi(name: &str) -> Option<LoadError> {
    let (package, version) = name.split_once('@').unwrap_or((name, "without a version"));
    let is_spoken = |patch: &str| !patch.is_empty() && patch.bytes().all(|byte| byte.is_ascii_digit());
    if !package.starts_with("wasi:") || version.strip_prefix("0.2.").is_some_and(is_spoken) {
        return None;
    }
    let hint = match version {
        _ if version.starts_with("0.3.") => ", without `async` functions in its world (WASI 0.3 is not offered yet)",
        _ => "",
    };
    Some(LoadError::UnsupportedWasi { import: shown(name), version: shown(version), hint: hint.into() })
}

/// Refuses a component built for another version of our WIT: a different minor version below 1.0 is another contract.
pub(super) fn check_host_version(name: &str) -> Result<(), LoadError> {
    let is_compatible = || minor_and_patch(version(name)).map(|(minor, _)| minor) == host().map(|(minor, _)| minor);
    if !name.starts_with("motor:host/") || is_compatible() { Ok(()) } else { Err(host_version(name)) }
}

/// Whether a name is of a `motor:host` that this host is compatible with, and that may have more than this one.
pub(super) fn is_of_later_host(name: &str) -> bool {
    name.starts_with("motor:host/") && check_host_version(name).is_ok() && minor_and_patch(version(name)) > host()
}

/// The refusal of a name of another `motor:host`.
pub(super) fn host_version(name: &str) -> LoadError {
    LoadError::HostVersion { found: shown(version(name)), interface: shown(name) }
}

fn version(name: &str) -> &str {
    name.split_once('@').map_or("none", |(_, version)| version)
}

fn host() -> Option<(&'static str, u64)> {
    minor_and_patch(HOST_VERSION)
}

/// The parts of a version such as `0.1.2`: `0.1` and 2. A pre-release has none, because it is compatible with no other version.
fn minor_and_patch(version: &str) -> Option<(&str, u64)> {
    let (minor, patch) = version.rsplit_once('.')?;
    Some((minor, patch.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_json() {
        for capability in [
            Capability::CommandLine,
            Capability::Workspace,
            Capability::Network,
            Capability::Credentials,
            Capability::Scripts,
        ] {
            assert_eq!(serde_json::to_value(capability).unwrap(), capability.as_str());
        }
    }

    #[test]
    fn imports_are_granted_or_named() {
        assert_eq!(capability("wasi:io/streams@0.2.6").unwrap(), Capability::Streams);
        assert_eq!(capability("motor:host/log@0.1.0").unwrap(), Capability::Log);
        assert_eq!(capability("motor:host/log@0.1.99").unwrap(), Capability::Log);
        assert_eq!(capability("motor:host/credentials@0.1.0").unwrap(), Capability::Credentials);
        assert_eq!(capability("motor:host/scripts@0.1.2").unwrap(), Capability::Scripts);
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
            ("motor:host/vault@0.1.99", "0.1.99 of `motor:host`, this host speaks 0.1."),
            ("motor:host/log@0.1.99-rc.1", "0.1.99-rc.1 of `motor:host`"),
            ("motor:host/log", "version none"),
            ("env", "does not offer"),
            ("evil:host/all@1.0.0", "does not offer"),
        ] {
            let error = capability(import).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains(import), "{import}: {error}");
        }
    }
}

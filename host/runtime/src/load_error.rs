//! Why a component is not loaded, and who vouches for its bytes.

use std::borrow::Cow;

use base::text::Foreign;
use bindings::HOST_VERSION;
use serde::{Deserialize, Serialize};

/// The source of a component's bytes, which decides how far they are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComponentOrigin {
    /// Part of this program: read in this process, and compiled here unless that was done when the program was
    /// built ([`Component::load_precompiled`](crate::Component::load_precompiled)) or by a child
    /// ([`Component::prepare`](crate::Component::prepare)).
    Bundled,
    /// From outside: read and compiled in a child process with resource limits, where a kill is harmless.
    Untrusted,
}

/// The reason a component is not loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The file is larger than the cap.
    #[error(
        "the component has {size_bytes} bytes, more than the {most_bytes} that are loaded; strip debug information"
    )]
    TooLarge {
        /// Size of the file in bytes.
        size_bytes: u64,
        /// The cap in bytes.
        most_bytes: u64,
    },
    /// The file does not begin like WebAssembly.
    #[error("this is {looks_like}, not a WebAssembly component")]
    NotWebAssembly {
        /// The file type that its first bytes suggest.
        looks_like: Cow<'static, str>,
    },
    /// The file is a core module.
    #[error(
        "this is a WebAssembly core module, not a component; build it for `wasm32-wasip2`, or turn it into a component \
         with `wasm-tools component new`"
    )]
    CoreModule,
    /// The component does not validate.
    #[error("the component is corrupt: {message} (at byte {offset})")]
    Corrupt {
        /// Offset of the error in bytes.
        offset: usize,
        /// The validator's message.
        message: String,
    },
    /// The component would validate with proposals that are off.
    #[error(
        "the component uses {proposal}, a WebAssembly proposal that is off here ({message}, at byte {offset}); {remedy}"
    )]
    Proposal {
        /// The proposals, by their names.
        proposal: String,
        /// Offset of the first use in bytes.
        offset: usize,
        /// The validator's message.
        message: String,
        /// The remedy, for the component's author.
        remedy: Cow<'static, str>,
    },
    /// The component needs WASI of another generation.
    #[error(
        "the component needs `{import}`, of WASI {version}; this host runs WASI 0.2: build it for `wasm32-wasip2`{hint}"
    )]
    UnsupportedWasi {
        /// Full name of the import or export.
        import: String,
        /// The WASI version, such as `0.3.0`.
        version: String,
        /// A further remedy, for a version that toolchains produce on request.
        hint: Cow<'static, str>,
    },
    /// The component imports an interface that is never granted.
    #[error("the component imports `{import}`: {why}")]
    ForbiddenImport {
        /// Full name of the import.
        import: String,
        /// The reason and the remedy.
        why: Cow<'static, str>,
    },
    /// The component was built against another version of our WIT, and needs something that this host does not have.
    #[error(
        "`{interface}` is of version {found} of `motor:host`, this host speaks {HOST_VERSION}: rebuild against its `wit/`, \
         or use a host of that version"
    )]
    HostVersion {
        /// The version it was built for.
        found: String,
        /// Full name of the import or export.
        interface: String,
    },
    /// The component lacks the export that this use needs.
    #[error("the component does not export `{wanted}`; build it for that world of `motor:host` {HOST_VERSION}")]
    MissingExport {
        /// The interface that is missing.
        wanted: Cow<'static, str>,
    },
    /// An interface of ours is exported in part, or with other types.
    #[error(
        "the component's export `motor:host/tools` is not that of `motor:host` {HOST_VERSION}: {message}; export all of it, \
         as `wit/tools.wit` has it"
    )]
    NotExported {
        /// The engine's message: the function that is missing or different.
        message: String,
    },
    /// None of its exports can be called as a tool.
    #[error(
        "the component offers no tools: {why}; export `motor:host/tools`, `wasi:cli/run`, or a function whose types are \
         plain data"
    )]
    NoTools {
        /// The reason that no export is a tool.
        why: String,
    },
    /// The component needs a capability that this use does not grant.
    #[error("the component cannot be linked: {message}")]
    NotLinked {
        /// The linker's message.
        message: String,
    },
    /// The compiler refused the component.
    #[error("the component does not compile: {message}")]
    NotCompiled {
        /// The compiler's message.
        message: String,
    },
    /// Inspecting or compiling the component exceeded a limit.
    #[error(
        "reading the component took more than {limit}, the limit for components from outside (`[engine]` in \
         `motor.toml`): it is too large, or made to be slow"
    )]
    CompileLimit {
        /// The limit, with its value.
        limit: String,
    },
    /// The worker had no answer in time, which also happens on a busy machine.
    #[error("reading the component took longer than {seconds} s; try again when the machine is less busy")]
    WorkerTimeout {
        /// The wall-clock limit in seconds.
        seconds: u64,
    },
    /// Its types or components are nested deeper than the validator can follow.
    #[error("the component's types or components are nested too deeply to be read; no toolchain makes such a file")]
    Nested,
    /// Its instances, memories or tables are more, or larger, than those of one sandbox.
    #[error("the component does not fit into a sandbox: {message}; {remedy}")]
    TooLargeForSandbox {
        /// The engine's message: the number and the limit.
        message: String,
        /// The remedy, for the author or the operator.
        remedy: Cow<'static, str>,
    },
    /// The component has more imports, exports or names than are read.
    #[error("the component has more than {max} {what}; split it into several components")]
    TooManyNames {
        /// The excess, such as `imports` or `bytes of names`.
        what: Cow<'static, str>,
        /// The limit, in units of the excess.
        max: usize,
    },
    /// No compile worker is configured, and the bytes are untrusted.
    #[error("components from outside cannot be read here: no compile worker is configured")]
    NoCompileWorker,
    /// The worker crashed on these bytes.
    #[error(
        "the component crashed the process that reads components from outside ({status}: {words}); nothing else is \
         affected, and the component is not loaded"
    )]
    WorkerCrash {
        /// The worker's exit status or signal.
        status: String,
        /// The first line of the worker's standard error.
        words: String,
    },
    /// The host or the worker process failed.
    #[error("the process that reads components from outside failed: {message}")]
    Worker {
        /// The cause of the failure.
        message: String,
    },
}

impl LoadError {
    /// Whether the same bytes would be refused again: a failure of the host or a busy machine is not about the bytes.
    #[must_use]
    pub fn is_about_the_bytes(&self) -> bool {
        use LoadError::{NoCompileWorker, Worker, WorkerCrash, WorkerTimeout};
        !matches!(self, NoCompileWorker | WorkerTimeout { .. } | WorkerCrash { .. } | Worker { .. })
    }
}

/// Characters of one name of a component that an error shows.
const MAX_SHOWN_NAME: usize = 120;
/// Characters of a message of the validator, the compiler or the linker that are shown: it holds a component's own
/// names.
const MAX_MESSAGE: usize = 300;

/// A name of a component, cut: its author may make it arbitrarily long.
pub(crate) fn shown(name: &str) -> String {
    Foreign(name).escaped(MAX_SHOWN_NAME)
}

/// Puts such a message on one line and cuts it.
pub(crate) fn told(message: &str) -> String {
    Foreign(message).line(MAX_MESSAGE)
}

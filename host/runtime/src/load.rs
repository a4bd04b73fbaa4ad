//! Loading a component: one buffer is hashed, inspected, compiled, and that buffer only (SPEC HOST-4, HOST-8).

use std::borrow::Cow;
use std::sync::Arc;

use base::ContentHash;
use base::text::cut_line;
use serde::{Deserialize, Serialize};

use crate::compile;
use crate::engine::Runtime;
use crate::inspect::{HOST_VERSION, Inspection};

/// Who vouches for the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// This program, which they are part of: read in this process, and compiled here unless a child did so before
    /// ([`Component::prepare`]).
    Bundled,
    /// No one: read and compiled in a child process with resource limits, where a kill is harmless.
    Untrusted,
}

/// A compiled component. Cheap to clone.
#[derive(Clone)]
pub struct Component {
    pub(crate) compiled: wasmtime::component::Component,
    inspection: Arc<Inspection>,
}

impl Component {
    /// Loads a component from the bytes that were verified.
    ///
    /// # Errors
    /// A [`LoadError`] that says what is wrong and what to do.
    pub async fn load(runtime: &Runtime, bytes: &[u8], origin: Origin) -> Result<Self, LoadError> {
        let inspection = runtime.inspect(bytes, origin).await?;
        let compiled = compile::compile(runtime, bytes, inspection.hash, origin).await?;
        Ok(Self { compiled, inspection })
    }

    /// Has a bundled component compiled in a child, which leaves the code in the cache for [`Component::load`]: a compiler
    /// takes hundreds of megabytes that a process does not give back. Does nothing without a cache or a worker, or when
    /// that was done before.
    ///
    /// # Errors
    /// When the child fails. Loading compiles the component then.
    pub async fn prepare(runtime: &Runtime, bytes: &[u8]) -> Result<(), LoadError> {
        compile::prepare(runtime, bytes).await
    }

    /// What it is and could do.
    #[must_use]
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }

    /// The hash of the bytes it was compiled from.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        self.inspection.hash
    }
}

/// Why a component is not loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// There is nothing in it.
    #[error("the file is empty")]
    Empty,
    /// Over the size cap.
    #[error(
        "the component has {size_bytes} bytes, more than the {most_bytes} that are loaded; strip debug information"
    )]
    TooLarge {
        /// What it has.
        size_bytes: u64,
        /// What is allowed.
        most_bytes: u64,
    },
    /// It does not begin like WebAssembly.
    #[error("this is {looks_like}, not a WebAssembly component")]
    NotWebAssembly {
        /// What its first bytes look like.
        looks_like: Cow<'static, str>,
    },
    /// A core module.
    #[error(
        "this is a WebAssembly core module, not a component; build it for `wasm32-wasip2`, or turn it into a component \
         with `wasm-tools component new`"
    )]
    CoreModule,
    /// It does not validate.
    #[error("the component is corrupt: {message} (at byte {offset})")]
    Corrupt {
        /// Where.
        offset: usize,
        /// What the validator says.
        message: String,
    },
    /// It would validate with proposals that are off.
    #[error(
        "the component uses {proposal}, a WebAssembly proposal that is off here ({message}, at byte {offset}); {remedy}"
    )]
    Proposal {
        /// The proposals, by their names.
        proposal: String,
        /// Where it is used first.
        offset: usize,
        /// What the validator says.
        message: String,
        /// What to do.
        remedy: Cow<'static, str>,
    },
    /// WASI of another generation.
    #[error(
        "the component needs `{import}`, of WASI {version}; this host runs WASI 0.2: build it for `wasm32-wasip2`{hint}"
    )]
    UnsupportedWasi {
        /// The import or export.
        import: String,
        /// Its version, such as `0.3.0`.
        version: String,
        /// More to do, for a version that toolchains make on request.
        hint: Cow<'static, str>,
    },
    /// Something no component is given.
    #[error("the component imports `{import}`: {why}")]
    ForbiddenImport {
        /// The import.
        import: String,
        /// Why not, and what to do.
        why: Cow<'static, str>,
    },
    /// Built against another version of our WIT.
    #[error(
        "`{interface}` is of version {found} of `motor:host`, this host speaks {HOST_VERSION}: rebuild against its `wit/`"
    )]
    HostVersion {
        /// The version it was built for.
        found: String,
        /// The import or export.
        interface: String,
    },
    /// It has none of the exports that this use of it needs.
    #[error("the component does not export `{wanted}`; build it for that world of `motor:host` {HOST_VERSION}")]
    MissingExport {
        /// What was looked for.
        wanted: Cow<'static, str>,
    },
    /// Nothing that it exports can be called as a tool.
    #[error(
        "the component offers no tools: {why}; export `motor:host/tools`, `wasi:cli/run`, or a function whose types are \
         plain data"
    )]
    NoTools {
        /// What it has instead.
        why: String,
    },
    /// It needs a capability that this use does not grant.
    #[error("the component cannot be linked: {message}")]
    NotLinked {
        /// What the linker says.
        message: String,
    },
    /// The compiler refused it.
    #[error("the component does not compile: {message}")]
    NotCompiled {
        /// What the compiler says.
        message: String,
    },
    /// Inspecting or compiling it took more than it may.
    #[error(
        "reading the component took more than {limit}, the limit for components from outside (`[engine]` in \
         `motor.toml`): it is too large, or made to be slow"
    )]
    CompileLimit {
        /// Which limit, with its value.
        limit: String,
    },
    /// The worker had no answer in time, which also happens on a machine that is busy with other things.
    #[error("reading the component took longer than {seconds} s; try again when the machine is less busy")]
    WorkerTimeout {
        /// The time by the clock.
        seconds: u64,
    },
    /// Its types or components are nested deeper than the validator can follow.
    #[error("the component's types or components are nested too deeply to be read; no toolchain makes such a file")]
    Nested,
    /// Its instances, memories or tables are more, or larger, than those of one sandbox.
    #[error("the component does not fit into a sandbox: {message}; {remedy}")]
    TooLargeForSandbox {
        /// What the engine says: the number and the limit.
        message: String,
        /// What to do.
        remedy: Cow<'static, str>,
    },
    /// It has more imports or exports than are listed.
    #[error("the component has more than {max} {what}; split it into several components")]
    TooManyNames {
        /// `imports` or `exports`.
        what: Cow<'static, str>,
        /// The limit.
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
        /// How it ended.
        status: String,
        /// The first line of its last words.
        words: String,
    },
    /// The host failed.
    #[error("the process that reads components from outside failed: {message}")]
    Worker {
        /// How.
        message: String,
    },
}

impl LoadError {
    /// Whether the same bytes would be refused again: a failure of the host or a busy machine says nothing about them.
    #[must_use]
    pub fn is_about_the_bytes(&self) -> bool {
        use LoadError::{NoCompileWorker, Worker, WorkerCrash, WorkerTimeout};
        !matches!(self, NoCompileWorker | WorkerTimeout { .. } | WorkerCrash { .. } | Worker { .. })
    }
}

/// Characters of a message of the validator, the compiler or the linker that are shown: it holds a component's own names.
const MAX_MESSAGE: usize = 300;

/// Such a message on one line, cut.
pub(crate) fn told(message: &str) -> String {
    cut_line(message, MAX_MESSAGE)
}

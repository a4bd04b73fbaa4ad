//! Loading a component: one buffer is hashed, inspected, compiled, and that buffer only (SPEC HOST-4, HOST-8).

use std::sync::Arc;

use base::ContentHash;

use crate::compile;
use crate::engine::Runtime;
use crate::inspect::{HOST_VERSION, Inspection, inspect};

/// Who vouches for the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// They are part of this program: compiled in this process.
    Bundled,
    /// Nobody: compiled in a child process with resource limits, where a kill is harmless.
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
        let inspection = Arc::new(inspect(bytes, runtime.config().component_bytes)?);
        let compiled = match origin {
            Origin::Bundled => compile::in_process(runtime, bytes)?,
            Origin::Untrusted => compile::in_child(runtime, bytes).await?,
        };
        Ok(Self { compiled, inspection })
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
#[derive(Debug, thiserror::Error)]
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
        looks_like: &'static str,
    },
    /// A core module.
    #[error(
        "this is a WebAssembly core module, not a component; build it for `wasm32-wasip2`, or turn it into a component \
         with `wasm-tools component new`"
    )]
    CoreModule,
    /// It does not validate.
    #[error(
        "the component is corrupt, or uses a WebAssembly proposal that is switched off: {message} (at byte {offset})"
    )]
    Corrupt {
        /// Where.
        offset: usize,
        /// What the validator says.
        message: String,
    },
    /// WASI of another generation.
    #[error("`{import}` is of a version of WASI that this host does not speak; build for WASI 0.2 (`wasm32-wasip2`)")]
    UnsupportedWasi {
        /// The import.
        import: String,
    },
    /// Something no component is given.
    #[error("the component imports `{import}`: {why}")]
    ForbiddenImport {
        /// The import.
        import: String,
        /// Why not, and what to do.
        why: &'static str,
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
        wanted: &'static str,
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
    /// Compiling it took more than it may.
    #[error("compiling the component took more than {limit}: it is too large or made to be slow")]
    CompileLimit {
        /// Which limit, with its value.
        limit: String,
    },
    /// No compile worker is configured, and the bytes are nobody's.
    #[error("components from outside cannot be compiled here: no compile worker is configured")]
    NoCompileWorker,
    /// The host failed.
    #[error("the compile worker failed: {message}")]
    Worker {
        /// How.
        message: String,
    },
}

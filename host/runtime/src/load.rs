//! Loading a component: one buffer is hashed, inspected, compiled, and that buffer only (SPEC HOST-4, HOST-8).

use std::sync::Arc;

use base::ContentHash;

use crate::compile;
use crate::engine::Runtime;
use crate::inspect::{Inspection, check_size, inspect_bundled};
use crate::load_error::{ComponentOrigin, LoadError};
use crate::precompiled;

/// A compiled component. Cheap to clone.
#[derive(Clone)]
pub struct Component {
    pub(crate) compiled: wasmtime::component::Component,
    inspection: Arc<Inspection>,
}

impl Component {
    /// Loads a component from the verified bytes.
    ///
    /// # Errors
    /// A [`LoadError`] that names the problem and the remedy.
    pub async fn load(runtime: &Runtime, bytes: &[u8], origin: ComponentOrigin) -> Result<Self, LoadError> {
        if origin == ComponentOrigin::Bundled {
            let inspection = runtime.inspect(bytes, origin).await?;
            return Ok(Self { compiled: compile::compile_bundled(runtime, bytes)?, inspection });
        }
        check_size(bytes, runtime.config().component_bytes)?;
        let hash = ContentHash::of(bytes);
        // Side by side, each in a child of its own. A component that is not inspected to the end is not used, and the reason of the
        // inspection is the better one: it ends the compiler, and never the other way round.
        let compiled = async { Ok(compile::compile_untrusted(runtime, bytes, hash).await) };
        let (inspection, compiled) = tokio::try_join!(runtime.inspect_untrusted(bytes, hash), compiled)?;
        Ok(Self { compiled: compiled?, inspection })
    }

    /// Loads a bundled component with the code that it was compiled to when the program was built: no compiler runs.
    ///
    /// # Errors
    /// If the code is of another component, of another engine, or for another processor. [`Component::load`] compiles
    /// the component then.
    pub fn load_precompiled(runtime: &Runtime, bytes: &[u8], code: &[u8]) -> Result<Self, LoadError> {
        let inspection = Arc::new(inspect_bundled(bytes, runtime.config().component_bytes)?);
        let compiled = precompiled::load(runtime, code, inspection.hash)?;
        Ok(Self { compiled, inspection })
    }

    /// Compiles a bundled component in a child, which leaves the code in the cache for [`Component::load`]: a compiler
    /// takes hundreds of megabytes that a process does not give back. Does nothing without a cache or a worker, or if
    /// it was done before.
    ///
    /// # Errors
    /// If the child fails. Loading compiles the component then.
    pub async fn prepare(runtime: &Runtime, bytes: &[u8]) -> Result<(), LoadError> {
        compile::prepare(runtime, bytes).await
    }

    /// The kind, imports and exports of the component.
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

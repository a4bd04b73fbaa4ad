//! The components, each compiled at its first use (SPEC HOST-6): bundled ones, and those of skills, by the hash of the
//! verified bytes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use base::{ContentHash, Refusal, RefusalCode};
use bundled::PackedComponent;
use motor::Preparing;
use parking_lot::Mutex;
use runtime::{
    CodeSandbox, Component, ComponentOrigin, Language, Limits, LoadError, Outcome, Runtime, ToolComponent,
    ToolDescription,
};
use tokio::sync::OnceCell;

use crate::catalogue;
use crate::pinned;
use crate::preparing::Preparations;
use store::broke_off;

/// A component with its tools.
#[derive(Clone)]
pub struct Toolset {
    /// The component, linked and ready to be called.
    pub component: ToolComponent,
    /// The tools it describes.
    pub tools: Vec<ToolDescription>,
}

/// A tool of a skill's component.
#[derive(Clone)]
pub struct SkillTool {
    /// The loaded component of the tool.
    pub toolset: Toolset,
    /// The tool under its component's own name, with its description.
    pub tool: ToolDescription,
}

/// The position of a component among those loaded together: for people who wait.
#[derive(Debug, Clone, Copy)]
pub struct CompileTurn {
    /// Position, counted from 1.
    pub number: usize,
    /// Number of components loaded together.
    pub of: usize,
}

impl CompileTurn {
    /// A component that is loaded alone.
    pub const ONLY: Self = Self { number: 1, of: 1 };

    fn of(self, component: &str) -> Preparing {
        Preparing { component: component.to_owned(), number: self.number, of: self.of }
    }
}

/// The engine and the loaded components.
pub struct SandboxPool {
    runtime: Runtime,
    preparations: Preparations,
    /// Directories that engines beside the program are looked for in.
    engines: Vec<PathBuf>,
    /// Engines of programs, by language and by whether they are connected.
    programs: HashMap<(Language, bool), OnceCell<CodeSandbox>>,
    /// Bundled components of tools, by name.
    bundled: HashMap<&'static str, OnceCell<Toolset>>,
    /// Components of skills, by hash.
    others: Mutex<HashMap<ContentHash, Arc<OnceCell<Toolset>>>>,
}

/// Components of skills that stay loaded. It does not matter which: their code is in the engine's cache.
const MAX_OTHERS: usize = 64;

impl SandboxPool {
    /// The engine of all components.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// A pool that has nothing loaded yet. Engines beside the program are looked for in `engines`, and where they were built.
    #[must_use]
    pub fn new(runtime: Runtime, engines: Vec<PathBuf>) -> Self {
        Self {
            runtime,
            preparations: Preparations::default(),
            engines,
            programs: catalogue::ENGINES.iter().map(|(key, _)| (*key, OnceCell::new())).collect(),
            bundled: catalogue::components().map(|name| (name, OnceCell::new())).collect(),
            others: Mutex::default(),
        }
    }

    /// The announcements of slow loads.
    #[must_use]
    pub fn preparations(&self) -> &Preparations {
        &self.preparations
    }

    /// The engine of a language: `connected` to the access that a program is granted, or without any.
    ///
    /// # Errors
    /// If it cannot be loaded.
    pub async fn code(&self, language: Language, connected: bool, turn: CompileTurn) -> Result<&CodeSandbox, Refusal> {
        let key = (language, connected);
        let Some(cell) = self.programs.get(&key) else { return Err(missing("code")) };
        let loading = cell.get_or_try_init(|| async {
            let link = if connected { CodeSandbox::link_connected } else { CodeSandbox::link };
            let component = self.bundled(catalogue::engine(key)).await?;
            let sandbox = link(&self.runtime, &component).map_err(|error| broken("code", &error))?;
            Ok(sandbox.speaking(language))
        });
        self.preparations.of(turn.of("code"), loading).await
    }

    /// The hash of the engine that Python runs in, if this host has it. It is not read for that.
    #[must_use]
    pub fn python(&self, connected: bool) -> Option<ContentHash> {
        pinned::find(catalogue::engine((Language::Python, connected)), &self.engines).map(|found| found.component)
    }

    /// The bundled component of tools with this name.
    ///
    /// # Errors
    /// If this build lacks it, it cannot be loaded, or it does not list its tools.
    pub async fn tools(&self, name: &str, turn: CompileTurn) -> Result<&Toolset, Refusal> {
        let Some(cell) = self.bundled.get(name) else { return Err(missing(name)) };
        let toolset = cell.get_or_try_init(|| async {
            let component = self.bundled(name).await?;
            toolset(&self.runtime, &component).await.map_err(|error| Refusal {
                reason: format!("the bundled component `{name}` cannot be used: {}", error.reason),
                ..error
            })
        });
        self.preparations.of(turn.of(name), toolset).await
    }

    async fn bundled(&self, name: &str) -> Result<Component, Refusal> {
        let component = match pinned::find(name, &self.engines) {
            Some(engine) => engine.read().await?,
            None => bundled_component(name).await?,
        };
        load(&self.runtime, component).await.map_err(|error| broken(name, &error))
    }

    /// The component of these untrusted bytes. `hash` is their hash, and `path` the name shown to people.
    ///
    /// # Errors
    /// If it cannot be loaded, or does not list its tools.
    pub async fn component(
        &self,
        hash: ContentHash,
        bytes: &[u8],
        path: &str,
        turn: CompileTurn,
    ) -> Result<Toolset, Refusal> {
        let cell = {
            let mut others = self.others.lock();
            if others.len() >= MAX_OTHERS && !others.contains_key(&hash) {
                others.clear();
            }
            others.entry(hash).or_default().clone()
        };
        let found = cell.get_or_try_init(|| async {
            let component =
                Component::load(&self.runtime, bytes, ComponentOrigin::Untrusted).await.map_err(unusable)?;
            if component.hash() != hash {
                return Err(Refusal::new(RefusalCode::SkillUntrusted, "the bytes are not those that were verified"));
            }
            toolset(&self.runtime, &component).await
        });
        Ok(self.preparations.of(turn.of(path), found).await?.clone())
    }
}

/// Links a component and asks it for its tools.
async fn toolset(runtime: &Runtime, component: &Component) -> Result<Toolset, Refusal> {
    let component = ToolComponent::link(runtime, component).map_err(unusable)?;
    match component.describe(Limits::default()).await.outcome {
        Outcome::Returned(tools) => Ok(Toolset { component, tools }),
        Outcome::Refused(runtime::ToolError::Failed { message, .. }) => {
            Err(Refusal::new(RefusalCode::InvalidComponent, message)
                .with_remedy("mend the component; its new bytes need a review and an approval"))
        }
        other => Err(Refusal::new(
            RefusalCode::InvalidComponent,
            format!("the component does not say what it offers: {other:?}"),
        )),
    }
}

fn unusable(error: LoadError) -> Refusal {
    Refusal::new(RefusalCode::InvalidComponent, error.to_string())
}

/// Loads a bundled component with the code that it was built with. If that does not fit, it is compiled into the cache
/// and loaded from there; without a cache that blocks a thread for seconds: not one that drives runs.
///
/// # Errors
/// If it cannot be compiled or loaded.
pub async fn load(
    runtime: &Runtime,
    BundledComponent { bytes, code }: BundledComponent,
) -> Result<Component, LoadError> {
    let bytes = Arc::new(bytes);
    if let Some(code) = code {
        let owned = runtime.clone();
        let component = Arc::clone(&bytes);
        match blocking(move || Component::load_precompiled(&owned, &component, &code)).await {
            Ok(component) => return Ok(component),
            Err(error) => tracing::info!(%error, "the code of a bundled component does not fit, so it is compiled"),
        }
    }
    if let Err(error) = Component::prepare(runtime, &bytes).await {
        tracing::warn!(%error, "a bundled component is compiled in the host itself");
    }
    let runtime = runtime.clone();
    blocking(move || {
        tokio::runtime::Handle::current().block_on(Component::load(&runtime, &bytes, ComponentOrigin::Bundled))
    })
    .await
}

/// Runs work of milliseconds or more on a thread that drives no runs.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LoadError> + Send + 'static,
) -> Result<T, LoadError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(LoadError::Worker { message: broke_off(&error).reason }))
}

/// A component that is part of the program, or known to it by its hash.
#[derive(Debug, Clone)]
pub struct BundledComponent {
    /// Bytes of the component, as it was built.
    pub bytes: Vec<u8>,
    /// The code that it was compiled to when it was built.
    pub code: Option<Cow<'static, [u8]>>,
}

/// The bundled component with this name.
///
/// # Errors
/// If the program was built without it.
pub async fn bundled_component(name: &str) -> Result<BundledComponent, Refusal> {
    let component = bundled::component(name).ok_or_else(|| missing(name))?;
    let unpacking = tokio::task::spawn_blocking(move || unpack(component));
    let bytes = unpacking.await.unwrap_or_else(|error| Err(broke_off(&error)))?;
    Ok(BundledComponent { bytes, code: bundled::code(name).map(Cow::from) })
}

/// The bytes of a component in the program. The shell's 12 MB take 10 ms.
///
/// # Errors
/// If they cannot be unpacked.
pub fn unpack(component: PackedComponent) -> Result<Vec<u8>, Refusal> {
    zstd::decode_all(component.packed).map_err(|error| broken(component.name, &error))
}

fn missing(name: &str) -> Refusal {
    let is_beside =
        catalogue::ENGINES.iter().any(|((language, _), engine)| *engine == name && *language == Language::Python);
    let command = if is_beside { "cargo xtask python" } else { "cargo xtask guests" };
    Refusal::new(RefusalCode::InvalidComponent, format!("this program was built without the component `{name}`"))
        .with_remedy(format!("run `{command}` in its sources and build it again"))
}

fn broken(name: &str, error: &dyn Display) -> Refusal {
    Refusal::new(RefusalCode::InvalidComponent, format!("the bundled component `{name}` cannot be used: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_component_that_was_not_built_is_refused_with_the_way_to_build_it() {
        let refusal = bundled_component("never-built").await.unwrap_err();
        assert_eq!(refusal.code, RefusalCode::InvalidComponent);
        assert!(refusal.reason.contains("`never-built`"), "{}", refusal.reason);
        assert!(refusal.remedy.is_some_and(|remedy| remedy.contains("cargo xtask guests")));
        let refusal = missing("code-python");
        assert!(refusal.remedy.is_some_and(|remedy| remedy.contains("cargo xtask python")));
        let files = bundled_component("files").await.unwrap();
        assert_eq!(ContentHash::of(&files.bytes).as_bytes(), bundled::component("files").unwrap().hash);
    }
}

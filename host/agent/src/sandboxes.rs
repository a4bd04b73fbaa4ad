//! The components, each compiled at its first use (SPEC HOST-6): bundled ones, and those of skills, by the hash of the
//! verified bytes.

use std::collections::HashMap;
use std::sync::Arc;

use base::{ContentHash, Refusal, RefusalCode};
use motor::Preparing;
use parking_lot::Mutex;
use runtime::{
    CodeSandbox, Component, ComponentOrigin, Limits, LoadError, Outcome, Runtime, ToolComponent, ToolDescription,
};
use tokio::sync::OnceCell;

use crate::preparing::Preparations;
use store::broke_off;

/// A component with its tools.
#[derive(Clone)]
pub(crate) struct Toolset {
    pub component: ToolComponent,
    pub tools: Vec<ToolDescription>,
}

/// A bundled component of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bundle {
    Files,
    Fetch,
    Bash,
}

impl Bundle {
    fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Fetch => "fetch",
            Self::Bash => "bash",
        }
    }

    fn bytes(self) -> &'static [u8] {
        match self {
            Self::Files => bundled::FILES,
            Self::Fetch => bundled::FETCH,
            Self::Bash => bundled::BASH,
        }
    }
}

/// The position of a component among those loaded together: for people who wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompileTurn {
    /// Position, counted from 1.
    pub number: usize,
    pub of: usize,
}

impl CompileTurn {
    pub const ONLY: Self = Self { number: 1, of: 1 };

    fn of(self, component: &str) -> Preparing {
        Preparing { component: component.to_owned(), number: self.number, of: self.of }
    }
}

/// The engine and the bundled guests.
pub(crate) struct Sandboxes {
    runtime: Runtime,
    preparations: Preparations,
    isolated: OnceCell<CodeSandbox>,
    connected: OnceCell<CodeSandbox>,
    files: OnceCell<Toolset>,
    fetch: OnceCell<Toolset>,
    bash: OnceCell<Toolset>,
    /// Components of skills, by hash.
    others: Mutex<HashMap<ContentHash, Arc<OnceCell<Toolset>>>>,
}

/// Components of skills that stay loaded. It does not matter which: their code is in the engine's cache.
const MAX_OTHERS: usize = 64;

impl Sandboxes {
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub fn new(runtime: Runtime) -> Self {
        Self {
            runtime,
            preparations: Preparations::default(),
            isolated: OnceCell::new(),
            connected: OnceCell::new(),
            files: OnceCell::new(),
            fetch: OnceCell::new(),
            bash: OnceCell::new(),
            others: Mutex::default(),
        }
    }

    /// The announcements of slow loads.
    pub fn preparations(&self) -> &Preparations {
        &self.preparations
    }

    /// The JavaScript engine without any access.
    pub async fn isolated(&self, turn: CompileTurn) -> Result<&CodeSandbox, Refusal> {
        let loading = code(&self.runtime, &self.isolated, bundled::CODE_JS, CodeSandbox::link);
        self.preparations.of(turn.of("code"), loading).await
    }

    /// The JavaScript engine with a run's granted access.
    pub async fn connected(&self, turn: CompileTurn) -> Result<&CodeSandbox, Refusal> {
        let loading = code(&self.runtime, &self.connected, bundled::CODE_JS_CONNECTED, CodeSandbox::link_connected);
        self.preparations.of(turn.of("code"), loading).await
    }

    /// A component of tools.
    pub async fn tools(&self, bundle: Bundle, turn: CompileTurn) -> Result<&Toolset, Refusal> {
        let cell = match bundle {
            Bundle::Files => &self.files,
            Bundle::Fetch => &self.fetch,
            Bundle::Bash => &self.bash,
        };
        let toolset = cell.get_or_try_init(|| async {
            let name = bundle.name();
            let component = load(&self.runtime, bundle.bytes()).await.map_err(|error| broken(name, &error))?;
            toolset(&self.runtime, &component).await.map_err(|error| Refusal {
                reason: format!("the bundled component `{name}` cannot be used: {}", error.reason),
                ..error
            })
        });
        self.preparations.of(turn.of(bundle.name()), toolset).await
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
            Err(Refusal::new(RefusalCode::InvalidComponent, message))
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

async fn code<'a>(
    runtime: &Runtime,
    cell: &'a OnceCell<CodeSandbox>,
    bytes: &'static [u8],
    link: fn(&Runtime, &Component) -> Result<CodeSandbox, LoadError>,
) -> Result<&'a CodeSandbox, Refusal> {
    let sandbox = cell.get_or_try_init(|| async {
        let component = load(runtime, bytes).await?;
        link(runtime, &component)
    });
    sandbox.await.map_err(|error| broken("code", &error))
}

/// Compiles a component into the cache if it is cold, and loads it from there. Without a cache that blocks a thread for
/// seconds: not one that drives runs.
pub(crate) async fn load(runtime: &Runtime, bytes: &'static [u8]) -> Result<Component, LoadError> {
    if let Err(error) = Component::prepare(runtime, bytes).await {
        tracing::warn!(%error, "a bundled component is compiled in the host itself");
    }
    let runtime = runtime.clone();
    let loading = tokio::task::spawn_blocking(move || {
        tokio::runtime::Handle::current().block_on(Component::load(&runtime, bytes, ComponentOrigin::Bundled))
    });
    loading.await.unwrap_or_else(|error| Err(LoadError::Worker { message: broke_off(&error).reason }))
}

fn broken(name: &str, error: &LoadError) -> Refusal {
    Refusal::new(RefusalCode::InvalidComponent, format!("the bundled component `{name}` cannot be used: {error}"))
}

//! The bundled components, each compiled when it is first needed (SPEC HOST-6).

use base::{Refusal, RefusalCode};
use runtime::{CodeSandbox, Component, Limits, LoadError, Origin, Outcome, Runtime, ToolComponent, ToolDescription};
use tokio::sync::OnceCell;

/// A component of tools with what it offers.
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

/// The engine and the bundled guests.
pub(crate) struct Sandboxes {
    runtime: Runtime,
    isolated: OnceCell<CodeSandbox>,
    connected: OnceCell<CodeSandbox>,
    files: OnceCell<Toolset>,
    fetch: OnceCell<Toolset>,
    bash: OnceCell<Toolset>,
}

impl Sandboxes {
    pub fn new(runtime: Runtime) -> Self {
        Self {
            runtime,
            isolated: OnceCell::new(),
            connected: OnceCell::new(),
            files: OnceCell::new(),
            fetch: OnceCell::new(),
            bash: OnceCell::new(),
        }
    }

    /// The JavaScript engine that reaches nothing.
    pub async fn isolated(&self) -> Result<&CodeSandbox, Refusal> {
        code(&self.runtime, &self.isolated, bundled::CODE_JS, CodeSandbox::link).await
    }

    /// The JavaScript engine that reaches what a run was granted.
    pub async fn connected(&self) -> Result<&CodeSandbox, Refusal> {
        code(&self.runtime, &self.connected, bundled::CODE_JS_CONNECTED, CodeSandbox::link_connected).await
    }

    /// A component of tools.
    pub async fn tools(&self, bundle: Bundle) -> Result<&Toolset, Refusal> {
        let cell = match bundle {
            Bundle::Files => &self.files,
            Bundle::Fetch => &self.fetch,
            Bundle::Bash => &self.bash,
        };
        let toolset = cell.get_or_try_init(|| async {
            let name = bundle.name();
            let component = load(&self.runtime, bundle.bytes()).await.map_err(|error| broken(name, &error))?;
            let component = ToolComponent::link(&self.runtime, &component).map_err(|error| broken(name, &error))?;
            match component.describe(Limits::default()).await.outcome {
                Outcome::Returned(tools) => Ok(Toolset { component, tools }),
                other => Err(Refusal::new(
                    RefusalCode::Failed,
                    format!("the bundled component `{name}` does not answer: {other:?}"),
                )),
            }
        });
        toolset.await
    }
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

/// Compiling takes a thread for a second when the cache is cold: not one that drives runs.
async fn load(runtime: &Runtime, bytes: &'static [u8]) -> Result<Component, LoadError> {
    let runtime = runtime.clone();
    let loading = tokio::task::spawn_blocking(move || {
        tokio::runtime::Handle::current().block_on(Component::load(&runtime, bytes, Origin::Bundled))
    });
    loading.await.unwrap_or_else(|error| Err(LoadError::Worker { message: error.to_string() }))
}

fn broken(name: &str, error: &LoadError) -> Refusal {
    Refusal::new(RefusalCode::InvalidComponent, format!("the bundled component `{name}` cannot be used: {error}"))
}

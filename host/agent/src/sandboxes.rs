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

/// The engine and the bundled guests.
pub(crate) struct Sandboxes {
    runtime: Runtime,
    code: OnceCell<CodeSandbox>,
    files: OnceCell<Toolset>,
}

impl Sandboxes {
    pub fn new(runtime: Runtime) -> Self {
        Self { runtime, code: OnceCell::new(), files: OnceCell::new() }
    }

    /// The JavaScript engine.
    pub async fn code(&self) -> Result<&CodeSandbox, Refusal> {
        self.code
            .get_or_try_init(|| async {
                let component = load(&self.runtime, bundled::CODE_JS).await?;
                CodeSandbox::link(&self.runtime, &component)
            })
            .await
            .map_err(|error| broken("code", &error))
    }

    /// The file tools.
    pub async fn files(&self) -> Result<&Toolset, Refusal> {
        let toolset = self.files.get_or_try_init(|| async {
            let component = load(&self.runtime, bundled::FILES).await.map_err(|error| broken("files", &error))?;
            let component = ToolComponent::link(&self.runtime, &component).map_err(|error| broken("files", &error))?;
            match component.describe(Limits::default()).await.outcome {
                Outcome::Returned(tools) => Ok(Toolset { component, tools }),
                other => Err(Refusal::new(RefusalCode::Failed, format!("the file tools do not answer: {other:?}"))),
            }
        });
        toolset.await
    }
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

//! The world a run works in: its toolbox, its model, and its trace file. What a run asked for is kept in its settings,
//! so that the same world is rebuilt after a restart.

use std::path::PathBuf;
use std::sync::Arc;

use base::{Clock, Random, Refusal, RefusalCode};
use llm::Model;
use motor::{Environment, RunRecord, RunTrace, Toolbox};
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::sandboxes::Sandboxes;
use crate::toolbox::{Parts, RunToolbox};
use crate::{Env, Home, models, trace_file};

/// What a run keeps to rebuild its environment from. Stored with the run: a field may be added, never renamed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunSettings {
    /// The model it named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The file its turns are recorded in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
    /// Whether the code tool's guard is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<bool>,
}

/// Builds runs' environments.
pub(crate) struct HostEnvironment {
    pub home: Home,
    pub config: Config,
    pub env: Env,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<Random>,
    pub sandboxes: Arc<Sandboxes>,
}

impl HostEnvironment {
    /// Connects to the model that settings name.
    ///
    /// # Errors
    /// When there is none, or what it needs is missing.
    pub fn connect(&self, settings: &RunSettings) -> Result<Arc<dyn Model>, Refusal> {
        models::connect(&self.config.models, &self.env, settings.model.as_deref(), settings.record.as_deref())
    }

    fn settings(run: &RunRecord) -> Result<RunSettings, Refusal> {
        serde_json::from_value(run.settings.clone()).map_err(|error| {
            Refusal::new(RefusalCode::StateUnusable, format!("the settings of {} cannot be read: {error}", run.id))
        })
    }
}

#[async_trait::async_trait]
impl Environment for HostEnvironment {
    async fn toolbox(&self, run: &RunRecord) -> Result<Arc<dyn Toolbox>, Refusal> {
        let settings = Self::settings(run)?;
        let parts = Parts {
            sandboxes: self.sandboxes.clone(),
            limits: self.config.limits,
            code: self.config.code.clone(),
            guard: settings.guard.unwrap_or(self.config.code.guard),
            clock: self.clock.clone(),
            random: self.random.clone(),
            workspace: self.home.workspace(&run.id),
        };
        Ok(Arc::new(RunToolbox::new(parts, &run.tools).await?))
    }

    async fn model(&self, run: &RunRecord) -> Result<Arc<dyn Model>, Refusal> {
        self.connect(&Self::settings(run)?)
    }

    async fn stepped(&self, trace: &RunTrace) {
        self.write(trace).await;
    }

    async fn finished(&self, trace: &RunTrace) {
        self.write(trace).await;
    }
}

impl HostEnvironment {
    /// A trace file is a copy for people: failing to write it never fails a run.
    async fn write(&self, trace: &RunTrace) {
        if let Err(error) = trace_file::write(&self.home.logs(), trace) {
            tracing::warn!(%error, "cannot write the run's trace file");
        }
    }
}

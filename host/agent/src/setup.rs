//! Setting a model up: the servers of this machine, the models of a provider, and one request as a test (SPEC CONF-3).

use std::time::Duration;

use base::{Refusal, RefusalCode, Secret};
use llm::{ChatRequest, Message, Model, ModelRef, Provider};
use providers::ProviderSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Env;
use crate::config::LoadedConfig;
use crate::models::refusal;
pub use providers::{EndpointAddress, LocalServer};

/// How long the test request may take: a local model may have to be loaded first.
const PATIENCE: Duration = Duration::from_secs(120);
/// The task of the test request.
const TEST: &str = "Reply with the single word: ready";

/// Models as they would be reached with settings that are not written yet.
pub struct ModelSetup {
    settings: ProviderSettings,
}

/// The reply to a test request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelAnswer {
    /// `provider/model` that answered.
    pub model: String,
    /// The first line of its words, cut.
    pub text: String,
    /// Milliseconds until the whole reply was there.
    pub elapsed_ms: u64,
}

impl ModelSetup {
    /// By the configuration and the environment, without the keys of the vault.
    #[must_use]
    pub fn new(config: &LoadedConfig, env: &Env) -> Self {
        let mut settings = config.config.models.providers(env);
        settings.retries.max = 0;
        settings.limits.deadline = PATIENCE;
        settings.limits.idle = PATIENCE;
        Self { settings }
    }

    /// The model servers that run on this machine.
    pub async fn local_servers(&self) -> Vec<LocalServer> {
        providers::local_servers(&self.settings).await
    }

    /// The address of a provider, and whether it has a key. `None` if its address is not known.
    #[must_use]
    pub fn address(&self, provider: Provider) -> Option<EndpointAddress> {
        self.settings.address(provider)
    }

    /// Reaches a provider at another address.
    pub fn set_url(&mut self, provider: Provider, url: &str) {
        if let Some(endpoint) = self.settings.endpoint_mut(provider) {
            endpoint.base_url = Some(url.to_owned());
        }
    }

    /// Reaches a provider at its own address.
    pub fn reset_url(&mut self, provider: Provider) {
        if let Some(endpoint) = self.settings.endpoint_mut(provider) {
            endpoint.base_url = None;
        }
    }

    /// Sends a key to a provider.
    pub fn set_key(&mut self, provider: Provider, key: Secret<String>) {
        if let Some(endpoint) = self.settings.endpoint_mut(provider) {
            endpoint.key = Some(key);
        }
    }

    /// The models that a provider offers.
    ///
    /// # Errors
    /// If the provider cannot be reached or refuses the key.
    pub async fn models(&self, provider: Provider) -> Result<Vec<String>, Refusal> {
        providers::models(provider, &self.settings).await.map_err(|error| refusal(&error))
    }

    /// Asks the model for one word.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn ask(&self, model: &ModelRef) -> Result<ModelAnswer, Refusal> {
        let connected = providers::connect(model, &self.settings).map_err(|error| refusal(&error))?;
        ask(&*connected).await
    }
}

/// Asks a connected model for one word.
///
/// # Errors
/// If it does not answer.
pub(crate) async fn ask(model: &dyn Model) -> Result<ModelAnswer, Refusal> {
    let request = ChatRequest { messages: vec![Message::User { text: TEST.to_owned() }], ..ChatRequest::default() };
    let begun = tokio::time::Instant::now();
    let late = || {
        let reason = format!("`{}` gave no answer within {} s", model.name(), PATIENCE.as_secs());
        Err(Refusal::new(RefusalCode::ModelUnavailable, reason))
    };
    let asking = async { model.chat(&request, &mut |_| {}).await.map_err(|error| refusal(&error)) };
    let reply = tokio::time::timeout(PATIENCE, asking).await.unwrap_or_else(|_| late())?;
    let text = base::text::cut(reply.text.trim().lines().next().unwrap_or_default(), 60);
    let elapsed_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(ModelAnswer { model: reply.model, text, elapsed_ms })
}

//! `[models]`: which models serve which roles, and how they are called (SPEC CONF-3, LLM-1).

use std::collections::BTreeMap;
use std::time::Duration;

use llm::{ModelPrice, ModelRef, Provider, RoleSettings};
use providers::{Effort, ProviderSettings, Writing};
use serde::{Deserialize, Serialize};

use crate::Env;

/// Models and how they are called. Keys come from the environment or the vault, never from here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelsConfig {
    /// `provider/model` for the motor loop; also `LLM_MOTOR_MODEL`. Falls back to fast, then default.
    pub motor: Option<ModelRef>,
    /// Model for quick answers; also `LLM_FAST_MODEL`.
    pub fast: Option<ModelRef>,
    /// Model for hard answers; also `LLM_SMART_MODEL`.
    pub smart: Option<ModelRef>,
    /// Model for reflection; also `LLM_CORTEX_MODEL`. Falls back to smart, then motor.
    pub cortex: Option<ModelRef>,
    /// Model for every role without a setting of its own; also `LLM_DEFAULT_MODEL`.
    pub default: Option<ModelRef>,
    /// Address of OpenAI, or of a server compatible with it for `compatible/…`; also `OPENAI_BASE_URL`.
    pub openai_url: Option<String>,
    /// Address of OpenRouter; also `OPENROUTER_BASE_URL`.
    pub openrouter_url: Option<String>,
    /// Address of Anthropic; also `ANTHROPIC_BASE_URL`.
    pub anthropic_url: Option<String>,
    /// Address of Gemini; also `GEMINI_BASE_URL`.
    pub gemini_url: Option<String>,
    /// Address of Ollama; also `OLLAMA_HOST`. Default `127.0.0.1:11434`.
    pub ollama_url: Option<String>,
    /// The most tokens of one reply. Default: the provider's own.
    pub output_tokens: Option<u32>,
    /// Randomness of replies, from 0 to 2. Default: the provider's own.
    pub temperature: Option<f32>,
    /// How much a model that reasons does so: `low`, `medium` or `high`. Default: the provider's own.
    pub reasoning: Option<Effort>,
    /// Seconds one model call may take with all its retries. Default 300.
    pub deadline_seconds: u64,
    /// Seconds without a byte before a request is abandoned. Default 120.
    pub idle_seconds: u64,
    /// Number of retries of a failed request. Default 4.
    pub retries: usize,
    /// Milliseconds before the first retry; they double. Default 500.
    pub retry_first_ms: u64,
    /// Ask for tool calls as schema-constrained JSON text instead of natively: for small models. Runs with `bash` then begin
    /// with fewer file tools. Default off.
    pub constrained: bool,
    /// The older place of `[prices]`, with precedence over it: US dollars for a million tokens by `provider/model`.
    pub prices: BTreeMap<String, ModelPrice>,
}

impl Default for ModelsConfig {
    fn default() -> Self {
        Self {
            motor: None,
            fast: None,
            smart: None,
            cortex: None,
            default: None,
            openai_url: None,
            openrouter_url: None,
            anthropic_url: None,
            gemini_url: None,
            ollama_url: None,
            output_tokens: None,
            temperature: None,
            reasoning: None,
            deadline_seconds: 300,
            idle_seconds: 120,
            retries: 4,
            retry_first_ms: 500,
            constrained: false,
            prices: BTreeMap::new(),
        }
    }
}

impl ModelsConfig {
    /// Checks that a model can be called with these settings.
    ///
    /// # Errors
    /// With the first that is out of its range or no address, in words that name the key.
    pub fn check(&self) -> Result<(), String> {
        let least = [
            ("output_tokens", self.output_tokens.map_or(1, u64::from)),
            ("deadline_seconds", self.deadline_seconds),
            ("idle_seconds", self.idle_seconds),
        ];
        if let Some((key, value)) = least.into_iter().find(|(_, value)| *value == 0) {
            return Err(format!("`models.{key}` is {value}: use a whole number, at least 1"));
        }
        if let Some(value) = self.temperature.filter(|value| !(0.0..=2.0).contains(value)) {
            return Err(format!("`models.temperature` is {value}: use a number from 0 to 2"));
        }
        for (key, provider, url) in [
            ("openai_url", Provider::OpenAi, &self.openai_url),
            ("openrouter_url", Provider::OpenRouter, &self.openrouter_url),
            ("anthropic_url", Provider::Anthropic, &self.anthropic_url),
            ("gemini_url", Provider::Gemini, &self.gemini_url),
            ("ollama_url", Provider::Ollama, &self.ollama_url),
        ] {
            let checked = url.as_deref().map_or(Ok(()), |url| ProviderSettings::check_address(provider, url));
            // The address itself may have a password in it.
            checked
                .map_err(|why| format!("`models.{key}` is no address, such as `http://127.0.0.1:8080/v1`: {why}"))?;
        }
        Ok(())
    }

    /// Which models serve which roles.
    #[must_use]
    pub fn roles(&self) -> RoleSettings {
        RoleSettings {
            fast: self.fast.clone(),
            smart: self.smart.clone(),
            motor: self.motor.clone(),
            cortex: self.cortex.clone(),
            default: self.default.clone(),
        }
    }

    /// Settings to reach them: keys from the environment, all else from here.
    #[must_use]
    pub fn providers(&self, env: &Env) -> ProviderSettings {
        let mut settings = ProviderSettings::from_env(&**env);
        for (endpoint, url) in [
            (&mut settings.openai, &self.openai_url),
            (&mut settings.openrouter, &self.openrouter_url),
            (&mut settings.anthropic, &self.anthropic_url),
            (&mut settings.gemini, &self.gemini_url),
            (&mut settings.ollama, &self.ollama_url),
        ] {
            if url.is_some() {
                endpoint.base_url.clone_from(url);
            }
        }
        let Self { output_tokens, temperature, reasoning, .. } = *self;
        settings.writing = Writing { output_tokens, temperature, reasoning };
        settings.limits.deadline = Duration::from_secs(self.deadline_seconds);
        settings.limits.idle = Duration::from_secs(self.idle_seconds);
        settings.retries.max = self.retries;
        settings.retries.first = Duration::from_millis(self.retry_first_ms);
        settings
    }
}

//! The settings in force, and how a host that runs takes others (SPEC CONF-2).

use std::sync::Arc;

use base::{Refusal, RefusalCode};
use motor::Motor;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::{Config, ConfigEntry, LoadedConfig};
use crate::environment::HostEnvironment;
use crate::setup::{self, ModelAnswer};

/// Sections whose keys take effect on the next run. All others are read once, when the host starts.
const OF_RUNS: [&str; 9] = ["models", "motor", "agent", "rules", "budget", "prices", "code", "limits", "tools"];

/// The settings of a host.
pub struct Settings {
    pub(crate) loaded: Mutex<LoadedConfig>,
    pub(crate) environment: Arc<HostEnvironment>,
    pub(crate) motor: Motor,
    /// Held while the sources are read, so that the latest reading wins.
    pub(crate) reading: tokio::sync::Mutex<()>,
}

/// When a changed setting takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TakesEffect {
    /// For every run, and every model call of a run, that starts from now on.
    NextRun,
    /// For the next reflection of the cortex.
    NextCycle,
    /// When the host is started again.
    NextStart,
}

/// A setting that is not the one the host had.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedSetting {
    /// The key as `section.key`.
    pub key: String,
    /// The value after the change.
    pub value: Value,
    /// The moment at which it takes effect.
    pub takes_effect: TakesEffect,
}

impl Settings {
    /// Every key, sorted, with its effective value and origin.
    #[must_use]
    pub fn entries(&self) -> Vec<ConfigEntry> {
        self.loaded.lock().entries()
    }

    /// Reads all sources again. Keys of the sections in [`OF_RUNS`] take effect on the next run, those of `cortex` on the next cycle; changes of others are reported each time until the
    /// host is started again.
    ///
    /// # Errors
    /// If a source has an unknown key or an invalid value: then all settings stay as they are.
    pub async fn reload(&self) -> Result<Vec<ChangedSetting>, Refusal> {
        let _turn = self.reading.lock().await;
        let before = self.loaded.lock().clone();
        let reading = tokio::task::spawn_blocking(move || Ok((before.reload()?, before)));
        let broken = |_| Err(Refusal::new(RefusalCode::TryLater, "the host is shutting down"));
        let (read, before) = reading.await.unwrap_or_else(broken)?;
        let changed = changed(&before, &read);
        let config = taken(&read.config, &before.config);
        *self.environment.config.write() = Arc::new(config.clone());
        self.motor.configure(config.of_loop());
        *self.loaded.lock() = read.with(config, |key| takes_effect(key) != TakesEffect::NextStart, &before);
        Ok(changed)
    }

    /// Asks the model of runs, or the named one, for one word, with the keys that a run would use.
    ///
    /// # Errors
    /// If no model is configured, or it does not answer.
    pub async fn ask_model(&self, named: Option<String>) -> Result<ModelAnswer, Refusal> {
        let access = self.environment.model_access();
        let model = store::blocking(move || {
            let scrubber = access.vault.scrubber()?;
            access.connect(named.as_deref(), None, Some(scrubber))
        })
        .await?;
        setup::ask(&*model).await
    }
}

fn takes_effect(key: &str) -> TakesEffect {
    let section = key.split('.').next().unwrap_or_default();
    match section {
        "cortex" => TakesEffect::NextCycle,
        section if OF_RUNS.contains(&section) => TakesEffect::NextRun,
        _ => TakesEffect::NextStart,
    }
}

fn changed(before: &LoadedConfig, after: &LoadedConfig) -> Vec<ChangedSetting> {
    let old = before.entries();
    let is_new = |entry: &ConfigEntry| !old.iter().any(|old| old.key == entry.key && old.value == entry.value);
    let entries = after.entries().into_iter().filter(is_new);
    entries
        .map(|ConfigEntry { key, value, .. }| ChangedSetting { takes_effect: takes_effect(&key), key, value })
        .collect()
}

/// The sections of runs and of the cortex as they were read, and the others as they were.
fn taken(read: &Config, before: &Config) -> Config {
    let Config { models, motor, agent, rules, budget, prices, code, limits, tools, cortex, .. } = read.clone();
    Config { models, motor, agent, rules, budget, prices, code, limits, tools, cortex, ..before.clone() }
}

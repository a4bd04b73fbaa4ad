//! The settings of cortexes: the section `[cortex]`, read again when its file changes, and the owner's switch.
//!
//! A cortex is on if the configuration and the owner agree: either can switch it off, and the switch of the owner is durable. A file
//! that cannot be read or used leaves the last valid settings in force.

use std::collections::BTreeSet;

use base::{AgentName, Refusal, RefusalCode};
use cortex::{Cortex, CortexConfig, ReflectorName};
use llm::ModelRef;
use parking_lot::Mutex;
use store::{Batch, Links, Scan, Store, StoreError, Table, blocking};

use super::Reflections;
use crate::config::LoadedConfig;

/// Prefix of the keys of [`Table::Meta`] that name agents with a cortex that is switched off.
const OFF: &str = "cortex/off/";
/// Bytes of a configuration file that are looked at.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// The settings of all agents.
pub(super) struct Settings {
    state: Mutex<SettingsState>,
    /// Held while the file is read.
    reading: tokio::sync::Mutex<()>,
}

struct SettingsState {
    loaded: LoadedConfig,
    off: BTreeSet<AgentName>,
    /// The file as it was last loaded; `None` if it did not exist or could not be read.
    file: Option<Vec<u8>>,
    /// Why the file is not in force.
    problem: Option<String>,
}

/// Checks a section `[cortex]`.
///
/// # Errors
/// With the reason: a number is out of its range, or the model is not `provider/model`.
pub(crate) fn check(config: &CortexConfig) -> Result<(), String> {
    config.validate().map_err(|error| error.to_string())?;
    let parse = |model: &String| model.parse::<ModelRef>().map_err(|error| error.to_string());
    config.model.as_ref().map(parse).transpose().map(|_| ())
}

impl Settings {
    pub fn open(store: &Store, loaded: LoadedConfig) -> Result<Self, StoreError> {
        let stored = store.scan::<bool>(Table::Meta, &Scan::prefix(OFF))?;
        let agent = |key: Vec<u8>| AgentName::parse(String::from_utf8(key).ok()?.strip_prefix(OFF)?).ok();
        let off = stored.into_iter().filter_map(|(key, _)| agent(key)).collect();
        let file = read(&loaded);
        let state = Mutex::new(SettingsState { loaded, off, file, problem: None });
        Ok(Self { state, reading: tokio::sync::Mutex::default() })
    }

    /// The settings of an agent's next cycle.
    pub fn of(&self, agent: &AgentName) -> CortexConfig {
        let state = self.state.lock();
        let config = &state.loaded.config.cortex;
        CortexConfig { enabled: config.enabled && !state.off.contains(agent), ..config.clone() }
    }

    /// The reflector of all agents; `None` for the bundled one.
    pub fn reflector(&self) -> Option<ReflectorName> {
        self.state.lock().loaded.config.cortex.reflector.clone()
    }

    pub fn is_switched_off(&self, agent: &AgentName) -> bool {
        self.state.lock().off.contains(agent)
    }

    /// Makes the owner's decision durable, then lets it count.
    pub async fn switch(&self, store: &Store, agent: &AgentName, enabled: bool) -> Result<(), Refusal> {
        let (is_on, path) = {
            let loaded = &self.state.lock().loaded;
            (loaded.config.cortex.enabled, loaded.path())
        };
        if enabled && !is_on {
            let reason = "the configuration has the cortex off: `cortex.enabled` is false";
            let remedy = format!("set `enabled = true` under `[cortex]` in `{}`", path.display());
            return Err(Refusal::new(RefusalCode::IllegalState, reason).with_remedy(remedy));
        }
        let (mut batch, key) = (Batch::new(), format!("{OFF}{agent}"));
        if enabled {
            batch.delete(Table::Meta, key);
        } else {
            batch.put(Table::Meta, key, &true)?;
        }
        store.commit(batch).await?;
        let off = &mut self.state.lock().off;
        if enabled {
            off.remove(agent)
        } else {
            off.insert(agent.clone())
        };
        Ok(())
    }
}

impl Reflections {
    /// Takes over the section `[cortex]` if its file has changed; returns why the file is not in force, if it is not.
    pub(super) async fn refresh(&self) -> Option<String> {
        let settings = &self.0.settings;
        let _turn = settings.reading.lock().await;
        let loaded = settings.state.lock().loaded.clone();
        let (file, loaded) = blocking(move || Ok((read(&loaded), loaded))).await.ok()?;
        if file == settings.state.lock().file {
            return settings.state.lock().problem.clone();
        }
        let loaded = blocking(move || loaded.reload()).await;
        let problem = {
            let mut state = settings.state.lock();
            state.file = file;
            state.problem = match loaded {
                Ok(loaded) => {
                    state.loaded = loaded;
                    None
                }
                Err(refusal) => {
                    tracing::warn!(%refusal, "the settings of the cortex stay as they were");
                    Some(refusal.reason)
                }
            };
            state.problem.clone()
        };
        self.configure();
        problem
    }

    /// Gives every open cortex the settings of its next cycle.
    pub(super) fn configure(&self) {
        for (agent, cortex) in self.open_cortexes() {
            if let Err(error) = cortex.configure(self.0.settings.of(&agent)) {
                // They were checked when they were loaded.
                tracing::warn!(%agent, %error, "the settings of a cortex stay as they were");
            }
        }
    }

    pub(super) fn open_cortexes(&self) -> Vec<(AgentName, Cortex)> {
        self.0.cortexes.lock().iter().map(|(agent, cortex)| (agent.clone(), cortex.clone())).collect()
    }
}

fn read(loaded: &LoadedConfig) -> Option<Vec<u8>> {
    store::read_regular(&loaded.path(), Links::Followed, MAX_CONFIG_BYTES).ok()
}

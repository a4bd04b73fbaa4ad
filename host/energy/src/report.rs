//! An agent's energy, for people and other programs.

use base::{AgentName, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Activity, EnergyBook};

/// An agent's energy (SPEC EN-1).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnergyReport {
    /// The agent it belongs to.
    pub agent: AgentName,
    /// From 0.05 to 1.
    pub level: f64,
    /// Whether the model is switched on.
    pub enabled: bool,
    /// Activities a model may start at this level: `oneshot`, `agentic`, `browser`.
    pub allows: Vec<String>,
}

impl EnergyBook {
    /// The energy of an agent, with the activities it allows.
    ///
    /// # Errors
    /// If the store fails.
    pub fn report(&self, agent: &AgentName) -> Result<EnergyReport, Refusal> {
        let activities = [
            ("oneshot", Activity::Oneshot),
            ("agentic", Activity::Agentic { browser: false }),
            ("browser", Activity::Agentic { browser: true }),
        ];
        let allows = activities.into_iter().filter(|(_, activity)| self.check(agent, *activity).is_ok());
        Ok(EnergyReport {
            agent: agent.clone(),
            level: self.level(agent)?,
            enabled: self.inner.config.enabled,
            allows: allows.map(|(name, _)| name.to_owned()).collect(),
        })
    }
}

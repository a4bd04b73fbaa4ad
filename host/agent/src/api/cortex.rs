//! The cortex of an agent, for callers.

use base::AgentName;
use cortex::{Activity, AfterAssess, AfterReflect, CortexConfig, ReflectionRecord};
use ledger::PeerId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of an agent's cortex.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CortexStatus {
    /// The agent that is reflected on.
    pub agent: AgentName,
    /// Whether it reflects: `cortex.enabled` is true, and the owner did not switch it off.
    pub enabled: bool,
    /// Whether the owner switched it off for this agent.
    pub switched_off: bool,
    /// Whether the agent's own model and the owner's commands assess peers instead (SPEC LED-4).
    pub offers_assess_peer: bool,
    /// Whether a cycle is under way.
    pub is_reflecting: bool,
    /// Model of the reflections as `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Why it cannot reflect: no model is set, or the configuration cannot be read. The settings are the last valid ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// Activity since the last cycle.
    pub activity: Activity,
    /// Number of active beliefs.
    pub beliefs: u64,
    /// The record of the latest cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_cycle: Option<ReflectionRecord>,
    /// The settings of the next cycle.
    pub settings: CortexConfig,
}

/// A request for a cycle.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReflectRequest {
    /// The agent to reflect on.
    #[serde(default)]
    pub agent: AgentName,
    /// Peers to show beside those with activity since the last cycle; at most 50.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PeerId>,
}

/// A cycle that took place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReflectReply {
    /// The cycle as the history has it.
    pub record: ReflectionRecord,
    /// The events `cortex.after_assess`, one for each recorded assessment.
    pub assessed: Vec<AfterAssess>,
    /// The event `cortex.after_reflect`, if the proposals of the cycle were applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reflected: Option<AfterReflect>,
}

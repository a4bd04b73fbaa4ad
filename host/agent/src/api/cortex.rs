//! The cortex of an agent, for callers.

use base::{AgentName, ConsentRecord, ContentHash};
use cortex::{Activity, AfterAssess, AfterReflect, CortexConfig, ReflectionRecord, ReflectorName, SoulDrift};
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
    /// Why it cannot reflect: no model is set, its reflector cannot be used, or the configuration cannot be read. The settings
    /// are the last valid ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// Activity since the last cycle.
    pub activity: Activity,
    /// Number of active beliefs.
    pub beliefs: u64,
    /// Number of open commitments, overdue ones among them.
    #[serde(default)]
    pub open_commitments: u64,
    /// Number of directives whose time is not over.
    #[serde(default)]
    pub directives: u64,
    /// The drift from `SOUL.md` that the last reflection found, if it found one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<SoulDrift>,
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

/// A reflector in the home, or the bundled one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReflectorSummary {
    /// The name for `cortex.reflector`; absent for the bundled one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<ReflectorName>,
    /// Hash of its bytes, if they can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<ContentHash>,
    /// Number of its bytes.
    pub size_bytes: u64,
    /// Whether it may be used.
    pub status: ReflectorStatus,
    /// Whether `cortex.reflector` names it.
    pub is_selected: bool,
    /// Why it cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The owner's approval of a file of this name, maybe with other bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ReflectorApproval>,
}

/// Whether a reflector may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReflectorStatus {
    /// Part of the program.
    Bundled,
    /// Its bytes are those that the owner approved.
    Approved,
    /// The owner has not approved it.
    Unapproved,
    /// Its bytes are not those that the owner approved.
    Changed,
    /// It was approved, and its file is gone.
    Missing,
    /// It is not a component that could be a reflector.
    Unusable,
}

/// The owner's approval of a reflector: these bytes under this name, and no others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReflectorApproval {
    /// Hash of the approved bytes.
    pub hash: ContentHash,
    /// The owner's consent.
    pub consent: ConsentRecord,
}

/// The owner's decision to let a reflector be used.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApproveReflector {
    /// The name of the reflector.
    pub name: ReflectorName,
    /// Hash of the bytes that were shown.
    pub hash: ContentHash,
}

/// The owner's decision to withdraw an approval.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RevokeReflector {
    /// The name of the reflector.
    pub name: ReflectorName,
}

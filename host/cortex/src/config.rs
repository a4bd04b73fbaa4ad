//! The section `[cortex]` (SPEC CX-9). A change takes effect at the next cycle.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ReflectorName;

/// The cortex's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CortexConfig {
    /// Whether the cortex reflects. While it is off, the agent's model judges peers itself (`assess_peer`). Default true.
    pub enabled: bool,
    /// `provider/model` of the reflections. Default: as the role `cortex` says.
    pub model: Option<String>,
    /// Name of an approved component in `reflectors` of the home that builds the prompts and reads the replies. Default: the
    /// bundled one.
    pub reflector: Option<ReflectorName>,
    /// The events that start a cycle.
    pub triggers: TriggerConfig,
    /// Minutes between two cycles of the timer. Default 30.
    pub schedule_minutes: u64,
    /// Interactions that start a cycle. Default 5.
    pub interaction_count: u64,
    /// Most points that a peer's trust moves in a cycle. Default 3.
    pub max_trust_delta: u8,
    /// Most beliefs; the oldest goes first. Default 20.
    pub max_beliefs: usize,
    /// Minutes that a belief lasts without being reaffirmed. Default 120.
    pub belief_ttl_minutes: u64,
    /// Most open commitments; further ones are left out, and one peer takes at most a quarter of them. Default 20.
    pub max_commitments: usize,
    /// Days until which a commitment may be due. Default 90.
    pub commitment_horizon_days: u64,
    /// Most directives; the oldest goes first. Default 5.
    pub max_directives: usize,
    /// Minutes that a directive lasts. Default 60.
    pub directive_ttl_minutes: u64,
    /// Turns of the owner's conversation that new directives start in the 24 hours from the first on, at most; as many more start with overdue
    /// commitments. Default 12.
    pub wakes_per_day: u64,
    /// Whether reflections see `SOUL.md` of the home and report drift from it. Default true.
    pub soul: bool,
    /// Whether a cycle of the timer is skipped, without a model, if it has nothing that needs a reflection. Default true.
    pub triage: bool,
    /// Interactions with known peers that need a reflection. Default 3.
    pub triage_interactions: u64,
    /// Answers to peers that wait for a consultation of the model: `never`, `stakes` (words of money, access or commitments) or
    /// `always`. Default `never`.
    pub consult: ConsultMode,
    /// Seconds that a consultation may take; the answer is not sent after them. Default 20.
    pub consultation_timeout_seconds: u64,
    /// Interactions of a peer that a cycle sees. Default 10.
    pub context_window: usize,
    /// Peers that a cycle sees; the others are left for the next. Default 20.
    pub max_peers: usize,
    /// Estimated tokens of a prompt, at most. Default 8,000.
    pub max_context_tokens: u64,
    /// Estimated tokens of a reply with its reasoning, at most: the call is given up beyond. Default 16,000.
    pub max_reply_tokens: u64,
    /// Seconds that a cycle may take. Default 60.
    pub reflection_timeout_seconds: u64,
    /// Cycles that the history keeps. Default 50.
    pub history: u64,
}

/// The events that start a cycle; each can be switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TriggerConfig {
    /// The time since the last cycle, if there was any activity. Default true.
    pub timer: bool,
    /// A number of interactions. Default true.
    pub interaction_count: bool,
    /// The first interaction with a peer. Default true.
    pub new_peer: bool,
    /// A promise that was not kept in time. Default true.
    pub overdue: bool,
}

/// The answers to peers that wait for a consultation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConsultMode {
    /// Without exception, answers are sent at once.
    #[default]
    Never,
    /// Those with words of money, access or commitments, in the message or in the answer.
    Stakes,
    /// Every answer to a peer.
    Always,
}

impl ConsultMode {
    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Stakes => "stakes",
            Self::Always => "always",
        }
    }
}

impl Default for TriggerConfig {
    fn default() -> Self {
        Self { timer: true, interaction_count: true, new_peer: true, overdue: true }
    }
}

impl Default for CortexConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            model: None,
            reflector: None,
            triggers: TriggerConfig::default(),
            schedule_minutes: 30,
            interaction_count: 5,
            max_trust_delta: 3,
            max_beliefs: 20,
            belief_ttl_minutes: 120,
            max_commitments: 20,
            commitment_horizon_days: 90,
            max_directives: 5,
            directive_ttl_minutes: 60,
            wakes_per_day: 12,
            soul: true,
            triage: true,
            triage_interactions: 3,
            consult: ConsultMode::Never,
            consultation_timeout_seconds: 20,
            context_window: 10,
            max_peers: 20,
            max_context_tokens: 8_000,
            max_reply_tokens: 16_000,
            reflection_timeout_seconds: 60,
            history: 50,
        }
    }
}

/// A setting outside of its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`cortex.{key}` is {value}: use a whole number from {least} to {most}")]
pub struct InvalidConfig {
    /// The key within `[cortex]`.
    pub key: &'static str,
    /// The value it was set to.
    pub value: u64,
    least: u64,
    most: u64,
}

impl CortexConfig {
    /// Checks that every number is within its range.
    ///
    /// # Errors
    /// With the first that is not.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let size = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
        let ranges = [
            ("schedule_minutes", self.schedule_minutes, 1, 10_080),
            ("interaction_count", self.interaction_count, 1, 10_000),
            ("max_trust_delta", self.max_trust_delta.into(), 0, 10),
            ("max_beliefs", size(self.max_beliefs), 0, 100),
            ("belief_ttl_minutes", self.belief_ttl_minutes, 1, 10_080),
            ("max_commitments", size(self.max_commitments), 0, 100),
            ("commitment_horizon_days", self.commitment_horizon_days, 1, 366),
            ("max_directives", size(self.max_directives), 0, 20),
            ("directive_ttl_minutes", self.directive_ttl_minutes, 1, 1_440),
            ("wakes_per_day", self.wakes_per_day, 0, 100),
            ("triage_interactions", self.triage_interactions, 1, 1_000),
            ("consultation_timeout_seconds", self.consultation_timeout_seconds, 1, 60),
            ("context_window", size(self.context_window), 1, 100),
            ("max_peers", size(self.max_peers), 1, 50),
            ("max_context_tokens", self.max_context_tokens, 1_000, 200_000),
            ("max_reply_tokens", self.max_reply_tokens, 500, 100_000),
            ("reflection_timeout_seconds", self.reflection_timeout_seconds, 1, 3_600),
            ("history", self.history, 1, 1_000),
        ];
        let outside = ranges.into_iter().find(|(_, value, least, most)| value < least || value > most);
        outside.map_or(Ok(()), |(key, value, least, most)| Err(InvalidConfig { key, value, least, most }))
    }

    /// Whether the agent's own model is offered `assess_peer` (SPEC LED-4).
    #[must_use]
    pub fn offers_assess_peer(&self) -> bool {
        !self.enabled
    }

    pub(crate) fn schedule(&self) -> Duration {
        Duration::from_secs(self.schedule_minutes.saturating_mul(60))
    }

    pub(crate) fn belief_ttl(&self) -> Duration {
        Duration::from_secs(self.belief_ttl_minutes.saturating_mul(60))
    }

    pub(crate) fn commitment_horizon(&self) -> Duration {
        Duration::from_secs(self.commitment_horizon_days.saturating_mul(24 * 3_600))
    }

    pub(crate) fn directive_ttl(&self) -> Duration {
        Duration::from_secs(self.directive_ttl_minutes.saturating_mul(60))
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.reflection_timeout_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<CortexConfig, String> {
        let config: CortexConfig = serde_json::from_str(json).map_err(|error| error.to_string())?;
        config.validate().map_err(|error| error.to_string()).map(|()| config)
    }

    #[test]
    fn settings_have_ranges() {
        assert_eq!(read("{}").unwrap(), CortexConfig::default());
        assert!(
            read(r#"{"triggers":{"timer":false},"schedule_minutes":60,"model":"openai/x","reflector":"careful"}"#)
                .is_ok()
        );
        for (json, reason) in [
            (r#"{"schedule_minutes":0}"#, "`cortex.schedule_minutes` is 0: use a whole number from 1 to 10080"),
            (r#"{"max_trust_delta":11}"#, "`cortex.max_trust_delta`"),
            (r#"{"max_beliefs":101}"#, "`cortex.max_beliefs`"),
            (r#"{"reflector":"../x"}"#, "is not a name of a reflector"),
            (r#"{"schedule":1}"#, "unknown field"),
            (r#"{"triggers":{"timr":true}}"#, "unknown field"),
        ] {
            assert!(read(json).unwrap_err().contains(reason), "{json}");
        }
    }

    #[test]
    fn the_agents_own_judgement_is_offered_only_without_a_cortex() {
        assert!(!CortexConfig::default().offers_assess_peer());
        assert!(CortexConfig { enabled: false, ..CortexConfig::default() }.offers_assess_peer());
    }
}

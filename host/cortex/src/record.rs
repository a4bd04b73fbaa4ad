//! The record of a cycle (SPEC CX-8): everything that a person needs to audit it.

use base::Timestamp;
use ledger::PeerId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Activity, Trigger};

/// One cycle of the cortex.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReflectionRecord {
    /// Counts the cycles of the agent, from 1.
    pub cycle: u64,
    /// The reasons for the cycle.
    pub triggers: Vec<Trigger>,
    /// Time the cycle began.
    pub started_at: Timestamp,
    /// Milliseconds that it took.
    pub duration_ms: u64,
    /// The activity that it looked at.
    pub activity: Activity,
    /// Peers that it was shown.
    pub peers_shown: u64,
    /// Tokens that it took.
    pub tokens: TokenUse,
    /// Whether its proposals were applied, and how.
    pub outcome: CycleOutcome,
}

/// Tokens of a cycle, against the estimate (SPEC CX-9).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenUse {
    /// Tokens of the prompt, estimated before the call: a quarter of its bytes.
    pub estimated_input: u64,
    /// Tokens of the prompt, as the provider counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Tokens of the reply, as the provider counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
}

/// The end of a cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "status")]
pub enum CycleOutcome {
    /// Nothing of it was applied; the beliefs are as they were.
    Skipped {
        /// The stable code of the reason.
        #[serde(default)]
        code: SkipCode,
        /// Why it was skipped.
        reason: String,
    },
    /// Its proposals were applied as far as the limits allowed.
    Applied {
        /// The assessments that were recorded.
        assessed: Vec<AssessedPeer>,
        /// Keys of new beliefs.
        beliefs_added: Vec<String>,
        /// Keys of beliefs that go on.
        beliefs_reaffirmed: Vec<String>,
        /// Keys of beliefs with another value than before.
        beliefs_revised: Vec<String>,
        /// Keys of beliefs whose time was over, or that had no room.
        beliefs_expired: Vec<String>,
        /// Proposals that were left out, each with the reason.
        refused: Vec<String>,
        /// The model's own summary.
        summary: String,
    },
}

/// Why a cycle was skipped; programs compare it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SkipCode {
    /// The cycle is of an earlier version, which recorded no code.
    #[default]
    Unspecified,
    /// The reflector is not there, not approved, or not usable.
    ReflectorUnavailable,
    /// The reflector exceeded a limit on its work, memory, time or output.
    ReflectorLimit,
    /// The reflector trapped in its sandbox.
    ReflectorTrapped,
    /// The reflector built no prompt, or one that is too long.
    PromptInvalid,
    /// The model did not answer, or its reply is not complete.
    ModelUnavailable,
    /// The reply is too long.
    ReplyTooLong,
    /// The reflector read no proposals in the reply.
    ReplyUnreadable,
    /// The proposals are too many, or a trust is not a number.
    ProposalsInvalid,
    /// The cycle took longer than `cortex.reflection_timeout_seconds`.
    Timeout,
    /// The cortex was switched off during the cycle.
    SwitchedOff,
    /// A peer was forgotten during the cycle.
    PeerForgotten,
}

impl SkipCode {
    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::ReflectorUnavailable => "reflector_unavailable",
            Self::ReflectorLimit => "reflector_limit",
            Self::ReflectorTrapped => "reflector_trapped",
            Self::PromptInvalid => "prompt_invalid",
            Self::ModelUnavailable => "model_unavailable",
            Self::ReplyTooLong => "reply_too_long",
            Self::ReplyUnreadable => "reply_unreadable",
            Self::ProposalsInvalid => "proposals_invalid",
            Self::Timeout => "timeout",
            Self::SwitchedOff => "switched_off",
            Self::PeerForgotten => "peer_forgotten",
        }
    }
}

/// An assessment that a cycle recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssessedPeer {
    /// The peer in the ledger.
    pub peer: PeerId,
    /// The trust that was proposed, cut to -128..=127.
    pub proposed: i8,
    /// The trust that was recorded.
    pub trust: i8,
    /// The information score, computed by the ledger.
    pub info_score: u8,
}

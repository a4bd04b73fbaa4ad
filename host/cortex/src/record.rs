//! The record of a cycle (SPEC CX-8): everything that a person needs to audit it.

use base::{ContentHash, Timestamp};
use ledger::PeerId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Activity, ReflectorName, Trigger};

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
    /// The reflector that built its prompt and read the reply. Absent: the cycle is of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reflector: Option<UsedReflector>,
    /// Tokens that it took.
    pub tokens: TokenUse,
    /// Whether its proposals were applied, and how.
    pub outcome: CycleOutcome,
}

/// The reflector of a cycle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsedReflector {
    /// Its name; absent: the bundled one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<ReflectorName>,
    /// SHA-256 of its component; absent: it could not be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<ContentHash>,
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
#[expect(clippy::large_enum_variant, reason = "one for each cycle, and mostly the large one")]
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
        /// Commitments, directives and drift (SPEC CX-10); empty in records of earlier versions.
        #[serde(default, skip_serializing_if = "GuidanceRecord::is_empty")]
        guidance: GuidanceRecord,
    },
}

/// The guidance that a cycle applied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct GuidanceRecord {
    /// Keys of new commitments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commitments_made: Vec<String>,
    /// Keys of commitments that ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commitments_closed: Vec<String>,
    /// Keys of directives that were given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub directives: Vec<String>,
    /// A new finding of drift from `SOUL.md`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<String>,
}

impl GuidanceRecord {
    /// Whether the cycle applied none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How the agent drifts from the owner's `SOUL.md`. It is reported and changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SoulDrift {
    /// The finding in one line; text of a model.
    pub finding: String,
    /// Time of the cycle that first had it.
    pub at: Timestamp,
    /// The cycle that first had it.
    pub cycle: u64,
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
    /// The triage found nothing that needs a reflection; no model was asked.
    Triaged,
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
            Self::Triaged => "triaged",
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

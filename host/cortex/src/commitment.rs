//! A commitment (SPEC CX-10): a promise with a time that a reflection found in the interactions of a peer.

use base::Timestamp;
use ledger::{ChannelName, PeerId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The side that promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Promiser {
    /// The agent that is reflected on.
    Agent,
    /// The peer of the conversation.
    Peer,
}

/// The state of a commitment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommitmentStatus {
    /// Its time is not over.
    Open,
    /// Its time is over, and that was told.
    Overdue,
    /// The promise was kept.
    Done,
    /// It is void: the owner or a reflection dropped it.
    Dropped,
}

impl CommitmentStatus {
    /// Whether it waits for its end.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Open | Self::Overdue)
    }

    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Overdue => "overdue",
            Self::Done => "done",
            Self::Dropped => "dropped",
        }
    }
}

/// A promise with a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Commitment {
    /// Names it, such as `ben-table`.
    pub key: String,
    /// The promise in one line; text of a model.
    pub text: String,
    /// The side that promised.
    pub by: Promiser,
    /// The peer of the conversation.
    pub peer: PeerId,
    /// The channel of the conversation, as the ledger has it.
    pub channel: ChannelName,
    /// Time of the interaction that it was found in.
    pub said_at: Timestamp,
    /// Time until which it has to be kept.
    pub due_at: Timestamp,
    /// The cycle that found it.
    pub cycle: u64,
    /// Whether it is open, and how it ended.
    pub status: CommitmentStatus,
    /// Time it was closed, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
}

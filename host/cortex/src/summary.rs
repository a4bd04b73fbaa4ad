//! The facts of a cycle for a reflector (SPEC CX-3): structured summaries, never a conversation.

use base::{AgentName, Timestamp};
use ledger::{ChannelName, Direction, PeerId, TrajectoryPoint};
use serde::{Deserialize, Serialize};

use crate::commitment::{CommitmentStatus, Promiser};
use crate::{Activity, Trigger};

/// Everything that a reflection sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CycleSummaries {
    /// The agent that is reflected on.
    pub agent: AgentName,
    /// The number of the cycle.
    pub cycle: u64,
    /// The time of the cycle.
    pub now: Timestamp,
    /// The reasons for the cycle.
    pub triggers: Vec<Trigger>,
    /// The activity since the last cycle.
    pub activity: Activity,
    /// The peers with activity, the busiest first. Only these can be assessed.
    pub peers: Vec<PeerBrief>,
    /// Peers with activity that are left for the next cycle.
    pub omitted_peers: u64,
    /// The beliefs whose time is not over.
    pub beliefs: Vec<BeliefBrief>,
    /// The summary of the last cycle that was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_summary: Option<String>,
    /// The commitments that are open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commitments: Vec<CommitmentBrief>,
    /// The directives whose time is not over: keys and texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directives: Vec<(String, String)>,
    /// The owner's `SOUL.md`: the character that the agent should have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soul: Option<String>,
}

/// One peer, as the ledger knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PeerBrief {
    /// The peer in the ledger.
    pub peer: PeerId,
    /// Time of the first interaction.
    pub first_seen_at: Timestamp,
    /// Time of the latest interaction.
    pub last_seen_at: Timestamp,
    /// Interactions from the peer.
    pub incoming: u64,
    /// Interactions to the peer.
    pub outgoing: u64,
    /// How much is known, 0 to 10; computed by the ledger.
    pub info_score: u8,
    /// The last trust; absent before the first assessment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<i8>,
    /// The reasons of the last assessment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rationale: Option<String>,
    /// Trust over time, oldest first.
    pub trajectory: Vec<TrajectoryPoint>,
    /// The latest interactions, oldest first.
    pub interactions: Vec<InteractionBrief>,
}

/// One interaction; its summary is text of a stranger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InteractionBrief {
    /// Time it was recorded.
    pub at: Timestamp,
    /// Its direction, seen from the agent.
    pub direction: Direction,
    /// The channel it came or went through. Not for reflectors.
    #[serde(skip, default = "ChannelName::note")]
    pub channel: ChannelName,
    /// A short summary, bounded by the ledger.
    pub summary: String,
}

/// One belief whose time is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BeliefBrief {
    /// The key that names it.
    pub key: String,
    /// The value as the agent sees it.
    pub value: String,
    /// The peer that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<PeerId>,
}

/// One commitment that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitmentBrief {
    /// The key that names it.
    pub key: String,
    /// The promise as text.
    pub text: String,
    /// The side that promised.
    pub by: Promiser,
    /// The peer of the conversation.
    pub peer: PeerId,
    /// Time until which it has to be kept.
    pub due_at: Timestamp,
    /// Whether its time is over.
    pub status: CommitmentStatus,
}

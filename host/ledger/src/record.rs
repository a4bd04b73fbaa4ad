//! Stored records: the head of a peer, an interaction, an assessment.

use base::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ChannelName, Evidence};

/// Points of the trajectory that a head keeps.
pub(crate) const MAX_TRAJECTORY: usize = 10;

/// The direction of an interaction, seen from the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the peer to the agent.
    Incoming,
    /// From the agent to the peer.
    Outgoing,
}

/// One message or transaction with a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Interaction {
    /// Time it was recorded.
    pub at: Timestamp,
    /// Its direction, seen from the agent.
    pub direction: Direction,
    /// The channel it came or went through.
    pub channel: ChannelName,
    /// A short summary; text of a stranger.
    pub summary: String,
}

/// The author of an assessment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AssessmentSource {
    /// The owner, by a command of their own.
    Owner,
    /// The agent's model, during a conversation.
    Agent,
    /// A reflection of the cortex.
    Cortex,
}

/// A judgement about a peer at one time (SPEC LED-1). It is never changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Assessment {
    /// Counts the assessments of the peer, from 1.
    pub number: u64,
    /// How much is known about the peer, 0 to 10, computed by the host.
    pub info_score: u8,
    /// The judgement, from -10 to 10.
    pub trust: i8,
    /// The reasons; text of a model or a person.
    pub rationale: String,
    /// Time it was recorded.
    pub created_at: Timestamp,
    /// The author of the judgement.
    pub source: AssessmentSource,
}

/// The time for which a peer is known, from its first interaction until it is forgotten. One of the same id that comes later has
/// another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerIncarnation(pub(crate) u64);

/// One step of a peer's trajectory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrajectoryPoint {
    /// Time of the assessment.
    pub at: Timestamp,
    /// The trust it gave.
    pub trust: i8,
    /// The information score at that time.
    pub info_score: u8,
}

/// The head of a peer: everything that assessing and enriching need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PeerHead {
    /// The number that its entries are filed under.
    pub number: u64,
    /// Time of the first interaction.
    pub first_seen_at: Timestamp,
    /// Time of the latest interaction; never before the first.
    pub last_seen_at: Timestamp,
    pub incoming: u64,
    pub outgoing: u64,
    /// Number of assessments so far.
    pub assessments: u64,
    pub latest: Option<Assessment>,
    /// The latest assessments, oldest first.
    pub trajectory: Vec<TrajectoryPoint>,
}

impl PeerHead {
    pub(crate) fn new(number: u64, now: Timestamp) -> Self {
        Self {
            number,
            first_seen_at: now,
            last_seen_at: now,
            incoming: 0,
            outgoing: 0,
            assessments: 0,
            latest: None,
            trajectory: Vec::new(),
        }
    }

    /// All interactions so far; the sequence of the next one.
    pub(crate) fn interactions(&self) -> u64 {
        self.incoming.saturating_add(self.outgoing)
    }

    /// Counts an interaction. A clock that went back does not shorten the time that the peer is known.
    pub(crate) fn count(&mut self, direction: Direction, now: Timestamp) {
        match direction {
            Direction::Incoming => self.incoming = self.incoming.saturating_add(1),
            Direction::Outgoing => self.outgoing = self.outgoing.saturating_add(1),
        }
        self.last_seen_at = self.last_seen_at.max(now);
    }

    /// Takes up an assessment as the latest.
    pub(crate) fn assess(&mut self, assessment: Assessment) {
        self.assessments = assessment.number;
        let Assessment { created_at: at, trust, info_score, .. } = assessment;
        self.trajectory.push(TrajectoryPoint { at, trust, info_score });
        let surplus = self.trajectory.len().saturating_sub(MAX_TRAJECTORY);
        self.trajectory.drain(..surplus);
        self.latest = Some(assessment);
    }

    /// The facts that the information score follows from.
    pub(crate) fn evidence(&self) -> Evidence {
        Evidence {
            exchanges: self.incoming.max(self.outgoing),
            span: self.last_seen_at.since(self.first_seen_at),
            assessments: self.assessments,
        }
    }
}

//! Peers for people and other programs.

use base::{AgentName, ContentHash, Refusal, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Scan, StoreError, Table};

use crate::enrich::block;
use crate::ledger::Ledger;
use crate::record::{Assessment, Interaction, PeerHead, TrajectoryPoint};
use crate::score::info_score;
use crate::{PeerId, keys};

/// Peers in one list.
pub const MAX_LISTED_PEERS: usize = 1_000;
/// Entries of each kind in a report, the newest.
const MAX_REPORTED: usize = 20;

/// A peer in a list (SPEC LED-1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PeerSummary {
    /// The id of the peer in its channel.
    pub peer: PeerId,
    /// Time of the first interaction.
    pub first_seen_at: Timestamp,
    /// Time of the latest interaction.
    pub last_seen_at: Timestamp,
    /// Interactions from the peer.
    pub incoming: u64,
    /// Interactions to the peer.
    pub outgoing: u64,
    /// Assessments of the peer.
    pub assessments: u64,
    /// How much is known about the peer, 0 to 10, computed by the host.
    pub info_score: u8,
    /// The last assessed trust, -10 to 10; absent if there is no assessment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<i8>,
}

/// A peer with its latest entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PeerReport {
    /// The peer as in a list.
    #[serde(flatten)]
    pub summary: PeerSummary,
    /// Trust and information score of the latest assessments, oldest first.
    pub trajectory: Vec<TrajectoryPoint>,
    /// The latest assessments, newest first.
    pub recent_assessments: Vec<Assessment>,
    /// The latest interactions, newest first.
    pub recent_interactions: Vec<Interaction>,
    /// The block about the peer in the prompts of models.
    pub prompt: String,
}

/// The note that a peer was forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForgottenPeer {
    /// Time it was forgotten.
    pub at: Timestamp,
    /// SHA-256 of the agent's name, a zero byte and the peer's id.
    pub peer_hash: ContentHash,
    /// Interactions that were recorded.
    pub interactions: u64,
    /// Assessments that were recorded.
    pub assessments: u64,
    /// Conversations that were deleted. Default: 0, as in notes of earlier versions.
    #[serde(default)]
    pub conversations: u64,
    /// Memories that were deleted because the peer is one of their sources. Default: 0.
    #[serde(default)]
    pub memories: u64,
    /// Beliefs, commitments and directives of the cortex that were deleted. Default: 0.
    #[serde(default)]
    pub beliefs: u64,
}

impl Ledger {
    /// The peers of an agent in the order of their ids, those after `after`, at most `limit` and at most 1,000.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn list(
        &self,
        agent: &AgentName,
        after: Option<&PeerId>,
        limit: usize,
    ) -> Result<Vec<PeerSummary>, StoreError> {
        let scan = Scan::prefix(keys::agent_prefix(agent)).limit(limit.min(MAX_LISTED_PEERS));
        let scan = match after {
            Some(after) => scan.after(keys::head(agent, after)),
            None => scan,
        };
        let heads = self.store().scan::<PeerHead>(Table::Peers, &scan)?;
        Ok(heads.into_iter().filter_map(|(key, head)| Some(summary(keys::peer_of(agent, &key)?, &head))).collect())
    }

    /// A peer with its latest entries.
    ///
    /// # Errors
    /// `not_found` if the peer is unknown, or if the store cannot be read.
    pub fn report(&self, agent: &AgentName, peer: &PeerId) -> Result<PeerReport, Refusal> {
        let head = self.known(agent, peer)?;
        Ok(PeerReport {
            prompt: block(peer, Some(&head)),
            recent_assessments: self.entries(Table::Assessments, head.number, MAX_REPORTED)?,
            recent_interactions: self.entries(Table::Interactions, head.number, MAX_REPORTED)?,
            trajectory: head.trajectory.clone(),
            summary: summary(peer.clone(), &head),
        })
    }

    /// As [`Ledger::report`], with at most `interactions` of them and the latest assessment alone; `None` if the peer is unknown.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn brief(
        &self,
        agent: &AgentName,
        peer: &PeerId,
        interactions: usize,
    ) -> Result<Option<PeerReport>, StoreError> {
        let Some(head) = self.head(agent, peer)? else { return Ok(None) };
        Ok(Some(PeerReport {
            prompt: block(peer, Some(&head)),
            recent_interactions: self.entries(Table::Interactions, head.number, interactions)?,
            summary: summary(peer.clone(), &head),
            recent_assessments: head.latest.into_iter().collect(),
            trajectory: head.trajectory,
        }))
    }

    /// The newest entries of a peer.
    fn entries<T: serde::de::DeserializeOwned>(
        &self,
        table: Table,
        number: u64,
        limit: usize,
    ) -> Result<Vec<T>, StoreError> {
        let scan = Scan::prefix(number.to_be_bytes()).newest_first().limit(limit);
        Ok(self.store().scan(table, &scan)?.into_iter().map(|(_, entry)| entry).collect())
    }
}

fn summary(peer: PeerId, head: &PeerHead) -> PeerSummary {
    PeerSummary {
        peer,
        first_seen_at: head.first_seen_at,
        last_seen_at: head.last_seen_at,
        incoming: head.incoming,
        outgoing: head.outgoing,
        assessments: head.assessments,
        info_score: info_score(head.evidence()),
        trust: head.latest.as_ref().map(|latest| latest.trust),
    }
}

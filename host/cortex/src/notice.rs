//! Signals of a cortex: records of their own, stored in the commit of their cause, so that each is there once after a crash.
//!
//! Like those of neurons they are not among the signals of runs: no webhook, hook or model takes one for a run's.

use base::{AgentName, Timestamp};
use ledger::PeerId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Batch, Scan, Store, StoreError, Table};

use crate::activity::agent_key;
use crate::belief::names;
use crate::commitment::Commitment;

/// Signals that are kept, the newest.
const MAX_SIGNALS: u64 = 200;

/// Something that a cortex tells the owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CortexSignal {
    /// Counts the signals of the agent's cortex, from 1.
    pub id: u64,
    /// Time it was stored.
    pub at: Timestamp,
    /// The event that it reports.
    #[serde(flatten)]
    pub event: CortexNotice,
}

/// The content of a signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", rename_all_fields = "camelCase", tag = "kind")]
#[non_exhaustive]
pub enum CortexNotice {
    /// The time of a commitment is over.
    CommitmentOverdue {
        /// The key of the commitment.
        key: String,
        /// The peer of the conversation.
        peer: PeerId,
        /// The promise; text of a model.
        text: String,
        /// Time until which it had to be kept.
        due_at: Timestamp,
    },
    /// A reflection gave a new directive, after activity of others.
    Directive {
        /// The key of the directive.
        key: String,
        /// The peer that it is about, if it is about one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer: Option<PeerId>,
        /// The advice; text of a model.
        text: String,
        /// The cycle that gave it.
        cycle: u64,
    },
    /// A reflection finds that the agent drifts from `SOUL.md`.
    SoulDrift {
        /// The finding; text of a model.
        finding: String,
        /// The cycle that found it.
        cycle: u64,
    },
}

impl From<Commitment> for CortexNotice {
    fn from(Commitment { key, peer, text, due_at, .. }: Commitment) -> Self {
        Self::CommitmentOverdue { key, peer, text, due_at }
    }
}

impl CortexNotice {
    /// Whether it is about a peer, or names it.
    pub(crate) fn concerns(&self, peer: &PeerId) -> bool {
        let (key, of, text) = match self {
            Self::CommitmentOverdue { key, peer, text, .. } => (key.as_str(), Some(peer), text),
            Self::Directive { key, peer, text, .. } => (key.as_str(), peer.as_ref(), text),
            Self::SoulDrift { finding, .. } => ("", None, finding),
        };
        of == Some(peer) || names(key, peer) || names(text, peer)
    }
}

/// Puts a signal into the batch, and removes the one that leaves the kept ones. `last` is the number of the last signal.
pub(crate) fn stage(
    batch: &mut Batch,
    agent: &AgentName,
    last: &mut u64,
    at: Timestamp,
    event: CortexNotice,
) -> Result<(), StoreError> {
    *last = last.saturating_add(1);
    batch.put(Table::Reflections, key(agent, *last), &CortexSignal { id: *last, at, event })?;
    if let Some(old) = last.checked_sub(MAX_SIGNALS) {
        batch.delete(Table::Reflections, key(agent, old));
    }
    Ok(())
}

/// The latest signals, the newest first.
pub(crate) fn latest(store: &Store, agent: &AgentName, limit: usize) -> Result<Vec<CortexSignal>, StoreError> {
    let scan = Scan::prefix(agent_key(agent, b"n")).newest_first().limit(limit);
    Ok(store.scan(Table::Reflections, &scan)?.into_iter().map(|(_, signal)| signal).collect())
}

/// The signals after the number `after`, in order.
pub(crate) fn since(store: &Store, agent: &AgentName, after: u64) -> Result<Vec<CortexSignal>, StoreError> {
    let scan = Scan::prefix(agent_key(agent, b"n")).after(key(agent, after));
    Ok(store.scan(Table::Reflections, &scan)?.into_iter().map(|(_, signal)| signal).collect())
}

pub(crate) fn key(agent: &AgentName, id: u64) -> Vec<u8> {
    let mut key = agent_key(agent, b"n");
    key.extend(id.to_be_bytes());
    key
}

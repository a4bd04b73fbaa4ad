//! The durable state of a cortex: beliefs, the number of the last cycle, the records of the latest ones.
//!
//! Keys of `Table::Reflections`: agent, `00`, `s` for the state; agent, `00`, `c`, number (8) for the record of a cycle;
//! agent, `00`, `n`, number (8) for a signal.

use base::AgentName;
use ledger::PeerId;
use serde::{Deserialize, Serialize};
use store::{Batch, Scan, Store, StoreError, Table};

use crate::activity::agent_key;
use crate::belief::BeliefSet;
use crate::commitments::CommitmentSet;
use crate::directive::DirectiveSet;
use crate::record::{ReflectionRecord, SoulDrift};

/// The state of one agent's cortex.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CortexState {
    /// The number of the last cycle, applied or skipped.
    pub cycle: u64,
    pub beliefs: BeliefSet,
    /// The summary of the last cycle that was applied.
    #[serde(default)]
    pub summary: Option<String>,
    #[serde(default)]
    pub commitments: CommitmentSet,
    #[serde(default)]
    pub directives: DirectiveSet,
    /// The finding of the last cycle that was applied and saw `SOUL.md`, if it had one.
    #[serde(default)]
    pub drift: Option<SoulDrift>,
    /// Peers of commitments that have become overdue since the last cycle that was applied: the trigger `overdue` of the next host.
    #[serde(default)]
    pub unreflected: Vec<PeerId>,
    /// The number of the last signal.
    #[serde(default)]
    pub signals: u64,
}

impl CortexState {
    pub fn read(store: &Store, agent: &AgentName) -> Result<Self, StoreError> {
        Ok(store.get(Table::Reflections, state_key(agent))?.unwrap_or_default())
    }

    /// The peers that a reflector may be shown texts about, some of them several times.
    pub fn peers(&self) -> impl Iterator<Item = &PeerId> {
        let promised = self.commitments.open().map(|commitment| &commitment.peer);
        self.beliefs.peers().chain(promised).chain(self.directives.peers())
    }

    pub fn stage(&self, batch: &mut Batch, agent: &AgentName) -> Result<(), StoreError> {
        batch.put(Table::Reflections, state_key(agent), self)
    }
}

/// Puts the record of a cycle into the batch, and removes those beyond the newest `keep`.
pub(crate) fn stage_record(
    batch: &mut Batch,
    store: &Store,
    agent: &AgentName,
    record: &ReflectionRecord,
    keep: u64,
) -> Result<(), StoreError> {
    batch.put(Table::Reflections, record_key(agent, record.cycle), record)?;
    // More than one if the setting became smaller.
    let end = record_key(agent, record.cycle.saturating_sub(keep));
    let all = Scan::prefix(record_prefix(agent));
    let stored = store.scan_each::<serde::de::IgnoredAny>(Table::Reflections, &all)?;
    for (key, _) in stored.into_iter().filter(|(key, _)| *key <= end) {
        batch.delete(Table::Reflections, key);
    }
    Ok(())
}

/// The records of the latest cycles, the newest first.
pub(crate) fn records(store: &Store, agent: &AgentName, limit: usize) -> Result<Vec<ReflectionRecord>, StoreError> {
    let scan = Scan::prefix(record_prefix(agent)).newest_first().limit(limit);
    Ok(store.scan(Table::Reflections, &scan)?.into_iter().map(|(_, record)| record).collect())
}

fn state_key(agent: &AgentName) -> Vec<u8> {
    agent_key(agent, b"s")
}

fn record_prefix(agent: &AgentName) -> Vec<u8> {
    agent_key(agent, b"c")
}

pub(crate) fn record_key(agent: &AgentName, cycle: u64) -> Vec<u8> {
    let mut key = record_prefix(agent);
    key.extend(cycle.to_be_bytes());
    key
}

//! Forgetting a peer: everything about it goes, and a note stays that this was done.
//!
//! One batch deletes the head and notes both the forgetting and the number of the entries. From then on nothing leads to the
//! entries, so a crash cannot leave a peer half forgotten; deleting them goes on at the next start. The note has no id, only
//! its hash, with which the question whether a known id was forgotten can be answered. Deleted bytes leave the disk when the
//! storage engine next compacts the table.

use base::{AgentName, ContentHash, Refusal, Timestamp};
use serde::de::IgnoredAny;
use store::{Batch, Scan, StoreError, Table, broke_off};

use crate::ledger::Ledger;
use crate::report::ForgottenPeer;
use crate::{PeerId, keys};

/// Entries that one batch deletes.
const MAX_PURGED: usize = 2_000;
/// Notes that are searched for one peer, the newest first.
const MAX_NOTES: usize = 1_000;

impl Ledger {
    /// Deletes everything about a peer, and returns the note of it. If the host ends meanwhile, the peer is forgotten or known, and
    /// [`Ledger::resume`] deletes the remaining entries.
    ///
    /// # Errors
    /// `not_found` if the peer is unknown, or if the store fails: a failure after the first step leaves the peer forgotten.
    pub async fn forget(&self, agent: &AgentName, peer: &PeerId) -> Result<ForgottenPeer, Refusal> {
        let key = keys::head(agent, peer);
        let guards = self.lock([&key]).await;
        let head = self.known(agent, peer)?;
        let note = ForgottenPeer {
            at: self.clock().now(),
            peer_hash: hash(agent, peer),
            interactions: head.interactions(),
            assessments: head.assessments,
        };
        let mut batch = Batch::new();
        batch.delete(Table::Peers, key);
        batch.put(Table::Peers, keys::forgotten(agent, note.at, head.number), &note)?;
        batch.put(Table::Peers, keys::purge(head.number), &head.number)?;
        self.commit_holding(batch, guards).await?;
        // In its own task: a client that goes away does not leave it to the next start.
        let ledger = self.clone();
        let purging = tokio::spawn(async move { ledger.purge(head.number).await });
        purging.await.unwrap_or_else(|error| Err(broke_off(&error)))?;
        Ok(note)
    }

    /// Notes that a peer was forgotten of which only others knew, such as a conversation of a version whose ledger missed its messages.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn note_forgotten(&self, agent: &AgentName, peer: &PeerId) -> Result<ForgottenPeer, Refusal> {
        let (at, peer_hash) = (self.clock().now(), hash(agent, peer));
        let note = ForgottenPeer { at, peer_hash, interactions: 0, assessments: 0 };
        let mut batch = Batch::new();
        batch.put(Table::Peers, keys::forgotten(agent, at, self.unused_number()?), &note)?;
        self.store().commit(batch).await?;
        Ok(note)
    }

    /// Goes on deleting the entries of peers whose forgetting an earlier host left unfinished, and returns their number.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn resume(&self) -> Result<usize, Refusal> {
        let left = self.store().scan_each::<IgnoredAny>(Table::Peers, &Scan::prefix(keys::purge_prefix()))?;
        let numbers: Vec<u64> = left.iter().filter_map(|(key, _)| keys::purged(key)).collect();
        for number in &numbers {
            self.purge(*number).await?;
        }
        Ok(numbers.len())
    }

    async fn purge(&self, number: u64) -> Result<(), Refusal> {
        for table in [Table::Interactions, Table::Assessments] {
            let some = Scan::prefix(number.to_be_bytes()).limit(MAX_PURGED);
            loop {
                // Also records that cannot be read.
                let entries = self.store().scan_each::<IgnoredAny>(table, &some)?;
                if entries.is_empty() {
                    break;
                }
                let mut batch = Batch::new();
                for (key, _) in entries {
                    batch.delete(table, key);
                }
                self.store().commit(batch).await?;
            }
        }
        let mut batch = Batch::new();
        batch.delete(Table::Peers, keys::purge(number));
        Ok(self.store().commit(batch).await?)
    }

    /// The notes about forgotten peers, the newest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn forgotten(&self, agent: &AgentName, limit: usize) -> Result<Vec<ForgottenPeer>, StoreError> {
        let scan = Scan::prefix(keys::forgotten_prefix(agent)).newest_first().limit(limit);
        Ok(self.store().scan(Table::Peers, &scan)?.into_iter().map(|(_, note)| note).collect())
    }

    /// When a peer was last forgotten, as far as the newest notes tell.
    pub(crate) fn was_forgotten(&self, agent: &AgentName, peer: &PeerId) -> Result<Option<Timestamp>, StoreError> {
        let wanted = hash(agent, peer);
        let note = self.forgotten(agent, MAX_NOTES)?.into_iter().find(|note| note.peer_hash == wanted);
        Ok(note.map(|note| note.at))
    }
}

fn hash(agent: &AgentName, peer: &PeerId) -> ContentHash {
    ContentHash::of(&keys::head(agent, peer))
}

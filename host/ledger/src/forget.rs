//! Forgetting a peer: everything about it goes, and a note stays that this was done.
//!
//! One batch deletes the head and notes both the forgetting and the number of the entries; others put the deletion of their own
//! records about the peer into it. From then on nothing leads to the entries, so a crash cannot leave a peer half forgotten;
//! deleting them goes on at the next start. The note has no id, only its hash, with which the question whether a known id was forgotten can be answered. Deleted bytes leave the disk when the
//! storage engine next compacts the table.

use base::{AgentName, ContentHash, Refusal, Timestamp};
use serde::de::IgnoredAny;
use store::{Batch, Scan, StoreError, Table, broke_off};

use crate::ledger::Ledger;
use crate::locks::KeyGuards;
use crate::report::ForgottenPeer;
use crate::{PeerId, keys};

/// Entries that one batch deletes.
const MAX_PURGED: usize = 2_000;
/// Notes that are searched for one peer, the newest first.
const MAX_NOTES: usize = 1_000;

/// Records outside of the ledger that are deleted with a peer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeletedWithPeer {
    /// Conversations with it on every channel.
    pub conversations: u64,
    /// Memories of which it is a source.
    pub memories: u64,
}

/// A forgetting in a batch that is not committed yet. The peer stays locked until this is dropped: keep it until the batch is committed, in
/// the task that commits.
#[must_use = "keep it until the batch is committed"]
#[derive(Debug)]
pub struct StagedForgetting {
    note: ForgottenPeer,
    /// The number of the entries; `None` if the ledger had no record of the peer.
    number: Option<u64>,
    guards: KeyGuards,
}

impl Ledger {
    /// Deletes everything about a peer, and returns the note of it. If the host ends meanwhile, the peer is forgotten or known, and
    /// [`Ledger::resume`] deletes the remaining entries.
    ///
    /// # Errors
    /// `not_found` if the peer is unknown, or if the store fails: a failure after the first step leaves the peer forgotten.
    pub async fn forget(&self, agent: &AgentName, peer: &PeerId) -> Result<ForgottenPeer, Refusal> {
        let mut batch = Batch::new();
        let staged = self.stage_forgetting(&mut batch, agent, peer, DeletedWithPeer::default()).await?;
        let StagedForgetting { note, number, guards } = staged;
        self.commit_holding(batch, guards).await?;
        self.purge_whole(number).await?;
        Ok(note)
    }

    /// Puts the forgetting of a peer and the note of it into `batch`, to be committed together with the deletion of other records about it.
    /// [`Ledger::finish_forgetting`] follows the commit.
    ///
    /// # Errors
    /// `not_found` if the peer is unknown and nothing else is deleted with it; or if the store fails.
    pub async fn stage_forgetting(
        &self,
        batch: &mut Batch,
        agent: &AgentName,
        peer: &PeerId,
        deleted: DeletedWithPeer,
    ) -> Result<StagedForgetting, Refusal> {
        let key = keys::head(agent, peer);
        let guards = self.lock([&key]).await;
        // Others may know a peer alone: a memory of it outlasts a forgetting by an earlier version.
        let is_known_to_others = deleted != DeletedWithPeer::default();
        let head = if is_known_to_others { self.head(agent, peer)? } else { Some(self.known(agent, peer)?) };
        let (interactions, assessments) = head.as_ref().map_or((0, 0), |head| (head.interactions(), head.assessments));
        let (at, peer_hash) = (self.clock().now(), hash(agent, peer));
        let DeletedWithPeer { conversations, memories } = deleted;
        let note = ForgottenPeer { at, peer_hash, interactions, assessments, conversations, memories, beliefs: 0 };
        let number = head.map(|head| head.number);
        let filed = match number {
            Some(number) => number,
            None => self.unused_number()?,
        };
        batch.put(Table::Peers, keys::forgotten(agent, at, filed), &note)?;
        if let Some(number) = number {
            batch.delete(Table::Peers, key);
            batch.put(Table::Peers, keys::purge(number), &number)?;
        }
        Ok(StagedForgetting { note, number, guards })
    }

    /// Deletes the entries of a peer whose forgetting was committed, and returns the note of it.
    ///
    /// # Errors
    /// If the store fails: the peer is forgotten, and [`Ledger::resume`] deletes the remaining entries.
    pub async fn finish_forgetting(&self, staged: StagedForgetting) -> Result<ForgottenPeer, Refusal> {
        let StagedForgetting { note, number, guards } = staged;
        drop(guards);
        self.purge_whole(number).await?;
        Ok(note)
    }

    /// Adds the number of beliefs that were deleted with a peer to the newest note about it, in `batch`. Nothing changes if none of the newest
    /// 1,000 notes is about it.
    ///
    /// # Errors
    /// If the store fails.
    pub fn stage_deleted_beliefs(
        &self,
        batch: &mut Batch,
        agent: &AgentName,
        peer: &PeerId,
        beliefs: u64,
    ) -> Result<(), StoreError> {
        let wanted = hash(agent, peer);
        let scan = Scan::prefix(keys::forgotten_prefix(agent)).newest_first().limit(MAX_NOTES);
        let notes = self.store().scan::<ForgottenPeer>(Table::Peers, &scan)?;
        if let Some((key, note)) = notes.into_iter().find(|(_, note)| note.peer_hash == wanted) {
            batch.put(Table::Peers, key, &ForgottenPeer { beliefs: note.beliefs.saturating_add(beliefs), ..note })?;
        }
        Ok(())
    }

    /// Deletes the entries under a number in its own task: a client that goes away does not leave it to the next start.
    async fn purge_whole(&self, number: Option<u64>) -> Result<(), Refusal> {
        let Some(number) = number else { return Ok(()) };
        let ledger = self.clone();
        let purging = tokio::spawn(async move { ledger.purge(number).await });
        purging.await.unwrap_or_else(|error| Err(broke_off(&error)))
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

//! The ledger itself: recording interactions and reading heads.
//!
//! A change reads the head, and commits the new head with the appended entry, under the lock of the peer. The commit runs in its
//! own task that holds the lock: were it dropped with its caller, the next change would build on a head that is about to be
//! replaced.

use std::sync::Arc;

use base::{AgentName, Clock, Random, Refusal, RefusalCode};
use store::{Batch, Scan, Store, StoreError, Table, broke_off};

use crate::locks::{KeyGuards, KeyLocks};
use crate::record::{Interaction, PeerHead, PeerIncarnation};
use crate::{ChannelName, Direction, PeerId, keys};

/// Characters that are kept of a summary.
pub const MAX_SUMMARY: usize = 280;
/// Interactions in one call.
const MAX_RECORDED: usize = 1_000;
/// Interactions that are kept of one peer; the counts go on. A stranger who writes all day fills no disk.
const MAX_KEPT_INTERACTIONS: u64 = 10_000;

/// The dependencies of a ledger.
#[derive(Debug, Clone)]
pub struct LedgerParts {
    /// The state of the home.
    pub store: Store,
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// Gives peers their numbers.
    pub random: Arc<Random>,
}

/// The peers of a home's agents. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Ledger {
    inner: Arc<LedgerInner>,
}

#[derive(Debug)]
struct LedgerInner {
    parts: LedgerParts,
    locks: KeyLocks,
}

/// An interaction to record. Its time is that of the recording.
#[derive(Debug, Clone)]
pub struct NewInteraction {
    /// Its direction, seen from the agent.
    pub direction: Direction,
    /// The channel it came or went through.
    pub channel: ChannelName,
    /// A short summary, of which [`MAX_SUMMARY`] characters are kept.
    pub summary: String,
}

/// The effect of recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// Whether the peer was unknown before.
    pub is_new: bool,
    /// All interactions with the peer so far.
    pub interactions: u64,
}

/// Interactions in a batch that is not committed yet. Their peer stays locked until this is dropped: keep it until the batch is
/// committed, in the task that commits.
#[must_use = "keep it until the batch is committed"]
#[derive(Debug)]
pub struct StagedInteractions {
    recorded: Recorded,
    guards: KeyGuards,
}

impl StagedInteractions {
    /// The effect of the commit.
    #[must_use]
    pub fn recorded(&self) -> Recorded {
        self.recorded
    }
}

impl Ledger {
    /// Opens the ledger. Nothing is read.
    #[must_use]
    pub fn open(parts: LedgerParts) -> Self {
        Self { inner: Arc::new(LedgerInner { parts, locks: KeyLocks::default() }) }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.inner.parts.store
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.inner.parts.clock
    }

    /// Records interactions with a peer, in order and all or none. An unknown peer becomes known.
    ///
    /// # Errors
    /// `invalid_request` if there are none, or more than 1,000; or if the store fails.
    pub async fn record(
        &self,
        agent: &AgentName,
        peer: &PeerId,
        interactions: Vec<NewInteraction>,
    ) -> Result<Recorded, Refusal> {
        let mut batch = Batch::new();
        let StagedInteractions { recorded, guards } =
            self.stage_interactions(&mut batch, agent, peer, interactions).await?;
        self.commit_holding(batch, guards).await?;
        Ok(recorded)
    }

    /// Puts interactions with a peer into `batch`, in order, to be committed together with other changes: they are recorded exactly if
    /// those are. An unknown peer becomes known.
    ///
    /// # Errors
    /// As [`Ledger::record`].
    pub async fn stage_interactions(
        &self,
        batch: &mut Batch,
        agent: &AgentName,
        peer: &PeerId,
        interactions: Vec<NewInteraction>,
    ) -> Result<StagedInteractions, Refusal> {
        if interactions.is_empty() || interactions.len() > MAX_RECORDED {
            let reason = format!("{} interactions at a time: use 1 to {MAX_RECORDED}", interactions.len());
            return Err(Refusal::new(RefusalCode::InvalidRequest, reason));
        }
        let key = keys::head(agent, peer);
        let guards = self.lock([&key]).await;
        let now = self.clock().now();
        let found = self.head(agent, peer)?;
        let is_new = found.is_none();
        let mut head = match found {
            Some(head) => head,
            None => PeerHead::new(self.unused_number()?, now),
        };
        for NewInteraction { direction, channel, summary } in interactions {
            let sequence = head.interactions();
            let interaction =
                Interaction { at: now, direction, channel, summary: base::text::cut(&summary, MAX_SUMMARY) };
            batch.put(Table::Interactions, keys::entry(head.number, sequence), &interaction)?;
            if let Some(oldest) = sequence.checked_sub(MAX_KEPT_INTERACTIONS) {
                batch.delete(Table::Interactions, keys::entry(head.number, oldest));
            }
            head.count(direction, now);
        }
        batch.put(Table::Peers, key, &head)?;
        let recorded = Recorded { is_new, interactions: head.interactions() };
        Ok(StagedInteractions { recorded, guards })
    }

    /// Whether the agent knows this peer.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn knows(&self, agent: &AgentName, peer: &PeerId) -> Result<bool, StoreError> {
        Ok(self.head(agent, peer)?.is_some())
    }

    /// The incarnation of a peer; `None` if it is unknown.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn incarnation(&self, agent: &AgentName, peer: &PeerId) -> Result<Option<PeerIncarnation>, StoreError> {
        Ok(self.head(agent, peer)?.map(|head| PeerIncarnation(head.number)))
    }

    pub(crate) fn head(&self, agent: &AgentName, peer: &PeerId) -> Result<Option<PeerHead>, StoreError> {
        self.store().get(Table::Peers, keys::head(agent, peer))
    }

    /// The head of a peer that must be known.
    pub(crate) fn known(&self, agent: &AgentName, peer: &PeerId) -> Result<PeerHead, Refusal> {
        if let Some(head) = self.head(agent, peer)? {
            return Ok(head);
        }
        let forgotten = self.was_forgotten(agent, peer)?;
        let since = forgotten.map(|at| format!(": it was forgotten on {at}")).unwrap_or_default();
        let reason = format!("the agent `{agent}` knows no peer `{peer}`{since}");
        Err(Refusal::new(RefusalCode::NotFound, reason).with_remedy("`motor ledger list` shows the peers"))
    }

    pub(crate) async fn lock(&self, keys: impl IntoIterator<Item = impl AsRef<[u8]>>) -> KeyGuards {
        self.inner.locks.lock(keys).await
    }

    /// Commits a change; the locks are free once it is durable, also if the caller is dropped.
    pub(crate) async fn commit_holding(&self, batch: Batch, guards: KeyGuards) -> Result<(), Refusal> {
        let store = self.store().clone();
        let committing = tokio::spawn(async move {
            let result = store.commit(batch).await;
            drop(guards);
            result
        });
        match committing.await {
            Ok(result) => Ok(result?),
            Err(error) => Err(broke_off(&error)),
        }
    }

    /// A number without entries, also of a forgotten peer whose entries are still being deleted.
    pub(crate) fn unused_number(&self) -> Result<u64, StoreError> {
        loop {
            let number = self.inner.parts.random.next_u64();
            let one = Scan::prefix(number.to_be_bytes()).limit(1);
            let is_used = !self.store().scan_each::<serde::de::IgnoredAny>(Table::Interactions, &one)?.is_empty()
                || !self.store().scan_each::<serde::de::IgnoredAny>(Table::Assessments, &one)?.is_empty()
                || self.store().get::<u64>(Table::Peers, keys::purge(number))?.is_some();
            if !is_used {
                return Ok(number);
            }
        }
    }
}

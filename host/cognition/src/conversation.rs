//! One conversation: its head in memory, and the only way to append to it.
//!
//! Every change is one batch: the entries, the head that follows from them, the mark that there is work, and the interactions of the
//! ledger that the entries are, so that it counts each message once, also over a crash. The commit runs in its own task that holds
//! the head, so a caller that goes away leaves neither half a change nor a stale head.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::text::cut;
use base::{Clock, Refusal, RefusalCode};
use consent::Consent;
use ledger::{ChannelName, Direction, Ledger, NewInteraction, StagedInteractions};
use parking_lot::Mutex;
use store::{Batch, Scan, Store, StoreError, Table, broke_off};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, watch};

use crate::extent::Extent;
use crate::record::{
    ChatEvent, ChatEventBody, ConversationId, ConversationKey, Entry, EntryBody, Head, entries_prefix, entry_key,
    head_key, work_key,
};
use crate::sources::Sources;
use crate::turn::{TurnEvent, transition};

/// Entries that are read at a time.
const PAGE: usize = 1_000;

/// Stands for the number of the newest entry once the conversation was forgotten.
pub(crate) const FORGOTTEN: u64 = u64::MAX;

/// The dependencies of a conversation.
pub(crate) struct ConversationParts {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub ledger: Ledger,
}

/// A conversation that is in use.
pub(crate) struct Conversation {
    pub id: ConversationId,
    store: Store,
    clock: Arc<dyn Clock>,
    ledger: Ledger,
    state: Arc<AsyncMutex<State>>,
    /// The authority of the owner's messages that wait or are being answered, by entry. It is never stored: after a restart
    /// the owner has to say it again.
    pub consents: Mutex<BTreeMap<u64, Consent>>,
    newest: watch::Sender<u64>,
}

/// The part of a conversation that changes.
pub(crate) struct State {
    pub head: Head,
    /// Whether a worker is at it.
    pub is_worked_on: bool,
    /// Whether it was forgotten: nothing is appended to it any more.
    pub is_forgotten: bool,
}

/// Exclusive access to a conversation.
pub(crate) type Held = OwnedMutexGuard<State>;

/// The effect of appending.
pub(crate) struct Appended {
    /// The conversation, still held.
    pub held: Held,
    /// Whether the ledger did not know the peer before.
    pub is_new_peer: bool,
}

impl Conversation {
    pub fn new(id: ConversationId, head: Head, parts: ConversationParts) -> Self {
        let ConversationParts { store, clock, ledger } = parts;
        let newest = watch::Sender::new(head.last());
        let state = Arc::new(AsyncMutex::new(State { head, is_worked_on: false, is_forgotten: false }));
        Self { id, store, clock, ledger, state, consents: Mutex::default(), newest }
    }

    pub async fn hold(&self) -> Held {
        self.state.clone().lock_owned().await
    }

    /// The stored head of a conversation. One that was stored before heads had sources and an extent gets those of its entries.
    pub fn stored_head(store: &Store, id: &str) -> Result<Option<Head>, StoreError> {
        let Some(mut head) = store.get::<Head>(Table::Conversations, head_key(id))? else { return Ok(None) };
        if head.sources.is_some() && head.extent.is_some() {
            return Ok(Some(head));
        }
        let (mut sources, mut extent, mut after) = (Sources::default(), Extent::default(), entries_prefix(id));
        loop {
            let scan = Scan::prefix(entries_prefix(id)).after(after.clone()).limit(PAGE);
            let page = store.scan::<Entry>(Table::Conversations, &scan)?;
            let Some((last, _)) = page.last() else { break };
            after.clone_from(last);
            for (_, entry) in &page {
                sources.add_stored(entry);
                extent.add(entry);
            }
        }
        head.sources.get_or_insert(sources);
        head.extent.get_or_insert(extent);
        Ok(Some(head))
    }

    /// Wakes at each new entry with its sequence number, and with [`FORGOTTEN`].
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// Ends the followers of a conversation that was forgotten.
    pub fn end(&self) {
        self.newest.send_replace(FORGOTTEN);
    }

    /// Appends entries. `batch` is committed with them; `change` adjusts the head after the steps of the turn, and gets the number of
    /// the first entry. Messages of a peer and replies to it are interactions of the ledger from the same commit on (SPEC LED-1).
    ///
    /// # Errors
    /// If the turn does not allow an entry, or the store fails: nothing is changed then.
    pub async fn append(
        self: &Arc<Self>,
        held: Held,
        entries: Vec<EntryBody>,
        batch: Batch,
        change: impl FnOnce(&mut Head, u64),
    ) -> Result<Appended, Refusal> {
        self.append_holding(held, entries, (batch, ()), change).await
    }

    /// As [`Conversation::append`], with guards of the batch, which are dropped after the commit, also if the caller goes away before it.
    ///
    /// # Errors
    /// As [`Conversation::append`].
    pub async fn append_holding(
        self: &Arc<Self>,
        held: Held,
        entries: Vec<EntryBody>,
        (mut batch, guards): (Batch, impl Send + 'static),
        change: impl FnOnce(&mut Head, u64),
    ) -> Result<Appended, Refusal> {
        if held.is_forgotten {
            return Err(Refusal::new(RefusalCode::NotFound, "the conversation was forgotten"));
        }
        let noted = self.stage_interactions(&mut batch, &held.head.key, &entries).await?;
        let is_new_peer = noted.as_ref().is_some_and(|noted| noted.recorded().is_new);
        let mut head = held.head.clone();
        let (first, at) = (head.next, self.clock.now());
        for body in entries {
            let sequence = head.next;
            if let Some(event) = step(&body, sequence) {
                head.turn = transition(head.turn, event)
                    .map_err(|error| Refusal::new(RefusalCode::StateUnusable, error.to_string()))?;
            }
            // In the batch of the entry, before any model sees it.
            head.take_in(&body);
            let entry = Entry { at, body };
            head.extent.get_or_insert_default().add(&entry);
            batch.put(Table::Conversations, entry_key(&self.id, sequence), &entry)?;
            head.next = sequence.saturating_add(1);
        }
        change(&mut head, first);
        batch.put(Table::Conversations, head_key(&self.id), &head)?;
        if head.has_work() {
            batch.put(Table::Conversations, work_key(&self.id), &true)?;
        } else {
            batch.delete(Table::Conversations, work_key(&self.id));
        }
        let conversation = self.clone();
        let committing = tokio::spawn(async move {
            let mut held = held;
            conversation.store.commit(batch).await?;
            // The next interaction with the peer counts from this one.
            drop((noted, guards));
            let newest = head.last();
            held.head = head;
            conversation.newest.send_replace(newest);
            Ok::<_, StoreError>(held)
        });
        match committing.await {
            Ok(held) => Ok(Appended { held: held?, is_new_peer }),
            Err(error) => Err(broke_off(&error)),
        }
    }

    /// Puts the interactions with the peer that the entries are into the batch; `None` without one.
    async fn stage_interactions(
        &self,
        batch: &mut Batch,
        key: &ConversationKey,
        entries: &[EntryBody],
    ) -> Result<Option<StagedInteractions>, Refusal> {
        let Some(peer) = &key.peer else { return Ok(None) };
        let interactions: Vec<NewInteraction> =
            entries.iter().filter_map(|body| interaction(&key.channel, body)).collect();
        if interactions.is_empty() {
            return Ok(None);
        }
        self.ledger.stage_interactions(batch, &key.agent, peer, interactions).await.map(Some)
    }

    /// Reads one entry by its number.
    pub fn entry(&self, sequence: u64) -> Result<Option<Entry>, StoreError> {
        self.store.get(Table::Conversations, entry_key(&self.id, sequence))
    }

    /// The entries from `from` on, with their numbers.
    pub fn entries(&self, from: u64, limit: usize) -> Result<Vec<(u64, Entry)>, StoreError> {
        let mut scan = Scan::prefix(entries_prefix(&self.id)).limit(limit);
        if let Some(before) = from.checked_sub(1) {
            scan = scan.after(entry_key(&self.id, before));
        }
        numbered(self.store.scan(Table::Conversations, &scan)?)
    }

    /// The latest entries, in order.
    pub fn latest(&self, limit: usize) -> Result<Vec<(u64, Entry)>, StoreError> {
        let scan = Scan::prefix(entries_prefix(&self.id)).newest_first().limit(limit);
        let mut entries = numbered(self.store.scan(Table::Conversations, &scan)?)?;
        entries.reverse();
        Ok(entries)
    }
}

fn numbered(stored: Vec<(Vec<u8>, Entry)>) -> Result<Vec<(u64, Entry)>, StoreError> {
    let number = |key: &[u8]| key.last_chunk().map(|bytes| u64::from_be_bytes(*bytes)).unwrap_or_default();
    Ok(stored.into_iter().map(|(key, entry)| (number(&key), entry)).collect())
}

/// The interaction with the peer that an entry is, if it is one. The ledger keeps only the beginning of a text.
fn interaction(channel: &ChannelName, body: &EntryBody) -> Option<NewInteraction> {
    let (direction, text) = match body {
        EntryBody::Message { text, .. } => (Direction::Incoming, text),
        EntryBody::Said { text, .. } => (Direction::Outgoing, text),
        _ => return None,
    };
    Some(NewInteraction { direction, channel: channel.clone(), summary: cut(text, ledger::MAX_SUMMARY) })
}

/// The step of the turn that an entry is, if it is one.
fn step(body: &EntryBody, sequence: u64) -> Option<TurnEvent> {
    match body {
        EntryBody::Began { trigger, kind } => Some(TurnEvent::Began { trigger: *trigger, kind: *kind }),
        EntryBody::Replied { calls, .. } => {
            Some(TurnEvent::Replied { reply: sequence, calls: u32::try_from(calls.len()).unwrap_or(u32::MAX) })
        }
        EntryBody::Returned { .. } => Some(TurnEvent::Returned),
        EntryBody::Said { .. } => Some(TurnEvent::Said),
        EntryBody::Ended { .. } => Some(TurnEvent::Ended),
        EntryBody::Message { .. }
        | EntryBody::Signal { .. }
        | EntryBody::Noted { .. }
        | EntryBody::Delegated { .. } => None,
    }
}

/// The event that clients see of an entry, if they see one. `trigger`: the trigger of the turn that the entry ends.
pub(crate) fn shown(id: u64, entry: Entry) -> Option<ChatEvent> {
    let Entry { at, body } = entry;
    let body = match body {
        EntryBody::Message { text, id } => ChatEventBody::Message { text, message_id: id },
        EntryBody::Said { text, by } => ChatEventBody::Said { text, by },
        EntryBody::Delegated { run, task } => ChatEventBody::Delegated { run, task },
        EntryBody::Signal { run, status, .. } => ChatEventBody::Run { run, status },
        EntryBody::Noted { content, .. } => ChatEventBody::Noted { text: content },
        EntryBody::Ended { trigger, error } => ChatEventBody::Ended { trigger, error },
        EntryBody::Began { .. } | EntryBody::Replied { .. } | EntryBody::Returned { .. } => return None,
    };
    Some(ChatEvent { id, at, body })
}

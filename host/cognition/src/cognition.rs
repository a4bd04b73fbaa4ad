//! The facade of cognition: messages in, events out, and the table of conversations in use.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use base::{AgentName, Clock, Random, Refusal, RefusalCode};
use consent::Consent;
use ledger::{ChannelName, Ledger, PeerId};
use parking_lot::Mutex;
use serde::de::IgnoredAny;
use signals::SignalBus;
use store::{Batch, Scan, Store, StoreError, Table};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::channel::Outboxes;
use crate::conversation::{Appended, Conversation, ConversationParts, Held};
use crate::forget::ForgottenConversation;
use crate::memory::Memories;
use crate::ports::{Charged, Hands, Minds, Observed, Observer, PromptSection};
use crate::record::{
    ConversationId, ConversationKey, EntryBody, Head, SIGNALS_KEY, deletion_key, forgotten_key, head_key,
    latest_channel_key, message_key, name_key, outbox_key, work_key,
};
use crate::turn::TriggerKind;
use crate::{dispatch, worker};

/// Bytes of a message.
pub const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// Characters of the id that a sender gives a message.
pub const MAX_MESSAGE_ID: usize = 200;
/// Messages and signals of one conversation that wait for their turn.
const MAX_PENDING: usize = 100;
/// Conversations in the table before those that are no longer in use are dropped from it.
const MAX_IDLE: usize = 1_000;

/// Random ids that are tried for a new conversation: more than the conversations that a repeated generator can have made.
const MAX_DRAWS: usize = 100_000;

/// The dependencies of cognition.
pub struct CognitionParts {
    /// The state of the home.
    pub store: Store,
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// Gives conversations their ids.
    pub random: Arc<Random>,
    /// The signals of runs.
    pub signals: SignalBus,
    /// The peers of the same home.
    pub ledger: Ledger,
    /// Starts, answers and stops runs.
    pub hands: Arc<dyn Hands>,
    /// Connects to the models of each role.
    pub minds: Arc<dyn Minds>,
    /// Receive the events of conversations, and add to the prompt.
    pub observers: Vec<Arc<dyn Observer>>,
}

/// The conversations of a home. Cheap to clone.
#[derive(Clone)]
pub struct Cognition {
    pub(crate) inner: Arc<CognitionInner>,
}

pub(crate) struct CognitionInner {
    pub parts: CognitionParts,
    pub memories: Memories,
    pub outboxes: Outboxes,
    open: Mutex<HashMap<ConversationId, Weak<Conversation>>>,
    /// Held while a name gets its conversation.
    pub naming: tokio::sync::Mutex<()>,
    has_begun: AtomicBool,
    pub tasks: TaskTracker,
    pub closing: CancellationToken,
}

/// The sender of a message. Only the consent gate makes a [`Consent`], so a message is the owner's only through an
/// authenticated door, and its text makes no difference.
#[derive(Debug)]
pub enum Sender {
    /// The owner, by their proof.
    Owner(Consent),
    /// Anyone else, by the id of the channel.
    Peer(PeerId),
}

/// A message to an agent.
#[derive(Debug)]
pub struct NewMessage {
    /// The agent that is talked to.
    pub agent: AgentName,
    /// The channel that it came through.
    pub channel: ChannelName,
    /// The authenticated sender of the message.
    pub sender: Sender,
    /// The id that the sender gave it: the same id is the same message.
    pub id: Option<String>,
    /// The text of the message.
    pub text: String,
}

/// A message that is durable and will be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedMessage {
    /// The event of the message in its conversation.
    pub event: u64,
    /// Whether it had been accepted before.
    pub is_repeated: bool,
}

impl Cognition {
    /// Opens the conversations of a home. No work begins before [`Cognition::begin`].
    ///
    /// # Errors
    /// If the store fails.
    pub async fn open(parts: CognitionParts) -> Result<Self, Refusal> {
        if parts.store.get::<u64>(Table::Conversations, SIGNALS_KEY)?.is_none() {
            // Before the first conversation no signal is of one. Durable, so that a signal after it is not skipped.
            let mut batch = Batch::new();
            batch.put(Table::Conversations, SIGNALS_KEY, &parts.signals.latest())?;
            parts.store.commit(batch).await?;
        }
        let (tasks, closing) = (TaskTracker::new(), CancellationToken::new());
        let (open, naming, has_begun) = (Mutex::default(), tokio::sync::Mutex::default(), AtomicBool::new(false));
        let memories = Memories::new(parts.store.clone());
        let outboxes = Outboxes::default();
        let inner = CognitionInner { parts, memories, outboxes, open, naming, has_begun, tasks, closing };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Takes up the turns that an earlier host left, and listens to the signals of runs. Once; a short-lived host that serves no
    /// conversation need not.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn begin(&self) -> Result<(), Refusal> {
        if self.inner.has_begun.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let prefix = work_key("");
        let left = self.inner.parts.store.scan::<bool>(Table::Conversations, &Scan::prefix(prefix.clone()))?;
        for (key, _) in left {
            let id = key.get(prefix.len()..).and_then(|id| std::str::from_utf8(id).ok());
            if let Some(conversation) = id.map(|id| self.conversation(id)).transpose()?.flatten() {
                self.wake(conversation);
            }
        }
        let cognition = self.clone();
        self.spawn(async move { dispatch::run(&cognition).await });
        let cognition = self.clone();
        self.spawn(async move {
            if let Err(error) = cognition.finish_forgetting().await {
                tracing::warn!(%error, "entries of forgotten conversations are left to the next start");
            }
        });
        Ok(())
    }

    /// Ends at a durable point: the next host goes on.
    pub async fn shutdown(&self) {
        self.inner.closing.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }

    /// Accepts a message: it is durable when this returns, and is answered in its turn.
    ///
    /// # Errors
    /// `invalid_request` if it is empty, too long, or its id stands for another text; `try_later` if too many wait.
    pub async fn accept(&self, message: NewMessage) -> Result<AcceptedMessage, Refusal> {
        check(&message.text, message.id.as_deref())?;
        self.begin()?;
        // In its own task: if the caller were dropped between the commit and the worker's start, the message would wait for
        // the next one.
        let cognition = self.clone();
        let accepting = self.inner.tasks.spawn(async move { cognition.take(message).await });
        accepting.await.unwrap_or_else(|error| Err(store::broke_off(&error)))
    }

    async fn take(&self, message: NewMessage) -> Result<AcceptedMessage, Refusal> {
        let NewMessage { agent, channel, sender, id, text } = message;
        let text = self.inner.parts.minds.clean(text).await?;
        let (peer, consent) = match sender {
            Sender::Owner(consent) => (None, Some(consent.by_message())),
            Sender::Peer(peer) => (Some(peer), None),
        };
        let key = ConversationKey { agent, channel, peer };
        let (conversation, held) = loop {
            let conversation = self.named(key.clone()).await?;
            let held = conversation.hold().await;
            // Forgotten in between: the message begins another one.
            if !held.is_forgotten {
                break (conversation, held);
            }
        };
        if let Some(id) = &id
            && let Some(event) =
                self.inner.parts.store.get::<u64>(Table::Conversations, message_key(&conversation.id, id))?
        {
            return self.repeated(&conversation, &held, event, &text, consent);
        }
        if held.head.pending.len() >= MAX_PENDING {
            let reason = format!("{MAX_PENDING} messages of this conversation wait for their turn");
            return Err(Refusal::new(RefusalCode::TryLater, reason));
        }
        let mut batch = Batch::new();
        if let Some(id) = &id {
            batch.put(Table::Conversations, message_key(&conversation.id, id), &held.head.next)?;
        }
        if key.peer.is_none() {
            batch.put(Table::Conversations, latest_channel_key(&key.agent), &key.channel)?;
        }
        self.inner.parts.minds.charge(&mut batch, &key.agent, Charged::Message).await?;
        let event = held.head.next;
        if let Some(consent) = consent {
            // Before the commit: the worker may see the message at once.
            conversation.consents.lock().insert(event, consent);
        }
        let mut entries = vec![EntryBody::Message { text: text.clone(), id }];
        // A message that waits for none begins its turn in the same batch.
        let begins = !held.head.has_work();
        if begins {
            let is_owner = key.peer.is_none();
            let kind = if is_owner { TriggerKind::OwnerMessage } else { TriggerKind::PeerMessage };
            entries.push(EntryBody::Began { trigger: event, kind });
        }
        let waits = |head: &mut Head, event| {
            if !begins {
                head.pending.push(event);
            }
        };
        let appended = conversation.append(held, entries, batch, waits).await;
        let is_new_peer = match appended {
            Ok(Appended { held, is_new_peer, .. }) => {
                drop(held);
                is_new_peer
            }
            Err(refusal) => {
                conversation.consents.lock().remove(&event);
                return Err(refusal);
            }
        };
        self.observe(&key, Observed::Message { text: &text, is_new_peer });
        self.wake(conversation);
        Ok(AcceptedMessage { event, is_repeated: false })
    }

    fn repeated(
        &self,
        conversation: &Arc<Conversation>,
        held: &Held,
        event: u64,
        text: &str,
        consent: Option<Consent>,
    ) -> Result<AcceptedMessage, Refusal> {
        let is_same = conversation
            .entry(event)?
            .is_some_and(|entry| matches!(&entry.body, EntryBody::Message { text: earlier, .. } if earlier == text));
        if !is_same {
            let reason = "the id of the message stands for an earlier message with another text";
            return Err(
                Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy("take a new id for a new message")
            );
        }
        // A client that repeats the message after a restart proves again that it is the owner's.
        let waits = held.head.pending.contains(&event) || held.head.turn.is_some_and(|turn| turn.trigger == event);
        if let Some(consent) = consent.filter(|_| waits) {
            conversation.consents.lock().insert(event, consent);
        }
        Ok(AcceptedMessage { event, is_repeated: true })
    }

    pub(crate) fn find(&self, key: &ConversationKey) -> Result<Option<Arc<Conversation>>, StoreError> {
        let id: Option<ConversationId> = self.inner.parts.store.get(Table::Conversations, name_key(key))?;
        id.map(|id| self.conversation(&id)).transpose().map(Option::flatten)
    }

    /// The conversation of a name, which is made if it is missing.
    pub(crate) async fn named(&self, key: ConversationKey) -> Result<Arc<Conversation>, Refusal> {
        let _one_at_a_time = self.inner.naming.lock().await;
        if let Some(conversation) = self.find(&key)? {
            return Ok(conversation);
        }
        let (id, store) = (self.unused_id()?, &self.inner.parts.store);
        let mut batch = Batch::new();
        let forgotten: Option<ForgottenConversation> = store.get(Table::Conversations, forgotten_key(&key))?;
        // A client or a channel that knows events of the forgotten one takes none of the new ones for one of them.
        let last = forgotten.map_or(0, |forgotten| forgotten.last_event);
        let next = last.saturating_add(1);
        batch.put(Table::Conversations, name_key(&key), &id)?;
        if key.peer.is_some() && self.inner.outboxes.serve(&key.channel) {
            batch.put(Table::Conversations, outbox_key(&id), &last)?;
        }
        batch.put(Table::Conversations, head_key(&id), &Head { next, window: next, ..Head::new(key) })?;
        store.commit(batch).await?;
        let missing = || Refusal::new(RefusalCode::StateUnusable, "a conversation that was just made is missing");
        self.conversation(&id)?.ok_or_else(missing)
    }

    /// A random id that no conversation has. A generator that starts anew, as a seeded one does, repeats itself: with the id of
    /// another conversation a new one would take over its entries, and would hide its sources.
    fn unused_id(&self) -> Result<ConversationId, Refusal> {
        let random = &self.inner.parts.random;
        for _ in 0..MAX_DRAWS {
            let id = format!("{:016x}{:016x}", random.next_u64(), random.next_u64());
            let is_used = |key: Vec<u8>| self.inner.parts.store.get::<IgnoredAny>(Table::Conversations, key);
            // Of a forgotten one there may be entries left.
            if is_used(head_key(&id))?.is_none() && is_used(deletion_key(&id))?.is_none() {
                return Ok(id);
            }
        }
        Err(Refusal::new(RefusalCode::StateUnusable, "no unused id was found for a new conversation"))
    }

    /// The conversation with this id, if it exists. There is one in memory at a time.
    pub(crate) fn conversation(&self, id: &str) -> Result<Option<Arc<Conversation>>, StoreError> {
        let mut open = self.inner.open.lock();
        if let Some(conversation) = open.get(id).and_then(Weak::upgrade) {
            return Ok(Some(conversation));
        }
        let parts = &self.inner.parts;
        let Some(head) = Conversation::stored_head(&parts.store, id)? else { return Ok(None) };
        let (store, clock, ledger) = (parts.store.clone(), parts.clock.clone(), parts.ledger.clone());
        let conversation = Conversation::new(id.to_owned(), head, ConversationParts { store, clock, ledger });
        let conversation = Arc::new(conversation);
        if open.len() >= MAX_IDLE {
            open.retain(|_, conversation| conversation.strong_count() > 0);
        }
        open.insert(id.to_owned(), Arc::downgrade(&conversation));
        Ok(Some(conversation))
    }

    /// Starts a worker if the conversation has none.
    pub(crate) fn wake(&self, conversation: Arc<Conversation>) {
        let cognition = self.clone();
        self.spawn(async move { worker::run(&cognition, conversation).await });
    }

    /// Runs a task until the host ends. Everything that counts is durable, so it may be dropped anywhere.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let closing = self.inner.closing.clone();
        self.inner.tasks.spawn(async move {
            tokio::select! {
                () = closing.cancelled() => {}
                () = work => {}
            }
        });
    }

    pub(crate) fn observe(&self, key: &ConversationKey, observed: Observed<'_>) {
        if matches!(observed, Observed::Sent(_)) {
            self.inner.outboxes.said(key);
        }
        for observer in &self.inner.parts.observers {
            let noted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| observer.observe(key, observed)));
            if noted.is_err() {
                tracing::warn!("an observer of cognition panicked");
            }
        }
    }

    pub(crate) fn sections(&self, key: &ConversationKey) -> Vec<PromptSection> {
        let observers = self.inner.parts.observers.iter();
        let section = |observer: &Arc<dyn Observer>| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| observer.section(key))).ok().flatten()
        };
        observers.filter_map(section).collect()
    }
}

fn check(text: &str, id: Option<&str>) -> Result<(), Refusal> {
    let wrong = |reason: String| Err(Refusal::new(RefusalCode::InvalidRequest, reason));
    if text.trim().is_empty() {
        return wrong("the message is empty".to_owned());
    }
    if text.len() > MAX_MESSAGE_BYTES {
        return wrong(format!("the message has {} bytes, more than {MAX_MESSAGE_BYTES}", text.len()));
    }
    match id {
        Some(id) if id.is_empty() || id.len() > MAX_MESSAGE_ID || id.chars().any(char::is_control) => {
            wrong(format!("the id of a message has 1 to {MAX_MESSAGE_ID} printable characters"))
        }
        _ => Ok(()),
    }
}

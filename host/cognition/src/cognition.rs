//! The facade of cognition: messages in, events out, and the table of conversations in use.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use base::{AgentName, Clock, Random, Refusal, RefusalCode};
use consent::Consent;
use ledger::{ChannelName, PeerId};
use parking_lot::Mutex;
use signals::SignalBus;
use store::{Batch, Scan, Store, StoreError, Table};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::conversation::{Conversation, Held, shown};
use crate::ports::{Hands, Minds, Observed, Observer};
use crate::record::{
    ChatEvent, ConversationId, ConversationKey, ConversationSummary, EntryBody, Head, SIGNALS_KEY, agent_prefix,
    head_key, message_key, name_key, work_key,
};
use crate::{dispatch, worker};

/// Bytes of a message.
pub const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// Characters of the id that a sender gives a message.
pub const MAX_MESSAGE_ID: usize = 200;
/// Conversations in one list.
pub const MAX_LISTED_CONVERSATIONS: usize = 1_000;
/// Messages and signals of one conversation that wait for their turn.
const MAX_PENDING: usize = 100;
/// Entries that a follower reads at a time.
const PAGE: usize = 100;
/// Conversations in the table before those that are no longer in use are dropped from it.
const MAX_IDLE: usize = 1_000;

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
        Ok(Self { inner: Arc::new(CognitionInner { parts, open, naming, has_begun, tasks, closing }) })
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
        let conversation = self.named(key.clone()).await?;
        let held = conversation.hold().await;
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
        let event = held.head.next;
        if let Some(consent) = consent {
            // Before the commit: the worker may see the message at once.
            conversation.consents.lock().insert(event, consent);
        }
        let entry = EntryBody::Message { text: text.clone(), id };
        let appended = conversation.append(held, vec![entry], batch, |head, event| head.pending.push(event)).await;
        match appended {
            Ok((held, _)) => drop(held),
            Err(refusal) => {
                conversation.consents.lock().remove(&event);
                return Err(refusal);
            }
        }
        self.observe(&key, Observed::Message(&text));
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

    /// Follows the events of a conversation, those after `after`. `None`: from the first.
    ///
    /// # Errors
    /// `not_found` if a peer has not written yet; or if the store fails.
    pub async fn follow(&self, key: ConversationKey, after: Option<u64>) -> Result<ChatFollower, Refusal> {
        self.begin()?;
        let conversation = match self.find(&key)? {
            Some(conversation) => conversation,
            // The owner may wait for the first word; a reader makes no conversations of strangers.
            None if key.peer.is_none() => self.named(key).await?,
            None => {
                let reason = "there is no conversation with this peer on this channel";
                return Err(
                    Refusal::new(RefusalCode::NotFound, reason).with_remedy("it begins with a message of the peer")
                );
            }
        };
        let newest = conversation.subscribe();
        Ok(ChatFollower { conversation, newest, after: after.unwrap_or(0), ready: Vec::new() })
    }

    /// The latest events of a conversation, in order; at most those of `limit` entries.
    ///
    /// # Errors
    /// If the store fails.
    pub fn history(&self, key: &ConversationKey, limit: usize) -> Result<Vec<ChatEvent>, Refusal> {
        let Some(conversation) = self.find(key)? else { return Ok(Vec::new()) };
        let entries = conversation.latest(limit)?;
        Ok(entries.into_iter().filter_map(|(id, entry)| shown(id, entry)).collect())
    }

    /// The conversations of an agent, in the order of channels and peers; at most [`MAX_LISTED_CONVERSATIONS`].
    ///
    /// # Errors
    /// If the store fails.
    pub fn list(&self, agent: &AgentName, limit: usize) -> Result<Vec<ConversationSummary>, Refusal> {
        let scan = Scan::prefix(agent_prefix(agent)).limit(limit.min(MAX_LISTED_CONVERSATIONS));
        let store = &self.inner.parts.store;
        let mut listed = Vec::new();
        for (_, id) in store.scan::<ConversationId>(Table::Conversations, &scan)? {
            let Some(head) = store.get::<Head>(Table::Conversations, head_key(&id))? else { continue };
            let waiting = head.pending.len() + usize::from(head.turn.is_some());
            listed.push(ConversationSummary {
                last_event: head.next.saturating_sub(1),
                waiting,
                runs: head.runs,
                questions: head.questions.into_iter().map(|question| question.run).collect(),
                channel: head.key.channel,
                peer: head.key.peer,
            });
        }
        Ok(listed)
    }

    fn find(&self, key: &ConversationKey) -> Result<Option<Arc<Conversation>>, StoreError> {
        let id: Option<ConversationId> = self.inner.parts.store.get(Table::Conversations, name_key(key))?;
        id.map(|id| self.conversation(&id)).transpose().map(Option::flatten)
    }

    /// The conversation of a name, which is made if it is missing.
    async fn named(&self, key: ConversationKey) -> Result<Arc<Conversation>, Refusal> {
        let _one_at_a_time = self.inner.naming.lock().await;
        if let Some(conversation) = self.find(&key)? {
            return Ok(conversation);
        }
        let random = &self.inner.parts.random;
        let id = format!("{:016x}{:016x}", random.next_u64(), random.next_u64());
        let mut batch = Batch::new();
        batch.put(Table::Conversations, name_key(&key), &id)?;
        batch.put(Table::Conversations, head_key(&id), &Head::new(key))?;
        self.inner.parts.store.commit(batch).await?;
        let missing = || Refusal::new(RefusalCode::StateUnusable, "a conversation that was just made is missing");
        self.conversation(&id)?.ok_or_else(missing)
    }

    /// The conversation with this id, if it exists. There is one in memory at a time.
    pub(crate) fn conversation(&self, id: &str) -> Result<Option<Arc<Conversation>>, StoreError> {
        let mut open = self.inner.open.lock();
        if let Some(conversation) = open.get(id).and_then(Weak::upgrade) {
            return Ok(Some(conversation));
        }
        let parts = &self.inner.parts;
        let Some(head) = parts.store.get::<Head>(Table::Conversations, head_key(id))? else { return Ok(None) };
        let conversation = Conversation::new(id.to_owned(), head, parts.store.clone(), parts.clock.clone());
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
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let closing = self.inner.closing.clone();
        self.inner.tasks.spawn(async move {
            tokio::select! {
                () = closing.cancelled() => {}
                () = work => {}
            }
        });
    }

    pub(crate) fn observe(&self, key: &ConversationKey, observed: Observed<'_>) {
        for observer in &self.inner.parts.observers {
            let noted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| observer.observe(key, observed)));
            if noted.is_err() {
                tracing::warn!("an observer of cognition panicked");
            }
        }
    }

    pub(crate) fn sections(&self, key: &ConversationKey) -> Vec<String> {
        let observers = self.inner.parts.observers.iter();
        let section = |observer: &Arc<dyn Observer>| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| observer.section(key))).ok().flatten()
        };
        observers.filter_map(section).collect()
    }
}

/// Reads the events of a conversation as they become durable.
pub struct ChatFollower {
    conversation: Arc<Conversation>,
    newest: watch::Receiver<u64>,
    after: u64,
    ready: Vec<ChatEvent>,
}

impl ChatFollower {
    /// The next event. `None` if the host ends.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn next(&mut self) -> Result<Option<ChatEvent>, Refusal> {
        loop {
            if let Some(event) = self.ready.pop() {
                return Ok(Some(event));
            }
            let newest = *self.newest.borrow_and_update();
            let entries = self.conversation.entries(self.after.saturating_add(1), PAGE)?;
            if let Some((last, _)) = entries.last() {
                self.after = *last;
                self.ready = entries.into_iter().filter_map(|(id, entry)| shown(id, entry)).collect();
                self.ready.reverse();
                continue;
            }
            if self.after >= newest && self.newest.changed().await.is_err() {
                return Ok(None);
            }
        }
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

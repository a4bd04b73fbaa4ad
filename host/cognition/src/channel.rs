//! The port of channels: a new way of messages to and from agents is one implementation of [`Channel`] (SPEC COG-1).
//!
//! A channel authenticates its senders, and says so by type: a message is a peer's, or the owner's with a `Consent` of the gate,
//! which no text and no channel can make. Inbound, a message is durable before the channel may drop it, and its id makes it one message
//! however often it is received. Outbound, a reply is delivered until the channel has taken or refused it, and claimed: on a channel that
//! drops repetitions after its delivery, so that no crash loses it, and on any other before, so that no crash delivers it twice.
//!
//! The HTTP API, and the terminal over it, take the same way in ([`Cognition::accept`]); their clients pull the replies themselves by
//! [`Cognition::follow`] and need no outbox.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base::{AgentName, Refusal, RefusalCode};
use ledger::{ChannelName, PeerId};
use parking_lot::Mutex;
use store::{Batch, Scan, StoreError, Table};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::cognition::{Cognition, NewMessage, Sender};
use crate::conversation::Conversation;
use crate::record::{ConversationId, ConversationKey, EntryBody, name_key, names_prefix, outbox_key};

/// Pause after a channel or the storage failed; before each further try of a conversation's replies it is twice as long.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two tries.
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// Time for the delivery that is under way when the host begins to stop.
const GRACE: Duration = Duration::from_secs(3);
/// Entries and names that are read at a time.
const PAGE: usize = 100;

/// A message that a channel received.
#[derive(Debug)]
pub struct Inbound {
    /// The agent that it is for.
    pub agent: AgentName,
    /// The sender as the channel has authenticated it; never by the text.
    pub sender: Sender,
    /// The id of the message within the conversation: received again, it is the same message.
    pub id: String,
    /// The text of the message.
    pub text: String,
    /// The channel's own name for it, which [`Channel::settle`] gets.
    pub receipt: String,
}

/// A reply to a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outbound {
    /// The agent that replies.
    pub agent: AgentName,
    /// The peer that it is for.
    pub peer: PeerId,
    /// The event of the reply: it rises with each reply to the peer. With the agent and the peer it is the key of the delivery, also
    /// when it is repeated.
    pub event: u64,
    /// The text of the reply.
    pub text: String,
}

/// A way of messages to and from agents.
#[async_trait]
pub trait Channel: Send + Sync {
    /// The name of the channel, which its conversations have.
    fn name(&self) -> &ChannelName;

    /// Waits for the next message. Dropped while it waits, it loses none.
    ///
    /// # Errors
    /// If the channel cannot be read at the moment: it is asked again after a pause.
    async fn receive(&self) -> Result<Inbound, Refusal>;

    /// Learns the fate of a message: once accepted, it is durable, and the channel forgets it. A message that waits for room
    /// (`try_later`) has to be received again later.
    ///
    /// # Errors
    /// If the channel cannot forget it: it may be received again, and is then known.
    async fn settle(&self, receipt: &str, refused: Option<&Refusal>) -> Result<(), Refusal>;

    /// Delivers a reply. The replies to a peer come in order, one at a time.
    ///
    /// # Errors
    /// `try_later` only if it was certainly not delivered: it is tried again after a pause, until it succeeds, also by later hosts. With
    /// any other code it is not tried again.
    async fn deliver(&self, reply: &Outbound) -> Result<(), Refusal>;

    /// Whether a repeated delivery with the same agent, peer and event changes nothing. Then a reply that a crash interrupted is
    /// delivered again. Default: `false`, and such a reply is lost, because nothing tells whether it has arrived.
    fn repeats_safely(&self) -> bool {
        false
    }
}

/// Conversations of served channels in which something was said since the outbox was last emptied.
#[derive(Default)]
pub(crate) struct Outboxes(Mutex<Vec<Arc<Outbox>>>);

struct Outbox {
    channel: ChannelName,
    waiting: Mutex<Waiting>,
    wake: Notify,
}

/// The conversations with replies to deliver, by their names.
#[derive(Default)]
struct Waiting {
    ready: BTreeSet<Vec<u8>>,
    /// After a failure. None of them keeps the others waiting.
    paused: BTreeMap<Vec<u8>, Pause>,
}

#[derive(Clone, Copy)]
struct Pause {
    until: Instant,
    /// The pause after the next failure.
    next: Duration,
}

/// The conversation whose replies are next, with the pause if they cannot be delivered, or the time to look again.
enum NextDelivery {
    Due(Vec<u8>, Duration),
    NotBefore(Option<Instant>),
}

impl Waiting {
    fn add(&mut self, name: Vec<u8>) {
        if !self.paused.contains_key(&name) {
            self.ready.insert(name);
        }
    }

    fn pause(&mut self, name: Vec<u8>, pause: Duration) {
        self.ready.remove(&name);
        let next = pause.saturating_mul(2).min(MAX_PAUSE);
        self.paused.insert(name, Pause { until: Instant::now() + pause, next });
    }

    fn take_next(&mut self) -> NextDelivery {
        let earliest = self.paused.iter().min_by_key(|(_, pause)| pause.until);
        match earliest.map(|(name, pause)| (name.clone(), *pause)) {
            Some((name, Pause { until, next })) if until <= Instant::now() => {
                self.paused.remove(&name);
                NextDelivery::Due(name, next)
            }
            earliest => match self.ready.pop_first() {
                Some(name) => NextDelivery::Due(name, PAUSE),
                None => NextDelivery::NotBefore(earliest.map(|(_, pause)| pause.until)),
            },
        }
    }
}

impl Outboxes {
    /// Notes that something was said in a conversation.
    pub fn said(&self, key: &ConversationKey) {
        let outboxes = self.0.lock();
        for outbox in outboxes.iter().filter(|outbox| outbox.channel == key.channel && key.peer.is_some()) {
            outbox.waiting.lock().add(name_key(key));
            outbox.wake.notify_one();
        }
    }

    /// Whether the replies on a channel leave through an outbox.
    pub fn serve(&self, channel: &ChannelName) -> bool {
        self.0.lock().iter().any(|outbox| outbox.channel == *channel)
    }

    fn add(&self, channel: ChannelName) -> Arc<Outbox> {
        let outbox = Arc::new(Outbox { channel, waiting: Mutex::default(), wake: Notify::new() });
        self.0.lock().push(outbox.clone());
        outbox
    }
}

impl Cognition {
    /// Serves a channel until the host ends: its messages are accepted, and the replies to its peers delivered.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn serve(&self, channel: Arc<dyn Channel>) -> Result<(), Refusal> {
        self.begin()?;
        // Before the scan: a reply in between is in one of both.
        let outbox = self.inner.outboxes.add(channel.name().clone());
        let left = self.conversations_on(channel.name())?;
        outbox.waiting.lock().ready.extend(left);
        let (cognition, inlet) = (self.clone(), channel.clone());
        self.spawn(async move { cognition.take_from(&*inlet).await });
        let cognition = self.clone();
        // It ends by itself, after the delivery that is under way.
        self.inner.tasks.spawn(async move { cognition.deliver_from(&outbox, &*channel).await });
        Ok(())
    }

    /// The names of the conversations with peers on a channel, of all agents.
    fn conversations_on(&self, channel: &ChannelName) -> Result<Vec<Vec<u8>>, StoreError> {
        let store = &self.inner.parts.store;
        let (mut found, mut scan) = (Vec::new(), Scan::prefix(names_prefix()).limit(PAGE));
        loop {
            let page = store.scan::<ConversationId>(Table::Conversations, &scan)?;
            let Some((last, _)) = page.last() else { return Ok(found) };
            scan = Scan::prefix(names_prefix()).limit(PAGE).after(last.clone());
            for (name, id) in page {
                let head = Conversation::stored_head(store, &id)?;
                if head.is_some_and(|head| head.key.channel == *channel && head.key.peer.is_some()) {
                    found.push(name);
                }
            }
        }
    }

    async fn take_from(&self, channel: &dyn Channel) {
        loop {
            let taken = async {
                let Inbound { agent, sender, id, text, receipt } = channel.receive().await?;
                let message = NewMessage { agent, channel: channel.name().clone(), sender, id: Some(id), text };
                let refused = self.accept(message).await.err();
                channel.settle(&receipt, refused.as_ref()).await
            };
            if let Err(refusal) = taken.await {
                tracing::warn!(%refusal, channel = channel.name().as_str(), "a channel cannot be read; trying again");
                sleep(PAUSE).await;
            }
        }
    }

    async fn deliver_from(&self, outbox: &Outbox, channel: &dyn Channel) {
        let closing = &self.inner.closing;
        while !closing.is_cancelled() {
            let next = outbox.waiting.lock().take_next();
            let (name, pause) = match next {
                NextDelivery::Due(name, pause) => (name, pause),
                NextDelivery::NotBefore(time) => {
                    tokio::select! {
                        () = closing.cancelled() => {}
                        () = outbox.wake.notified() => {}
                        () = reached(time) => {}
                    }
                    continue;
                }
            };
            let emptied = tokio::select! {
                emptied = self.empty(&name, channel) => emptied,
                () = overdue(closing) => {
                    tracing::warn!(channel = channel.name().as_str(), "the host stops in the middle of a delivery");
                    return;
                }
            };
            if let Err(refusal) = emptied {
                tracing::warn!(%refusal, channel = channel.name().as_str(), "replies wait in the outbox; trying again");
                outbox.waiting.lock().pause(name, pause);
            }
        }
    }

    /// Delivers the replies of a conversation that were not claimed yet, until the host begins to stop.
    async fn empty(&self, name: &[u8], channel: &dyn Channel) -> Result<(), Refusal> {
        let store = &self.inner.parts.store;
        let Some(id) = store.get::<ConversationId>(Table::Conversations, name)? else { return Ok(()) };
        let Some(conversation) = self.conversation(&id)? else { return Ok(()) };
        let ConversationKey { agent, peer: Some(peer), .. } = conversation.hold().await.head.key.clone() else {
            return Ok(());
        };
        let mut claimed: u64 = store.get(Table::Conversations, outbox_key(&id))?.unwrap_or(0);
        let mut after = claimed;
        loop {
            let page = conversation.entries(after.saturating_add(1), PAGE)?;
            if page.is_empty() {
                return Ok(());
            }
            for (event, entry) in page {
                after = event;
                let EntryBody::Said { text, .. } = entry.body else { continue };
                let (agent, peer) = (agent.clone(), peer.clone());
                let is_closing = self.inner.closing.is_cancelled();
                if is_closing
                    || !self.hand_over(&conversation, channel, claimed, Outbound { agent, peer, event, text }).await?
                {
                    return Ok(());
                }
                claimed = event;
            }
        }
    }

    /// Delivers the reply after those that are claimed, and claims it. `false`: the conversation was forgotten.
    async fn hand_over(
        &self,
        conversation: &Conversation,
        channel: &dyn Channel,
        claimed: u64,
        reply: Outbound,
    ) -> Result<bool, Refusal> {
        let repeats = channel.repeats_safely();
        let is_there = if repeats {
            !conversation.hold().await.is_forgotten
        } else {
            self.claim(conversation, reply.event).await?
        };
        if !is_there {
            return Ok(false);
        }
        match channel.deliver(&reply).await {
            Ok(()) => {}
            Err(refusal) if refusal.code == RefusalCode::TryLater => {
                // It has certainly not arrived. While the store takes no commit, no other reply could be claimed either.
                while !repeats && let Err(refusal) = self.claim(conversation, claimed).await {
                    tracing::warn!(%refusal, "a reply that was not delivered is still claimed; trying again");
                    sleep(PAUSE).await;
                }
                return Err(refusal);
            }
            Err(refusal) => tracing::warn!(%refusal, event = reply.event, "a reply is not delivered"),
        }
        if repeats { self.claim(conversation, reply.event).await } else { Ok(true) }
    }

    /// Stores that the replies up to an event count as delivered. `false`: the conversation was forgotten.
    async fn claim(&self, conversation: &Conversation, event: u64) -> Result<bool, Refusal> {
        let held = conversation.hold().await;
        if held.is_forgotten {
            return Ok(false);
        }
        let mut batch = Batch::new();
        batch.put(Table::Conversations, outbox_key(&conversation.id), &event)?;
        self.inner.parts.store.commit(batch).await?;
        Ok(true)
    }
}

/// Waits until a time; without one, for ever.
async fn reached(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Waits until the host has been stopping for [`GRACE`].
async fn overdue(closing: &CancellationToken) {
    closing.cancelled().await;
    sleep(GRACE).await;
}

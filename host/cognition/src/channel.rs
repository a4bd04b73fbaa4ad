//! The port of channels: a new way of messages to and from agents is one implementation of [`Channel`] (SPEC COG-1).
//!
//! A channel authenticates its senders, and says so by type: a message is a peer's, or the owner's with a `Consent` of the gate,
//! which no text and no channel can make. Inbound, a message is durable before the channel may drop it, and its id makes it one message
//! however often it is received. Outbound, a reply is claimed before it is delivered: it is delivered at most once, also over a crash.
//!
//! The HTTP API, and the terminal over it, take the same way in ([`Cognition::accept`]); their clients pull the replies themselves by
//! [`Cognition::follow`] and need no outbox.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base::{AgentName, Refusal, RefusalCode};
use ledger::{ChannelName, PeerId};
use parking_lot::Mutex;
use store::{Batch, Scan, StoreError, Table};
use tokio::sync::Notify;

use crate::cognition::{Cognition, NewMessage, Sender};
use crate::conversation::Conversation;
use crate::record::{ConversationId, ConversationKey, EntryBody, name_key, names_prefix, outbox_key};

/// Pause after a channel or the storage failed.
const PAUSE: Duration = Duration::from_secs(1);
/// Tries of a delivery that the channel says has not happened.
const MAX_TRIES: usize = 3;
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
    /// The event of the reply: it rises with each reply to the peer.
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

    /// Delivers a reply.
    ///
    /// # Errors
    /// `try_later` only if it was certainly not delivered: it is tried a few times. With any other code it is not tried again.
    async fn deliver(&self, reply: &Outbound) -> Result<(), Refusal>;
}

/// Conversations of served channels in which something was said since the outbox was last emptied.
#[derive(Default)]
pub(crate) struct Outboxes(Mutex<Vec<Arc<Outbox>>>);

struct Outbox {
    channel: ChannelName,
    /// By the names of the conversations.
    waiting: Mutex<BTreeSet<Vec<u8>>>,
    wake: Notify,
}

impl Outboxes {
    /// Notes that something was said in a conversation.
    pub fn said(&self, key: &ConversationKey) {
        let outboxes = self.0.lock();
        for outbox in outboxes.iter().filter(|outbox| outbox.channel == key.channel && key.peer.is_some()) {
            outbox.waiting.lock().insert(name_key(key));
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
        outbox.waiting.lock().extend(left);
        let (cognition, inlet) = (self.clone(), channel.clone());
        self.spawn(async move { cognition.take_from(&*inlet).await });
        let cognition = self.clone();
        self.spawn(async move { cognition.deliver_from(&outbox, &*channel).await });
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
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn deliver_from(&self, outbox: &Outbox, channel: &dyn Channel) {
        loop {
            let next = outbox.waiting.lock().pop_first();
            let Some(name) = next else {
                outbox.wake.notified().await;
                continue;
            };
            if let Err(refusal) = self.empty(&name, channel).await {
                tracing::warn!(%refusal, channel = channel.name().as_str(), "replies wait in the outbox; trying again");
                outbox.waiting.lock().insert(name);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Delivers the replies of a conversation that were not claimed yet.
    async fn empty(&self, name: &[u8], channel: &dyn Channel) -> Result<(), Refusal> {
        let store = &self.inner.parts.store;
        let Some(id) = store.get::<ConversationId>(Table::Conversations, name)? else { return Ok(()) };
        let Some(conversation) = self.conversation(&id)? else { return Ok(()) };
        let ConversationKey { agent, peer: Some(peer), .. } = conversation.hold().await.head.key.clone() else {
            return Ok(());
        };
        let mut after: u64 = store.get(Table::Conversations, outbox_key(&id))?.unwrap_or(0);
        loop {
            let page = conversation.entries(after.saturating_add(1), PAGE)?;
            if page.is_empty() {
                return Ok(());
            }
            for (event, entry) in page {
                after = event;
                let EntryBody::Said { text, .. } = entry.body else { continue };
                let held = conversation.hold().await;
                if held.is_forgotten {
                    return Ok(());
                }
                // Claimed before it leaves: after a crash in between it counts as delivered, so that it never is twice.
                let mut batch = Batch::new();
                batch.put(Table::Conversations, outbox_key(&id), &event)?;
                store.commit(batch).await?;
                drop(held);
                let (agent, peer) = (agent.clone(), peer.clone());
                hand_over(channel, &Outbound { agent, peer, event, text }).await;
            }
        }
    }
}

async fn hand_over(channel: &dyn Channel, reply: &Outbound) {
    for attempt in 1..=MAX_TRIES {
        match channel.deliver(reply).await {
            Ok(()) => return,
            Err(refusal) if refusal.code == RefusalCode::TryLater && attempt < MAX_TRIES => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(refusal) => {
                tracing::warn!(%refusal, event = reply.event, "a reply is not delivered");
                return;
            }
        }
    }
}

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
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base::{AgentName, Refusal, RefusalCode};
use ledger::{ChannelName, PeerId};
use parking_lot::Mutex;
use store::{Batch, Scan, StoreError, Table};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::cognition::{Cognition, NewMessage, Sender};
use crate::conversation::Conversation;
use crate::record::{ConversationId, ConversationKey, EntryBody, channel_and_peer, name_key, names_prefix, outbox_key};

/// Pause after a channel or the storage failed; before each further try of a conversation's replies it is twice as long.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two tries.
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// Time for a delivery that is safely repeated: longer, it has failed, and the replies to others go on.
const MAX_DELIVERY: Duration = Duration::from_secs(20);
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

    /// Delivers a reply. The replies to a peer come in order, and a channel gets one at a time. Where [`Channel::repeats_safely`], one that
    /// takes longer than 20 s is dropped and tried again after a pause; any other channel bounds the time of its deliveries itself, because
    /// the replies to its other peers wait for them.
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
    /// The last of `ready` that was taken: the one after it is next, so that each has its turn.
    last: Vec<u8>,
    /// Whether the last that was taken was a further try. Such a try may be slow: one of `ready` comes after each.
    has_retried: bool,
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
        let earliest = earliest.map(|(name, pause)| (name.clone(), *pause));
        let has_turn = !self.has_retried || self.ready.is_empty();
        if let Some((name, Pause { until, next })) = &earliest
            && has_turn
            && *until <= Instant::now()
        {
            self.paused.remove(name);
            self.has_retried = true;
            return NextDelivery::Due(name.clone(), *next);
        }
        self.has_retried = false;
        let after = (Bound::Excluded(self.last.clone()), Bound::Unbounded);
        match self.ready.range(after).next().or_else(|| self.ready.first()).cloned() {
            Some(name) => {
                self.ready.remove(&name);
                self.last.clone_from(&name);
                NextDelivery::Due(name, PAUSE)
            }
            None => NextDelivery::NotBefore(earliest.map(|(_, pause)| pause.until)),
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
            let is_on = |name: &Vec<u8>| {
                channel_and_peer(name).is_some_and(|(on, peer)| on == channel.as_str().as_bytes() && !peer.is_empty())
            };
            found.extend(page.into_iter().map(|(name, _)| name).filter(is_on));
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
            let delivered = tokio::select! {
                delivered = self.deliver_next(&name, channel) => delivered,
                () = overdue(closing) => {
                    tracing::warn!(channel = channel.name().as_str(), "the host stops in the middle of a delivery");
                    return;
                }
            };
            match delivered {
                // There may be more, after a reply to each other peer.
                Ok(true) => outbox.waiting.lock().add(name),
                Ok(false) => {}
                Err(refusal) => {
                    let channel = channel.name().as_str();
                    tracing::warn!(%refusal, channel, "replies wait in the outbox; trying again");
                    outbox.waiting.lock().pause(name, pause);
                }
            }
        }
    }

    /// Delivers the first reply of a conversation that was not claimed yet. `false`: no reply waits, or the host begins to stop.
    async fn deliver_next(&self, name: &[u8], channel: &dyn Channel) -> Result<bool, Refusal> {
        let store = &self.inner.parts.store;
        let Some(id) = store.get::<ConversationId>(Table::Conversations, name)? else { return Ok(false) };
        let Some(conversation) = self.conversation(&id)? else { return Ok(false) };
        let ConversationKey { agent, peer: Some(peer), .. } = conversation.hold().await.head.key.clone() else {
            return Ok(false);
        };
        let claimed: u64 = store.get(Table::Conversations, outbox_key(&id))?.unwrap_or(0);
        let mut after = claimed;
        loop {
            let page = conversation.entries(after.saturating_add(1), PAGE)?;
            let Some((last, _)) = page.last() else { return Ok(false) };
            after = *last;
            let reply = page.into_iter().find_map(|(event, entry)| match entry.body {
                EntryBody::Said { text, .. } => Some((event, text)),
                _ => None,
            });
            if let Some((event, text)) = reply {
                if self.inner.closing.is_cancelled() {
                    return Ok(false);
                }
                let reply = Outbound { agent, peer, event, text };
                return self.hand_over(&conversation, channel, claimed, reply).await;
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
        // One that is dropped in the middle may have arrived.
        let delivered = match repeats {
            true => timeout(MAX_DELIVERY, channel.deliver(&reply)).await.unwrap_or_else(|_| {
                let reason = format!("a delivery took longer than {} s", MAX_DELIVERY.as_secs());
                Err(Refusal::new(RefusalCode::TryLater, reason))
            }),
            false => channel.deliver(&reply).await,
        };
        match delivered {
            Ok(()) => {}
            Err(refusal) if refusal.code == RefusalCode::TryLater => {
                // It has certainly not arrived, or is safely repeated. While the store takes no commit, no other reply could be claimed either.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> Vec<u8> {
        name.as_bytes().to_vec()
    }

    #[track_caller]
    fn takes(waiting: &mut Waiting, expected: &str) {
        let NextDelivery::Due(taken, _) = waiting.take_next() else { panic!("nothing is due") };
        assert_eq!(taken, name(expected));
    }

    #[tokio::test]
    async fn a_conversation_that_always_has_more_takes_turns_with_the_others() {
        let mut waiting = Waiting::default();
        for of in ["aaa", "mmm", "zzz"] {
            waiting.add(name(of));
        }
        for expected in ["aaa", "mmm", "zzz", "aaa", "mmm", "zzz"] {
            takes(&mut waiting, expected);
            waiting.add(name(expected));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn further_tries_take_turns_with_the_first_ones() {
        let mut waiting = Waiting::default();
        for of in ["aaa", "bbb"] {
            waiting.pause(name(of), PAUSE);
        }
        waiting.add(name("mmm"));
        waiting.add(name("zzz"));
        // Neither of the two is due yet.
        takes(&mut waiting, "mmm");
        tokio::time::advance(2 * PAUSE).await;
        for expected in ["aaa", "zzz", "bbb"] {
            takes(&mut waiting, expected);
        }
        waiting.pause(name("aaa"), PAUSE);
        tokio::time::advance(2 * PAUSE).await;
        // With no other waiting, each try is one.
        takes(&mut waiting, "aaa");
        assert!(matches!(waiting.take_next(), NextDelivery::NotBefore(None)));
    }
}

//! Reading conversations: the list of them, their latest events, and the events as they come.

use std::sync::Arc;

use base::{AgentName, Refusal, RefusalCode};
use ledger::{ChannelName, PeerId};
use store::{Scan, StoreError, Table};
use tokio::sync::watch;

use crate::cognition::Cognition;
use crate::conversation::{Conversation, FORGOTTEN, shown};
use crate::record::{
    ChatEvent, ConversationId, ConversationKey, ConversationSummary, Head, agent_prefix, channel_and_peer,
    end_of_channel,
};

/// Conversations in one list.
pub const MAX_LISTED_CONVERSATIONS: usize = 1_000;
/// Entries and names that are read at a time.
const PAGE: usize = 100;

impl Cognition {
    /// Follows the events of a conversation, those after `after`. `None`: from the first.
    ///
    /// # Errors
    /// `not_found` if a peer has not written yet; or if the store fails.
    pub async fn follow(&self, key: ConversationKey, after: Option<u64>) -> Result<ChatFollower, Refusal> {
        self.begin()?;
        let conversation = match self.find(&key)? {
            Some(conversation) => conversation,
            // The owner may wait for the first word; a reader makes no conversations of strangers.
            None if key.peer.is_none() => self.named(key.clone()).await?,
            None => {
                let reason = "there is no conversation with this peer on this channel";
                return Err(
                    Refusal::new(RefusalCode::NotFound, reason).with_remedy("it begins with a message of the peer")
                );
            }
        };
        let newest = conversation.subscribe();
        let (cognition, after) = (self.clone(), after.unwrap_or(0));
        Ok(ChatFollower { cognition, key, conversation, newest, after, ready: Vec::new() })
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

    /// The conversations of an agent that fit the filter and in which anything was said, in the order of channels and peers; at most
    /// [`MAX_LISTED_CONVERSATIONS`].
    ///
    /// # Errors
    /// If the store fails.
    pub fn list(
        &self,
        agent: &AgentName,
        filter: &ConversationFilter,
        limit: usize,
    ) -> Result<Vec<ConversationSummary>, Refusal> {
        let (store, limit) = (&self.inner.parts.store, limit.min(MAX_LISTED_CONVERSATIONS));
        let (mut listed, mut scan) = (Vec::new(), Scan::prefix(agent_prefix(agent)).limit(PAGE));
        loop {
            let page = store.scan::<ConversationId>(Table::Conversations, &scan)?;
            let Some((last, _)) = page.last() else { return Ok(listed) };
            scan = Scan::prefix(agent_prefix(agent)).limit(PAGE).after(last.clone());
            for (_, id) in page {
                let Some(head) = Conversation::stored_head(store, &id)? else { continue };
                let is_empty = head.extent.as_ref().is_none_or(|extent| extent.at.is_none());
                if is_empty || !filter.fits(&head.key) {
                    continue;
                }
                listed.push(summary_of(head));
                if listed.len() >= limit {
                    return Ok(listed);
                }
            }
        }
    }

    /// The channels on which an agent has conversations: one read for each, however many peers are on it.
    ///
    /// # Errors
    /// If the store fails.
    pub(crate) fn channels_of(&self, agent: &AgentName) -> Result<Vec<ChannelName>, StoreError> {
        let (store, mut channels) = (&self.inner.parts.store, Vec::new());
        let mut scan = Scan::prefix(agent_prefix(agent)).limit(1);
        loop {
            let page = store.scan::<ConversationId>(Table::Conversations, &scan)?;
            let Some((channel, _)) = page.first().and_then(|(name, _)| channel_and_peer(name)) else {
                return Ok(channels);
            };
            scan = Scan::prefix(agent_prefix(agent)).limit(1).after(end_of_channel(agent, channel));
            channels.extend(std::str::from_utf8(channel).ok().and_then(|channel| ChannelName::parse(channel).ok()));
        }
    }
}

/// The conversations to list.
#[derive(Debug, Clone, Default)]
pub struct ConversationFilter {
    /// Only those on this channel.
    pub channel: Option<ChannelName>,
    /// Only those with this peer.
    pub peer: Option<PeerId>,
}

impl ConversationFilter {
    fn fits(&self, key: &ConversationKey) -> bool {
        self.channel.as_ref().is_none_or(|channel| key.channel == *channel)
            && self.peer.as_ref().is_none_or(|peer| key.peer.as_ref() == Some(peer))
    }
}

fn summary_of(head: Head) -> ConversationSummary {
    let (last_event, sources) = (head.last(), head.sources().list());
    let waiting = head.pending.len() + usize::from(head.turn.is_some());
    let extent = head.extent.unwrap_or_default();
    ConversationSummary {
        last_event,
        last_at: extent.at,
        last_text: extent.text,
        bytes: extent.bytes,
        waiting,
        sources,
        summary: head.summary,
        runs: head.runs,
        questions: head.questions.into_iter().map(|question| question.run).collect(),
        channel: head.key.channel,
        peer: head.key.peer,
    }
}

/// Reads the events of a conversation as they become durable.
pub struct ChatFollower {
    cognition: Cognition,
    key: ConversationKey,
    conversation: Arc<Conversation>,
    newest: watch::Receiver<u64>,
    after: u64,
    ready: Vec<ChatEvent>,
}

impl ChatFollower {
    /// The next event. `None` if the host ends, or the conversation with a peer was forgotten; that of the owner goes on with the
    /// next message.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn next(&mut self) -> Result<Option<ChatEvent>, Refusal> {
        loop {
            if let Some(event) = self.ready.pop() {
                return Ok(Some(event));
            }
            let newest = *self.newest.borrow_and_update();
            if newest == FORGOTTEN {
                if self.key.peer.is_some() {
                    return Ok(None);
                }
                self.conversation = self.cognition.named(self.key.clone()).await?;
                self.newest = self.conversation.subscribe();
                continue;
            }
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

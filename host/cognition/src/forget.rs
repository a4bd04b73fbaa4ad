//! Forgetting conversations: one at the owner's word or by `[retention]`, or all with a peer, together with the memories of its text and
//! its record in the ledger.
//!
//! One batch deletes names, heads, outboxes and memories, and notes the forgetting. From then on nothing leads to the entries, so a crash
//! cannot leave a conversation or a peer half forgotten; deleting them goes on at the next start. The note names no peer: it has a hash,
//! with which the question whether a known conversation was forgotten can be answered, and the number that the next one goes on with.

use std::sync::Arc;

use base::{AgentName, ContentHash, Refusal, RefusalCode, Timestamp};
use ledger::{ChannelName, DeletedWithPeer, ForgottenPeer, PeerId};
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use store::{Batch, Scan, StoreError, Table, broke_off};

use crate::cognition::Cognition;
use crate::conversation::{Conversation, Held};
use crate::perform::run_key_prefix;
use crate::programs;
use crate::record::{
    ConversationKey, Head, deletion_key, entries_prefix, forgotten_key, forgotten_prefix, head_key, latest_channel_key,
    messages_prefix, name_hash, name_key, notes_prefix, outbox_key, work_key,
};
use crate::sources::source_of_peer;

/// Notes in one list.
pub const MAX_LISTED_FORGOTTEN: usize = 1_000;
/// Records that are deleted in one commit.
const PAGE: usize = 1_000;

/// The cause of a forgetting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForgottenBy {
    /// A command of the owner.
    Owner,
    /// A limit of the settings `[retention]`.
    Retention,
}

/// The note that a conversation was forgotten. A later forgetting under the same name replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForgottenConversation {
    /// Time it was forgotten.
    pub at: Timestamp,
    /// The channel that it was on.
    pub channel: ChannelName,
    /// Whether the owner was on the other side, and not a peer.
    pub is_owner: bool,
    /// SHA-256 of the agent's name, a zero byte, the channel, a zero byte and the peer's id, which is empty for the owner.
    pub conversation_hash: ContentHash,
    /// The cause of the forgetting.
    pub by: ForgottenBy,
    /// The number of its last event: a new conversation of the same name goes on with the next.
    pub last_event: u64,
    /// Bytes of its entries.
    pub bytes: u64,
    /// Memories that were kept in it and are deleted with it.
    pub memories: u64,
}

impl Cognition {
    /// Forgets a conversation: its messages, its summary and the memories that were kept in it. Runs that were delegated there stay.
    ///
    /// # Errors
    /// `not_found` if there is none; `illegal_state` while it is under way; or if the store fails: a failure after the first step
    /// leaves it forgotten.
    pub async fn forget_conversation(&self, key: &ConversationKey) -> Result<ForgottenConversation, Refusal> {
        self.forget_if(key, ForgottenBy::Owner, |_| true).await
    }

    /// Forgets a conversation that is not under way and fits the condition.
    pub(crate) async fn forget_if(
        &self,
        key: &ConversationKey,
        by: ForgottenBy,
        fits: impl FnOnce(&Head) -> bool + Send + 'static,
    ) -> Result<ForgottenConversation, Refusal> {
        let (cognition, key) = (self.clone(), key.clone());
        self.in_task(async move {
            let conversation = cognition.find(&key)?.ok_or_else(|| unknown(&key))?;
            // In the order in which a turn takes them.
            let _memories = cognition.inner.memories.hold().await;
            let held = conversation.hold().await;
            if held.is_forgotten || !fits(&held.head) {
                return Err(unknown(&key));
            }
            if let Some(refusal) = cognition.under_way(&conversation.id, &held.head).await? {
                return Err(refusal);
            }
            cognition.delete(&conversation, held, by).await
        })
        .await
    }

    /// Forgets a peer in one step: the conversations of an agent with it on every channel, with the messages and replies that wait there,
    /// the memories of which it is a source, and its record in the ledger. A turn that is under way in one of the conversations stops. A
    /// later message of the peer begins anew; no message falls between.
    ///
    /// # Errors
    /// `not_found` if the peer has no conversation, no memory and no record; or if the store fails: a failure after the first step leaves it
    /// forgotten.
    pub async fn forget(&self, agent: &AgentName, peer: &PeerId) -> Result<ForgottenPeer, Refusal> {
        let (cognition, agent, peer) = (self.clone(), agent.clone(), peer.clone());
        self.in_task(async move { cognition.forget_peer(&agent, &peer).await }).await
    }

    /// In its own task: a client that goes away leaves neither a stale conversation in memory nor the rest to the next start.
    pub(crate) async fn in_task<T: Send + 'static>(
        &self,
        forgetting: impl Future<Output = Result<T, Refusal>> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.inner.tasks.spawn(forgetting).await.unwrap_or_else(|error| Err(broke_off(&error)))
    }

    async fn forget_peer(&self, agent: &AgentName, peer: &PeerId) -> Result<ForgottenPeer, Refusal> {
        let (parts, memories) = (&self.inner.parts, &self.inner.memories);
        // No message makes a conversation before the commit.
        let naming = self.inner.naming.lock().await;
        // In the order in which a turn takes them.
        let writing = memories.hold().await;
        let (mut batch, source) = (Batch::new(), source_of_peer(peer));
        let remembered =
            memories.stage_deletion(&mut batch, agent, move |memory| memory.sources.contains(&source)).await?;
        let conversations = self.stage_all_with(&mut batch, agent, peer).await?;
        let deleted = DeletedWithPeer {
            conversations: u64::try_from(conversations.len()).unwrap_or(u64::MAX),
            memories: remembered,
        };
        let staged = parts.ledger.stage_forgetting(&mut batch, agent, peer, deleted).await?;
        let committed = parts.store.commit(batch).await;
        if remembered > 0 {
            memories.discard_index(agent);
        }
        committed?;
        let mut ended = Vec::with_capacity(conversations.len());
        for (conversation, held) in conversations {
            end(&conversation, held);
            ended.push(conversation);
        }
        drop((writing, naming));
        let note = parts.ledger.finish_forgetting(staged).await;
        for conversation in ended {
            self.purge(&conversation.id).await?;
        }
        note
    }

    /// Puts the deletion of all conversations with a peer into the batch, and returns them. The caller holds `naming`.
    async fn stage_all_with(
        &self,
        batch: &mut Batch,
        agent: &AgentName,
        peer: &PeerId,
    ) -> Result<Vec<(Arc<Conversation>, Held)>, Refusal> {
        let mut staged = Vec::new();
        // By name: reading all conversations would keep every message waiting.
        for channel in self.channels_of(agent)? {
            let key = ConversationKey { agent: agent.clone(), channel, peer: Some(peer.clone()) };
            let Some(conversation) = self.find(&key)? else { continue };
            let held = conversation.hold().await;
            if !held.is_forgotten {
                let note = self.note_of(&held.head, ForgottenBy::Owner, 0);
                self.stage_deletion(batch, (conversation.id.as_str(), &held.head), &note)?;
                staged.push((conversation, held));
            }
        }
        Ok(staged)
    }

    /// The notes about forgotten conversations of an agent, the newest first, at most `limit` and at most [`MAX_LISTED_FORGOTTEN`].
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn forgotten(&self, agent: &AgentName, limit: usize) -> Result<Vec<ForgottenConversation>, StoreError> {
        let scan = Scan::prefix(forgotten_prefix(agent));
        let stored = self.inner.parts.store.scan(Table::Conversations, &scan)?;
        let mut notes: Vec<ForgottenConversation> = stored.into_iter().map(|(_, note)| note).collect();
        notes.sort_by_key(|note| std::cmp::Reverse(note.at));
        notes.truncate(limit.min(MAX_LISTED_FORGOTTEN));
        Ok(notes)
    }

    /// Deletes the notes about conversations that `[retention]` forgot, beyond the newest `kept` of all agents; returns how many. Those
    /// that the owner forgot stay.
    ///
    /// # Errors
    /// If the store fails: some may be deleted.
    pub async fn prune_notes(&self, kept: usize) -> Result<usize, Refusal> {
        let cognition = self.clone();
        self.in_task(async move {
            // With both, no note is replaced by a later one of the same name meanwhile.
            let _one_at_a_time = cognition.inner.naming.lock().await;
            let _memories = cognition.inner.memories.hold().await;
            let store = &cognition.inner.parts.store;
            let stored = store.scan_each(Table::Conversations, &Scan::prefix(notes_prefix()))?;
            let at = |note: ForgottenConversation| (note.by == ForgottenBy::Retention).then_some(note.at);
            let mut notes: Vec<(Timestamp, Vec<u8>)> =
                stored.into_iter().filter_map(|(key, note)| Some((at(note.ok()?)?, key))).collect();
            notes.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
            let surplus = notes.split_off(kept.min(notes.len()));
            for page in surplus.chunks(PAGE) {
                let mut batch = Batch::new();
                for (_, key) in page {
                    batch.delete(Table::Conversations, key.clone());
                }
                store.commit(batch).await?;
            }
            Ok(surplus.len())
        })
        .await
    }

    /// Goes on deleting the entries of conversations whose forgetting an earlier host left unfinished.
    ///
    /// # Errors
    /// If the store fails.
    pub(crate) async fn finish_forgetting(&self) -> Result<(), StoreError> {
        let prefix = deletion_key("");
        let left = self.inner.parts.store.scan::<IgnoredAny>(Table::Conversations, &Scan::prefix(prefix.clone()))?;
        for (key, _) in left {
            if let Some(id) = key.get(prefix.len()..).and_then(|id| std::str::from_utf8(id).ok()) {
                self.purge(id).await?;
            }
        }
        Ok(())
    }

    async fn delete(
        &self,
        conversation: &Conversation,
        held: Held,
        by: ForgottenBy,
    ) -> Result<ForgottenConversation, Refusal> {
        let (head, known) = (&held.head, &self.inner.memories);
        let (agent, channel) = (head.key.agent.clone(), head.key.channel.clone());
        let mut batch = Batch::new();
        // A note is kept beyond its conversation until the owner says otherwise.
        let memories = match by {
            ForgottenBy::Owner if head.key.peer.is_none() => {
                known.stage_deletion(&mut batch, &agent, move |memory| memory.channel == channel).await?
            }
            _ => 0,
        };
        let note = self.note_of(head, by, memories);
        self.stage_deletion(&mut batch, (conversation.id.as_str(), head), &note)?;
        let committed = self.inner.parts.store.commit(batch).await;
        if memories > 0 {
            known.discard_index(&agent);
        }
        committed?;
        end(conversation, held);
        self.purge(&conversation.id).await?;
        Ok(note)
    }

    /// The note of a conversation that is about to be deleted, with so many memories.
    fn note_of(&self, head: &Head, by: ForgottenBy, memories: u64) -> ForgottenConversation {
        ForgottenConversation {
            at: self.inner.parts.clock.now(),
            channel: head.key.channel.clone(),
            is_owner: head.key.peer.is_none(),
            conversation_hash: name_hash(&head.key),
            by,
            last_event: head.last(),
            bytes: head.extent.as_ref().map_or(0, |extent| extent.bytes),
            memories,
        }
    }

    /// Puts the deletion of a conversation, the note of it and the mark of its entries into the batch. [`end`] follows the commit.
    fn stage_deletion(
        &self,
        batch: &mut Batch,
        (id, head): (&str, &Head),
        note: &ForgottenConversation,
    ) -> Result<(), Refusal> {
        let (store, agent) = (&self.inner.parts.store, &head.key.agent);
        programs::stage_deletion(store, batch, agent, &run_key_prefix(id))?;
        if note.is_owner
            && store.get::<ChannelName>(Table::Conversations, latest_channel_key(agent))?.as_ref()
                == Some(&note.channel)
        {
            batch.delete(Table::Conversations, latest_channel_key(agent));
        }
        for key in [name_key(&head.key), head_key(id), work_key(id), outbox_key(id)] {
            batch.delete(Table::Conversations, key);
        }
        batch.put(Table::Conversations, forgotten_key(&head.key), note)?;
        batch.put(Table::Conversations, deletion_key(id), &true)?;
        Ok(())
    }

    /// Deletes the entries of a forgotten conversation, and the mark last.
    async fn purge(&self, id: &str) -> Result<(), StoreError> {
        let store = &self.inner.parts.store;
        for prefix in [entries_prefix(id), messages_prefix(id)] {
            let some = Scan::prefix(prefix).limit(PAGE);
            loop {
                // Also records that cannot be read.
                let page = store.scan_each::<IgnoredAny>(Table::Conversations, &some)?;
                if page.is_empty() {
                    break;
                }
                let mut batch = Batch::new();
                for (key, _) in page {
                    batch.delete(Table::Conversations, key);
                }
                store.commit(batch).await?;
            }
        }
        let mut batch = Batch::new();
        batch.delete(Table::Conversations, deletion_key(id));
        store.commit(batch).await
    }
}

/// Ends a conversation in memory whose deletion was committed.
fn end(conversation: &Conversation, mut held: Held) {
    held.is_forgotten = true;
    // No worker looks for an entry that is gone.
    held.head.turn = None;
    held.head.pending.clear();
    drop(held);
    conversation.end();
}

fn unknown(key: &ConversationKey) -> Refusal {
    let with = key.peer.as_ref().map_or_else(|| "the owner".to_owned(), |peer| format!("the peer `{peer}`"));
    let reason = format!("the agent `{}` has no conversation with {with} on `{}`", key.agent, key.channel);
    Refusal::new(RefusalCode::NotFound, reason).with_remedy("see `motor chat list`")
}

//! Forgetting a peer: its conversations are deleted with all their entries.
//!
//! The entries go first and the name last, so a crash in between leaves a conversation that the same command finds again.

use base::{AgentName, Refusal};
use ledger::PeerId;
use serde::de::IgnoredAny;
use store::{Batch, Scan, StoreError, Table};

use crate::cognition::Cognition;
use crate::conversation::Conversation;
use crate::record::{ConversationId, Head, agent_prefix, entries_prefix, head_key, messages_prefix, work_key};

/// Records that are deleted in one commit.
const PAGE: usize = 1_000;

impl Cognition {
    /// Deletes the conversations of an agent with a peer on every channel, and returns their number. A turn that is under
    /// way in one of them stops.
    ///
    /// # Errors
    /// If the store fails: the same call goes on.
    pub async fn forget(&self, agent: &AgentName, peer: &PeerId) -> Result<usize, Refusal> {
        // No message makes a conversation anew while its name is being deleted.
        let _one_at_a_time = self.inner.naming.lock().await;
        let store = &self.inner.parts.store;
        let (mut forgotten, mut after): (usize, Option<Vec<u8>>) = (0, None);
        loop {
            let mut scan = Scan::prefix(agent_prefix(agent)).limit(PAGE);
            if let Some(after) = after.take() {
                scan = scan.after(after);
            }
            let page = store.scan::<ConversationId>(Table::Conversations, &scan)?;
            let Some((last, _)) = page.last() else { return Ok(forgotten) };
            after = Some(last.clone());
            for (name, id) in &page {
                let Some(conversation) = self.conversation(id)? else { continue };
                let is_with_peer = conversation.hold().await.head.key.peer.as_ref() == Some(peer);
                if is_with_peer {
                    self.delete(&conversation, name).await?;
                    forgotten += 1;
                }
            }
        }
    }

    async fn delete(&self, conversation: &Conversation, name: &[u8]) -> Result<(), StoreError> {
        let mut held = conversation.hold().await;
        held.is_forgotten = true;
        let (store, id) = (&self.inner.parts.store, &conversation.id);
        // After a crash in between, no turn looks for an entry that is gone.
        let emptied = Head { next: held.head.next, window: held.head.next, ..Head::new(held.head.key.clone()) };
        let mut batch = Batch::new();
        batch.put(Table::Conversations, head_key(id), &emptied)?;
        batch.delete(Table::Conversations, work_key(id));
        store.commit(batch).await?;
        for prefix in [entries_prefix(id), messages_prefix(id)] {
            loop {
                let scan = Scan::prefix(prefix.clone()).limit(PAGE);
                let page = store.scan::<IgnoredAny>(Table::Conversations, &scan)?;
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
        batch.delete(Table::Conversations, name.to_vec());
        batch.delete(Table::Conversations, head_key(id));
        store.commit(batch).await
    }
}

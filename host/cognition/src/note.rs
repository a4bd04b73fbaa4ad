//! Notes of the host that begin a turn in the owner's conversation (SPEC CX-10): news of the agent's cortex.
//!
//! The entry, the count of notes and the position behind the note are one batch: each is taken in once. Its turn has the powers of a
//! signal's turn, so not the owner's authority, and its sources join those of the conversation. There are only so many of these turns in the 24
//! hours from the first on, and as many for news of overdue promises, so that peers who cause much advice suppress none of them.

use std::sync::Arc;
use std::time::Duration;

use base::text::cut;
use base::{AgentName, Refusal, Timestamp};
use ledger::ChannelName;
use serde::{Deserialize, Serialize};
use store::{Batch, StoreError, Table};

use crate::cognition::Cognition;
use crate::conversation::Conversation;
use crate::record::{ConversationKey, EntryBody, latest_channel_key, note_key};

/// The time over which notes are counted.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Characters of a note.
const MAX_NOTE: usize = 4_000;

/// News for the mind of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostNote {
    /// The agent whose owner's conversation gets it.
    pub agent: AgentName,
    /// Rises with each note of the agent: one that is not above the last is not taken in.
    pub number: u64,
    /// The text of the note, at most 4,000 characters of it; untrusted. Empty: only the position moves.
    pub text: String,
    /// Sources of the text (SPEC TAINT-1).
    pub sources: Vec<String>,
    /// Whether it tells of an overdue promise.
    pub is_overdue: bool,
    /// Notes of overdue promises, and other notes, that begin a turn in the 24 hours from the first on, at most; later ones only move the
    /// position.
    pub max_per_day: u64,
}

/// The position behind the last note of an agent.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NotePosition {
    number: u64,
    /// When the present 24 hours began: with the first note that began a turn.
    since: Option<Timestamp>,
    /// Notes that began a turn in them, but for those of overdue promises.
    count: u64,
    /// Notes of overdue promises that did.
    #[serde(default)]
    overdue: u64,
}

impl Cognition {
    /// The number of the last note of an agent that was taken in; 0 before the first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn noted(&self, agent: &AgentName) -> Result<u64, StoreError> {
        Ok(self.position(agent)?.number)
    }

    fn position(&self, agent: &AgentName) -> Result<NotePosition, StoreError> {
        Ok(self.inner.parts.store.get(Table::Conversations, note_key(agent))?.unwrap_or_default())
    }

    /// Takes in a note: it begins a turn in the conversation that the owner wrote in last, or if that was forgotten in the one with the latest
    /// event. Without one, beyond the bound, or with an empty text, only the position moves. Notes of an agent are given one at a time.
    ///
    /// # Errors
    /// If the store fails: nothing is taken in.
    pub async fn note(&self, note: HostNote) -> Result<(), Refusal> {
        let HostNote { agent, number, text, sources, is_overdue, max_per_day } = note;
        let (parts, mut position) = (&self.inner.parts, self.position(&agent)?);
        if number <= position.number {
            return Ok(());
        }
        self.begin()?;
        let now = parts.clock.now();
        // A clock that was set back begins a new day too.
        if position.since.is_some_and(|since| now < since || now.since(since) >= DAY) {
            position = NotePosition::default();
        }
        position.number = number;
        let count = if is_overdue { &mut position.overdue } else { &mut position.count };
        let begins = !text.is_empty() && *count < max_per_day;
        let mut batch = Batch::new();
        while begins && let Some(conversation) = self.latest_of_owner(&agent)? {
            let held = conversation.hold().await;
            // Forgotten in between: there may be another one.
            if held.is_forgotten {
                continue;
            }
            *count = count.saturating_add(1);
            position.since.get_or_insert(now);
            batch.put(Table::Conversations, note_key(&agent), &position)?;
            let entry = EntryBody::Noted { content: cut(&text, MAX_NOTE), sources };
            drop(conversation.append(held, vec![entry], batch, |head, first| head.pending.push(first)).await?);
            self.wake(conversation);
            return Ok(());
        }
        batch.put(Table::Conversations, note_key(&agent), &position)?;
        parts.store.commit(batch).await?;
        Ok(())
    }

    /// The conversation that the owner wrote in last, or else the one of the owner with the latest event.
    fn latest_of_owner(&self, agent: &AgentName) -> Result<Option<Arc<Conversation>>, StoreError> {
        let store = &self.inner.parts.store;
        let named = |channel| self.find(&ConversationKey { agent: agent.clone(), channel, peer: None });
        let latest: Option<ChannelName> = store.get(Table::Conversations, latest_channel_key(agent))?;
        if let Some(found) = latest.map(&named).transpose()?.flatten() {
            return Ok(Some(found));
        }
        let mut found = None;
        for channel in self.channels_of(agent)? {
            let Some(conversation) = named(channel)? else { continue };
            let head = Conversation::stored_head(store, &conversation.id)?;
            let at = head.and_then(|head| head.extent?.at);
            if found.as_ref().is_none_or(|(latest, _)| at > *latest) {
                found = Some((at, conversation));
            }
        }
        Ok(found.map(|(_, conversation)| conversation))
    }
}

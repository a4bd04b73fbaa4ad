//! Memories of agents (SPEC COG-1): short notes that an agent keeps beyond its conversations, found again by full-text search.
//!
//! The records are the only truth: a search builds its index from them, so no index can be out of step after a crash. The
//! sources of a memory's content are kept beside its text, out of reach of that text, and taint the conversation that recalls it
//! (SPEC TAINT-1).

use std::sync::Arc;

use base::{AgentName, ContentHash, Refusal, RefusalCode, Timestamp};
use bm25::{Document, SearchEngineBuilder, Tokenizer};
use ledger::ChannelName;
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use store::{Batch, Scan, Store, Table};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::cognition::Cognition;
use crate::record::Head;

/// Memories of one agent.
pub const MAX_MEMORIES: usize = 1_000;
/// Characters of a memory.
pub const MAX_MEMORY: usize = 1_000;
/// Characters of a search.
pub const MAX_SEARCH: usize = 500;
/// Characters of a word that have to be the same: `invoice` finds `invoices`.
const STEM: usize = 5;

/// A memory of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// The id, `mem_…`. The same text is the same memory.
    pub id: String,
    /// When it was first remembered.
    pub at: Timestamp,
    /// The text in the words of the agent's model.
    pub text: String,
    /// The channel of the owner's conversation that it was remembered in.
    pub channel: ChannelName,
    /// Where runs had read from the web before their text came into that conversation. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
}

/// The memories to find.
#[derive(Debug, Clone, Default)]
pub struct MemoryFilter {
    /// Words of the text, best match first. `None`: the newest first.
    pub search: Option<String>,
    /// Only memories with this source.
    pub source: Option<String>,
    /// At most so many.
    pub limit: usize,
}

/// The memories to delete.
#[derive(Debug, Clone)]
pub enum ForgottenMemories {
    /// The memory with this id.
    One(String),
    /// All memories with this source.
    OfSource(String),
}

/// The memories of a home. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Memories {
    store: Store,
    /// Held from the look at a memory to its commit.
    writing: Arc<Mutex<()>>,
}

fn agent_memories(agent: &AgentName) -> Vec<u8> {
    [b"r", agent.as_str().as_bytes(), b"\0"].concat()
}

fn memory_key(agent: &AgentName, id: &str) -> Vec<u8> {
    [agent_memories(agent), id.as_bytes().to_vec()].concat()
}

impl Memories {
    pub fn new(store: Store) -> Self {
        Self { store, writing: Arc::default() }
    }

    /// Puts a memory of a conversation into the batch, and returns it. The guard is held until the batch is committed.
    ///
    /// # Errors
    /// If the text is empty or too long, or the agent has [`MAX_MEMORIES`]; or if the store fails.
    pub async fn stage(
        &self,
        batch: &mut Batch,
        head: &Head,
        text: &str,
        at: Timestamp,
    ) -> Result<(OwnedMutexGuard<()>, Memory), Refusal> {
        let (text, agent) = (text.trim(), &head.key.agent);
        let wrong = |reason: String| Refusal::new(RefusalCode::InvalidRequest, reason);
        match text.chars().count() {
            0 => return Err(wrong("a memory has a text".to_owned())),
            length if length > MAX_MEMORY => {
                return Err(wrong(format!("a memory has at most {MAX_MEMORY} characters, not {length}"))
                    .with_remedy("remember the essence, or several memories"));
            }
            _ => {}
        }
        let guard = self.hold().await;
        let hash = ContentHash::of(text.as_bytes()).hex();
        let id = format!("mem_{}", hash.chars().take(16).collect::<String>());
        let key = memory_key(agent, &id);
        let earlier: Option<Memory> = self.store.get(Table::Conversations, key.clone())?;
        if earlier.is_none() {
            let scan = Scan::prefix(agent_memories(agent)).limit(MAX_MEMORIES);
            if self.store.scan::<IgnoredAny>(Table::Conversations, &scan)?.len() >= MAX_MEMORIES {
                let reason = format!("the agent has {MAX_MEMORIES} memories, and keeps no more");
                return Err(Refusal::new(RefusalCode::TryLater, reason)
                    .with_remedy("the owner deletes some with `motor memory forget`"));
            }
        }
        let mut sources = head.sources();
        // Remembered again, it keeps its sources.
        if let Some(earlier) = &earlier {
            sources.add(&earlier.sources);
        }
        let channel = head.key.channel.clone();
        let fresh = Memory { id, at, text: text.to_owned(), channel, sources: Vec::new() };
        let memory = Memory { sources: sources.list(), ..earlier.unwrap_or(fresh) };
        batch.put(Table::Conversations, key, &memory)?;
        Ok((guard, memory))
    }

    /// Waits until no other change is under way, and keeps others out.
    pub async fn hold(&self) -> OwnedMutexGuard<()> {
        self.writing.clone().lock_owned().await
    }

    /// Puts the deletion of the memories of a channel's conversation with the owner into the batch, and returns their number.
    /// [`Memories::hold`] has to last until the batch is committed.
    ///
    /// # Errors
    /// If the store fails.
    pub fn stage_deletion(&self, batch: &mut Batch, agent: &AgentName, channel: &ChannelName) -> Result<u64, Refusal> {
        let mut deleted = 0;
        for memory in self.all(agent)?.into_iter().filter(|memory| memory.channel == *channel) {
            batch.delete(Table::Conversations, memory_key(agent, &memory.id));
            deleted += 1;
        }
        Ok(deleted)
    }

    /// The memories of an agent that fit the filter.
    ///
    /// # Errors
    /// If the search is too long, or the store fails.
    pub fn find(&self, agent: &AgentName, filter: &MemoryFilter) -> Result<Vec<Memory>, Refusal> {
        let mut found = self.all(agent)?;
        if let Some(source) = &filter.source {
            found.retain(|memory| memory.sources.contains(source));
        }
        found.sort_by(|one, other| other.at.cmp(&one.at).then_with(|| one.id.cmp(&other.id)));
        if let Some(search) = &filter.search {
            if search.chars().count() > MAX_SEARCH {
                let reason = format!("a search has at most {MAX_SEARCH} characters");
                return Err(Refusal::new(RefusalCode::InvalidRequest, reason));
            }
            found = ranked(found, search);
        }
        found.truncate(filter.limit);
        Ok(found)
    }

    fn all(&self, agent: &AgentName) -> Result<Vec<Memory>, Refusal> {
        let stored = self.store.scan::<Memory>(Table::Conversations, &Scan::prefix(agent_memories(agent)))?;
        Ok(stored.into_iter().map(|(_, memory)| memory).collect())
    }
}

impl Cognition {
    /// The memories of an agent that fit the filter.
    ///
    /// # Errors
    /// If the search is too long, or the store fails.
    pub async fn memories(&self, agent: &AgentName, filter: MemoryFilter) -> Result<Vec<Memory>, Refusal> {
        let (memories, agent) = (self.inner.memories.clone(), agent.clone());
        store::blocking(move || memories.find(&agent, &filter)).await
    }

    /// A memory of an agent.
    ///
    /// # Errors
    /// `not_found` if the agent has no memory with this id; or if the store fails.
    pub fn memory(&self, agent: &AgentName, id: &str) -> Result<Memory, Refusal> {
        let memory = self.inner.parts.store.get(Table::Conversations, memory_key(agent, id))?;
        memory.ok_or_else(|| unknown(id))
    }

    /// Deletes memories, and returns them.
    ///
    /// # Errors
    /// `not_found` if there is no memory with the id; or if the store fails: none is deleted then.
    pub async fn forget_memories(
        &self,
        agent: &AgentName,
        forgotten: &ForgottenMemories,
    ) -> Result<Vec<Memory>, Refusal> {
        let memories = &self.inner.memories;
        let _guard = memories.hold().await;
        let found = match forgotten {
            ForgottenMemories::One(id) => vec![self.memory(agent, id)?],
            ForgottenMemories::OfSource(source) => {
                let mut all = memories.all(agent)?;
                all.retain(|memory| memory.sources.contains(source));
                all
            }
        };
        let mut batch = Batch::new();
        for memory in &found {
            batch.delete(Table::Conversations, memory_key(agent, &memory.id));
        }
        if !found.is_empty() {
            memories.store.commit(batch).await?;
        }
        Ok(found)
    }
}

fn unknown(id: &str) -> Refusal {
    let id = base::text::Foreign(id).line(80);
    Refusal::new(RefusalCode::NotFound, format!("there is no memory `{id}`")).with_remedy("see `motor memory list`")
}

/// The memories that match, best first.
fn ranked(memories: Vec<Memory>, search: &str) -> Vec<Memory> {
    let document = |(number, memory): (usize, &Memory)| Document::new(number, memory.text.as_str());
    let documents: Vec<Document<usize>> = memories.iter().enumerate().map(document).collect();
    let builder = SearchEngineBuilder::<usize, u64, Words>::with_tokenizer_and_documents(Words, documents);
    let mut scores: Vec<(usize, f32)> =
        builder.build().search(search, None).into_iter().map(|result| (result.document.id, result.score)).collect();
    // Equal scores are in the order of the memories.
    scores.sort_by(|(one, score), (other, better)| better.total_cmp(score).then(one.cmp(other)));
    let mut memories: Vec<Option<Memory>> = memories.into_iter().map(Some).collect();
    scores.into_iter().filter_map(|(number, _)| memories.get_mut(number).and_then(Option::take)).collect()
}

/// Splits a text of any language into words, each with its beginning; scripts without spaces into signs.
struct Words;

impl Tokenizer for Words {
    fn tokenize(&self, text: &str) -> Vec<String> {
        let mut tokens = Vec::new();
        for word in text.to_lowercase().split(|sign: char| !sign.is_alphanumeric()).filter(|word| !word.is_empty()) {
            if word.chars().any(|sign| sign >= '\u{2e80}') {
                tokens.extend(word.chars().map(String::from));
            } else {
                let stem = word.char_indices().nth(STEM).and_then(|(end, _)| word.get(..end));
                tokens.extend(stem.map(str::to_owned));
                tokens.push(word.to_owned());
            }
        }
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memories(texts: &[&str]) -> Vec<Memory> {
        let memory = |text: &&str| Memory {
            id: (*text).to_owned(),
            at: Timestamp::from_millis(0),
            text: (*text).to_owned(),
            channel: ChannelName::chat(),
            sources: Vec::new(),
        };
        texts.iter().map(memory).collect()
    }

    #[test]
    fn words_are_found_in_any_form_and_script() {
        let all =
            ["The owner's birthday is in May", "Invoices go to accounts@example.com", "会議は月曜日です", "Über Öl"];
        let cases = [
            ("birthday", vec![0]),
            ("BIRTHDAYS", vec![0]),
            ("an invoice", vec![1]),
            ("accounts example", vec![1]),
            ("月曜", vec![2]),
            ("öl", vec![3]),
            ("zebra", vec![]),
            ("", vec![]),
            ("'; -- \u{0} * OR", vec![]),
        ];
        for (search, expected) in cases {
            let found: Vec<String> = ranked(memories(&all), search).into_iter().map(|memory| memory.id).collect();
            let expected: Vec<&str> = expected.into_iter().map(|index: usize| all[index]).collect();
            assert_eq!(found, expected, "{search}");
        }
        // More matching words are better, and equal ones keep their order.
        let found = ranked(memories(&["red", "blue", "red car", "red"]), "red car");
        assert_eq!(found[0].text, "red car");
        assert_eq!(found.len(), 3);
    }
}

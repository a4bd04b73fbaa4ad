//! Memories of agents (SPEC COG-1): short notes that an agent keeps beyond its conversations, found again by full-text search.
//!
//! The records are the only truth, and all that is shown. An agent's index in memory is built from them on first use and changed after each
//! commit; it is dropped if the outcome of a commit is unknown, so it is never ahead of them. The sources of a memory's content are kept
//! beside its text, out of reach of that text, and taint the conversation that recalls it (SPEC TAINT-1).

mod index;

use std::sync::Arc;

use base::{AgentName, ContentHash, Refusal, RefusalCode, Timestamp};
use ledger::ChannelName;
use parking_lot::RwLock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Batch, Scan, Store, Table, blocking};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::cognition::Cognition;
use crate::memory::index::MemoryIndex;
use crate::record::Head;
use crate::sources::{MANY, MANY_RUNS, Sources, taints};

/// Memories of one agent: some of each day for ten years. It bounds the index in memory.
pub const MAX_MEMORIES: usize = 10_000;
/// Characters of a memory.
pub const MAX_MEMORY: usize = 1_000;
/// Characters of a search.
pub const MAX_SEARCH: usize = 500;
/// Memories in the indexes of all agents. Beyond it, the indexes that were not used for the longest are dropped.
const MAX_INDEXED: usize = 2 * MAX_MEMORIES;
/// An index counts as at least so many memories, which bounds the number of indexes.
const MIN_INDEXED: usize = 100;
/// Memories that are read at a time.
const PAGE: usize = 1_000;

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
    /// Sources of the foreign text that had come into that conversation, `run:ID` of runs among them: at most 64 of each by name, and
    /// `many other sources` or `run:run_others` for the rest. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
}

impl Memory {
    /// The source that stands for those of its kind without a name: a memory that has it may have this source, too.
    #[must_use]
    pub fn unnamed(source: &str) -> &'static str {
        if taints(source) { MANY } else { MANY_RUNS }
    }
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
    indexes: Arc<parking_lot::Mutex<Indexes>>,
}

type SharedIndex = Arc<RwLock<MemoryIndex>>;

/// The indexes in memory, the last used first.
#[derive(Default)]
struct Indexes(Vec<(AgentName, SharedIndex)>);

impl Indexes {
    fn get(&mut self, agent: &AgentName) -> Option<SharedIndex> {
        let position = self.0.iter().position(|(of, _)| of == agent)?;
        let used = self.0.remove(position);
        let index = used.1.clone();
        self.0.insert(0, used);
        Some(index)
    }

    fn add(&mut self, agent: &AgentName, index: SharedIndex) {
        self.0.insert(0, (agent.clone(), index));
        self.trim();
    }

    fn discard(&mut self, agent: &AgentName) {
        self.0.retain(|(of, _)| of != agent);
    }

    fn trim(&mut self) {
        let mut indexed = 0_usize;
        self.0.retain(|(_, index)| {
            indexed = indexed.saturating_add(index.read().len().max(MIN_INDEXED));
            indexed <= MAX_INDEXED
        });
    }
}

/// A change of an agent's memories that is about to be committed: until then no other begins. Dropped before
/// [`MemoryChange::committed`] it drops the agent's index, because the outcome of the commit is unknown.
pub(crate) struct MemoryChange {
    memories: Memories,
    agent: AgentName,
    is_in_index: bool,
    _writing: OwnedMutexGuard<()>,
}

impl MemoryChange {
    /// Updates the index after the commit.
    pub fn committed(mut self, update: impl FnOnce(&mut MemoryIndex)) {
        let index = self.memories.indexes.lock().get(&self.agent);
        self.is_in_index = index.is_some_and(|index| {
            let mut index = index.write();
            update(&mut index);
            !index.is_worn()
        });
        self.memories.indexes.lock().trim();
    }
}

impl Drop for MemoryChange {
    fn drop(&mut self) {
        if !self.is_in_index {
            self.memories.discard_index(&self.agent);
        }
    }
}

fn agent_memories(agent: &AgentName) -> Vec<u8> {
    [b"r", agent.as_str().as_bytes(), b"\0"].concat()
}

pub(crate) fn memory_key(agent: &AgentName, id: &str) -> Vec<u8> {
    [agent_memories(agent), id.as_bytes().to_vec()].concat()
}

impl Memories {
    pub fn new(store: Store) -> Self {
        Self { store, writing: Arc::default(), indexes: Arc::default() }
    }

    /// Puts a memory of a conversation into the batch, and returns it with the change, which is kept until the batch is committed.
    ///
    /// # Errors
    /// If the text is empty or too long, or the agent has [`MAX_MEMORIES`]; or if the store fails.
    pub async fn stage(
        &self,
        batch: &mut Batch,
        head: &Head,
        text: &str,
        at: Timestamp,
    ) -> Result<(MemoryChange, Memory), Refusal> {
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
        let writing = self.hold().await;
        let hash = ContentHash::of(text.as_bytes()).hex();
        let id = format!("mem_{}", hash.chars().take(16).collect::<String>());
        let key = memory_key(agent, &id);
        let earlier: Option<Memory> = self.store.get(Table::Conversations, key.clone())?;
        let index = self.held_index(agent).await?;
        if earlier.is_none() && index.read().len() >= MAX_MEMORIES {
            let reason = format!("the agent has {MAX_MEMORIES} memories, and keeps no more");
            return Err(Refusal::new(RefusalCode::TryLater, reason)
                .with_remedy("the owner deletes some with `motor memory forget`"));
        }
        // Remembered again, it keeps all its sources by name, so that each of them still finds it.
        let mut sources = Sources::default();
        if let Some(earlier) = &earlier {
            sources.add(&earlier.sources);
        }
        sources.add(&head.sources().with_runs());
        let channel = head.key.channel.clone();
        let fresh = Memory { id, at, text: text.to_owned(), channel, sources: Vec::new() };
        let memory = Memory { sources: sources.with_runs(), ..earlier.unwrap_or(fresh) };
        batch.put(Table::Conversations, key, &memory)?;
        Ok((self.change(agent, writing), memory))
    }

    fn change(&self, agent: &AgentName, writing: OwnedMutexGuard<()>) -> MemoryChange {
        MemoryChange { memories: self.clone(), agent: agent.clone(), is_in_index: false, _writing: writing }
    }

    /// Waits until no other change is under way, and keeps others out.
    pub async fn hold(&self) -> OwnedMutexGuard<()> {
        self.writing.clone().lock_owned().await
    }

    /// Puts the deletion of the memories that fit into the batch, and returns their number. [`Memories::hold`] has to last until the batch
    /// is committed, and [`Memories::discard_index`] to follow.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn stage_deletion(
        &self,
        batch: &mut Batch,
        agent: &AgentName,
        fits: impl Fn(&Memory) -> bool + Send + 'static,
    ) -> Result<u64, Refusal> {
        let (memories, of) = (self.clone(), agent.clone());
        let found = blocking(move || {
            let mut found = memories.all(&of)?;
            found.retain(fits);
            Ok(found)
        })
        .await?;
        for memory in &found {
            batch.delete(Table::Conversations, memory_key(agent, &memory.id));
        }
        Ok(u64::try_from(found.len()).unwrap_or(u64::MAX))
    }

    /// Drops the index of an agent: the next use builds it from the records.
    pub fn discard_index(&self, agent: &AgentName) {
        self.indexes.lock().discard(agent);
    }

    /// The memories of an agent that fit the filter.
    ///
    /// # Errors
    /// If the search is too long, or the store fails.
    pub async fn find(&self, agent: &AgentName, filter: MemoryFilter) -> Result<Vec<Memory>, Refusal> {
        if filter.search.as_ref().is_some_and(|search| search.chars().count() > MAX_SEARCH) {
            let reason = format!("a search has at most {MAX_SEARCH} characters");
            return Err(Refusal::new(RefusalCode::InvalidRequest, reason));
        }
        let known = self.indexes.lock().get(agent);
        let index = match known {
            Some(index) => index,
            None => {
                // No commit is under way while the records are read, also if nothing waits for them any more. It is waited for here:
                // the change that is under way may need the thread that would wait.
                let writing = self.hold().await;
                let (memories, agent) = (self.clone(), agent.clone());
                blocking(move || {
                    let _writing = writing;
                    memories.known_or_built(&agent)
                })
                .await?
            }
        };
        let (memories, agent) = (self.clone(), agent.clone());
        blocking(move || memories.indexed(&agent, &index, &filter)).await
    }

    /// The index of an agent, for a caller that holds [`Memories::hold`].
    async fn held_index(&self, agent: &AgentName) -> Result<SharedIndex, Refusal> {
        let known = self.indexes.lock().get(agent);
        if let Some(index) = known {
            return Ok(index);
        }
        let (memories, agent) = (self.clone(), agent.clone());
        blocking(move || memories.known_or_built(&agent)).await
    }

    fn known_or_built(&self, agent: &AgentName) -> Result<SharedIndex, Refusal> {
        let known = self.indexes.lock().get(agent);
        if let Some(index) = known {
            return Ok(index);
        }
        let mut index = MemoryIndex::default();
        let mut scan = Scan::prefix(agent_memories(agent)).limit(PAGE);
        loop {
            let page = self.store.scan::<Memory>(Table::Conversations, &scan)?;
            let Some((last, _)) = page.last() else { break };
            scan = Scan::prefix(agent_memories(agent)).limit(PAGE).after(last.clone());
            for (_, memory) in &page {
                index.insert(&memory.id, memory.at, &memory.text, &memory.sources);
            }
        }
        let index = Arc::new(RwLock::new(index));
        self.indexes.lock().add(agent, index.clone());
        Ok(index)
    }

    /// The records that the index finds.
    fn indexed(
        &self,
        agent: &AgentName,
        index: &RwLock<MemoryIndex>,
        filter: &MemoryFilter,
    ) -> Result<Vec<Memory>, Refusal> {
        let MemoryFilter { search, source, limit } = filter;
        let ids = index.read().find(search.as_deref(), source.as_deref(), *limit);
        let mut found = Vec::new();
        for id in ids {
            let memory: Option<Memory> = self.store.get(Table::Conversations, memory_key(agent, &id))?;
            // One that was deleted meanwhile, also if it was remembered anew without the source, is left out.
            let fits = |memory: &Memory| source.as_ref().is_none_or(|source| memory.sources.contains(source));
            found.extend(memory.filter(fits));
        }
        Ok(found)
    }

    /// Number of indexes in memory.
    #[cfg(test)]
    pub fn indexes(&self) -> usize {
        self.indexes.lock().0.len()
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
        self.inner.memories.find(agent, filter).await
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
        let (cognition, agent, forgotten) = (self.clone(), agent.clone(), forgotten.clone());
        self.in_task(async move {
            let memories = &cognition.inner.memories;
            let writing = memories.hold().await;
            let found = match forgotten {
                ForgottenMemories::One(id) => vec![cognition.memory(&agent, &id)?],
                ForgottenMemories::OfSource(source) => {
                    let index = memories.held_index(&agent).await?;
                    let filter = MemoryFilter { search: None, source: Some(source), limit: usize::MAX };
                    let (memories, agent) = (memories.clone(), agent.clone());
                    blocking(move || memories.indexed(&agent, &index, &filter)).await?
                }
            };
            if found.is_empty() {
                return Ok(found);
            }
            let mut batch = Batch::new();
            for memory in &found {
                batch.delete(Table::Conversations, memory_key(&agent, &memory.id));
            }
            let change = memories.change(&agent, writing);
            memories.store.commit(batch).await?;
            change.committed(|index| {
                for memory in &found {
                    index.remove(&memory.id, memory.at, &memory.sources);
                }
            });
            Ok(found)
        })
        .await
    }
}

fn unknown(id: &str) -> Refusal {
    let id = base::text::Foreign(id).line(80);
    Refusal::new(RefusalCode::NotFound, format!("there is no memory `{id}`")).with_remedy("see `motor memory list`")
}

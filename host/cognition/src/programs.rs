//! Programs of `core_execute` that can become neurons (SPEC NEU-1): those that succeeded and began with a sample of a signal.
//!
//! Each is stored in the batch of its call's outcome, under the key of the call: it counts exactly if the model is told of it, and one that is
//! executed again after a crash counts once. They are deleted with their conversation.

use base::{AgentName, ContentHash, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Batch, Scan, Store, StoreError, Table};

/// Programs of one agent that are kept, the latest: as many as completed runs that are searched for the same code.
const MAX_PROGRAMS: usize = 200;

/// A program that succeeded and can become a neuron.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LearnableProgram {
    /// Hash of its code without the sample: programs with other samples are the same code.
    pub code: ContentHash,
    /// The sample that it began with: a signal as JSON.
    pub sample: Value,
    /// Its result as JSON text.
    pub output: String,
}

/// A [`LearnableProgram`] with the turn that it ran in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutedProgram {
    /// Time it was executed.
    pub at: Timestamp,
    /// Names the turn of a conversation; the same for all programs of the turn.
    pub turn: String,
    /// Sources of the untrusted content that the conversation had taken in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The program with its sample and its result.
    pub program: LearnableProgram,
}

fn agent_programs(agent: &AgentName) -> Vec<u8> {
    [b"p", agent.as_str().as_bytes(), b"\0"].concat()
}

/// Puts a program into the batch, and the deletion of the oldest beyond [`MAX_PROGRAMS`]. `call` is the key of its call.
///
/// # Errors
/// If the store fails.
pub(crate) fn stage(
    store: &Store,
    batch: &mut Batch,
    agent: &AgentName,
    (call, program): (&str, &ExecutedProgram),
) -> Result<(), StoreError> {
    let key = [agent_programs(agent), call.as_bytes().to_vec()].concat();
    let stored = store.scan_each::<ExecutedProgram>(Table::Conversations, &Scan::prefix(agent_programs(agent)))?;
    let others = stored.into_iter().filter(|(other, _)| *other != key);
    // A record that cannot be read counts for nothing, and goes first.
    let mut others: Vec<(Option<Timestamp>, Vec<u8>)> =
        others.map(|(key, program)| (program.ok().map(|program| program.at), key)).collect();
    others.sort();
    let surplus = others.len().saturating_add(1).saturating_sub(MAX_PROGRAMS);
    for (_, key) in others.into_iter().take(surplus) {
        batch.delete(Table::Conversations, key);
    }
    batch.put(Table::Conversations, key, program)
}

/// The programs of an agent that are kept.
///
/// # Errors
/// If the store cannot be read.
pub(crate) fn stored(store: &Store, agent: &AgentName) -> Result<Vec<ExecutedProgram>, StoreError> {
    let scan = Scan::prefix(agent_programs(agent));
    let stored = store.scan_each::<ExecutedProgram>(Table::Conversations, &scan)?;
    Ok(stored.into_iter().filter_map(|(_, program)| program.ok()).collect())
}

/// Puts the deletion of the programs of a conversation into the batch: of those whose calls have keys with this beginning.
///
/// # Errors
/// If the store cannot be read.
pub(crate) fn stage_deletion(
    store: &Store,
    batch: &mut Batch,
    agent: &AgentName,
    calls: &str,
) -> Result<(), StoreError> {
    let prefix = [agent_programs(agent), calls.as_bytes().to_vec()].concat();
    for (key, _) in store.scan_each::<serde::de::IgnoredAny>(Table::Conversations, &Scan::prefix(prefix))? {
        batch.delete(Table::Conversations, key);
    }
    Ok(())
}

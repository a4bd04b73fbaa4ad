//! Changes that become durable together, and only then count in memory.

use std::collections::BTreeMap;

use base::{Refusal, Timestamp};
use store::{Batch, StoreError, Table};

use super::{BookInner, CURSOR, Cursor, Key, State, event_key, head_key, illegal};
use crate::change::{NeuronChange, NeuronEvent, NeuronStatus};
use crate::neuron::Neuron;

/// Changes in one batch.
pub(super) struct Staged {
    pub batch: Batch,
    pub now: Timestamp,
    heads: BTreeMap<Key, Neuron>,
    cursor: Option<Cursor>,
}

impl Staged {
    pub fn new(now: Timestamp) -> Self {
        Self { batch: Batch::new(), now, heads: BTreeMap::new(), cursor: None }
    }

    /// A neuron as the changes leave it.
    pub fn get<'a>(&'a self, state: &'a State, key: &Key) -> Option<&'a Neuron> {
        self.heads.get(key).or_else(|| state.heads.get(key))
    }

    /// Replaces the counts of a neuron.
    pub fn count(&mut self, neuron: Neuron) {
        self.heads.insert(super::key_of(&neuron), neuron);
    }

    /// Adds a change of a neuron.
    ///
    /// # Errors
    /// `illegal_state` if its state does not admit it.
    pub fn change(&mut self, state: &State, key: &Key, change: NeuronChange) -> Result<(), Refusal> {
        let before = self.get(state, key).cloned();
        let number = before.as_ref().map_or(0, |neuron| neuron.events);
        let event = NeuronEvent { at: self.now, change };
        let after = Neuron::after(before, &event).map_err(|error| illegal(&key.1, &error))?;
        self.batch.put(Table::Meta, event_key(key, number), &event)?;
        self.heads.insert(key.clone(), after);
        Ok(())
    }

    /// Gives free places to approved neurons, the longest approved first. None begins while all are off.
    pub fn begin_trials(&mut self, inner: &BookInner, state: &State) -> Result<(), Refusal> {
        if state.is_off || !inner.config.enabled {
            return Ok(());
        }
        let heads: BTreeMap<&Key, &Neuron> = state.heads.iter().chain(&self.heads).collect();
        let running = heads.values().filter(|neuron| neuron.status.ticks()).count();
        let free = usize::try_from(inner.config.max_running).unwrap_or(usize::MAX).saturating_sub(running);
        let mut waiting: Vec<_> =
            heads.into_iter().filter(|(_, neuron)| neuron.status == NeuronStatus::Approved).collect();
        waiting.sort_by_key(|(_, neuron)| neuron.changed_at);
        let waiting: Vec<Key> = waiting.into_iter().take(free).map(|(key, _)| key.clone()).collect();
        // A signal that is older than the trial is nothing to it.
        let after_signal = inner.signals.latest();
        if !waiting.is_empty() && self.cursor.is_none() {
            // So that the next host does not begin behind signals of the trial.
            self.move_to(state.cursor)?;
        }
        waiting.iter().try_for_each(|key| self.change(state, key, NeuronChange::TrialBegan { after_signal }))
    }

    /// Moves the positions in the signals.
    pub fn move_to(&mut self, cursor: Cursor) -> Result<(), StoreError> {
        self.cursor = Some(cursor);
        self.batch.put(Table::Meta, CURSOR, &cursor)
    }

    /// Makes the changes durable, then lets them count.
    pub async fn commit(mut self, inner: &BookInner, state: &mut State) -> Result<(), Refusal> {
        for (key, neuron) in &self.heads {
            self.batch.put(Table::Meta, head_key(key), neuron)?;
        }
        if self.batch.is_empty() {
            return Ok(());
        }
        inner.store.commit(self.batch).await?;
        state.heads.extend(self.heads);
        if let Some(cursor) = self.cursor {
            (state.cursor, state.stored) = (cursor, cursor.after);
        }
        Ok(())
    }
}

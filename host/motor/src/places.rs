//! The places of an agent: how many of its runs may be unfinished at the same time (SPEC RUN-2, RUN-16).
//!
//! Each unfinished run has a record of its own under its agent, written and removed with the events that begin and end it, so
//! runs that end at the same time do not touch each other's.

use base::{AgentName, Refusal, RefusalCode, RunId};
use serde::{Deserialize, Serialize};
use store::{Batch, Scan, StoreError, Table};

use crate::journal::RunStore;
use crate::record::RunRecord;

/// Unfinished runs of an agent, those that wait included, however its places are counted.
pub const MAX_UNFINISHED: usize = 100;
/// The most places that an agent can be given.
const MAX_PLACES: u32 = 50;

/// The section `[agent]`: several runs of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlacesConfig {
    /// Runs of an agent that may be unfinished at the same time. 1 to 50. Default 1 (SPEC RUN-2).
    pub max_runs: u32,
    /// Whether a run that waits for an answer or for consent holds its place. If not, another may begin meanwhile, and the
    /// one that waited goes on when it is answered, beside it. Default yes (SPEC RUN-2).
    pub waiting_holds_place: bool,
}

impl Default for PlacesConfig {
    fn default() -> Self {
        Self { max_runs: 1, waiting_holds_place: true }
    }
}

impl PlacesConfig {
    /// # Errors
    /// A sentence about the first number out of its range.
    pub fn check(&self) -> Result<(), String> {
        if (1..=MAX_PLACES).contains(&self.max_runs) {
            return Ok(());
        }
        Err(format!("`agent.max_runs` is {}: use a whole number from 1 to {MAX_PLACES}", self.max_runs))
    }

    fn counts(&self, run: &RunRecord) -> bool {
        self.waiting_holds_place || run.waiting.is_none()
    }
}

/// The key of an agent's only place in homes of earlier versions.
fn only_place(agent: &AgentName) -> String {
    format!("agent/{agent}")
}

fn place(agent: &AgentName, run: &RunId) -> String {
    format!("agent/{agent}/{run}")
}

impl RunStore {
    /// Gives the run a place.
    pub(crate) fn take_place(&self, batch: &mut Batch, agent: &AgentName, run: &RunId) -> Result<(), StoreError> {
        batch.put(Table::Places, place(agent, run), run)
    }

    /// Gives the place of a run back.
    pub(crate) fn give_back(&self, batch: &mut Batch, agent: &AgentName, run: &RunId) -> Result<(), StoreError> {
        batch.delete(Table::Places, place(agent, run));
        let only = only_place(agent);
        if self.store.get::<RunId>(Table::Places, &only)?.is_some_and(|holder| holder == *run) {
            batch.delete(Table::Places, only);
        }
        Ok(())
    }

    /// The unfinished runs of the agent, the oldest first.
    pub(crate) fn unfinished(&self, agent: &AgentName) -> Result<Vec<RunRecord>, Refusal> {
        let only = self.store.get::<RunId>(Table::Places, only_place(agent))?;
        let places = self.store.scan::<RunId>(Table::Places, &Scan::prefix(only_place(agent) + "/"))?;
        let runs = only.into_iter().chain(places.into_iter().map(|(_, run)| run));
        runs.map(|run| Ok(self.record(&run)?)).collect()
    }

    /// Whether the agent has a place for another run, or for `run` again.
    ///
    /// # Errors
    /// `Busy`, with the runs that hold its places; or an error of the store.
    pub(crate) fn has_place(&self, agent: &AgentName, run: &RunId, config: PlacesConfig) -> Result<(), Refusal> {
        let others: Vec<_> = self.unfinished(agent)?.into_iter().filter(|other| other.id != *run).collect();
        let holders: Vec<_> = others.iter().filter(|other| config.counts(other)).collect();
        if holders.len() < usize::try_from(config.max_runs).unwrap_or(usize::MAX) && others.len() < MAX_UNFINISHED {
            return Ok(());
        }
        // At the bound of all unfinished runs, those that wait have to be settled.
        let named = if holders.is_empty() { others.iter().collect() } else { holders };
        let ids: Vec<_> = named.iter().take(5).map(|run| run.id.as_str()).collect();
        let reason = format!(
            "Motor Cortex is busy (run_id: {}). Wait for it to complete or cancel it via core.task.",
            ids.join(", ")
        );
        Err(Refusal::new(RefusalCode::Busy, reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_places_have_bounds() {
        for (max_runs, is_fit) in [(0, false), (1, true), (50, true), (51, false)] {
            assert_eq!(PlacesConfig { max_runs, ..PlacesConfig::default() }.check().is_ok(), is_fit, "{max_runs}");
        }
    }
}

//! The signals of runs that still wait: what somebody who comes late has to be told first (SPEC DUR-3).
//!
//! Nothing is signalled twice for it: a waiting run has said once what it waits for, and that signal is given again, under its
//! own id. It survives 10,000 runs that wait, because it reads their heads and not all signals that there ever were.

use base::{Refusal, RunId};
use serde::Deserialize;
use signals::{Signal, SignalBus};
use store::{Scan, Store, Table};

/// Finds the signals of runs that still wait. Cheap to clone.
#[derive(Clone)]
pub(crate) struct WaitingSignals {
    pub store: Store,
    pub signals: SignalBus,
}

/// What matters here of the head of a run (`motor::RunRecord`).
#[derive(Deserialize)]
struct Head {
    /// The signal that told of what the run waits for; none when it does not wait.
    #[serde(default)]
    signal: Option<u64>,
}

impl WaitingSignals {
    /// The ids of the signals of all runs that wait, the oldest first. It reads the head of every run that is not over.
    pub fn ids(&self) -> Result<Vec<u64>, Refusal> {
        let mut ids = Vec::new();
        for (run, _) in self.store.scan::<RunId>(Table::Live, &Scan::all())? {
            ids.extend(self.store.get::<Head>(Table::Runs, run)?.and_then(|head| head.signal));
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// The signal with this id, when its run still waits for what it asks.
    pub fn get(&self, id: u64) -> Result<Option<Signal>, Refusal> {
        let Some(signal) = self.signals.get(id)? else { return Ok(None) };
        Ok(self.is_waited_for(&signal)?.then_some(signal))
    }

    /// Whether the run of a signal still waits for what it asks.
    pub fn is_waited_for(&self, signal: &Signal) -> Result<bool, Refusal> {
        let head = self.store.get::<Head>(Table::Runs, signal.run.as_str())?;
        Ok(head.and_then(|head| head.signal) == Some(signal.id))
    }

    /// Those behind the id `after`, oldest first, at most `limit`.
    pub fn since(&self, after: u64, limit: usize) -> Result<Vec<Signal>, Refusal> {
        let behind = self.ids()?.into_iter().filter(|id| *id > after);
        behind.filter_map(|id| self.get(id).transpose()).take(limit).collect()
    }
}

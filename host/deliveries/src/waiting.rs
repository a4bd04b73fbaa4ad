//! The signals of runs that still wait: the first ones for a consumer that comes late (SPEC DUR-3).
//!
//! No signal is sent twice for it: a waiting run has signalled once, and that signal is given again, under its own id.
//! It copes with 10,000 waiting runs, because it reads their heads and not all signals ever sent.

use base::{Refusal, RunId};
use serde::Deserialize;
use signals::{Signal, SignalBus};
use store::{Scan, Store, Table};

/// Finds the signals of runs that still wait. Cheap to clone.
#[derive(Clone)]
pub struct WaitingSignals {
    /// Holds the heads of runs.
    pub store: Store,
    /// Holds the signals of runs.
    pub signals: SignalBus,
}

/// The relevant part of a run's head (`motor::RunRecord`).
#[derive(Deserialize)]
struct Head {
    /// The signal of the question the run waits for; `None` if it does not wait.
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

    /// The signal with this id, if its run still waits for an answer to it.
    pub fn get(&self, id: u64) -> Result<Option<Signal>, Refusal> {
        let Some(signal) = self.signals.get(id)? else { return Ok(None) };
        Ok(self.is_waited_for(&signal)?.then_some(signal))
    }

    /// Whether the run of a signal still waits for an answer to it.
    pub fn is_waited_for(&self, signal: &Signal) -> Result<bool, Refusal> {
        let head = self.store.get::<Head>(Table::Runs, signal.body.run_id.as_str())?;
        Ok(head.and_then(|head| head.signal) == Some(signal.id))
    }

    /// The waiting signals after the id `after`, oldest first, at most `limit`.
    pub fn since(&self, after: u64, limit: usize) -> Result<Vec<Signal>, Refusal> {
        let behind = self.ids()?.into_iter().filter(|id| *id > after);
        behind.filter_map(|id| self.get(id).transpose()).take(limit).collect()
    }
}

//! Goes on watching a run when its driver is done: a run that waits for people has none, and gets another when they answer.

use std::fmt;
use std::sync::Arc;

use base::RunId;

use crate::drivers::ActiveRuns;
use crate::journal::RunStore;
use crate::live::{LiveLog, history};
use crate::watch::Watch;

/// Finds the next driver of a run.
pub(crate) struct Relay {
    pub(crate) active: Arc<ActiveRuns>,
    pub(crate) books: RunStore,
    pub(crate) run: RunId,
    is_last: bool,
}

impl Relay {
    pub(crate) fn new(active: Arc<ActiveRuns>, books: RunStore, run: RunId) -> Self {
        Self { active, books, run, is_last: false }
    }

    /// The events of the run from its first, as its next driver has them, or from the store when it is over. `None`
    /// if no driver is going to run it. `done` is the log that ended.
    pub(crate) async fn next(&mut self, done: Option<&Arc<LiveLog>>) -> Option<Watch> {
        loop {
            // Subscribed before the look, so that a driver made in between is not missed.
            let mut launches = self.active.launches();
            if self.is_last {
                return None;
            }
            let live = self.active.live(&self.run);
            if let Some(live) = live.filter(|live| !done.is_some_and(|done| Arc::ptr_eq(done, live))) {
                return Some(Watch::of(&live));
            }
            let record = self.books.record(&self.run).ok()?;
            if record.status.is_terminal() {
                self.is_last = true;
                let (_, events) = self.books.load(&self.run).ok()?;
                return Some(Watch::of_history(history(&self.run, &events)));
            }
            if !record.status.is_waiting() {
                // A driver that was made between the two looks is at work already.
                if launches.has_changed().unwrap_or_default() {
                    continue;
                }
                return None;
            }
            tokio::select! {
                biased;
                () = self.active.closing.cancelled() => return None,
                changed = launches.changed() => changed.ok()?,
            }
        }
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("run", &self.run).finish_non_exhaustive()
    }
}

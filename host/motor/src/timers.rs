//! When somebody has to look at a run again: its question expires, or the disk may have room (SPEC DUR-3).
//!
//! What a timer is for is in the run's record; here is only when, so there is nothing to restore but a list of times. A
//! run that nobody drives costs an entry here and nothing else.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::{Clock, RunId, Timestamp};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::config::TIMER_SLEEP;

/// Runs and the times at which they are to be taken up.
#[derive(Default)]
pub(crate) struct Timers {
    due: Mutex<BTreeSet<(Timestamp, RunId)>>,
    changed: Notify,
}

impl Timers {
    /// Takes the run up at `at`. Being taken up once too often does no harm.
    pub(crate) fn add(&self, at: Timestamp, run: RunId) {
        self.lock().insert((at, run));
        self.changed.notify_one();
    }

    /// Whether the run will be taken up.
    pub(crate) fn has(&self, run: &RunId) -> bool {
        self.lock().iter().any(|(_, waiting)| waiting == run)
    }

    /// Calls `take_up` for each run whose time has come, until `closing`.
    pub(crate) async fn keep(
        self: Arc<Self>,
        clock: Arc<dyn Clock>,
        closing: CancellationToken,
        take_up: impl Fn(&RunId),
    ) {
        loop {
            let wait = self.lock().first().map(|(at, _)| at.since(clock.now()));
            if wait.is_some_and(|wait| wait.is_zero()) {
                let Some((_, run)) = self.lock().pop_first() else { continue };
                take_up(&run);
                // Ten thousand that are due at once must not keep others from this thread.
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                biased;
                () = closing.cancelled() => return,
                () = self.changed.notified() => {}
                () = tokio::time::sleep(wait.unwrap_or(TIMER_SLEEP).min(TIMER_SLEEP)) => {}
            }
        }
    }

    // A set is whole between any two statements.
    fn lock(&self) -> MutexGuard<'_, BTreeSet<(Timestamp, RunId)>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::TestClock;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn runs_are_taken_up_when_their_time_has_come_and_in_order() {
        let clock = Arc::new(TestClock::at(Timestamp::from_millis(0)));
        let timers = Arc::new(Timers::default());
        let closing = CancellationToken::new();
        let run = |name: &str| RunId::parse(name).unwrap();
        for (at, name) in [(20, "run_b"), (10, "run_a"), (1_000_000, "run_c")] {
            timers.add(Timestamp::from_millis(at), run(name));
        }
        let (sender, mut taken) = tokio::sync::mpsc::unbounded_channel();
        let keeping = tokio::spawn(timers.clone().keep(clock.clone(), closing.clone(), move |run| {
            sender.send(run.to_string()).unwrap();
        }));
        clock.advance(Duration::from_millis(20));
        timers.add(Timestamp::from_millis(30), run("run_d"));
        assert_eq!(taken.recv().await.unwrap(), "run_a");
        assert_eq!(taken.recv().await.unwrap(), "run_b");
        assert!(taken.try_recv().is_err());
        // The wall clock was set while it slept.
        clock.advance(Duration::from_secs(2_000));
        assert_eq!(taken.recv().await.unwrap(), "run_d");
        assert_eq!(taken.recv().await.unwrap(), "run_c");
        closing.cancel();
        keeping.await.unwrap();
    }
}

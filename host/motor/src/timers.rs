//! When a run has to be looked at again: its question expires, or the disk may have room (SPEC DUR-3).
//!
//! The purpose of a timer is in the run's record; this module knows only the time, so there is nothing to restore but a
//! list of times. A run without a driver costs an entry here and nothing else.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use base::{Clock, RunId, Timestamp};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::config::TIMER_SLEEP;

/// Runs and the times at which they are to be taken up.
pub(crate) struct Timers {
    clock: Arc<dyn Clock>,
    times: Mutex<Times>,
    changed: Notify,
}

/// By the monotonic clock.
#[derive(Default)]
struct Times {
    due: BTreeSet<(Duration, RunId)>,
    /// Until when runs wait: as it is stored, by the wall clock, and when that is.
    expiries: HashMap<RunId, (Timestamp, Duration)>,
}

impl Timers {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, times: Mutex::default(), changed: Notify::new() }
    }

    /// Takes the run up after `wait`. Being taken up once too often does no harm.
    pub(crate) fn add(&self, wait: Duration, run: RunId) {
        let at = self.clock.monotonic().saturating_add(wait);
        self.times.lock().due.insert((at, run));
        self.changed.notify_one();
    }

    /// How long a run may still wait that waits until `expires_at`. The wall clock is asked once, when this host first sees it
    /// wait: one that is set afterwards ends no wait and prolongs none.
    pub(crate) fn left(&self, run: &RunId, expires_at: Timestamp) -> Duration {
        let now = self.clock.monotonic();
        let mut times = self.times.lock();
        let known = times.expiries.get(run).filter(|(known, _)| *known == expires_at).map(|(_, end)| *end);
        let end = known.unwrap_or_else(|| {
            let end = now.saturating_add(expires_at.since(self.clock.now()));
            times.expiries.insert(run.clone(), (expires_at, end));
            end
        });
        end.saturating_sub(now)
    }

    /// The run waits no more.
    pub(crate) fn forget(&self, run: &RunId) {
        self.times.lock().expiries.remove(run);
    }

    /// Whether the run will be taken up.
    pub(crate) fn has(&self, run: &RunId) -> bool {
        self.times.lock().due.iter().any(|(_, waiting)| waiting == run)
    }

    /// Calls `take_up` for each run whose time has come, until `closing`.
    pub(crate) async fn keep(self: Arc<Self>, closing: CancellationToken, take_up: impl Fn(&RunId)) {
        loop {
            let wait = self.times.lock().due.first().map(|(at, _)| at.saturating_sub(self.clock.monotonic()));
            if wait.is_some_and(|wait| wait.is_zero()) {
                let Some((_, run)) = self.times.lock().due.pop_first() else { continue };
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
}

#[cfg(test)]
mod tests {
    use base::TestClock;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn runs_are_taken_up_when_their_time_has_come_and_in_order() {
        let clock = Arc::new(TestClock::at(Timestamp::from_millis(0)));
        let timers = Arc::new(Timers::new(clock.clone()));
        let closing = CancellationToken::new();
        let run = |name: &str| RunId::parse(name).unwrap();
        for (at, name) in [(20, "run_b"), (10, "run_a"), (1_000_000, "run_c")] {
            timers.add(Duration::from_millis(at), run(name));
        }
        let (sender, mut taken) = tokio::sync::mpsc::unbounded_channel();
        let keeping = tokio::spawn(timers.clone().keep(closing.clone(), move |run| {
            sender.send(run.to_string()).unwrap();
        }));
        clock.advance(Duration::from_millis(20));
        timers.add(Duration::from_millis(10), run("run_d"));
        assert_eq!(taken.recv().await.unwrap(), "run_a");
        assert_eq!(taken.recv().await.unwrap(), "run_b");
        assert!(taken.try_recv().is_err());
        // Time passed while it slept.
        clock.advance(Duration::from_secs(2_000));
        assert_eq!(taken.recv().await.unwrap(), "run_d");
        assert_eq!(taken.recv().await.unwrap(), "run_c");
        closing.cancel();
        keeping.await.unwrap();
    }

    #[test]
    fn a_wait_is_as_long_as_it_was_however_the_clock_is_set_and_each_host_asks_the_clock_anew() {
        let clock = Arc::new(TestClock::at(Timestamp::from_millis(100_000_000)));
        let run = RunId::parse("run_a").unwrap();
        let expires_at = Timestamp::from_millis(100_060_000);
        let timers = Timers::new(clock.clone());
        for jump in [0, 3_600_000, -7_200_000, 3_600_000] {
            clock.jump(jump);
            assert_eq!(timers.left(&run, expires_at), Duration::from_secs(60), "{jump}");
        }
        clock.advance(Duration::from_secs(20));
        assert_eq!(timers.left(&run, expires_at), Duration::from_secs(40));
        // Its next question is another wait.
        let next = clock.now().after(Duration::from_secs(30));
        assert_eq!(timers.left(&run, next), Duration::from_secs(30));
        clock.advance(Duration::from_secs(31));
        assert_eq!(timers.left(&run, next), Duration::ZERO);
        // The next host asks the wall clock, which is right again: 51 of 60 s are over.
        assert_eq!(Timers::new(clock.clone()).left(&run, expires_at), Duration::from_secs(9));
        clock.jump(3_600_000);
        assert_eq!(Timers::new(clock).left(&run, expires_at), Duration::ZERO);
    }
}

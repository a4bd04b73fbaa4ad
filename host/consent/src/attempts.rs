//! The cost of a wrong token: its answer comes late, and one at a time.
//!
//! No program guesses 256 bits; this keeps a program that tries from filling the log and the processor. The right token is
//! known before any of it and never waits, so attempts cannot lock the owner out.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;

use crate::ConsentError;

/// Wrong tokens in a row that are answered at once: a person's slips.
const FREE: u32 = 3;
/// The first answer that is late, and the latest.
const FIRST: Duration = Duration::from_millis(50);
const LAST: Duration = Duration::from_secs(2);
/// Wrong tokens that may wait for their answer. Each is an open request.
const MAX_WAITING: u32 = 16;

/// The wrong tokens so far.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// Since the host started.
    total: AtomicU64,
    /// Since the last right one.
    in_a_row: AtomicU32,
    waiting: AtomicU32,
    turn: Mutex<()>,
}

impl Attempts {
    /// The right token came.
    pub(crate) fn right(&self) {
        self.in_a_row.store(0, Ordering::Relaxed);
    }

    /// Delays the answer to a wrong token and returns the error.
    pub(crate) async fn wrong(&self) -> ConsentError {
        let total = self.total.fetch_add(1, Ordering::Relaxed) + 1;
        let row = self.in_a_row.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        // Once for each power of two: a log that can be filled from outside is no log.
        if total.is_power_of_two() {
            tracing::warn!(total, "a token that is not the owner's was refused");
        }
        if row <= FREE {
            return ConsentError::Wrong;
        }
        let waiting = WaitingAttempt(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            return ConsentError::TooMany;
        }
        let turn = self.turn.lock().await;
        tokio::time::sleep(late(row)).await;
        drop((turn, waiting));
        ConsentError::Wrong
    }

    /// Wrong tokens since the host started.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}

/// Counts a waiting request down also when its connection went away.
struct WaitingAttempt<'a>(&'a AtomicU32);

impl Drop for WaitingAttempt<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn late(in_a_row: u32) -> Duration {
    let doublings = in_a_row.saturating_sub(FREE + 1).min(16);
    FIRST.saturating_mul(1 << doublings).min(LAST)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::Instant;

    use super::*;

    #[test]
    fn answers_come_later_and_later_up_to_a_limit() {
        let late: Vec<u128> = [4, 5, 6, 9, 10, 1_000, u32::MAX].map(|row| late(row).as_millis()).to_vec();
        assert_eq!(late, [50, 100, 200, 1_600, 2_000, 2_000, 2_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn guessing_is_slow_however_many_guess_at_once_and_a_slip_is_not() {
        let attempts = Arc::new(Attempts::default());
        let began = Instant::now();
        for _ in 0..FREE {
            assert!(matches!(attempts.wrong().await, ConsentError::Wrong));
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        let guesses: Vec<_> = (0..40)
            .map(|_| {
                tokio::spawn({
                    let attempts = attempts.clone();
                    async move { attempts.wrong().await }
                })
            })
            .collect();
        let mut turned_away = 0;
        for guess in guesses {
            turned_away += u32::from(matches!(guess.await.unwrap(), ConsentError::TooMany));
        }
        assert_eq!((turned_away, attempts.total()), (40 - MAX_WAITING, 43));
        assert!(began.elapsed() > Duration::from_secs(20), "{:?}", began.elapsed());
        attempts.right();
        let again = Instant::now();
        assert!(matches!(attempts.wrong().await, ConsentError::Wrong));
        assert_eq!(again.elapsed(), Duration::ZERO);
        // One that gave up waiting makes room.
        for _ in 0..100 {
            tokio::time::timeout(Duration::from_millis(1), attempts.wrong()).await.ok();
        }
        assert_eq!(attempts.waiting.load(Ordering::Relaxed), 0);
    }

    /// Counts the events that the thread of a test logs.
    struct EventCounter(Arc<AtomicU32>);

    impl tracing::Subscriber for EventCounter {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }

        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

        fn event(&self, _: &tracing::Event<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn enter(&self, _: &tracing::span::Id) {}

        fn exit(&self, _: &tracing::span::Id) {}
    }

    #[tokio::test(start_paused = true)]
    async fn wrong_tokens_are_logged_once_for_each_power_of_two() {
        // An event that is logged for the first time while another thread does the same may not reach a subscriber.
        Attempts::default().wrong().await;
        let logged = Arc::new(AtomicU32::new(0));
        let _guard = tracing::subscriber::set_default(EventCounter(logged.clone()));
        let attempts = Attempts::default();
        let mut after_each = Vec::new();
        for _ in 0..9 {
            attempts.wrong().await;
            after_each.push(logged.load(Ordering::Relaxed));
        }
        assert_eq!(after_each, [1, 2, 2, 3, 3, 3, 3, 4, 4]);
    }
}

//! A clock that stands still while anybody works, and moves when everybody waits: tokio's paused time. The wall clock
//! can be set besides, as owners and time servers do.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use base::{Clock, Timestamp};
use tokio::time::Instant;

/// Follows the time of the runtime it was made in, which must be paused for a simulation.
#[derive(Debug)]
pub struct VirtualClock {
    origin: Instant,
    /// The wall clock's time at the origin, as it is set now. It may be before the epoch while time goes on.
    wall_ms: AtomicI64,
}

impl VirtualClock {
    pub fn starting_at(wall: Timestamp) -> Self {
        Self { origin: Instant::now(), wall_ms: AtomicI64::new(wall.as_millis().cast_signed()) }
    }

    /// Sets the wall clock forward or back. Time itself goes on as before.
    pub fn jump(&self, by_ms: i64) {
        let jumped = self.wall_ms.load(Ordering::SeqCst).saturating_add(by_ms);
        self.wall_ms.store(jumped, Ordering::SeqCst);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let since = self.origin.elapsed().as_millis() as i64;
        Timestamp::from_millis(self.wall_ms.load(Ordering::SeqCst).saturating_add(since).max(0).cast_unsigned())
    }

    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_hour_passes_at_once_and_the_wall_clock_can_be_set() {
        let began = std::time::Instant::now();
        let clock = VirtualClock::starting_at(Timestamp::from_millis(1_000_000));
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        assert_eq!((clock.now().as_millis(), clock.monotonic()), (4_600_000, Duration::from_secs(3_600)));
        clock.jump(-4_000_000);
        assert_eq!((clock.now().as_millis(), clock.monotonic()), (600_000, Duration::from_secs(3_600)));
        clock.jump(i64::MAX);
        clock.jump(-1);
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(clock.monotonic(), Duration::from_millis(3_600_001));
        assert!(began.elapsed() < Duration::from_secs(60), "nobody waited");
    }
}

//! Time, injected: the wall clock for records, a monotonic clock for durations.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch, UTC. Prints as RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Timestamp(#[serde(deserialize_with = "crate::whole::number")] u64);

impl Timestamp {
    /// Converts from milliseconds since the epoch.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The time `span` later than this one.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Time passed since `earlier`; zero if the clock went backwards.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / 1000;
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        let (year, month, day) = civil_from_days(seconds / 86_400);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", self.0 % 1000)
    }
}

/// Days since 1970-01-01 to year, month, day: Hinnant's `civil_from_days`, for dates not before the epoch.
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// A source of wall-clock and monotonic time.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The wall clock, for records.
    fn now(&self) -> Timestamp;
    /// A clock that never goes backwards, for durations. Only differences are meaningful.
    fn monotonic(&self) -> Duration;
}

/// The clocks of the operating system.
#[derive(Debug)]
pub struct SystemClock(Instant);

#[expect(clippy::disallowed_methods, reason = "the system's clock")]
impl Default for SystemClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

#[expect(clippy::disallowed_methods, reason = "the system's clock")]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

/// The time while one host runs. A wall clock may be wrong at the start and may be set later: code that must not be
/// misled by that chooses the side on which an error does no harm. Cheap to clone.
#[derive(Debug, Clone)]
pub struct HostTime {
    clock: Arc<dyn Clock>,
    wall: Timestamp,
    monotonic: Duration,
}

impl HostTime {
    /// The time of a host that starts now.
    #[must_use]
    pub fn starting(clock: Arc<dyn Clock>) -> Self {
        let (wall, monotonic) = (clock.now(), clock.monotonic());
        Self { clock, wall, monotonic }
    }

    /// Time since the host started.
    #[must_use]
    pub fn lived(&self) -> Duration {
        self.clock.monotonic().saturating_sub(self.monotonic)
    }

    /// The wall clock when the host started.
    #[must_use]
    pub const fn started(&self) -> Timestamp {
        self.wall
    }

    /// The wall clock as it would be without having been set since.
    #[must_use]
    pub fn steady(&self) -> Timestamp {
        self.wall.after(self.lived())
    }

    /// The earlier of that and the wall clock: an age measured with it is never too high.
    #[must_use]
    pub fn earliest(&self) -> Timestamp {
        self.steady().min(self.clock.now())
    }

    /// The later of the two: a time recorded with it never looks older than it is.
    #[must_use]
    pub fn latest(&self) -> Timestamp {
        self.steady().max(self.clock.now())
    }
}

/// A clock that moves only when a test moves it.
#[derive(Debug)]
pub struct TestClock {
    millis: AtomicU64,
    /// Milliseconds by which the wall clock was set, in addition to the time that passed.
    set_by_ms: AtomicI64,
}

impl TestClock {
    /// A clock that shows `now`.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self { millis: AtomicU64::new(now.as_millis()), set_by_ms: AtomicI64::new(0) }
    }

    /// Moves both clocks forward by `by`.
    pub fn advance(&self, by: Duration) {
        self.millis.fetch_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// Sets the wall clock forward or back. No time passes.
    pub fn jump(&self, by_ms: i64) {
        self.set_by_ms.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.millis.load(Ordering::SeqCst).saturating_add_signed(self.set_by_ms.load(Ordering::SeqCst)))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.millis.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_knows_the_earliest_and_the_latest_time_it_may_be() {
        let clock = Arc::new(TestClock::at(Timestamp::from_millis(1_000_000)));
        let time = HostTime::starting(clock.clone());
        clock.advance(Duration::from_secs(1));
        assert_eq!((time.earliest(), time.latest()), (time.steady(), time.steady()));
        for (jump, earliest, latest) in [(500, 1_001_000, 1_001_500), (-700, 1_000_800, 1_001_000)] {
            clock.jump(jump);
            assert_eq!((time.earliest().as_millis(), time.latest().as_millis()), (earliest, latest), "{jump}");
        }
        assert_eq!((time.steady().as_millis(), time.lived()), (1_001_000, Duration::from_secs(1)));
    }

    #[test]
    fn prints_rfc_3339() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_123, "2000-02-29T00:00:00.123Z"),
            (1_798_761_599_999, "2026-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp::from_millis(millis).to_string(), text);
        }
    }
}

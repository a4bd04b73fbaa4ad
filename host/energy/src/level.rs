//! The level at a moment: pure arithmetic over the settings. It survives any settings, any stored number and any clock.

use std::time::Duration;

use base::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::activity::EnergyGate;
use crate::{EnergyConfig, SleepWindow};

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
/// A wait longer than this is called never.
const MAX_WAIT_MS: u64 = 366 * DAY_MS;

/// A level, and when it was that. It may be below the floor, which is the lowest that is shown: an act that is begun right above
/// the floor takes its whole price, and the next one waits until that has been recovered. Were the level cut off at the floor,
/// a moment's recovery would always pay for one more act.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnergyLevel {
    pub(crate) level: f64,
    pub(crate) at: Timestamp,
}

impl EnergyLevel {
    /// The level of a new agent.
    pub(crate) fn full(now: Timestamp) -> Self {
        Self { level: 1.0, at: now }
    }

    /// The level at `now`, recharged for the time between. A clock that went backwards recharges nothing, and no time counts
    /// twice when it goes forwards again.
    pub(crate) fn at(self, now: Timestamp, config: &EnergyConfig) -> Self {
        let level = clamp(self.level, config);
        if now <= self.at {
            return Self { level, at: self.at };
        }
        Self { level: clamp(level + recharge(self.at, now, config), config), at: now }
    }

    /// The level after a drain at `now`.
    pub(crate) fn drained(self, cost: f64, now: Timestamp, config: &EnergyConfig) -> Self {
        let before = self.at(now, config);
        Self { level: clamp(before.level - cost, config), at: before.at }
    }

    /// The level that people and programs see: not below the floor.
    pub(crate) fn shown(self, config: &EnergyConfig) -> f64 {
        // A level that is not a number counts as the least.
        if self.level >= floor(config) { self.level.min(1.0) } else { floor(config) }
    }

    /// Whether something that needs the gate may begin. A floor above the gate keeps it open.
    pub(crate) fn opens(self, gate: EnergyGate, config: &EnergyConfig) -> bool {
        gate.is_open_at(self.level) || gate.is_open_at(floor(config))
    }

    /// How long from this moment until the gate opens; `None` when it does not within a year.
    pub(crate) fn wait(self, gate: EnergyGate, config: &EnergyConfig) -> Option<Duration> {
        // Recharging only rises, so the first moment can be searched for by halves; no formula to keep in step.
        let is_open = |wait_ms: u64| {
            let later = Timestamp::from_millis(self.at.as_millis().saturating_add(wait_ms));
            self.at(later, config).opens(gate, config)
        };
        if !is_open(MAX_WAIT_MS) {
            return None;
        }
        let (mut closed, mut open) = (0, MAX_WAIT_MS);
        if is_open(closed) {
            return Some(Duration::ZERO);
        }
        while open - closed > 1 {
            let middle = closed + (open - closed) / 2;
            if is_open(middle) { open = middle } else { closed = middle }
        }
        Some(Duration::from_millis(open))
    }
}

fn floor(config: &EnergyConfig) -> f64 {
    if (0.0..=1.0).contains(&config.floor) { config.floor } else { 0.0 }
}

/// At the most the price of a single act is owed below the floor.
fn clamp(level: f64, config: &EnergyConfig) -> f64 {
    let least = (floor(config) - crate::Activity::Oneshot.cost(config)).max(0.0);
    // A level that is not a number counts as the least.
    if level >= least { level.min(1.0) } else { least }
}

/// The recovery between two moments.
fn recharge(from: Timestamp, to: Timestamp, config: &EnergyConfig) -> f64 {
    let asleep = config.sleep_window.map_or(0, |window| asleep_until(to, window) - asleep_until(from, window));
    let awake = (to.as_millis() - from.as_millis()).saturating_sub(asleep);
    let rate = |per_hour: f64| if per_hour > 0.0 { per_hour } else { 0.0 };
    #[expect(clippy::cast_precision_loss, reason = "2^53 milliseconds are 285,000 years")]
    let hours = |ms: u64| ms as f64 / HOUR_MS as f64;
    hours(awake) * rate(config.recharge_per_hour) + hours(asleep) * rate(config.sleep_recharge_per_hour)
}

/// The milliseconds asleep from the epoch to `moment`.
fn asleep_until(moment: Timestamp, window: SleepWindow) -> u64 {
    let (from, to) = (u64::from(window.from_hour.min(24)) * HOUR_MS, u64::from(window.to_hour.min(24)) * HOUR_MS);
    let (days, of_day) = (moment.as_millis() / DAY_MS, moment.as_millis() % DAY_MS);
    let within = |begin: u64, end: u64| of_day.min(end).saturating_sub(begin);
    if from <= to {
        days * (to - from) + within(from, to)
    } else {
        days * (DAY_MS - from + to) + within(0, to) + within(from, DAY_MS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hour(hour: u64) -> Timestamp {
        Timestamp::from_millis(100 * DAY_MS + hour * HOUR_MS)
    }

    fn check(config: &EnergyConfig, from: (u64, f64), to: u64, expected: f64) {
        let found = EnergyLevel { level: from.1, at: hour(from.0) }.at(hour(to), config).level;
        assert!((found - expected).abs() < 1e-9, "{from:?} to {to}: {found}, expected {expected}");
    }

    #[test]
    fn recharges_by_the_hour_and_faster_asleep() {
        let awake = EnergyConfig { recharge_per_hour: 0.1, sleep_recharge_per_hour: 0.2, ..EnergyConfig::default() };
        check(&awake, (0, 0.3), 1, 0.4);
        check(&awake, (0, 0.3), 7, 1.0);
        check(&awake, (7, 0.3), 0, 0.3);
        let night = EnergyConfig { sleep_window: Some(SleepWindow { from_hour: 22, to_hour: 2 }), ..awake.clone() };
        check(&night, (20, 0.05), 22, 0.25);
        check(&night, (20, 0.05), 23, 0.45);
        check(&night, (21, 0.05), 25, 0.75);
        check(&night, (25, 0.05), 27, 0.35);
        check(&night, (3, 0.05), 5, 0.25);
        let noon = EnergyConfig { sleep_window: Some(SleepWindow { from_hour: 12, to_hour: 14 }), ..awake };
        check(&noon, (11, 0.05), 15, 0.65);
        check(&EnergyConfig { recharge_per_hour: 0.0, ..noon.clone() }, (14, 0.05), 36, 0.05);
        check(&EnergyConfig { recharge_per_hour: 0.0, ..noon }, (14, 0.05), 38, 0.45);
    }

    #[test]
    fn below_the_floor_the_price_of_one_act_is_owed() {
        let config = EnergyConfig::default();
        let gate = EnergyGate::Above(0.05);
        let spent = EnergyLevel { level: 0.051, at: hour(0) }.drained(0.05, hour(0), &config);
        assert_eq!((spent.shown(&config), spent.opens(gate, &config)), (0.05, false));
        // A moment later it is still too tired, and in a quarter of an hour it has recovered.
        let moment = Timestamp::from_millis(hour(0).as_millis() + 60_000);
        assert!(!spent.at(moment, &config).opens(gate, &config));
        assert!(spent.at(Timestamp::from_millis(hour(0).as_millis() + 900_000), &config).opens(gate, &config));
        // However much is drained, no more than one act is owed.
        let exhausted = spent.drained(9.0, hour(0), &config);
        assert!(exhausted.wait(gate, &config).unwrap() <= Duration::from_secs(721));
        // A floor above the gate keeps it open.
        let high = EnergyConfig { floor: 0.5, ..config };
        assert!(exhausted.drained(9.0, hour(0), &high).opens(gate, &high));
    }

    #[test]
    fn the_wait_ends_when_the_gate_opens() {
        let config = EnergyConfig { recharge_per_hour: 0.25, ..EnergyConfig::default() };
        let level = EnergyLevel { level: 0.25, at: hour(0) };
        assert_eq!(level.wait(EnergyGate::AtLeast(0.3), &config), Some(Duration::from_secs(720)));
        assert_eq!(level.wait(EnergyGate::AtLeast(0.2), &config), Some(Duration::ZERO));
        assert_eq!(level.wait(EnergyGate::Above(1.0), &config), None);
        assert_eq!(
            level.wait(EnergyGate::AtLeast(0.3), &EnergyConfig { recharge_per_hour: 0.0, ..config.clone() }),
            None
        );
        let window = Some(SleepWindow { from_hour: 3, to_hour: 4 });
        let asleep =
            EnergyConfig { recharge_per_hour: 0.0, sleep_recharge_per_hour: 0.1, sleep_window: window, ..config };
        assert_eq!(level.wait(EnergyGate::AtLeast(0.3), &asleep), Some(Duration::from_secs(3 * 3_600 + 1_800)));
        assert_eq!(level.wait(EnergyGate::AtLeast(0.4), &asleep), Some(Duration::from_secs(27 * 3_600 + 1_800)));
    }

    fn number() -> impl Strategy<Value = f64> {
        prop_oneof![8 => 0.0..1.0, 1 => any::<f64>(), 1 => Just(f64::NAN)]
    }

    fn config() -> impl Strategy<Value = EnergyConfig> {
        let window =
            prop::option::of((0_u8..24, 0_u8..24).prop_map(|(from_hour, to_hour)| SleepWindow { from_hour, to_hour }));
        (number(), number(), window).prop_map(|(recharge_per_hour, sleep_recharge_per_hour, sleep_window)| {
            EnergyConfig { recharge_per_hour, sleep_recharge_per_hour, sleep_window, ..EnergyConfig::default() }
        })
    }

    proptest! {
        #[test]
        fn stays_within_its_bounds(config in config(), start in number(), steps in prop::collection::vec((any::<u64>(), number()), 1..20)) {
            let mut level = EnergyLevel { level: start, at: hour(0) };
            for (now, cost) in steps {
                // Any time at all, forwards and backwards.
                let now = Timestamp::from_millis(now);
                level = level.drained(cost, now, &config);
                prop_assert!((0.0..=1.0).contains(&level.level), "{level:?}");
                prop_assert!((0.05..=1.0).contains(&level.at(now, &config).shown(&config)));
            }
        }

        #[test]
        fn rises_with_time_alone(config in config(), start in number(), first in 0..3 * DAY_MS, more in 0..3 * DAY_MS) {
            let start = EnergyLevel { level: start, at: hour(5) };
            let at = |ms: u64| Timestamp::from_millis(hour(5).as_millis() + ms);
            let (early, late) = (start.at(at(first), &config), start.at(at(first + more), &config));
            prop_assert!(early.level <= late.level, "{early:?} {late:?}");
            // To look in between changes nothing.
            prop_assert!((early.at(late.at, &config).level - late.level).abs() < 1e-6);
        }

        #[test]
        fn a_clock_that_goes_backwards_and_forwards_again_gives_nothing(start in 0.05..1.0, back in 0..100 * DAY_MS) {
            let config = EnergyConfig::default();
            let before = EnergyLevel { level: start, at: hour(0) };
            let jumped = before.at(Timestamp::from_millis(hour(0).as_millis() - back), &config);
            prop_assert_eq!(jumped.level, start);
            prop_assert_eq!(jumped.at(hour(0), &config).level, start);
            let later = Timestamp::from_millis(hour(0).as_millis() + 10 * HOUR_MS);
            prop_assert_eq!(jumped.at(later, &config).level, 1.0);
        }

        #[test]
        fn the_wait_is_the_shortest(config in config(), start in 0.05..1.0, needed in 0.0..1.0, hour_of_day in 0_u64..24) {
            let level = EnergyLevel { level: start, at: hour(hour_of_day) };
            let gate = EnergyGate::AtLeast(needed);
            if let Some(wait) = level.wait(gate, &config) {
                let ms = u64::try_from(wait.as_millis()).unwrap();
                let open = |ms: u64| gate.is_open_at(level.at(Timestamp::from_millis(level.at.as_millis() + ms), &config).level);
                prop_assert!(open(ms));
                prop_assert!(ms == 0 || !open(ms - 1));
            }
        }
    }
}

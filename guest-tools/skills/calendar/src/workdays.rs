//! Which days are worked, and counting them: exact for any span, in time that does not grow with it.

use motor_sdk::ToolError;

use crate::day::{Day, DayOfWeek};

/// Holidays that are taken: fourteen years of every day.
const MAX_HOLIDAYS: usize = 5_000;

/// The days that are worked: all but a weekend and holidays.
#[derive(Debug, Clone)]
pub struct Workdays {
    weekend: [bool; 7],
    /// Those not on the weekend, by number, each once, sorted.
    holidays: Vec<i64>,
}

impl Workdays {
    /// The caller's free days; by default Saturday and Sunday, and no holidays.
    ///
    /// # Errors
    /// If no day is left to work on, or there are too many holidays.
    pub fn new(weekend: Option<Vec<DayOfWeek>>, holidays: Option<Vec<Day>>) -> Result<Self, ToolError> {
        let mut free = [false; 7];
        for day in weekend.unwrap_or_else(|| vec![DayOfWeek::Saturday, DayOfWeek::Sunday]) {
            if let Some(slot) = free.get_mut(usize::from(day.index())) {
                *slot = true;
            }
        }
        if free.iter().all(|free| *free) {
            return Err(ToolError::bad_input("`weekend` names all seven days: leave at least one to work on"));
        }
        let holidays = holidays.unwrap_or_default();
        if holidays.len() > MAX_HOLIDAYS {
            return Err(ToolError::limit(format!(
                "`holidays` has {} days and at most {MAX_HOLIDAYS} are taken: give those of the time that matters",
                holidays.len()
            )));
        }
        let mut workdays = Self { weekend: free, holidays: Vec::new() };
        let mut numbers: Vec<i64> =
            holidays.into_iter().map(Day::number).filter(|day| !workdays.is_weekend(*day)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        workdays.holidays = numbers;
        Ok(workdays)
    }

    /// Whether it is worked on that day.
    #[must_use]
    pub fn is_worked(&self, day: Day) -> bool {
        !self.is_weekend(day.number()) && self.holidays.binary_search(&day.number()).is_err()
    }

    /// Business days from one day to another: those after `from` up to and with `to`. Negative when `to` is before `from`, and
    /// then those before `from` down to and with `to`.
    #[must_use]
    pub fn between(&self, from: Day, to: Day) -> i64 {
        if from <= to {
            self.in_range(from.number() + 1, to.number() + 1)
        } else {
            -self.in_range(to.number(), from.number())
        }
    }

    /// Business days of a span with both of its ends, in either order.
    #[must_use]
    pub fn with_both_ends(&self, one: Day, other: Day) -> i64 {
        self.in_range(one.min(other).number(), one.max(other).number() + 1)
    }

    /// The day that lies so many business days after `day`, or before it when negative; `day` itself for 0.
    ///
    /// # Errors
    /// If it is before the year 1 or after 9999.
    pub fn shift(&self, day: Day, business_days: i64) -> Result<Day, ToolError> {
        // The count from `day` never shrinks with the distance, so the nearest day that has it is found by halving.
        let direction = business_days.signum();
        if direction == 0 {
            return Ok(day);
        }
        let wanted = business_days.unsigned_abs();
        let is_enough = |distance: i64| {
            let other = day.plus_days(distance * direction).ok();
            other.is_none_or(|other| self.between(day, other).unsigned_abs() >= wanted)
        };
        let (mut too_near, mut enough) = (0_i64, 3_652_059_i64);
        while enough - too_near > 1 {
            let middle = too_near.midpoint(enough);
            if is_enough(middle) {
                enough = middle;
            } else {
                too_near = middle;
            }
        }
        day.plus_days(enough * direction)
    }

    /// Days `from..to`, by number, on which it is worked.
    fn in_range(&self, from: i64, to: i64) -> i64 {
        let (days, per_week) = ((to - from).max(0), 7 - self.weekend.iter().filter(|free| **free).count() as i64);
        let rest = (from + days / 7 * 7..to).filter(|day| !self.is_weekend(*day)).count() as i64;
        let before = |number: i64| self.holidays.partition_point(|holiday| *holiday < number) as i64;
        days / 7 * per_week + rest - (before(to.max(from)) - before(from))
    }

    fn is_weekend(&self, number: i64) -> bool {
        // 0001-01-01 was a Monday.
        let index = number.rem_euclid(7);
        usize::try_from(index).ok().and_then(|index| self.weekend.get(index)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        Day::try_from(text.to_owned()).unwrap()
    }

    fn workdays(weekend: &[DayOfWeek], holidays: &[&str]) -> Workdays {
        Workdays::new(Some(weekend.to_vec()), Some(holidays.iter().map(|text| day(text)).collect())).unwrap()
    }

    const WEEKEND: [DayOfWeek; 2] = [DayOfWeek::Saturday, DayOfWeek::Sunday];

    #[test]
    fn counts_business_days() {
        let plain = workdays(&WEEKEND, &[]);
        let check = |from, to, between, both| {
            assert_eq!(plain.between(day(from), day(to)), between, "{from} to {to}");
            assert_eq!(plain.with_both_ends(day(from), day(to)), both, "{from} to {to}");
        };
        check("2026-01-05", "2026-01-05", 0, 1); // Monday
        check("2026-01-05", "2026-01-09", 4, 5); // to Friday
        check("2026-01-09", "2026-01-12", 1, 2); // Friday to Monday
        check("2026-01-10", "2026-01-11", 0, 0); // a weekend
        check("2026-01-12", "2026-01-09", -1, 2); // backwards
        check("2026-01-01", "2026-12-31", 260, 261);
        check("0001-01-01", "9999-12-31", 2_608_614, 2_608_615);
    }

    #[test]
    fn holidays_count_once_and_only_on_working_days() {
        let given = ["2026-12-25", "2026-12-25", "2026-12-26", "2027-01-01", "2020-05-05"];
        let workdays = workdays(&WEEKEND, &given);
        assert_eq!(workdays.between(day("2026-12-23"), day("2027-01-04")), 6);
        assert!(!workdays.is_worked(day("2026-12-25")) && !workdays.is_worked(day("2026-12-26")));
        assert!(workdays.is_worked(day("2026-12-24")));
    }

    /// Against walking, day by day, in both directions, over every weekend there can be.
    #[test]
    fn agrees_with_walking() {
        let all = [
            DayOfWeek::Monday,
            DayOfWeek::Tuesday,
            DayOfWeek::Wednesday,
            DayOfWeek::Thursday,
            DayOfWeek::Friday,
            DayOfWeek::Saturday,
            DayOfWeek::Sunday,
        ];
        let holidays = ["2024-02-29", "2024-03-01", "2024-03-04", "2024-03-31", "2024-12-25"];
        for mask in 0..127_u8 {
            let weekend: Vec<DayOfWeek> = all.into_iter().filter(|day| mask & (1 << day.index()) != 0).collect();
            let workdays = workdays(&weekend, &holidays);
            for start in ["2024-02-24", "2024-02-29", "2024-03-03"] {
                for direction in [1, -1] {
                    let (mut here, mut count) = (day(start), 0);
                    for _ in 0..60 {
                        here = here.plus_days(direction).unwrap();
                        if workdays.is_worked(here) {
                            count += direction;
                            assert_eq!(workdays.shift(day(start), count).unwrap(), here, "{weekend:?} {start} {count}");
                        }
                        assert_eq!(workdays.between(day(start), here), count, "{weekend:?} {start} to {here}");
                    }
                }
            }
        }
    }

    #[test]
    fn shifts_stay_in_range() {
        let plain = workdays(&WEEKEND, &[]);
        let first = day("0001-01-01");
        assert_eq!(plain.shift(first, 2_608_614).unwrap(), day("9999-12-31"));
        for days in [2_608_615, -1, i64::MAX, i64::MIN] {
            assert!(matches!(plain.shift(first, days), Err(ToolError::Limit(_))), "{days}");
        }
    }

    #[test]
    fn a_week_without_work_and_a_flood_of_holidays_are_refused() {
        let all = vec![
            DayOfWeek::Monday,
            DayOfWeek::Tuesday,
            DayOfWeek::Wednesday,
            DayOfWeek::Thursday,
            DayOfWeek::Friday,
            DayOfWeek::Saturday,
            DayOfWeek::Sunday,
        ];
        assert!(matches!(Workdays::new(Some(all), None), Err(ToolError::BadInput(_))));
        let flood = vec![day("2026-01-01"); MAX_HOLIDAYS + 1];
        assert!(matches!(Workdays::new(None, Some(flood)), Err(ToolError::Limit(_))));
        assert!(Workdays::new(Some(Vec::new()), None).unwrap().is_worked(day("2026-01-10")), "no weekend at all");
    }
}

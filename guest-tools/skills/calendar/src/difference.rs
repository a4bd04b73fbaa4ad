//! From one date to another: in days, in years, months and days, in business days.

use jiff::{Unit, civil::DateDifference};
use motor_sdk::serde::Serialize;
use motor_sdk::{Context, ToolError, schemars};

use crate::day::{Day, DayOfWeek, out_of_range};
use crate::workdays::Workdays;

motor_sdk::arguments! {
    pub struct DateDifferenceOf {
        /// The earlier date, `YYYY-MM-DD`. When it is the later one, all numbers of the answer are negative.
        from: Day,
        /// The later date.
        to: Day,
        /// Days of the week that are not worked. Default saturday and sunday.
        weekend: Option<Vec<DayOfWeek>>,
        /// Days that are not worked besides.
        holidays: Option<Vec<Day>>,
    }
}

/// How far two dates are apart.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(crate = "motor_sdk::serde")]
#[schemars(crate = "motor_sdk::schemars")]
pub struct Difference {
    /// Nights between the two: 1 from one day to the next.
    days: i64,
    /// Whole weeks, and the days beyond them.
    weeks: i64,
    days_after_weeks: i64,
    /// Whole years, whole months beyond them, and days beyond those.
    years: i64,
    months: i64,
    days_after_months: i64,
    /// Business days after `from` up to and with `to`.
    business_days: i64,
    /// Business days with both ends, never negative.
    business_days_with_both_ends: i64,
}

/// The tool `date_difference` of the skill.
pub fn date_difference(arguments: DateDifferenceOf, _context: &Context) -> Result<Difference, ToolError> {
    let (from, to) = (arguments.from, arguments.to);
    let workdays = Workdays::new(arguments.weekend, arguments.holidays)?;
    let span = from.date().until(DateDifference::new(to.date()).largest(Unit::Year)).map_err(out_of_range)?;
    let days = to.number() - from.number();
    Ok(Difference {
        days,
        weeks: days / 7,
        days_after_weeks: days % 7,
        years: i64::from(span.get_years()),
        months: i64::from(span.get_months()),
        days_after_months: i64::from(span.get_days()),
        business_days: workdays.between(from, to),
        business_days_with_both_ends: workdays.with_both_ends(from, to),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        Day::try_from(text.to_owned()).unwrap()
    }

    fn difference(from: &str, to: &str) -> Difference {
        let arguments = DateDifferenceOf { from: day(from), to: day(to), weekend: None, holidays: None };
        let context = Context { run_id: String::new(), step: 0, deadline_ms: 1_000, idempotency_key: String::new() };
        date_difference(arguments, &context).unwrap()
    }

    #[track_caller]
    fn check(from: &str, to: &str, days: i64, weeks: (i64, i64), calendar: (i64, i64, i64)) {
        let found = difference(from, to);
        assert_eq!(found.days, days, "{from} to {to}");
        assert_eq!((found.weeks, found.days_after_weeks), weeks, "{from} to {to}");
        assert_eq!((found.years, found.months, found.days_after_months), calendar, "{from} to {to}");
    }

    #[test]
    fn says_how_far_two_dates_are_apart() {
        check("2026-01-07", "2026-01-07", 0, (0, 0), (0, 0, 0));
        check("2026-01-31", "2026-02-28", 28, (4, 0), (0, 0, 28));
        check("2026-01-31", "2026-03-01", 29, (4, 1), (0, 1, 1));
        check("2024-02-29", "2025-02-28", 365, (52, 1), (0, 11, 30));
        check("2024-02-29", "2025-03-01", 366, (52, 2), (1, 0, 1));
        check("2024-02-29", "2028-02-29", 1461, (208, 5), (4, 0, 0));
        check("1815-12-10", "2026-01-07", 76_730, (10_961, 3), (210, 0, 28));
        check("2026-03-01", "2026-01-31", -29, (-4, -1), (0, -1, -1));
        check("0001-01-01", "9999-12-31", 3_652_058, (521_722, 4), (9_998, 11, 30));
    }

    /// The answer leads from one date to the other again, over a thousand pairs.
    #[test]
    fn leads_back() {
        let start = day("2023-11-29");
        for step in 0..1_000 {
            let (from, to) = (start.plus_days(step % 97).unwrap(), start.plus_days(step * 7 % 1_201).unwrap());
            let found = difference(&from.to_string(), &to.to_string());
            assert_eq!(from.plus_days(found.weeks * 7 + found.days_after_weeks).unwrap(), to);
            let span = jiff::Span::new().years(found.years).months(found.months);
            let months = Day::reached(from.date().checked_add(span).unwrap()).unwrap();
            assert_eq!(months.plus_days(found.days_after_months).unwrap(), to, "{from} to {to}");
        }
    }
}

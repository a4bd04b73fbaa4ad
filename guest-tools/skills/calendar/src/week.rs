//! ISO weeks and the facts about a date: they follow from the date alone.

use motor_sdk::serde::Serialize;
use motor_sdk::{Context, ToolError, schemars};

use crate::day::{Day, DayOfWeek};

motor_sdk::arguments! {
    pub struct DateFacts {
        /// The date, `YYYY-MM-DD`.
        date: Day,
    }

    pub struct WeekDates {
        /// The year of the week by ISO 8601, 1 to 9999; around New Year it can differ from that of the date.
        year: i64,
        /// The week, 1 to 52 or 53.
        week: i64,
    }
}

/// What a date is.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(crate = "motor_sdk::serde")]
#[schemars(crate = "motor_sdk::schemars")]
pub struct Facts {
    weekday: DayOfWeek,
    /// ISO 8601 week date, such as `2026-W02-3`.
    iso_week: String,
    /// From 1.
    day_of_year: i16,
    days_in_year: i16,
    days_in_month: i8,
    /// 1 to 4.
    quarter: i8,
    is_leap_year: bool,
    /// Which of this weekday in its month it is, from 1.
    nth_of_month: i8,
    /// Whether it is the last of this weekday in its month.
    is_last_of_month: bool,
}

/// The days of a week.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(crate = "motor_sdk::serde")]
#[schemars(crate = "motor_sdk::schemars")]
pub struct Week {
    monday: Day,
    sunday: Day,
    /// How many weeks the year has, 52 or 53.
    weeks_in_year: i64,
}

/// The tool `date_facts`.
pub fn date_facts(arguments: DateFacts, _context: &Context) -> Result<Facts, ToolError> {
    let (day, date) = (arguments.date, arguments.date.date());
    let week = date.iso_week_date();
    Ok(Facts {
        weekday: DayOfWeek::of(day),
        iso_week: format!("{:04}-W{:02}-{}", week.year(), week.week(), DayOfWeek::of(day).index() + 1),
        day_of_year: date.day_of_year(),
        days_in_year: date.days_in_year(),
        days_in_month: date.days_in_month(),
        quarter: (date.month() - 1) / 3 + 1,
        is_leap_year: date.in_leap_year(),
        nth_of_month: (date.day() - 1) / 7 + 1,
        is_last_of_month: date.day() > date.days_in_month() - 7,
    })
}

/// The tool `week_dates`.
pub fn week_dates(arguments: WeekDates, _context: &Context) -> Result<Week, ToolError> {
    let monday = monday_of(arguments.year, arguments.week)?;
    let sunday = monday.plus_days(6)?;
    Ok(Week { monday, sunday, weeks_in_year: weeks_in(arguments.year)? })
}

/// The Monday of an ISO week.
///
/// # Errors
/// If there is no such week.
pub fn monday_of(year: i64, week: i64) -> Result<Day, ToolError> {
    let weeks = weeks_in(year)?;
    if !(1..=weeks).contains(&week) {
        return Err(ToolError::bad_input(format!("the year {year} has {weeks} weeks, so there is no week {week}")));
    }
    // The week with the 4th of January is the first (ISO 8601).
    let fourth = Day::of(year, 1, 4)?;
    fourth.plus_days((week - 1) * 7 - i64::from(DayOfWeek::of(fourth).index()))
}

fn weeks_in(year: i64) -> Result<i64, ToolError> {
    // The 28th of December always lies in the last week.
    Ok(i64::from(Day::of(year, 12, 28)?.date().iso_week_date().week()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use motor_sdk::serde_json::to_string;

    fn day(text: &str) -> Day {
        Day::try_from(text.to_owned()).unwrap()
    }

    fn context() -> Context {
        Context { run_id: String::new(), step: 0, deadline_ms: 1_000, idempotency_key: String::new() }
    }

    #[track_caller]
    fn check(date: &str, expected: &str) {
        let facts = date_facts(DateFacts { date: day(date) }, &context()).unwrap();
        assert_eq!(to_string(&facts).unwrap(), expected);
    }

    #[test]
    fn says_what_a_date_is() {
        check(
            "2026-01-07",
            r#"{"weekday":"wednesday","iso_week":"2026-W02-3","day_of_year":7,"days_in_year":365,"days_in_month":31,"quarter":1,"is_leap_year":false,"nth_of_month":1,"is_last_of_month":false}"#,
        );
        check(
            "2024-12-30",
            r#"{"weekday":"monday","iso_week":"2025-W01-1","day_of_year":365,"days_in_year":366,"days_in_month":31,"quarter":4,"is_leap_year":true,"nth_of_month":5,"is_last_of_month":true}"#,
        );
        check(
            "2024-02-29",
            r#"{"weekday":"thursday","iso_week":"2024-W09-4","day_of_year":60,"days_in_year":366,"days_in_month":29,"quarter":1,"is_leap_year":true,"nth_of_month":5,"is_last_of_month":true}"#,
        );
    }

    #[test]
    fn weeks_begin_where_iso_says() {
        let check = |year, week, monday: &str, weeks_in_year| {
            let found = week_dates(WeekDates { year, week }, &context()).unwrap();
            assert_eq!((found.monday, found.weeks_in_year), (day(monday), weeks_in_year), "{year} {week}");
            assert_eq!(found.sunday, day(monday).plus_days(6).unwrap());
        };
        check(2026, 1, "2025-12-29", 53);
        check(2026, 53, "2026-12-28", 53);
        check(2025, 1, "2024-12-30", 52);
        check(2020, 53, "2020-12-28", 53);
        check(2021, 1, "2021-01-04", 52);
        check(1, 1, "0001-01-01", 52);
    }

    /// Every day of eight hundred years against the week that its own date gives.
    #[test]
    fn weeks_and_dates_agree() {
        let mut here = day("1801-01-01");
        let end = day("2601-01-01");
        while here < end {
            let week = here.date().iso_week_date();
            let monday = monday_of(i64::from(week.year()), i64::from(week.week())).unwrap();
            assert!(monday <= here && here <= monday.plus_days(6).unwrap(), "{here}");
            here = here.plus_days(1).unwrap();
        }
    }

    #[test]
    fn there_are_no_other_weeks() {
        let refused = |year, week| match week_dates(WeekDates { year, week }, &context()) {
            Err(ToolError::BadInput(sentence) | ToolError::Limit(sentence)) => sentence,
            other => panic!("{:?}", other.map(|week| week.monday)),
        };
        assert_eq!(refused(2025, 53), "the year 2025 has 52 weeks, so there is no week 53");
        assert_eq!(refused(2025, 0), "the year 2025 has 52 weeks, so there is no week 0");
        assert_eq!(refused(0, 1), "the year 0 is not between 1 and 9999");
        refused(i64::MAX, i64::MAX);
        refused(i64::MIN, 1);
        refused(2025, i64::MIN);
        // The last week of the calendar ends in the year 10000.
        assert_eq!(refused(9999, 52), "the result is not between 0001-01-01 and 9999-12-31");
    }
}

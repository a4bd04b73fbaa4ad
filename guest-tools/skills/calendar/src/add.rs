//! A date and a sum to add: months before days, business days last, and the end of a month said instead of guessed.

use jiff::Span;
use motor_sdk::serde::Serialize;
use motor_sdk::{Context, ToolError, schemars};

use crate::day::{Day, DayOfWeek, out_of_range};
use crate::workdays::Workdays;

motor_sdk::arguments! {
    pub struct AddToDate {
        /// The date to begin with, `YYYY-MM-DD`.
        date: Day,
        /// Years to add; all of these may be negative, and are added in this order.
        years: Option<i32>,
        /// Months to add.
        months: Option<i32>,
        /// Weeks to add.
        weeks: Option<i32>,
        /// Days to add.
        days: Option<i32>,
        /// Business days to add.
        business_days: Option<i32>,
        /// What becomes of the last day of a month when years or months are added: `same_day` (default) keeps its number where
        /// the month has it, `last_day` stays on the last day.
        month_end: Option<MonthEnd>,
        /// Days of the week that are not worked. Default saturday and sunday.
        weekend: Option<Vec<DayOfWeek>>,
        /// Days that are not worked besides.
        holidays: Option<Vec<Day>>,
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    #[schemars(inline)]
    pub enum MonthEnd {
        SameDay,
        LastDay,
    }
}

/// Where adding came to.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(crate = "motor_sdk::serde")]
#[schemars(crate = "motor_sdk::schemars")]
pub struct Sum {
    date: Day,
    weekday: DayOfWeek,
    /// Whether it is a business day.
    is_business_day: bool,
    /// The month has no day of that number, and its last day was taken.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    shortened: bool,
}

/// The tool `add_to_date` of the skill.
pub fn add_to_date(arguments: AddToDate, _context: &Context) -> Result<Sum, ToolError> {
    let workdays = Workdays::new(arguments.weekend, arguments.holidays)?;
    let (years, months) = (arguments.years.unwrap_or(0), arguments.months.unwrap_or(0));
    let moved = add_months(arguments.date, i64::from(years) * 12 + i64::from(months), arguments.month_end)?;
    let (weeks, days) = (arguments.weeks.unwrap_or(0), arguments.days.unwrap_or(0));
    let day = moved.day.plus_days(i64::from(weeks) * 7 + i64::from(days))?;
    let day = workdays.shift(day, i64::from(arguments.business_days.unwrap_or(0)))?;
    Ok(Sum {
        date: day,
        weekday: DayOfWeek::of(day),
        is_business_day: workdays.is_worked(day),
        shortened: moved.shortened,
    })
}

/// A date that was moved by months.
pub struct Moved {
    /// The day it came to.
    pub day: Day,
    /// The month there has no day of its number.
    pub shortened: bool,
}

/// Adds months: the last day of the month where it has no day of that number.
///
/// # Errors
/// If it is before the year 1 or after 9999.
pub fn add_months(day: Day, months: i64, end: Option<MonthEnd>) -> Result<Moved, ToolError> {
    let date = day.date();
    let span = Span::new().try_months(months).map_err(out_of_range)?;
    let moved = date.checked_add(span).map_err(out_of_range)?;
    let stays_last = end == Some(MonthEnd::LastDay) && months != 0 && date == date.last_of_month();
    let moved = if stays_last { moved.last_of_month() } else { moved };
    Ok(Moved { day: Day::reached(moved)?, shortened: !stays_last && moved.day() != date.day() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &str, expected: &str) {
        let context = Context { run_id: String::new(), step: 0, deadline_ms: 1_000, idempotency_key: String::new() };
        let answer = motor_sdk::call(&crate::tools(), "add_to_date", arguments, &context);
        let shown = answer.unwrap_or_else(|error| error.sentence().to_owned());
        assert_eq!(shown, expected, "{arguments}");
    }

    #[test]
    fn adds_in_order() {
        let business = |date, weekday| format!(r#"{{"date":"{date}","weekday":"{weekday}","is_business_day":true}}"#);
        check(r#"{"date":"2026-01-07"}"#, &business("2026-01-07", "wednesday"));
        check(r#"{"date":"2026-01-07","days":30}"#, &business("2026-02-06", "friday"));
        check(r#"{"date":"2026-01-07","weeks":-1,"days":-7}"#, &business("2025-12-24", "wednesday"));
        check(
            r#"{"date":"2026-01-07","years":1,"months":-13}"#,
            r#"{"date":"2025-12-07","weekday":"sunday","is_business_day":false}"#,
        );
        check(r#"{"date":"2026-01-09","business_days":1}"#, &business("2026-01-12", "monday"));
        check(r#"{"date":"2026-01-10","business_days":1}"#, &business("2026-01-12", "monday"));
        check(r#"{"date":"2026-01-12","business_days":-1}"#, &business("2026-01-09", "friday"));
        check(
            r#"{"date":"2026-12-24","business_days":1,"holidays":["2026-12-25"]}"#,
            &business("2026-12-28", "monday"),
        );
        check(
            r#"{"date":"2026-01-08","business_days":1,"weekend":["friday","sat"]}"#,
            &business("2026-01-11", "sunday"),
        );
        // Months first, then days, in any order of writing.
        check(
            r#"{"days":1,"months":1,"date":"2026-01-31"}"#,
            r#"{"date":"2026-03-01","weekday":"sunday","is_business_day":false,"shortened":true}"#,
        );
    }

    #[test]
    fn months_end_where_they_end() {
        let check = |date: &str, months, end, expected: (&str, bool)| {
            let day = Day::try_from(date.to_owned()).unwrap();
            let moved = add_months(day, months, end).unwrap();
            assert_eq!((moved.day.to_string().as_str(), moved.shortened), expected, "{date} {months} {end:?}");
        };
        check("2026-01-31", 1, None, ("2026-02-28", true));
        check("2024-01-31", 1, None, ("2024-02-29", true));
        check("2024-02-29", 12, None, ("2025-02-28", true));
        check("2024-02-29", 48, None, ("2028-02-29", false));
        check("2026-02-28", 1, None, ("2026-03-28", false));
        check("2026-02-28", 1, Some(MonthEnd::SameDay), ("2026-03-28", false));
        check("2026-02-28", 1, Some(MonthEnd::LastDay), ("2026-03-31", false));
        check("2026-01-31", 1, Some(MonthEnd::LastDay), ("2026-02-28", false));
        check("2026-01-30", 1, Some(MonthEnd::LastDay), ("2026-02-28", true));
        check("2024-02-28", 0, Some(MonthEnd::LastDay), ("2024-02-28", false));
        check("2026-03-31", -1, None, ("2026-02-28", true));
        check("2026-03-15", -15, None, ("2024-12-15", false));
    }

    #[test]
    fn hostile_arguments_are_refused() {
        let limit = "the result is not between 0001-01-01 and 9999-12-31";
        for amount in [i32::MAX, i32::MIN] {
            for unit in ["years", "months", "weeks", "days", "business_days"] {
                check(&format!(r#"{{"date":"2026-01-07","{unit}":{amount}}}"#), limit);
            }
        }
        check(r#"{"date":"9999-12-31","days":1}"#, limit);
        check(r#"{"date":"0001-01-01","months":-1}"#, limit);
        check(
            r#"{"date":"2026-02-30"}"#,
            "the argument `date` is wrong: there is no day 30 in february 2026, which has 28 days",
        );
        check(
            r#"{"date":"2026-01-07","days":2147483648}"#,
            "the argument `days` is wrong: invalid value: integer `2147483648`, expected i32",
        );
        check(
            r#"{"date":"2026-01-07","days":1.5}"#,
            "the argument `days` is wrong: invalid type: floating point `1.5`, expected i32",
        );
        check(
            r#"{"date":"2026-01-07","holidays":["2026-01-07","soon"]}"#,
            "the argument `holidays[1]` is wrong: `soon` is not a date like 2026-01-31; `parse_date` reads other forms",
        );
    }
}

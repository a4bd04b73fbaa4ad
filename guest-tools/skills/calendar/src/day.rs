//! A day of the Gregorian calendar, read from a model's JSON and written for it. Nothing but a real day gets in: an
//! invalid date is refused with the valid ones, before a handler sees it.

use std::fmt;

use jiff::civil::{Date, Weekday};
use motor_sdk::ToolError;
use motor_sdk::schemars::JsonSchema;
use motor_sdk::serde::{Deserialize, Serialize};

/// Years that four digits can write (ISO 8601). Before 1582 the calendar is extended backwards.
const YEARS: std::ops::RangeInclusive<i64> = 1..=9999;

/// Characters of a model's text that an error repeats.
const SHOWN_CHARS: usize = 40;

/// A day from 0001-01-01 to 9999-12-31, in JSON `YYYY-MM-DD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "motor_sdk::serde", try_from = "String", into = "String")]
#[schemars(crate = "motor_sdk::schemars", inline, with = "String")]
pub struct Day(Date);

impl Day {
    /// The day of a year, a month and a day of the month, from numbers that may be anything.
    ///
    /// # Errors
    /// If there is no such day; the error names the valid range.
    pub fn of(year: i64, month: i64, day: i64) -> Result<Self, ToolError> {
        if !YEARS.contains(&year) {
            return Err(ToolError::bad_input(format!("the year {year} is not between 1 and 9999")));
        }
        let narrow = (i16::try_from(year), i8::try_from(month));
        let (Ok(narrow_year), Ok(narrow_month @ 1..=12)) = narrow else {
            return Err(ToolError::bad_input(format!("there is no month {month}: months are 1 to 12")));
        };
        let first = Date::new(narrow_year, narrow_month, 1).map_err(out_of_range)?;
        let found = i8::try_from(day).ok().and_then(|day| Date::new(narrow_year, narrow_month, day).ok());
        found.map(Self).ok_or_else(|| {
            let (name, days) =
                (MONTHS.get(first.month() as usize - 1).copied().unwrap_or_default(), first.days_in_month());
            ToolError::bad_input(format!("there is no day {day} in {name} {year}, which has {days} days"))
        })
    }

    /// The day a calculation came to.
    ///
    /// # Errors
    /// If it is before the year 1 or after 9999.
    pub fn reached(date: Date) -> Result<Self, ToolError> {
        if YEARS.contains(&i64::from(date.year())) {
            Ok(Self(date))
        } else {
            Err(ToolError::limit("the result is not between 0001-01-01 and 9999-12-31"))
        }
    }

    /// The date for calculations.
    #[must_use]
    pub fn date(self) -> Date {
        self.0
    }

    /// Days since 0001-01-01, which is 0.
    #[must_use]
    pub fn number(self) -> i64 {
        // The difference of two civil dates is whole days.
        self.0.duration_since(Date::constant(1, 1, 1)).as_hours() / 24
    }

    /// The day so many days away.
    ///
    /// # Errors
    /// If it is before the year 1 or after 9999.
    pub fn plus_days(self, days: i64) -> Result<Self, ToolError> {
        let span = jiff::Span::new().try_days(days).map_err(out_of_range)?;
        Self::reached(self.0.checked_add(span).map_err(out_of_range)?)
    }
}

/// The library's error about dates that it cannot hold, in the words of this component.
pub fn out_of_range(_: jiff::Error) -> ToolError {
    ToolError::limit("the result is not between 0001-01-01 and 9999-12-31")
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.0.year(), self.0.month(), self.0.day())
    }
}

impl From<Day> for String {
    fn from(day: Day) -> Self {
        day.to_string()
    }
}

impl TryFrom<String> for Day {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let expected = || format!("`{}` is not a date like 2026-01-31; `parse_date` reads other forms", shown(&text));
        let digits = |range| -> Option<i64> {
            let part: &str = text.get(range)?;
            part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?
        };
        let dashes = text.len() == 10 && text.get(4..5) == Some("-") && text.get(7..8) == Some("-");
        match (dashes, digits(0..4), digits(5..7), digits(8..10)) {
            (true, Some(year), Some(month), Some(day)) => {
                Self::of(year, month, day).map_err(|error| error.sentence().to_owned())
            }
            _ => Err(expected()),
        }
    }
}

/// A model's text for an error: its beginning, without line ends.
pub fn shown(text: &str) -> String {
    let cut: String = text.chars().take(SHOWN_CHARS).map(|char| if char.is_control() { ' ' } else { char }).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}

/// The names of the months in lower case.
pub const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// A day of the week, in JSON its English name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "motor_sdk::serde", rename_all = "lowercase")]
#[schemars(crate = "motor_sdk::schemars", inline)]
pub enum DayOfWeek {
    /// ISO 8601's first.
    #[serde(alias = "mon")]
    Monday,
    #[serde(alias = "tue")]
    Tuesday,
    #[serde(alias = "wed")]
    Wednesday,
    #[serde(alias = "thu")]
    Thursday,
    #[serde(alias = "fri")]
    Friday,
    #[serde(alias = "sat")]
    Saturday,
    #[serde(alias = "sun")]
    Sunday,
}

impl DayOfWeek {
    /// The day of the week of a day.
    #[must_use]
    pub fn of(day: Day) -> Self {
        match day.date().weekday() {
            Weekday::Monday => Self::Monday,
            Weekday::Tuesday => Self::Tuesday,
            Weekday::Wednesday => Self::Wednesday,
            Weekday::Thursday => Self::Thursday,
            Weekday::Friday => Self::Friday,
            Weekday::Saturday => Self::Saturday,
            Weekday::Sunday => Self::Sunday,
        }
    }

    /// Its place in the week: Monday is 0.
    #[must_use]
    pub fn index(self) -> u8 {
        self as u8
    }

    /// Its name, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        WEEKDAYS.get(usize::from(self.index())).copied().unwrap_or_default()
    }

    /// The weekday for calculations.
    #[must_use]
    pub fn weekday(self) -> Weekday {
        match self {
            Self::Monday => Weekday::Monday,
            Self::Tuesday => Weekday::Tuesday,
            Self::Wednesday => Weekday::Wednesday,
            Self::Thursday => Weekday::Thursday,
            Self::Friday => Weekday::Friday,
            Self::Saturday => Weekday::Saturday,
            Self::Sunday => Weekday::Sunday,
        }
    }
}

/// The names of the days of a week, from Monday.
pub const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let read = Day::try_from(text.to_owned()).map(|day| day.to_string());
        assert_eq!(read.as_deref().map_err(String::as_str), expected, "{text:?}");
    }

    #[test]
    fn only_days_that_exist_get_in() {
        check("2026-01-07", Ok("2026-01-07"));
        check("0001-01-01", Ok("0001-01-01"));
        check("9999-12-31", Ok("9999-12-31"));
        check("2024-02-29", Ok("2024-02-29"));
        check("2000-02-29", Ok("2000-02-29"));
        check("2026-02-29", Err("there is no day 29 in february 2026, which has 28 days"));
        check("1900-02-29", Err("there is no day 29 in february 1900, which has 28 days"));
        check("2026-04-31", Err("there is no day 31 in april 2026, which has 30 days"));
        check("2026-01-00", Err("there is no day 0 in january 2026, which has 31 days"));
        check("2026-13-01", Err("there is no month 13: months are 1 to 12"));
        check("2026-00-01", Err("there is no month 0: months are 1 to 12"));
        check("0000-01-01", Err("the year 0 is not between 1 and 9999"));
    }

    #[test]
    fn what_is_no_date_is_said() {
        let no_date = |text: &str| {
            let error = Day::try_from(text.to_owned()).unwrap_err();
            assert!(
                error.ends_with("is not a date like 2026-01-31; `parse_date` reads other forms"),
                "{text}: {error}"
            );
            assert!(error.chars().count() < 120 && !error.contains('\n'), "{error:?}");
        };
        for text in [
            "",
            "2026",
            "2026-1-7",
            "20260107",
            "07.01.2026",
            "-026-01-07",
            "2026-01-07T10:00:00Z",
            "+2026-1-07",
            "2026-01-0x",
            "２０２６-01-07",
            "2026–01–07",
            "a\nb",
            "äääää",
            "2026-01-07 ",
        ] {
            no_date(text);
        }
        no_date(&"9".repeat(1_000_000));
    }

    #[test]
    fn days_count_from_the_first() {
        let number = |text: &str| Day::try_from(text.to_owned()).unwrap().number();
        assert_eq!((number("0001-01-01"), number("0001-01-02"), number("0001-12-31")), (0, 1, 364));
        // 719,162 days lie between the beginning of the calendar and that of Unix time.
        assert_eq!(number("1970-01-01"), 719_162);
        assert_eq!(number("9999-12-31"), 3_652_058);
    }

    #[test]
    fn results_out_of_range_are_refused() {
        let first = Day::of(1, 1, 1).unwrap();
        assert_eq!(first.plus_days(3_652_058).unwrap().to_string(), "9999-12-31");
        for days in [-1, 3_652_059, i64::MAX, i64::MIN] {
            assert!(matches!(first.plus_days(days), Err(ToolError::Limit(_))), "{days}");
        }
    }
}

//! Reading a date as people write it. A text that could be two days is refused with both of them: a guess would be
//! right on most days and wrong on the others.

use motor_sdk::serde::Serialize;
use motor_sdk::{Context, ToolError, schemars};

use crate::day::{Day, DayOfWeek, MONTHS, WEEKDAYS, shown};

/// Longer texts are not dates.
const MAX_CHARS: usize = 64;

motor_sdk::arguments! {
    pub struct ParseDate {
        /// The date as it was written, such as `7 Jan 2026`, `07/01/2026`, `7.1.2026`, `2026-W02-3` or `2026-007`.
        text: String,
        /// Which number comes first, where the text does not tell: `day_first` or `month_first`.
        order: Option<Order>,
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    #[schemars(inline)]
    enum Order {
        DayFirst,
        MonthFirst,
    }
}

/// A date that was read.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(crate = "motor_sdk::serde")]
#[schemars(crate = "motor_sdk::schemars")]
pub struct Parsed {
    /// As `YYYY-MM-DD`.
    date: Day,
    /// Its day of the week.
    weekday: DayOfWeek,
}

/// The tool `parse_date` of the skill.
pub fn parse_date(arguments: ParseDate, _context: &Context) -> Result<Parsed, ToolError> {
    let date = read(&arguments.text, arguments.order)?;
    Ok(Parsed { date, weekday: DayOfWeek::of(date) })
}

fn read(text: &str, order: Option<Order>) -> Result<Day, ToolError> {
    let text = text.trim();
    let wrong = |reason: &str| ToolError::bad_input(format!("`{}` cannot be read as a date: {reason}", shown(text)));
    if text.is_empty() {
        return Err(wrong("it is empty"));
    }
    if text.chars().nth(MAX_CHARS).is_some() {
        return Err(wrong("it is longer than a date"));
    }
    if text.contains(':') {
        return Err(wrong("it has a time of day; give the date alone, of the time zone that matters"));
    }
    if let Some(day) = iso(text)? {
        return Ok(day);
    }
    let words = Words::of(text).map_err(|reason| wrong(&reason))?;
    let day = match words.month {
        Some(month) => words.with_month(month).map_err(wrong)?,
        None => words.numbers_only(order, text.contains('.')).map_err(|reason| wrong(&reason))?,
    }?;
    match words.weekday {
        Some(said) if said != DayOfWeek::of(day) => {
            Err(wrong(&format!("{day} is a {}, not a {}", DayOfWeek::of(day).name(), said.name())))
        }
        _ => Ok(day),
    }
}

/// The forms of ISO 8601 that are not three numbers: `20260107`, `2026-007`, `2026-W02-3`, `2026W023`.
fn iso(text: &str) -> Result<Option<Day>, ToolError> {
    let number = |range| -> Option<i64> {
        let part: &str = text.get(range)?;
        (!part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())).then(|| part.parse().ok())?
    };
    let Some(year) = number(0..4) else { return Ok(None) };
    let week_marks = |at: usize| text.get(at..at + 1).is_some_and(|mark| mark.eq_ignore_ascii_case("w"));
    if text.len() == 8 && week_marks(4) {
        return week_day(year, number(5..7), number(7..8)).map(Some);
    }
    if text.len() == 10 && text.get(4..5) == Some("-") && week_marks(5) && text.get(8..9) == Some("-") {
        return week_day(year, number(6..8), number(9..10)).map(Some);
    }
    if text.len() == 8
        && let (Some(month), Some(day)) = (number(4..6), number(6..8))
    {
        return Day::of(year, month, day).map(Some);
    }
    if text.len() == 8
        && text.get(4..5) == Some("-")
        && let Some(day_of_year) = number(5..8)
    {
        let first = Day::of(year, 1, 1)?;
        let days = i64::from(first.date().days_in_year());
        if !(1..=days).contains(&day_of_year) {
            return Err(ToolError::bad_input(format!(
                "there is no day {day_of_year} in the year {year}, which has {days}"
            )));
        }
        return first.plus_days(day_of_year - 1).map(Some);
    }
    Ok(None)
}

fn week_day(year: i64, week: Option<i64>, weekday: Option<i64>) -> Result<Day, ToolError> {
    let (Some(week), Some(weekday @ 1..=7)) = (week, weekday) else {
        return Err(ToolError::bad_input("a week date is like 2026-W02-3, with a day from 1 (Monday) to 7 (Sunday)"));
    };
    crate::week::monday_of(year, week)?.plus_days(weekday - 1)
}

/// A number as it was written.
#[derive(Clone, Copy)]
struct Number {
    value: i64,
    digits: usize,
    /// Whether it was written as in `1st`.
    ordinal: bool,
}

/// The parts of a text.
struct Words {
    numbers: Vec<Number>,
    month: Option<i64>,
    weekday: Option<DayOfWeek>,
}

impl Words {
    fn of(text: &str) -> Result<Self, String> {
        let mut words = Self { numbers: Vec::new(), month: None, weekday: None };
        let separates = |char: char| char.is_whitespace() || matches!(char, ',' | '.' | '/' | '-' | '–');
        for part in text.split(separates).filter(|part| !part.is_empty()) {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            let (number, letters) = part.split_at(digits);
            let letters = letters.to_lowercase();
            if digits == 0 {
                words.word(&letters)?;
            } else {
                let ordinal = matches!(letters.as_str(), "st" | "nd" | "rd" | "th");
                if !(letters.is_empty() || ordinal) {
                    return Err(format!("`{}` is neither a number nor a word", shown(part)));
                }
                let value = number.parse().map_err(|_| format!("`{}` is no day, month or year", shown(number)))?;
                words.numbers.push(Number { value, digits, ordinal });
            }
        }
        Ok(words)
    }

    fn word(&mut self, word: &str) -> Result<(), String> {
        let abbreviates = |name: &str| word == name || (word.len() >= 3 && name.starts_with(word));
        if matches!(word, "of" | "the") {
            return Ok(());
        }
        if let Some(index) = MONTHS.iter().position(|name| abbreviates(name)) {
            return match self.month.replace(index as i64 + 1) {
                None => Ok(()),
                Some(_) => Err("it names two months".to_owned()),
            };
        }
        if let Some(index) = WEEKDAYS.iter().position(|name| abbreviates(name)) {
            self.weekday = weekday_at(index);
            return Ok(());
        }
        Err(format!(
            "`{}` is no month or day of the week in English; a date relative to today has to be worked out with \
             `add_to_date`",
            shown(word)
        ))
    }

    fn with_month(&self, month: i64) -> Result<Result<Day, ToolError>, &'static str> {
        let [one, other] = self.numbers.as_slice() else {
            return Err("beside the month it needs a day and a year with four digits, and nothing else");
        };
        match (one.is_year(), other.is_year()) {
            (true, false) if other.is_day() => Ok(Day::of(one.value, month, other.value)),
            (false, true) if one.is_day() => Ok(Day::of(other.value, month, one.value)),
            _ => Err("write the year with four digits and the day with one or two"),
        }
    }

    fn numbers_only(&self, order: Option<Order>, dots: bool) -> Result<Result<Day, ToolError>, String> {
        let [first, second, third] = self.numbers.as_slice() else {
            return Err("it needs a day, a month and a year".to_owned());
        };
        if first.ordinal || second.ordinal || third.ordinal {
            return Err("it needs a month".to_owned());
        }
        if first.is_year() && second.is_day() && third.is_day() {
            return Ok(Day::of(first.value, second.value, third.value));
        }
        if !(first.is_day() && second.is_day() && third.is_year()) {
            return Err("write the year with four digits, the day and the month with one or two".to_owned());
        }
        let day_first = Day::of(third.value, second.value, first.value);
        let month_first = Day::of(third.value, first.value, second.value);
        // Where points are written between numbers, the day comes first.
        let order = order.or(dots.then_some(Order::DayFirst));
        match (order, day_first, month_first) {
            (Some(Order::DayFirst), day, _) | (Some(Order::MonthFirst), _, day) => Ok(day),
            (None, Ok(one), Ok(other)) if one != other => {
                Err(format!("it is {one} with the day first and {other} with the month first: give `order`"))
            }
            (None, Ok(day), _) | (None, Err(_), Ok(day)) => Ok(Ok(day)),
            (None, Err(error), Err(_)) => Ok(Err(error)),
        }
    }
}

impl Number {
    fn is_year(self) -> bool {
        self.digits == 4 && !self.ordinal
    }

    fn is_day(self) -> bool {
        self.digits <= 2
    }
}

fn weekday_at(index: usize) -> Option<DayOfWeek> {
    use DayOfWeek::{Friday, Monday, Saturday, Sunday, Thursday, Tuesday, Wednesday};
    [Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday].get(index).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        check_in(text, None, expected);
    }

    #[track_caller]
    fn check_in(text: &str, order: Option<Order>, expected: &str) {
        let shown = match read(text, order) {
            Ok(day) => day.to_string(),
            Err(ToolError::BadInput(sentence)) => sentence,
            Err(other) => panic!("{text}: {other:?}"),
        };
        assert!(shown == expected || shown.ends_with(expected), "{text:?}: {shown}");
    }

    #[test]
    fn reads_what_people_write() {
        for text in [
            "2026-01-07",
            " 2026/1/7 ",
            "2026.01.07",
            "20260107",
            "2026-007",
            "2026-W02-3",
            "2026w023",
            "7 Jan 2026",
            "7 january 2026",
            "Jan 7, 2026",
            "January 7th, 2026",
            "the 7th of January 2026",
            "Wed, 7 Jan 2026",
            "Wednesday 7-Jan-2026",
            "2026 Jan 7",
            "7.1.2026",
            "07.01.2026",
            "JAN 07 2026",
        ] {
            check(text, "2026-01-07");
        }
        check("29 Feb 2024", "2024-02-29");
        check("1 Sept 1999", "1999-09-01");
        check("2020-W53-5", "2021-01-01");
        check("2024-366", "2024-12-31");
    }

    #[test]
    fn an_order_decides_and_a_number_over_twelve_too() {
        check_in("07/01/2026", Some(Order::DayFirst), "2026-01-07");
        check_in("07/01/2026", Some(Order::MonthFirst), "2026-07-01");
        check_in("7.1.2026", Some(Order::MonthFirst), "2026-07-01");
        check("31/01/2026", "2026-01-31");
        check("01/31/2026", "2026-01-31");
        check("05/05/2026", "2026-05-05");
        check("07/01/2026", "it is 2026-01-07 with the day first and 2026-07-01 with the month first: give `order`");
        check_in("31/01/2026", Some(Order::MonthFirst), "there is no month 31: months are 1 to 12");
        check("31/31/2026", "there is no month 31: months are 1 to 12");
    }

    #[test]
    fn refuses_with_a_reason() {
        check("", "it is empty");
        check("7 Jan 26", "write the year with four digits and the day with one or two");
        check("07/01/26", "write the year with four digits, the day and the month with one or two");
        check("2026-01-07T10:00:00Z", "give the date alone, of the time zone that matters");
        check("Thu, 7 Jan 2026", "2026-01-07 is a wednesday, not a thursday");
        check("29 Feb 2026", "there is no day 29 in february 2026, which has 28 days");
        check("2026-366", "there is no day 366 in the year 2026, which has 365");
        check("2026-W54-1", "the year 2026 has 53 weeks, so there is no week 54");
        check("2026-W02-8", "a week date is like 2026-W02-3, with a day from 1 (Monday) to 7 (Sunday)");
        check(
            "next friday",
            "`next` is no month or day of the week in English; a date relative to today has to be worked out with `add_to_date`",
        );
        check(
            "7 Mai 2026",
            "`mai` is no month or day of the week in English; a date relative to today has to be worked out with `add_to_date`",
        );
        check("Jan Feb 2026", "it names two months");
        check("Jan 2026", "beside the month it needs a day and a year with four digits, and nothing else");
        check("1 2 3 2026", "it needs a day, a month and a year");
        check("7th 1 2026", "it needs a month");
        check("2026-01", "it needs a day, a month and a year");
    }

    #[test]
    fn hostile_texts_are_refused_in_one_line() {
        let long = "9".repeat(100_000);
        let many = "1 ".repeat(50);
        for text in [
            long.as_str(),
            many.as_str(),
            "99999999999999999999 1 1",
            "\u{202e}1",
            "1\u{0}2",
            "ⅷ 1 2026",
            "1st2nd 3 4",
            "٣ ٣ ٢٠٢٦",
            "-----",
            "jan",
            "w",
            "0000-00-00",
            "ＪＡＮ 1 2026",
        ] {
            let error = read(text, None).unwrap_err();
            let sentence = error.sentence();
            assert!(sentence.chars().count() < 300 && !sentence.contains(['\n', '\0']), "{sentence:?}");
        }
    }
}

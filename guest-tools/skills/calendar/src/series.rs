//! Dates that recur: every so many days, weeks, months or years, moved off days that are not worked. Bounded by count, and
//! by the calendar's end.

use motor_sdk::serde::Serialize;
use motor_sdk::{Context, ToolError, schemars};

use crate::add::add_months;
use crate::day::{Day, DayOfWeek};
use crate::workdays::Workdays;

/// The most dates of one answer.
const MAX_DATES: usize = 1_000;

/// Days, weeks, months or years from one date to the next.
const MAX_INTERVAL: u32 = 10_000;

motor_sdk::arguments! {
    pub struct ListDates {
        /// The first day that may be listed, `YYYY-MM-DD`.
        start: Day,
        /// What is counted.
        every: Every,
        /// How many of them lie between two dates. Default 1.
        interval: Option<u32>,
        /// With `week`: the days listed, by default that of `start`. With `month` and `nth`: the one day meant.
        weekdays: Option<Vec<DayOfWeek>>,
        /// With `month`: which of the weekday, 1 to 5, or -1 for the last.
        nth: Option<i8>,
        /// With `month`: 1 to 31, or -1 for the last. Default that of `start`.
        day_of_month: Option<i8>,
        /// With `month` or `year`, where a month has no such day: `last` (default) takes its last, `skip` leaves it out.
        missing_day: Option<MissingDay>,
        /// What to do with dates that are not worked. Default `none`: they stay.
        roll: Option<Roll>,
        /// How many dates, at most 1000.
        count: Option<u32>,
        /// The last day that may be listed, before dates are moved by `roll`.
        until: Option<Day>,
        /// Days of the week that are not worked. Default saturday and sunday.
        weekend: Option<Vec<DayOfWeek>>,
        /// Days that are not worked besides.
        holidays: Option<Vec<Day>>,
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    #[schemars(inline)]
    enum Every {
        Day,
        BusinessDay,
        Week,
        Month,
        Year,
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    #[schemars(inline)]
    enum MissingDay {
        Last,
        Skip,
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    #[schemars(inline)]
    enum Roll {
        None,
        /// The next business day.
        Following,
        /// The business day before.
        Preceding,
        /// The next business day of the same month, else the one before.
        ModifiedFollowing,
    }
}

/// A list of dates.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(crate = "motor_sdk::serde")]
#[schemars(crate = "motor_sdk::schemars")]
pub struct Dates {
    /// In order, each once.
    dates: Vec<Listed>,
}

/// A date of a list.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(crate = "motor_sdk::serde")]
#[schemars(crate = "motor_sdk::schemars")]
pub struct Listed {
    date: Day,
    weekday: DayOfWeek,
    /// Where it was before it was moved off a day that is not worked.
    #[serde(skip_serializing_if = "Option::is_none")]
    instead_of: Option<Day>,
}

/// The tool `list_dates` of the skill.
pub fn list_dates(arguments: ListDates, _context: &Context) -> Result<Dates, ToolError> {
    let rule = Rule::of(&arguments)?;
    let most = match (arguments.count, arguments.until) {
        (None, None) => return Err(ToolError::bad_input("give `count` or `until`: the dates go on for ever")),
        (Some(0), _) => return Err(ToolError::bad_input("`count` is 0: ask for at least one date")),
        (Some(count), _) if count as usize > MAX_DATES => {
            return Err(ToolError::limit(format!("`count` is {count}, and at most {MAX_DATES} dates are listed")));
        }
        (Some(count), _) => count as usize,
        (None, Some(_)) => MAX_DATES,
    };
    let roll = arguments.roll.unwrap_or(Roll::None);
    let workdays = Workdays::new(arguments.weekend, arguments.holidays)?;
    let mut dates: Vec<Listed> = Vec::new();
    // The rule gives every day in order and ends with the calendar.
    for day in rule.days(arguments.start, &workdays) {
        if arguments.until.is_some_and(|until| day > until) {
            return Ok(Dates { dates });
        }
        let rolled = rolled(day, roll, &workdays)?;
        if dates.last().is_some_and(|last| last.date >= rolled) {
            continue;
        }
        if dates.len() == most {
            if arguments.count.is_some() {
                return Ok(Dates { dates });
            }
            return Err(ToolError::limit(format!(
                "there are more than {MAX_DATES} dates: give `count`, or a nearer `until`"
            )));
        }
        dates.push(Listed { date: rolled, weekday: DayOfWeek::of(rolled), instead_of: (rolled != day).then_some(day) });
    }
    match (arguments.count, arguments.until) {
        (Some(count), None) if dates.len() < count as usize => {
            Err(ToolError::limit("the calendar ends with 9999-12-31 before that many dates"))
        }
        _ => Ok(Dates { dates }),
    }
}

/// Moves a day off those that are not worked.
fn rolled(day: Day, roll: Roll, workdays: &Workdays) -> Result<Day, ToolError> {
    if workdays.is_worked(day) {
        return Ok(day);
    }
    match roll {
        Roll::None => Ok(day),
        Roll::Following => workdays.shift(day, 1),
        Roll::Preceding => workdays.shift(day, -1),
        Roll::ModifiedFollowing => match workdays.shift(day, 1) {
            Ok(next) if next.date().first_of_month() == day.date().first_of_month() => Ok(next),
            _ => workdays.shift(day, -1),
        },
    }
}

/// The rule by which the dates come.
enum Rule {
    Days(i64),
    BusinessDays(i64),
    /// Days of the week by their place in it, sorted.
    Weeks {
        interval: i64,
        weekdays: Vec<u8>,
    },
    Months {
        interval: i64,
        on: InMonth,
    },
    Years {
        interval: i64,
        missing: MissingDay,
    },
}

enum InMonth {
    Day { number: i8, missing: MissingDay },
    Nth { nth: i8, weekday: DayOfWeek },
}

impl Rule {
    fn of(arguments: &ListDates) -> Result<Self, ToolError> {
        let interval = arguments.interval.unwrap_or(1);
        if !(1..=MAX_INTERVAL).contains(&interval) {
            return Err(ToolError::bad_input(format!("`interval` is {interval}: it must be 1 to {MAX_INTERVAL}")));
        }
        let interval = i64::from(interval);
        let missing = arguments.missing_day.unwrap_or(MissingDay::Last);
        let belongs = |given: bool, name: &str, place: &str| match given {
            true => Err(ToolError::bad_input(format!("`{name}` goes with `every`: {place} only"))),
            false => Ok(()),
        };
        let (is_week, is_month) = (arguments.every == Every::Week, arguments.every == Every::Month);
        belongs(arguments.nth.is_some() && !is_month, "nth", "`month`")?;
        belongs(arguments.day_of_month.is_some() && !is_month, "day_of_month", "`month`")?;
        belongs(arguments.weekdays.is_some() && !is_month && !is_week, "weekdays", "`week`, or `month` with `nth`,")?;
        Ok(match arguments.every {
            Every::Day => Self::Days(interval),
            Every::BusinessDay => Self::BusinessDays(interval),
            Every::Year => Self::Years { interval, missing },
            Every::Month => Self::Months { interval, on: in_month(arguments, missing)? },
            Every::Week => {
                let given = arguments.weekdays.as_deref().map(|days| days.iter().map(|day| day.index()).collect());
                let mut weekdays: Vec<u8> = given.unwrap_or_else(|| vec![DayOfWeek::of(arguments.start).index()]);
                weekdays.sort_unstable();
                weekdays.dedup();
                if weekdays.is_empty() {
                    return Err(ToolError::bad_input("`weekdays` is empty: name a day, or leave it out"));
                }
                Self::Weeks { interval, weekdays }
            }
        })
    }

    /// All days of the rule from `start` on.
    fn days<'a>(&'a self, start: Day, workdays: &'a Workdays) -> Box<dyn Iterator<Item = Day> + 'a> {
        match self {
            Self::Days(interval) => Box::new((0..).map_while(move |step: i64| start.plus_days(step * interval).ok())),
            Self::BusinessDays(interval) => {
                let first = if workdays.is_worked(start) { Ok(start) } else { workdays.shift(start, 1) };
                Box::new(std::iter::successors(first.ok(), move |day| workdays.shift(*day, *interval).ok()))
            }
            Self::Weeks { interval, weekdays } => {
                // May lie before the calendar's beginning, so it stays a distance.
                let monday = -i64::from(DayOfWeek::of(start).index());
                let offsets = (0..).flat_map(move |week: i64| {
                    weekdays.iter().map(move |day| monday + week * interval * 7 + i64::from(*day))
                });
                Box::new(offsets.filter(|offset| *offset >= 0).map_while(move |offset| start.plus_days(offset).ok()))
            }
            Self::Months { interval, on } => {
                let first = Day::reached(start.date().first_of_month()).unwrap_or(start);
                let months = (0..).map_while(move |step: i64| add_months(first, step * interval, None).ok());
                Box::new(months.filter_map(move |month| on.day_of(month.day)).filter(move |day| *day >= start))
            }
            Self::Years { interval, missing } => {
                let years = (0..).map_while(move |step: i64| add_months(start, step * interval * 12, None).ok());
                Box::new(
                    years.filter(|moved| !(moved.shortened && *missing == MissingDay::Skip)).map(|moved| moved.day),
                )
            }
        }
    }
}

fn in_month(arguments: &ListDates, missing: MissingDay) -> Result<InMonth, ToolError> {
    match (arguments.nth, arguments.weekdays.as_deref(), arguments.day_of_month) {
        (None, None, day) => match day.unwrap_or(arguments.start.date().day()) {
            number @ (1..=31 | -1) => Ok(InMonth::Day { number, missing }),
            number => {
                Err(ToolError::bad_input(format!("`day_of_month` is {number}: it must be 1 to 31, or -1 for the last")))
            }
        },
        (Some(_), _, Some(_)) => Err(ToolError::bad_input("give `nth` with `weekdays`, or `day_of_month`, not both")),
        (Some(nth @ (1..=5 | -1)), Some([weekday]), None) => Ok(InMonth::Nth { nth, weekday: *weekday }),
        (Some(nth), Some([_]), None) => {
            Err(ToolError::bad_input(format!("`nth` is {nth}: it must be 1 to 5, or -1 for the last")))
        }
        _ => Err(ToolError::bad_input("with `month`, `nth` and exactly one of `weekdays` go together")),
    }
}

impl InMonth {
    /// The day in the month that begins with `first`, if there is one.
    fn day_of(&self, first: Day) -> Option<Day> {
        let (first, last) = (first.date(), first.date().last_of_month());
        let found = match self {
            Self::Day { number: -1, .. } => Some(last),
            Self::Day { number, missing: MissingDay::Last } => first.with().day((*number).min(last.day())).build().ok(),
            Self::Day { number, missing: MissingDay::Skip } => first.with().day(*number).build().ok(),
            Self::Nth { nth, weekday } => first.nth_weekday_of_month(*nth, weekday.weekday()).ok(),
        };
        found.and_then(|date| Day::reached(date).ok())
    }
}

#[cfg(test)]
mod tests;

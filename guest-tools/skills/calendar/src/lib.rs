//! Dates, exactly: calculations that a model does in its head and gets wrong. A skill that imports nothing, so it has
//! no clock either: it has to be told the current day.
//!
//! It must not know time zones or any country's holidays: the caller names the days that are not worked. It survives a
//! model's arguments: every number and text has bounds, every answer is finite, and work does not grow with distance.

mod about;
mod add;
mod day;
mod difference;
mod parse;
mod series;
mod week;
mod workdays;

use motor_sdk::Tool;

fn tools() -> Vec<Tool> {
    vec![
        Tool::json(
            "parse_date",
            "Reads a date as people write it. A text that could mean two days is refused with both of them.",
            parse::parse_date,
        )
        .read_only(),
        Tool::json("date_facts", "What a date is: weekday, ISO week, day of the year, quarter, leap year.", week::date_facts)
            .read_only(),
        Tool::json(
            "date_difference",
            "How far two dates are apart: in days, in weeks and days, in years, months and days, in business days.",
            difference::date_difference,
        )
        .read_only(),
        Tool::json(
            "add_to_date",
            "Adds years, months, weeks, days and business days to a date. Says when a month was too short.",
            add::add_to_date,
        )
        .read_only(),
        Tool::json(
            "list_dates",
            "Lists dates that recur: every third month, each last Friday, every tenth business day; moved off weekends and \
             holidays if wanted.",
            series::list_dates,
        )
        .read_only(),
        Tool::json("week_dates", "The Monday and Sunday of an ISO week.", week::week_dates).read_only(),
    ]
}

motor_sdk::skill! {
    name: "calendar",
    description: about::description(),
    instructions: about::instructions(),
    tools: tools,
}

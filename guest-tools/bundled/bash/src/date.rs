//! The forms of `date -d` and `date --rfc-3339`, for the interpreter's own `date`: that one knows few forms, and takes
//! a month for thirty days. The arguments are rewritten to forms that it knows; there is no time zone but UTC here.

use bashkit::time::SystemTime;
use jiff::{Timestamp, Zoned, tz::TimeZone};
use parse_datetime::{ParsedDateTime, parse_datetime_at_date};

/// The arguments of `date` as the interpreter's own understands them.
pub(crate) fn rewritten(given: Vec<String>) -> Vec<String> {
    arguments(given, &now())
}

fn now() -> Zoned {
    let since = SystemTime::now().duration_since(bashkit::time::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or_default();
    let nanos = i32::try_from(since.subsec_nanos()).unwrap_or_default();
    Timestamp::new(seconds, nanos).unwrap_or_default().to_zoned(TimeZone::UTC)
}

fn arguments(arguments: Vec<String>, now: &Zoned) -> Vec<String> {
    let mut rewritten = Vec::new();
    let mut left = arguments.into_iter();
    while let Some(argument) = left.next() {
        if let Some(precision) = argument.strip_prefix("--rfc-3339=") {
            let format = match precision {
                "date" => "+%F",
                "seconds" | "second" => "+%F %T%:z",
                "ns" => "+%F %T.%N%:z",
                _ => argument.as_str(),
            };
            rewritten.push(format.to_owned());
        } else if let Some(text) = argument.strip_prefix("--date=") {
            rewritten.push(format!("--date={}", plain(text, now)));
        } else if argument == "--date" {
            rewritten.push(argument);
            rewritten.extend(left.next().map(|text| plain(&text, now)));
        } else if let Some((flags, text)) = short(&argument) {
            rewritten.push(format!("-{flags}d"));
            let text = if text.is_empty() { left.next() } else { Some(text) };
            rewritten.extend(text.map(|text| plain(&text, now)));
        } else {
            rewritten.push(argument);
        }
    }
    rewritten
}

/// The flags before a `d`, and the text behind it: `-ud`, `-d@0`.
fn short(argument: &str) -> Option<(String, String)> {
    let letters = argument.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    let (flags, text) = letters.split_once('d')?;
    flags.chars().all(|flag| "uR".contains(flag)).then(|| (flags.to_owned(), text.to_owned()))
}

/// A date in a form that is understood, or one that is refused with the words that were given.
fn plain(text: &str, now: &Zoned) -> String {
    // It is read in steps: `+2 days` behind a date moves that date.
    match parse_datetime_at_date(now.clone(), text) {
        Ok(ParsedDateTime::InRange(date)) => {
            date.with_time_zone(TimeZone::UTC).strftime("%Y-%m-%d %H:%M:%S.%9f UTC").to_string()
        }
        // A form that `date` itself refuses.
        _ => format!("{} ?", text.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_rewritten_wherever_they_stand() {
        let now: Zoned = "2024-05-06T07:08:09[UTC]".parse().unwrap();
        let check = |given: &[&str], expected: &[&str]| {
            let given = given.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(arguments(given, &now), expected);
        };
        let fifth = "2024-01-05 00:00:00.000000000 UTC";
        check(&["-d", "Jan 5 2024", "+%F"], &["-d", fifth, "+%F"]);
        check(&["-u", "-dJan 5 2024"], &["-u", "-d", fifth]);
        check(&["-ud", "5 Jan 2024"], &["-ud", fifth]);
        check(&["--date=2024-01-03 +2 days"], &[&format!("--date={fifth}")]);
        check(&["--date", "2024-01-06 yesterday"], &["--date", fifth]);
        check(&["-d", "@1.5"], &["-d", "1970-01-01 00:00:01.500000000 UTC"]);
        check(&["-d", "no date"], &["-d", "no date ?"]);
        check(&["--rfc-3339=seconds"], &["+%F %T%:z"]);
        check(&["+%d", "-r", "file", "-I"], &["+%d", "-r", "file", "-I"]);
    }
}

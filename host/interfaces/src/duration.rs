//! Durations as people type them: `250` (milliseconds), `2s`, `1.5m`, `1h30m`.

use std::time::Duration;

/// Longest duration taken: a day. Longer is a slip of the keyboard, and sums of it could overflow elsewhere.
const MAX_DURATION: Duration = Duration::from_secs(24 * 60 * 60);

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidDuration {
    /// It does not read as one.
    #[error("`{text}` is not a duration: write `500ms`, `2s`, `10m` or `1h30m`; a bare number is milliseconds")]
    Form {
        /// The text, at most 40 characters of it.
        text: String,
    },
    /// It is more than a day.
    #[error("a duration is at most 24h")]
    TooLong,
}

/// Reads a duration. A bare number is milliseconds.
///
/// # Errors
/// If it is not a duration, or is more than a day.
pub fn parse(text: &str) -> Result<Duration, InvalidDuration> {
    let form = || InvalidDuration::Form { text: text.chars().take(40).collect() };
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(form());
    }
    if let Ok(millis) = rest.parse::<u64>() {
        return bounded(millis as f64);
    }
    let mut millis = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(form)?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let factor = match unit {
            "ms" => 1.0,
            "s" => 1_000.0,
            "m" | "min" => 60_000.0,
            "h" => 3_600_000.0,
            _ => return Err(form()),
        };
        millis += number.parse::<f64>().map_err(|_| form())? * factor;
        rest = tail;
    }
    bounded(millis)
}

fn bounded(millis: f64) -> Result<Duration, InvalidDuration> {
    if millis > MAX_DURATION.as_secs_f64() * 1_000.0 {
        return Err(InvalidDuration::TooLong);
    }
    Ok(Duration::from_secs_f64(millis / 1_000.0))
}

/// Milliseconds of a duration, for requests.
#[must_use]
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, millis: u64) {
        assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text:?}");
    }

    #[test]
    fn reads_what_people_type() {
        check("100", 100);
        check("0", 0);
        check("250ms", 250);
        check("2s", 2_000);
        check("1.5s", 1_500);
        check(" 10m ", 600_000);
        check("10min", 600_000);
        check("1h30m", 5_400_000);
        check("24h", 86_400_000);
    }

    #[test]
    fn refuses_the_rest() {
        for text in ["", " ", "s", "2 s", "2x", "-1", "-1s", "1..5s", "1e9s", "NaN", "inf", "2s3", "２s", "1s\0"] {
            assert!(matches!(parse(text), Err(InvalidDuration::Form { .. })), "{text:?}");
        }
        for text in ["25h", "86400001", "18446744073709551615", "99999999999999999999h"] {
            assert_eq!(parse(text), Err(InvalidDuration::TooLong), "{text:?}");
        }
    }
}

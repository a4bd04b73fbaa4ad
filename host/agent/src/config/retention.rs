//! `[retention]`: how long finished runs and unused conversations are kept.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const DAY: u64 = 24 * 3_600;
const UNITS: [(&str, u64); 4] = [("d", DAY), ("h", 3_600), ("m", 60), ("s", 1)];
const SIZES: [(&str, u64); 5] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40), ("B", 1)];

/// `[retention]`. Runs that are not over, and conversations in which anything is under way, are never deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionConfig {
    /// How long a run is kept after its end, judged by hosts that have lived for ten minutes, such as `30d`, `12h` or
    /// `never` for as long as there is room. Default 30 days.
    pub age: Age,
    /// Bytes that the directories and traces of all finished runs may take, such as `2GiB` or `unlimited`; the oldest
    /// go first. Default 2 GiB.
    pub bytes: ByteSize,
    /// Runs that are over and kept; the oldest go first; 0: any number. Default 10,000.
    pub runs: u64,
    /// How long a conversation is kept after its last event, judged as the age of runs. Default 365 days.
    pub conversation_age: Age,
    /// Bytes that the conversations of all agents may have together; the longest unused go first. Default 1 GiB.
    pub conversation_bytes: ByteSize,
    /// Conversations that are kept; the longest unused go first; 0: any number. Default 10,000.
    pub conversations: u64,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self {
            age: Age(Some(Duration::from_secs(30 * DAY))),
            bytes: ByteSize(Some(2 << 30)),
            runs: 10_000,
            conversation_age: Age(Some(Duration::from_secs(365 * DAY))),
            conversation_bytes: ByteSize(Some(1 << 30)),
            conversations: 10_000,
        }
    }
}

/// An age, such as `30d`; `None` is `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Age(pub Option<Duration>);

/// A number of bytes; `None` is `unlimited`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteSize(pub Option<u64>);

impl Age {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "never" => Some(Self(None)),
            text => measured(text, &UNITS).map(|seconds| Self(Some(Duration::from_secs(seconds)))),
        }
    }
}

impl ByteSize {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "unlimited" => Some(Self(None)),
            text => measured(text, &SIZES).map(|bytes| Self(Some(bytes))),
        }
    }
}

/// A whole number and a unit. A number without a unit is refused: deleting cannot be undone.
fn measured(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?.trim().parse::<u64>().ok()?, *factor)))?;
    number.checked_mul(factor)
}

/// Writes a value in the largest unit that leaves no remainder.
fn written(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let fits = units.iter().filter(|(_, factor)| value.is_multiple_of(*factor)).max_by_key(|(_, factor)| *factor);
    match fits {
        Some((unit, factor)) => write!(f, "{}{unit}", value / factor),
        None => write!(f, "{value}"),
    }
}

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(age) => written(f, age.as_secs(), &UNITS),
            None => f.write_str("never"),
        }
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(bytes) => written(f, bytes, &SIZES),
            None => f.write_str("unlimited"),
        }
    }
}

macro_rules! as_text {
    ($type:ty, $expected:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).ok_or_else(|| de::Error::custom(concat!("write ", $expected)))
            }
        }
    };
}

as_text!(Age, "`30d`, `12h`, `90m`, `3600s` or `never`");
as_text!(ByteSize, "`500MiB`, `2GiB`, `1TiB` or `unlimited`");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_sizes_read_as_they_are_written() {
        for (text, seconds) in [("30d", Some(30 * DAY)), ("12h", Some(43_200)), ("90m", Some(5_400)), ("never", None)] {
            let age = Age::parse(text).unwrap();
            assert_eq!((age.0.map(|age| age.as_secs()), age.to_string().as_str()), (seconds, text));
        }
        for (text, bytes) in
            [("2GiB", Some(2 << 30)), ("500MiB", Some(500 << 20)), ("7B", Some(7)), ("unlimited", None)]
        {
            let size = ByteSize::parse(text).unwrap();
            assert_eq!((size.0, size.to_string().as_str()), (bytes, text));
        }
        for text in
            ["", "30", "d", "-1d", "1.5d", "30 days", "2GB", "99999999999999999999d", "18446744073709551615d", "Never"]
        {
            assert_eq!((Age::parse(text), ByteSize::parse(text)), (None, None), "{text}");
        }
        let default = serde_json::to_value(RetentionConfig::default()).unwrap();
        let expected = serde_json::json!({
            "age": "30d", "bytes": "2GiB", "runs": 10_000,
            "conversation_age": "365d", "conversation_bytes": "1GiB", "conversations": 10_000,
        });
        assert_eq!(default, expected);
        assert_eq!(serde_json::from_value::<RetentionConfig>(default).unwrap(), RetentionConfig::default());
        let wrong = serde_json::from_str::<RetentionConfig>(r#"{"age":30}"#).unwrap_err();
        assert!(wrong.to_string().contains("string"), "{wrong}");
    }
}

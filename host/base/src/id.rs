//! Identifiers. They sort by creation time, so listing the newest reads only the end of a table.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Random, Timestamp};

/// Crockford's base 32, lower case: no `i`, `l`, `o`, `u`, sorts like its value.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Identifies a motor run: `run_`, nine digits of milliseconds, seven of randomness.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("pattern" = r"^run_[0-9a-z]{1,40}$"))]
pub struct RunId(String);

impl RunId {
    /// Makes a new id from the time and 35 random bits.
    #[must_use]
    pub fn new(now: Timestamp, random: &Random) -> Self {
        let mut text = String::from("run_");
        push_base32(&mut text, now.as_millis(), 9);
        push_base32(&mut text, random.next_u64(), 7);
        Self(text)
    }

    /// Parses an id that came from outside.
    ///
    /// # Errors
    /// If the text is not `run_` and 1 to 40 characters of `[0-9a-z]`.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let body = text.strip_prefix("run_").unwrap_or_default();
        let plain = body.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase());
        if body.is_empty() || body.len() > 40 || !plain {
            return Err(InvalidId {
                what: "run id",
                text: text.chars().take(80).collect(),
                form: "run_0123456789abcdef",
            });
        }
        Ok(Self(text.to_owned()))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn push_base32(text: &mut String, value: u64, digits: u32) {
    for position in (0..digits).rev() {
        let index = (value >> (position * 5)) & 31;
        text.push(char::from(ALPHABET.get(index as usize).copied().unwrap_or(b'0')));
    }
}

/// Names an agent within a home. Default `main`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("pattern" = r"^[a-z0-9_-]{1,64}$"))]
pub struct AgentName(String);

impl AgentName {
    /// Parses a name that came from outside.
    ///
    /// # Errors
    /// If the text is not 1 to 64 characters of `[a-z0-9_-]`.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        parse_name(text, "agent name", "main").map(Self)
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Names a token for the HTTP API within a home.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("pattern" = r"^[a-z0-9_-]{1,64}$"))]
pub struct TokenName(String);

impl TokenName {
    /// Parses a name that came from outside.
    ///
    /// # Errors
    /// If the text is not 1 to 64 characters of `[a-z0-9_-]`.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        parse_name(text, "token name", "claude-code").map(Self)
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn parse_name(text: &str, what: &'static str, form: &'static str) -> Result<String, InvalidId> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase() || b == b'-' || b == b'_');
    if text.is_empty() || text.len() > 64 || !plain {
        return Err(InvalidId { what, text: text.chars().take(80).collect(), form });
    }
    Ok(text.to_owned())
}

impl Default for AgentName {
    fn default() -> Self {
        Self("main".to_owned())
    }
}

/// The error for a text from outside that is not a valid identifier of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid {what}: it looks like `{form}`")]
pub struct InvalidId {
    what: &'static str,
    text: String,
    form: &'static str,
}

macro_rules! text_id {
    ($type:ty) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl From<$type> for String {
            fn from(id: $type) -> String {
                id.0
            }
        }
        impl TryFrom<String> for $type {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::parse(&text)
            }
        }
        impl std::str::FromStr for $type {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::parse(text)
            }
        }
    };
}
text_id!(RunId);
text_id!(AgentName);
text_id!(TokenName);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time() {
        let random = Random::seeded(1);
        let early = RunId::new(Timestamp::from_millis(1_000), &random);
        let late = RunId::new(Timestamp::from_millis(1_001), &random);
        assert!(early < late);
        assert_eq!(RunId::parse(early.as_str()).unwrap(), early);
    }

    #[test]
    fn an_id_is_the_time_and_35_random_bits() {
        let random = Random::seeded(7);
        let drawn = Random::seeded(7).next_u64();
        let id = RunId::new(Timestamp::from_millis(0x1_2345_6789), &random);
        let (time, rest) = id.as_str().strip_prefix("run_").unwrap().split_at(9);
        let value = |digits: &str| {
            digits.bytes().fold(0_u64, |value, byte| {
                value << 5 | ALPHABET.iter().position(|digit| *digit == byte).unwrap() as u64
            })
        };
        assert_eq!((time.len(), rest.len()), (9, 7));
        assert_eq!(value(time), 0x1_2345_6789);
        assert_eq!(value(rest), drawn & ((1 << 35) - 1));
        // Written out once, so that a change of the alphabet or the order of the digits is seen.
        assert_eq!(time, "004hmasw9");
    }

    #[test]
    fn only_texts_of_the_right_form_are_ids() {
        let [forty, forty_one] = [40, 41].map(|length| format!("run_{}", "z".repeat(length)));
        for (text, is_id) in [
            ("run_0", true),
            ("run_09az", true),
            (&forty, true),
            (&forty_one, false),
            ("", false),
            ("run_", false),
            ("run", false),
            ("0", false),
            ("un_0", false),
            ("run_run_0", false),
            ("run_../../etc", false),
            ("run_A", false),
            ("run_a-", false),
            ("run_a/b", false),
            ("run_a:", false),
            ("run_a{", false),
            ("run_a`", false),
            ("RUN_a", false),
            ("run_\0", false),
            ("run_é", false),
        ] {
            assert_eq!(RunId::parse(text).is_ok(), is_id, "{text:?}");
        }
    }

    #[test]
    fn only_texts_of_the_right_form_are_names() {
        let [most, too_long] = [64, 65].map(|length| "z".repeat(length));
        for (text, is_name) in [
            ("main", true),
            ("0", true),
            ("-", true),
            ("_", true),
            ("a-z_09", true),
            (&most, true),
            (&too_long, false),
            ("", false),
            ("Main", false),
            ("a/b", false),
            ("..", false),
            ("a b", false),
            ("a:", false),
            ("a{", false),
            ("a`", false),
            ("ä", false),
            ("a\n", false),
        ] {
            assert_eq!(AgentName::parse(text).is_ok(), is_name, "{text:?}");
            assert_eq!(TokenName::parse(text).is_ok(), is_name, "{text:?}");
        }
    }

    /// Every way from text to an id and back gives the same.
    #[test]
    fn an_id_is_its_text() {
        fn check<T>(text: &str)
        where
            T: fmt::Display + fmt::Debug + std::str::FromStr<Err = InvalidId> + TryFrom<String, Error = InvalidId>,
            T: Into<String> + Clone + Serialize + for<'a> Deserialize<'a>,
        {
            let parsed: T = text.parse().unwrap();
            assert_eq!((parsed.to_string(), format!("{parsed:?}")), (text.to_owned(), text.to_owned()));
            assert_eq!(T::try_from(text.to_owned()).unwrap().to_string(), text);
            let json = serde_json::to_string(&parsed).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<T>(&json).unwrap().to_string(), text);
            assert_eq!(Into::<String>::into(parsed), text);
            assert!("A".parse::<T>().is_err() && T::try_from("A".to_owned()).is_err());
            assert!(serde_json::from_str::<T>("\"A\"").is_err());
        }
        check::<RunId>("run_0123456789abcdef");
        check::<AgentName>("main");
        check::<TokenName>("claude-code");
        assert_eq!(RunId::parse("run_0").unwrap().as_str(), "run_0");
        assert_eq!(AgentName::parse("helper").unwrap().as_str(), "helper");
        assert_eq!(TokenName::parse("helper").unwrap().as_str(), "helper");
        assert_eq!(AgentName::default().as_str(), "main");
    }

    #[test]
    fn a_refused_text_is_shown_with_the_form_and_bounded() {
        let message = RunId::parse(&"X".repeat(1_000)).unwrap_err().to_string();
        assert!(
            message.contains(&format!("`{}`", "X".repeat(80))) && message.contains("`run_0123456789abcdef`"),
            "{message}"
        );
        for (message, form) in [
            (AgentName::parse("A").unwrap_err().to_string(), "`A` is not a valid agent name: it looks like `main`"),
            (
                TokenName::parse("A").unwrap_err().to_string(),
                "`A` is not a valid token name: it looks like `claude-code`",
            ),
        ] {
            assert_eq!(message, form);
        }
    }
}

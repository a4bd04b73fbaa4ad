//! Names that come from channels: of peers, and of the channels themselves.
//!
//! Both appear in prompts and in keys, so they are plain ASCII without spaces, quotes and brackets: a name cannot carry a sentence,
//! a line break or a sign that looks like another.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Characters of a peer's id.
const MAX_PEER_ID: usize = 128;
/// Characters of a channel's name.
const MAX_CHANNEL: usize = 32;

/// Identifies a peer within an agent: an address or a key of its channel, such as `npub1x9k`, `@mai:example.org` or `+4930123456`.
/// Case counts.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("pattern" = r"^[@+#]?[A-Za-z0-9][A-Za-z0-9@:._+/#~=-]*$", "maxLength" = MAX_PEER_ID))]
pub struct PeerId(String);

impl PeerId {
    /// Parses an id that came from outside.
    ///
    /// # Errors
    /// If the text is not 1 to 128 ASCII letters, digits and `@:._+/#~=-`, with a letter or digit first or second, after `@`, `+`
    /// or `#`.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let body = text.strip_prefix(['@', '+', '#']).unwrap_or(text);
        let is_allowed = |sign: char| sign.is_ascii_alphanumeric() || "@:._+/#~=-".contains(sign);
        let begins = body.starts_with(|first: char| first.is_ascii_alphanumeric());
        if !begins || text.len() > MAX_PEER_ID || !body.chars().all(is_allowed) {
            return Err(InvalidName::new("peer id", text, "npub1x9k` or `@mai:example.org"));
        }
        Ok(Self(text.to_owned()))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Names the channel of an interaction, such as `http` or `terminal`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("pattern" = r"^[a-z0-9_-]{1,32}$"))]
pub struct ChannelName(String);

impl ChannelName {
    /// Parses a name that came from outside.
    ///
    /// # Errors
    /// If the text is not 1 to 32 characters of `[a-z0-9_-]`.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let is_allowed = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-' || sign == '_';
        if text.is_empty() || text.len() > MAX_CHANNEL || !text.chars().all(is_allowed) {
            return Err(InvalidName::new("channel name", text, "http"));
        }
        Ok(Self(text.to_owned()))
    }

    /// The channel of notes that the owner makes about exchanges outside of the host.
    #[must_use]
    pub fn note() -> Self {
        Self("note".to_owned())
    }

    /// The channel of conversations that name no other.
    #[must_use]
    pub fn chat() -> Self {
        Self("chat".to_owned())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The error for a text from outside that is not a valid name of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid {kind}: it looks like `{form}`")]
pub struct InvalidName {
    kind: &'static str,
    text: String,
    form: &'static str,
}

impl InvalidName {
    fn new(kind: &'static str, text: &str, form: &'static str) -> Self {
        Self { kind, text: base::text::Foreign(text).escaped(80), form }
    }
}

macro_rules! text_name {
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
            fn from(name: $type) -> String {
                name.0
            }
        }
        impl TryFrom<String> for $type {
            type Error = InvalidName;
            fn try_from(text: String) -> Result<Self, InvalidName> {
                Self::parse(&text)
            }
        }
        impl std::str::FromStr for $type {
            type Err = InvalidName;
            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Self::parse(text)
            }
        }
    };
}
text_name!(PeerId);
text_name!(ChannelName);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_channels_are_ids() {
        for text in ["a", "npub1x9k", "@mai:example.org", "+4930123456", "mai@example.org", "a/b", "telegram:77", "A"] {
            assert_eq!(PeerId::parse(text).unwrap().as_str(), text);
        }
        assert!(PeerId::parse(&"a".repeat(MAX_PEER_ID)).is_ok());
        assert_eq!(ChannelName::parse("note").unwrap(), ChannelName::note());
    }

    #[test]
    fn an_id_carries_no_sentence_and_no_lookalike() {
        let long = "a".repeat(MAX_PEER_ID + 1);
        for text in
            ["", "@", "..", ".", "/a", "a b", "a\nb", "a\"b", "a`b", "a)b", "a*b", "а", "a\u{200b}", "@@a", &long]
        {
            assert!(PeerId::parse(text).is_err(), "{text:?}");
        }
        for text in ["", "HTTP", "a b", "a:b", "abcdefghijklmnopqrstuvwxyz0123456"] {
            assert!(ChannelName::parse(text).is_err(), "{text:?}");
        }
        assert!(serde_json::from_str::<PeerId>("\"a b\"").is_err());
    }
}

//! Names of reflectors from outside.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Characters of a name.
const MAX_NAME: usize = 64;

/// Names a reflector, and its file `NAME.wasm`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("pattern" = r"^[a-z0-9][a-z0-9-]{0,63}$"))]
pub struct ReflectorName(String);

/// The error for a text that is not the name of a reflector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a name of a reflector: use 1 to 64 lower-case letters, digits and `-`")]
pub struct InvalidReflectorName(String);

impl ReflectorName {
    /// Parses a name that came from outside. It is never a path.
    ///
    /// # Errors
    /// If it is not 1 to 64 lower-case letters, digits and `-`, or begins with `-`.
    pub fn parse(text: &str) -> Result<Self, InvalidReflectorName> {
        let is_allowed = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
        if text.is_empty() || text.len() > MAX_NAME || text.starts_with('-') || !text.chars().all(is_allowed) {
            return Err(InvalidReflectorName(base::text::Foreign(text).escaped(80)));
        }
        Ok(Self(text.to_owned()))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ReflectorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<ReflectorName> for String {
    fn from(name: ReflectorName) -> Self {
        name.0
    }
}

impl TryFrom<String> for ReflectorName {
    type Error = InvalidReflectorName;

    fn try_from(text: String) -> Result<Self, InvalidReflectorName> {
        Self::parse(&text)
    }
}

impl std::str::FromStr for ReflectorName {
    type Err = InvalidReflectorName;

    fn from_str(text: &str) -> Result<Self, InvalidReflectorName> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_path() {
        assert_eq!(ReflectorName::parse("careful-2").unwrap().as_str(), "careful-2");
        for text in ["", "-a", "../a", "a/b", "a.wasm", "A", "a b", "a\0", "é", &"a".repeat(65)] {
            assert!(ReflectorName::parse(text).is_err(), "{text}");
        }
    }
}

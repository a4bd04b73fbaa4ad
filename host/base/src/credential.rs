//! Names of credentials, and the placeholder that replaces a secret wherever a model or a guest can see it.
//!
//! Knows no secrets. Text that only looks like a placeholder is ordinary text.

use crate::text::Foreign;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of a credential: `[A-Za-z][A-Za-z0-9_-]*`, at most 64 characters. Case matters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("pattern" = r"^[A-Za-z][A-Za-z0-9_-]{0,63}$"))]
pub struct CredentialName(String);

/// The error for a text that is not the name of a credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{shown}` is not the name of a credential: use letters, digits, `_` and `-`, a letter first, at most 64")]
pub struct InvalidCredentialName {
    /// The text, cut and escaped.
    pub shown: String,
}

/// The text before the name in a placeholder.
const OPEN: &str = "<credential:";
/// Maximum length of a name.
const MAX_CHARACTERS: usize = 64;

impl CredentialName {
    /// Parses the name of a credential.
    ///
    /// # Errors
    /// If the text does not have the syntax of a name.
    pub fn parse(text: &str) -> Result<Self, InvalidCredentialName> {
        let starts = text.starts_with(|first: char| first.is_ascii_alphabetic());
        let fits = text.len() <= MAX_CHARACTERS && text.chars().all(is_name_character);
        if starts && fits {
            return Ok(Self(text.to_owned()));
        }
        Err(InvalidCredentialName { shown: Foreign(text).escaped(40) })
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The placeholder `<credential:NAME>` (SPEC VAULT-3).
    #[must_use]
    pub fn placeholder(&self) -> String {
        format!("{OPEN}{}>", self.0)
    }

    /// The names in a text's placeholders, each once, in order of appearance.
    #[must_use]
    pub fn mentioned_in(text: &str) -> Vec<Self> {
        let mut names = Vec::new();
        for after in text.split(OPEN).skip(1) {
            if let Some((name, _)) = after.split_once('>')
                && let Ok(name) = Self::parse(name)
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        names
    }
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

impl std::fmt::Display for CredentialName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for CredentialName {
    type Err = InvalidCredentialName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl TryFrom<String> for CredentialName {
    type Error = InvalidCredentialName;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<CredentialName> for String {
    fn from(name: CredentialName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for good in ["a", "api_key", "API-KEY-2"] {
            assert_eq!(CredentialName::parse(good).unwrap().placeholder(), format!("<credential:{good}>"));
        }
        for bad in ["", "1a", "a b", "a>", "ключ", "a\u{0}", &"a".repeat(65)] {
            assert!(CredentialName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn placeholders_are_found_once_each() {
        let names =
            CredentialName::mentioned_in("x <credential:b> <credential:a><credential:b> <credential:1> <credential:c");
        let names: Vec<&str> = names.iter().map(CredentialName::as_str).collect();
        assert_eq!(names, ["b", "a"]);
    }
}

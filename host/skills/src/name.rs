//! The name of a skill (SPEC SKILL-3).
//!
//! A name becomes a directory, a key in the store and a word in a prompt, so only letters, digits and single hyphens of
//! ASCII are possible: nothing that could leave a directory, hide in a text or look like another name's letters.

use base::text::Foreign;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Characters of a name (SPEC SKILL-3).
pub const MAX_CHARACTERS: usize = 64;

/// A name: `^[a-z][a-z0-9-]*[a-z0-9]$`, at most 64 characters, no `--`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("pattern" = r"^[a-z](-?[a-z0-9])+$", "maxLength" = MAX_CHARACTERS))]
pub struct SkillName(String);

/// Why a name is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct InvalidName {
    /// The one exact reason, for people.
    pub reason: String,
}

impl SkillName {
    /// Parses a name.
    ///
    /// # Errors
    /// If the text is not a valid name.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        match fault(text) {
            None => Ok(Self(text.to_owned())),
            Some(reason) => Err(InvalidName { reason }),
        }
    }

    /// The name as a string slice.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn fault(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("a name has to have at least two characters".to_owned());
    }
    // Before anything that shows the name: a megabyte of text is not repeated in a message.
    let characters = text.chars().count();
    if characters > MAX_CHARACTERS {
        return Some(format!("a name has at most {MAX_CHARACTERS} characters, this one {characters}"));
    }
    let shown = Foreign(text).escaped(MAX_CHARACTERS);
    if let Some(odd) = text.chars().find(|&c| !matches!(c, 'a'..='z' | '0'..='9' | '-')) {
        let hint = if odd.is_uppercase() { "use lower case" } else { "use `a` to `z`, `0` to `9` and `-`" };
        return Some(format!(
            "the name `{shown}` has the character `{}`: {hint}",
            Foreign(&odd.to_string()).escaped(1)
        ));
    }
    if !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Some(format!("the name `{shown}` does not begin with a letter"));
    }
    if text.len() < 2 {
        return Some(format!("the name `{shown}` has one character: use at least two"));
    }
    if text.ends_with('-') {
        return Some(format!("the name `{shown}` ends with a hyphen"));
    }
    text.contains("--").then(|| format!("the name `{shown}` has two hyphens in a row"))
}

impl TryFrom<String> for SkillName {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        Self::parse(&text)
    }
}

impl From<SkillName> for String {
    fn from(name: SkillName) -> Self {
        name.0
    }
}

impl std::fmt::Display for SkillName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names() {
        let most = "a".repeat(64);
        for name in ["ab", "a1", "pdf-tools", "a-1-b", "x0-9", &most] {
            assert_eq!(SkillName::parse(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn each_that_is_none_has_one_reason() {
        let long = "é".repeat(65);
        for (text, reason) in [
            ("", "a name has to have at least two characters"),
            ("a", "the name `a` has one character: use at least two"),
            ("1a", "the name `1a` does not begin with a letter"),
            ("-a", "the name `-a` does not begin with a letter"),
            ("a-", "the name `a-` ends with a hyphen"),
            ("a--b", "the name `a--b` has two hyphens in a row"),
            ("Pdf", "the name `Pdf` has the character `P`: use lower case"),
            ("a b", "the name `a b` has the character ` `: use `a` to `z`, `0` to `9` and `-`"),
            ("a_b", "the name `a_b` has the character `_`: use `a` to `z`, `0` to `9` and `-`"),
            ("../a", "the name `../a` has the character `.`: use `a` to `z`, `0` to `9` and `-`"),
            ("a\n", "the name `a\\n` has the character `\\n`: use `a` to `z`, `0` to `9` and `-`"),
            ("\u{202e}ab", "the name `\\u{202e}ab` has the character `\\u{202e}`: use `a` to `z`, `0` to `9` and `-`"),
            ("pаy", "the name `pаy` has the character `а`: use `a` to `z`, `0` to `9` and `-`"),
            (&long, "a name has at most 64 characters, this one 65"),
        ] {
            assert_eq!(SkillName::parse(text).unwrap_err().reason, reason);
        }
        assert!(serde_json::from_str::<SkillName>("\"../a\"").is_err());
        assert!(serde_json::from_str::<SkillName>("\"ab\"").is_ok());
    }

    proptest! {
        /// The rule of the specification, said the other way.
        #[test]
        fn the_rule_is_the_expression(text in "[a-zA-Z0-9_ -]{0,6}|[a-c-]{60,70}|\\PC{0,8}") {
            let expression = regex::Regex::new("^[a-z][a-z0-9-]*[a-z0-9]$").unwrap();
            let expected = expression.is_match(&text) && text.len() <= 64 && !text.contains("--");
            prop_assert_eq!(SkillName::parse(&text).is_ok(), expected);
        }
    }
}

//! The name of a skill (SPEC SKILL-3).
//!
//! A name becomes a directory, a key in the store and a word in a prompt, so only letters, digits and single hyphens of
//! ASCII are possible: nothing that could leave a directory, hide in a text or look like another name's letters.

use base::ContentHash;
use base::text::{Foreign, is_invisible};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use crate::review::disguise;

/// Characters of a name (SPEC SKILL-3).
pub const MAX_CHARACTERS: usize = 64;
/// Hexadecimal digits of a hash that stand for letters outside ASCII.
const HASH_DIGITS: usize = 8;

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

    /// The name of a skill whose author wrote `text`: the text itself, or a slug of it and the text as written. The
    /// readers of the Agent Skills standard accept names such as `Azure CLI` and `feishu_fetch`.
    ///
    /// # Errors
    /// If the text could leave a directory, has characters that do not show or that imitate others, is too long, or has
    /// no letter or digit.
    pub fn of_text(text: &str) -> Result<(Self, Option<String>), InvalidName> {
        let Some(reason) = fault(text) else { return Ok((Self(text.to_owned()), None)) };
        match slug(text) {
            Some(slug) => Ok((Self::parse(&slug)?, Some(text.to_owned()))),
            None => Err(InvalidName { reason }),
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

/// Lower case, digits and single hyphens; `None` for a text that no honest author writes. Letters outside ASCII are lost,
/// so a hash of the text stands for them.
fn slug(text: &str) -> Option<String> {
    let is_hostile = |c: char| c.is_control() || is_invisible(c) || matches!(c, '/' | '\\');
    let length = text.chars().count();
    if length > MAX_CHARACTERS || text.contains("..") || text.contains(is_hostile) {
        return None;
    }
    if text.split_whitespace().any(|word| disguise(word).is_some()) {
        return None;
    }
    let (mut slug, mut is_lossy) = (String::with_capacity(length), false);
    for c in text.nfkd().filter(|c| !is_combining_mark(*c)) {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else {
            is_lossy |= c.is_alphanumeric();
            if !slug.is_empty() && !slug.ends_with('-') {
                slug.push('-');
            }
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    if !slug.starts_with(|c: char| c.is_ascii_lowercase()) || slug.len() < 2 {
        if slug.is_empty() && !is_lossy {
            return None;
        }
        slug.insert_str(0, "skill-");
    }
    let hash = is_lossy.then(|| ContentHash::of(text.as_bytes()).hex());
    let suffix =
        hash.as_deref().and_then(|hash| hash.get(..HASH_DIGITS)).map(|hash| format!("-{hash}")).unwrap_or_default();
    slug.truncate(MAX_CHARACTERS - suffix.len());
    Some(format!("{}{suffix}", slug.trim_end_matches('-')))
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

    #[test]
    fn a_slug_is_a_name_and_the_written_name_is_kept() {
        for (text, expected) in [
            ("Azure CLI", "azure-cli"),
            ("feishu_file_fetch", "feishu-file-fetch"),
            ("Node.js  (v2)!", "node-js-v2"),
            ("a--b-", "a-b"),
            ("1password", "skill-1password"),
            ("A", "skill-a"),
            ("a.", "skill-a"),
            ("Café Tools", "cafe-tools"),
            ("飞书文档", "skill-fb9ec6de"),
            ("-lead", "lead"),
        ] {
            let (name, written) = SkillName::of_text(text).unwrap();
            assert_eq!((name.as_str(), written.as_deref()), (expected, Some(text)));
        }
        let long = format!("A{}", "b ".repeat(31));
        assert_eq!(
            SkillName::of_text(&long).unwrap().0.as_str(),
            format!("a{}", "b-".repeat(31)).trim_end_matches('-')
        );
        let plain = SkillName::of_text("pdf-tools").unwrap();
        assert_eq!((plain.0.as_str(), plain.1), ("pdf-tools", None));
    }

    #[test]
    fn hostile_texts_have_no_slug() {
        let long = "Azure ".repeat(2_000);
        for text in [
            "",
            " ",
            "--",
            "!!!",
            "..",
            "../etc",
            "Azure/../CLI",
            "Azure/CLI",
            "Azure\\CLI",
            "Azure\nCLI",
            "Azure\0CLI",
            "Azure\u{202e}ILC",
            "Azure\u{200b}CLI",
            "Azure\u{e0041}",
            "Azure\u{2028}CLI",
            "pаypal",
            &long,
        ] {
            assert!(SkillName::of_text(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_has_one_name(text in "\\PC{0,70}|[A-Za-z0-9_ .-]{0,70}") {
            if let Ok((name, written)) = SkillName::of_text(&text) {
                prop_assert!(SkillName::parse(name.as_str()).is_ok());
                prop_assert_eq!(written.is_none(), name.as_str() == text);
                prop_assert_eq!(SkillName::of_text(&text).unwrap().0, name);
            }
        }

        /// The rule of the specification, said the other way.
        #[test]
        fn the_rule_is_the_expression(text in "[a-zA-Z0-9_ -]{0,6}|[a-c-]{60,70}|\\PC{0,8}") {
            let expression = regex::Regex::new("^[a-z][a-z0-9-]*[a-z0-9]$").unwrap();
            let expected = expression.is_match(&text) && text.len() <= 64 && !text.contains("--");
            prop_assert_eq!(SkillName::parse(&text).is_ok(), expected);
        }
    }
}

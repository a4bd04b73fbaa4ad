//! A skill's description of itself: `SKILL.md` (SPEC SKILL-1).
//!
//! Reading is lenient, because skills come from everywhere and the meaning of most faulty ones is plain to a reader;
//! strict conformance is reported separately. The text is untrusted and gives no power. It survives any input, in any
//! encoding, nested and anchored at will, in time that grows with its length.

use std::borrow::Cow;

use base::text::cut;
use serde::{Deserialize, Serialize};

use crate::SkillName;

mod frontmatter;
mod lines;
mod strict;
mod yaml;

use yaml::Fields;

/// Characters of a description (Agent Skills standard, `description`).
pub const MAX_DESCRIPTION: usize = 1_024;

/// A skill's description of itself: untrusted text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The skill's name, from the frontmatter or a component's file name.
    pub name: SkillName,
    /// The name as its author wrote it, if `name` is a slug of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
    /// When to use it: one paragraph, whitespace folded, at most 1,024 characters (cut with `…`).
    pub description: String,
    /// The Markdown after the frontmatter.
    pub body: String,
    /// Departures from the letter of the Agent Skills standard, each one sentence; empty: it conforms.
    pub strict: Vec<String>,
}

/// Why a skill's description of itself cannot be used: one exact reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The skill has no `SKILL.md`.
    #[error("it has no `SKILL.md`")]
    Missing,
    /// It does not begin with `---`.
    #[error("`SKILL.md` has no frontmatter: begin it with a line `---`")]
    NoFrontmatter,
    /// The frontmatter has no closing line `---`.
    #[error("the frontmatter of `SKILL.md` does not end: put a line `---` after it")]
    Unterminated,
    /// The frontmatter has no `name`.
    #[error("the frontmatter of `SKILL.md` has no `name`")]
    NoName,
    /// The name is not valid.
    #[error(transparent)]
    Name(#[from] crate::name::InvalidName),
    /// The frontmatter has no `description`.
    #[error("the frontmatter of `SKILL.md` has no `description`")]
    NoDescription,
    /// The file is not UTF-8.
    #[error("`SKILL.md` is not UTF-8: byte {at} is not")]
    NotText {
        /// Index of the first byte that is not.
        at: usize,
    },
    /// The frontmatter is too large.
    #[error("the frontmatter of `SKILL.md` is larger than {limit} bytes")]
    TooLarge {
        /// The most bytes it may have.
        limit: usize,
    },
}

/// Reads `SKILL.md`. `directory` is the name of its directory, which the standard compares with the skill's name.
///
/// # Errors
/// If it is not UTF-8, or has no valid frontmatter, name or description.
pub fn read(text: &[u8], directory: &str) -> Result<Manifest, ManifestError> {
    let text = lines_of(text)?;
    let parts = frontmatter::split(&text)?;
    let read = Fields::read(parts.front);
    let fields = read.as_ref().ok();
    let field = |name: &str| {
        let by_yaml = fields.and_then(|fields| fields.text(name));
        // The field is there and is not text, or the frontmatter is not YAML.
        let is_open = fields.is_none_or(|fields| fields.get(name).is_some());
        by_yaml.or_else(|| is_open.then(|| lines::field(parts.front, name)).flatten())
    };
    let name = field("name").map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    let (name, written) = SkillName::of_text(&name.ok_or(ManifestError::NoName)?)?;
    let description = field("description").map(|text| paragraph(&text)).filter(|text| !text.is_empty());
    Ok(Manifest {
        name,
        written,
        description: description.ok_or(ManifestError::NoDescription)?,
        body: parts.body.trim_matches('\n').to_owned(),
        strict: strict::departures(&text, directory, Some((parts.front, &read))),
    })
}

/// Departures of a `SKILL.md` from the letter of the Agent Skills standard, whether it can be used or not; empty: it
/// conforms.
#[must_use]
pub fn departures(text: &[u8], directory: &str) -> Vec<String> {
    match lines_of(text) {
        Ok(text) => strict::departures(&text, directory, None),
        Err(error) => vec![error.to_string()],
    }
}

/// As text, every line ending with `\n`.
fn lines_of(text: &[u8]) -> Result<Cow<'_, str>, ManifestError> {
    let text = std::str::from_utf8(text).map_err(|error| ManifestError::NotText { at: error.valid_up_to() })?;
    Ok(match text.contains('\r') {
        true => Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")),
        false => Cow::Borrowed(text),
    })
}

/// One paragraph without control characters, cut.
fn paragraph(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let mut folded = String::new();
    for word in words {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    // One character less, for the mark.
    if folded.chars().nth(MAX_DESCRIPTION).is_some() { cut(&folded, MAX_DESCRIPTION - 1) } else { folded }
}

/// The manifest of a bare `NAME.wasm`, from its file name alone.
///
/// # Errors
/// If the stem of the file's name is not a valid skill name.
pub fn of_component(entry: &str) -> Result<Manifest, ManifestError> {
    let stem = entry.rsplit_once('.').map_or(entry, |(stem, _)| stem);
    let name = SkillName::parse(stem)?;
    Ok(Manifest {
        description: format!("Tools of the component `{entry}`."),
        body: format!("This skill is the compiled component `{entry}`. Its tools are offered by their own names.\n"),
        name,
        written: None,
        strict: Vec::new(),
    })
}

#[cfg(test)]
pub(crate) mod tests;

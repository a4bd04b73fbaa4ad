//! Where a skill lies. Two skills of one name in two places are two skills.
//!
//! It knows no files. A place may come from a store, a client or a model, so an entry must not be joined to a root's
//! path before [`SkillPlace::is_plain`] has said that it leads nowhere else.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SkillName;

/// A directory whose entries are skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillsRoot {
    /// `home` for the home's own root, at any path; otherwise its absolute path.
    pub id: String,
    /// Its current path on disk.
    pub path: PathBuf,
}

/// The id of the home's own root.
pub const HOME: &str = "home";

/// The id of the home's root of tools. Other roots have `home` or an absolute path.
pub const TOOLS: &str = "tools";

impl SkillsRoot {
    /// The home's own root, at `path`.
    #[must_use]
    pub fn home(path: PathBuf) -> Self {
        Self { id: HOME.to_owned(), path }
    }

    /// The home's root of tools, at `path`: components that a run is granted by name.
    #[must_use]
    pub fn tools(path: PathBuf) -> Self {
        Self { id: TOOLS.to_owned(), path }
    }

    /// Another root, identified by its absolute path.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self { id: path.to_string_lossy().into_owned(), path }
    }
}

/// An entry of a root. Shown as the entry alone in the home's root (`agentmail`, `agentmail.zip`), else as `ROOT/ENTRY`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SkillPlace {
    /// The root's id.
    pub root: String,
    /// The name of the entry in it: one path component.
    pub entry: String,
}

impl SkillPlace {
    /// The entry `entry` of the root with this id.
    #[must_use]
    pub fn new(root: &str, entry: &str) -> Self {
        Self { root: root.to_owned(), entry: entry.to_owned() }
    }

    /// `ROOT/ENTRY`, also in the home's root: this selects only this place, regardless of the names of skills.
    #[must_use]
    pub fn full(&self) -> String {
        format!("{}/{}", self.root, self.entry)
    }

    /// The place of the tool of this name.
    #[must_use]
    pub fn of_tool(name: &SkillName) -> Self {
        Self::new(TOOLS, &format!("{name}.wasm"))
    }

    /// Whether it is a tool of the home: a component that runs are granted by name, in the root of tools.
    #[must_use]
    pub fn is_tool(&self) -> bool {
        self.root == TOOLS
    }

    /// The word for it in messages: `tool` or `skill`.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        if self.is_tool() { "tool" } else { "skill" }
    }

    /// Whether `selector` is its displayed or full form.
    #[must_use]
    pub fn is_shown_as(&self, selector: &str) -> bool {
        (self.root == HOME && self.entry == selector) || self.is_written_out_as(selector)
    }

    /// Whether `selector` is its full form.
    #[must_use]
    pub fn is_written_out_as(&self, selector: &str) -> bool {
        selector.strip_suffix(self.entry.as_str()).and_then(|root| root.strip_suffix('/')) == Some(self.root.as_str())
    }

    /// Whether its entry is one plain path component: not hidden, not `..`, without separators.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        !self.entry.is_empty() && !self.entry.starts_with('.') && !self.entry.contains(['/', '\0'])
    }
}

impl std::fmt::Display for SkillPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.root == HOME { f.write_str(&self.entry) } else { write!(f, "{}/{}", self.root, self.entry) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_selected_as_shown_or_written_out() {
        let home = SkillPlace::new(HOME, "mail.zip");
        let other = SkillPlace::new("/srv/skills", "mail");
        for (place, selector, shown, written_out) in [
            (&home, "mail.zip", true, false),
            (&home, "home/mail.zip", true, true),
            (&home, "mail", false, false),
            (&home, "/mail.zip", false, false),
            (&home, "home//mail.zip", false, false),
            (&home, "", false, false),
            (&other, "/srv/skills/mail", true, true),
            (&other, "mail", false, false),
            (&other, "home/mail", false, false),
            (&other, "/srv/skills//mail", false, false),
        ] {
            assert_eq!(place.is_shown_as(selector), shown, "{place} {selector}");
            assert_eq!(place.is_written_out_as(selector), written_out, "{place} {selector}");
        }
        assert_eq!(home.to_string(), "mail.zip");
        assert_eq!(home.full(), "home/mail.zip");
        assert_eq!(other.to_string(), other.full());
    }

    #[test]
    fn an_entry_is_one_component() {
        for (entry, plain) in [
            ("mail", true),
            ("mail.zip", true),
            ("Mail 2", true),
            ("a\\b", true),
            ("", false),
            (".", false),
            ("..", false),
            (".staged", false),
            ("a/b", false),
            ("../a", false),
            ("/etc", false),
            ("a\0b", false),
        ] {
            assert_eq!(SkillPlace::new(HOME, entry).is_plain(), plain, "{entry:?}");
        }
    }
}

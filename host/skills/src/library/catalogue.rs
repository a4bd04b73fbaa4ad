//! Results of reading the roots, as kept in memory and in the index: no bytes, and no status.
//!
//! It knows no files and no trust. A catalogue is immutable and replaced as a whole, so its holder sees one moment of
//! the skills. It serves to select places and to display; nothing acts on its word.

use std::sync::{Arc, OnceLock};

use base::ContentHash;
use base::text::nearest;
use serde::{Deserialize, Serialize};

use crate::snapshot::Stamp;
use crate::{SkillError, SkillForm, SkillName, SkillPlace};

/// An entry of a root and the result of reading it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CatalogueEntry {
    pub(super) place: SkillPlace,
    /// Its outward stamp when it was read; `None` if that would not show every later change.
    pub(super) stamp: Option<Stamp>,
    pub(super) form: Option<SkillForm>,
    pub(super) found: Result<ReadableSkill, Problem>,
}

/// A skill that can be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ReadableSkill {
    pub(super) name: SkillName,
    pub(super) description: String,
    pub(super) conforms: bool,
    pub(super) hash: ContentHash,
    pub(super) modes: ContentHash,
    /// Names of commands and languages that no tool here runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) unavailable: Vec<String>,
}

/// Why a skill cannot be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Problem {
    /// The entry's name without its extension, if it is a valid skill name: it keeps the name from silently going to
    /// another place.
    pub(super) name: Option<SkillName>,
    pub(super) reason: String,
}

impl CatalogueEntry {
    /// The name it is listed and selected under.
    pub(super) fn name(&self) -> Option<&str> {
        match &self.found {
            Ok(contents) => Some(contents.name.as_str()),
            Err(problem) => problem.name.as_ref().map(SkillName::as_str),
        }
    }

    /// Whether both have the same form and content, regardless of their stamps.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        self.form == other.form && self.found == other.found
    }
}

/// All entries at one moment.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    /// Sorted by place, without duplicates.
    entries: Vec<Arc<CatalogueEntry>>,
    by_name: OnceLock<Vec<Arc<CatalogueEntry>>>,
}

/// The entry that a selector selects.
#[derive(Debug)]
pub(super) struct SelectedSkill {
    pub(super) place: SkillPlace,
    /// The name required when it is read; `None` if it was selected by its place.
    pub(super) name: Option<SkillName>,
}

impl Catalogue {
    /// Takes entries in any order; the first of each place counts.
    pub(super) fn new(mut entries: Vec<Arc<CatalogueEntry>>) -> Self {
        entries.sort_by(|a, b| a.place.cmp(&b.place));
        entries.dedup_by(|b, a| a.place == b.place);
        Self { entries, by_name: OnceLock::new() }
    }

    pub(super) fn entries(&self) -> &[Arc<CatalogueEntry>] {
        &self.entries
    }

    /// Entries in list order: by name, then by place; nameless ones last.
    pub(super) fn by_name(&self) -> &[Arc<CatalogueEntry>] {
        self.by_name.get_or_init(|| {
            let mut entries = self.entries.clone();
            // Stable, and already sorted by place.
            entries.sort_by(|a, b| (a.name().is_none(), a.name()).cmp(&(b.name().is_none(), b.name())));
            entries
        })
    }

    pub(super) fn get(&self, place: &SkillPlace) -> Option<&Arc<CatalogueEntry>> {
        let at = self.entries.binary_search_by(|entry| entry.place.cmp(place)).ok()?;
        self.entries.get(at)
    }

    /// The entry that `selector` means: a name, or a place in displayed or full form. A full form means that place;
    /// anything else that fits two entries is ambiguous, whether they are readable or not.
    ///
    /// # Errors
    /// [`SkillError::Missing`] and [`SkillError::Ambiguous`].
    pub(super) fn choose(&self, selector: &str) -> Result<SelectedSkill, SkillError> {
        if let Some(entry) = self.entries.iter().find(|entry| entry.place.is_written_out_as(selector)) {
            return Ok(SelectedSkill { place: entry.place.clone(), name: None });
        }
        let fits = |entry: &&Arc<CatalogueEntry>| entry.name() == Some(selector) || entry.place.is_shown_as(selector);
        let fitting: Vec<&Arc<CatalogueEntry>> = self.entries.iter().filter(fits).collect();
        match fitting.as_slice() {
            [] => Err(SkillError::Missing { selector: selector.to_owned(), nearest: self.nearest(selector) }),
            [entry] => {
                let name = entry.found.as_ref().ok().map(|contents| &contents.name);
                Ok(SelectedSkill {
                    place: entry.place.clone(),
                    name: name.filter(|name| name.as_str() == selector).cloned(),
                })
            }
            several => Err(SkillError::Ambiguous {
                name: selector.to_owned(),
                places: several.iter().map(|entry| entry.place.full()).collect(),
            }),
        }
    }

    fn nearest(&self, selector: &str) -> Option<String> {
        let names = self.entries.iter().filter_map(|entry| entry.name()).map(|name| (name, name.to_owned()));
        let places = self.entries.iter().map(|entry| (entry.place.entry.as_str(), entry.place.to_string()));
        // A name precedes an equally near place. A selector with a slash is a place, and not a mistyped name.
        nearest(selector, places.chain(names)).filter(|_| !selector.contains('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::HOME;

    fn readable(root: &str, entry: &str, name: &str) -> Arc<CatalogueEntry> {
        let hash = ContentHash::of(entry.as_bytes());
        let name = SkillName::parse(name).unwrap();
        let contents = ReadableSkill {
            name,
            description: String::new(),
            conforms: true,
            hash,
            modes: hash,
            unavailable: Vec::new(),
        };
        Arc::new(CatalogueEntry {
            place: SkillPlace::new(root, entry),
            stamp: None,
            form: Some(SkillForm::Directory),
            found: Ok(contents),
        })
    }

    fn unreadable(root: &str, entry: &str, name: Option<&str>) -> Arc<CatalogueEntry> {
        let name = name.map(|name| SkillName::parse(name).unwrap());
        let problem = Problem { name, reason: "it has no `SKILL.md`".to_owned() };
        Arc::new(CatalogueEntry { place: SkillPlace::new(root, entry), stamp: None, form: None, found: Err(problem) })
    }

    fn catalogue() -> Catalogue {
        Catalogue::new(vec![
            readable(HOME, "mail", "mail"),
            readable("/srv", "mail", "mail"),
            readable(HOME, "web.zip", "web-search"),
            unreadable(HOME, "broken", Some("broken")),
            readable("/srv", "mended", "broken"),
            unreadable(HOME, "Not A Name", None),
            readable(HOME, "charts", "plots"),
            readable("/srv", "notes", "notes"),
        ])
    }

    #[test]
    fn a_selector_means_one_place_or_none() {
        let chosen = |selector: &str| match catalogue().choose(selector) {
            Ok(SelectedSkill { place, name }) => {
                format!("{} {}", place.full(), name.map_or("-".to_owned(), |n| n.to_string()))
            }
            Err(SkillError::Missing { nearest, .. }) => format!("missing, {}", nearest.unwrap_or_default()),
            Err(SkillError::Ambiguous { places, .. }) => places.join(" or "),
            Err(other) => panic!("{other}"),
        };
        for (selector, expected) in [
            ("web-search", "home/web.zip web-search"),
            ("web.zip", "home/web.zip -"),
            ("home/web.zip", "home/web.zip -"),
            ("mail", "/srv/mail or home/mail"),
            ("home/mail", "home/mail -"),
            ("/srv/mail", "/srv/mail -"),
            // The readable skill does not take the name of the unreadable one.
            ("broken", "/srv/mended or home/broken"),
            ("Not A Name", "home/Not A Name -"),
            ("plots", "home/charts plots"),
            ("charts", "home/charts -"),
            ("notes", "/srv/notes notes"),
            ("web-serch", "missing, web-search"),
            ("char", "missing, charts"),
            ("/srv/note", "missing, "),
            ("xyzzy", "missing, "),
            ("", "missing, "),
            ("home/../mail", "missing, "),
        ] {
            assert_eq!(chosen(selector), expected, "{selector:?}");
        }
    }

    #[test]
    fn a_list_is_by_name_then_by_place_and_what_has_none_is_last() {
        let catalogue = catalogue();
        let order: Vec<String> = catalogue.by_name().iter().map(|entry| entry.place.full()).collect();
        let expected = [
            "/srv/mended",
            "home/broken",
            "/srv/mail",
            "home/mail",
            "/srv/notes",
            "home/charts",
            "home/web.zip",
            "home/Not A Name",
        ];
        assert_eq!(order, expected);
        assert!(catalogue.get(&SkillPlace::new(HOME, "mail")).is_some());
        assert!(catalogue.get(&SkillPlace::new(HOME, "mai")).is_none());
    }
}

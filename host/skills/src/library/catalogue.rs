//! Results of reading the roots, as kept in memory and in the index: no bytes, and no status.
//!
//! It knows no files and no trust. A catalogue is immutable and replaced as a whole, so its holder sees one moment of
//! the skills. It serves to select places and to display; nothing acts on its word.

use std::sync::{Arc, OnceLock};

use base::ContentHash;
use base::text::nearest;
use serde::{Deserialize, Serialize};

use crate::place::HOME;
use crate::review::visible_name;
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
    /// The name as written, if `name` is a slug of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) written: Option<String>,
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

    /// Why a skill in `place` may not have the slug `name`, if another skill has it: one that is called so by its author,
    /// or one in an earlier place, those of the home first. A name that is written so is never refused.
    pub(super) fn refused(&self, place: &SkillPlace, name: &SkillName, written: Option<&str>) -> Option<String> {
        let written = written?;
        let rank = |place: &SkillPlace, is_slug: bool| (is_slug, place.root != HOME, place.clone());
        let own = rank(place, true);
        let from = self.by_name().partition_point(|entry| entry.name().is_some_and(|other| other < name.as_str()));
        let others = self.by_name().iter().skip(from).take_while(|entry| entry.name() == Some(name.as_str()));
        let readable = others.filter_map(|entry| Some((entry, entry.found.as_ref().ok()?)));
        let ranked = readable.map(|(entry, found)| (rank(&entry.place, found.written.is_some()), found));
        let (holder, found) = ranked.filter(|(rank, _)| *rank < own).min_by(|(a, _), (b, _)| a.cmp(b))?;
        let other = found.written.as_deref().unwrap_or(found.name.as_str());
        let (written, other) = (visible_name(written), visible_name(other));
        Some(format!(
            "its name `{written}` is `{name}` here, and so is `{other}` in `{}`: give one of them another name",
            visible_name(&holder.2.to_string())
        ))
    }

    /// Whether the entry is selected by its name.
    fn is_called(&self, entry: &CatalogueEntry, selector: &str) -> bool {
        let is_refused =
            |found: &ReadableSkill| self.refused(&entry.place, &found.name, found.written.as_deref()).is_some();
        entry.name() == Some(selector) && !entry.found.as_ref().is_ok_and(is_refused)
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
        let fits = |entry: &&Arc<CatalogueEntry>| self.is_called(entry, selector) || entry.place.is_shown_as(selector);
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

    fn readable(root: &str, entry: &str, name: &str) -> Arc<CatalogueEntry> {
        let hash = ContentHash::of(entry.as_bytes());
        let name = SkillName::parse(name).unwrap();
        let contents = ReadableSkill {
            name,
            written: None,
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

    fn slugged(root: &str, entry: &str, name: &str, written: &str) -> Arc<CatalogueEntry> {
        let mut made = Arc::unwrap_or_clone(readable(root, entry, name));
        made.found.as_mut().unwrap().written = Some(written.to_owned());
        Arc::new(made)
    }

    #[test]
    fn the_second_of_one_slug_is_refused_by_name() {
        let catalogue = Catalogue::new(vec![
            slugged("/srv", "first", "azure-cli", "Azure CLI"),
            slugged(HOME, "one", "azure-cli", "azure_cli"),
            slugged(HOME, "two", "azure-cli", "Azure CLI"),
            slugged(HOME, "alone", "node-js", "Node.js"),
            readable("/srv", "web", "web-search"),
            slugged(HOME, "a-web", "web-search", "Web Search"),
        ]);
        let refused = |root: &str, entry: &str| {
            let entry = catalogue.get(&SkillPlace::new(root, entry)).unwrap();
            let found = entry.found.as_ref().unwrap();
            catalogue.refused(&entry.place, &found.name, found.written.as_deref())
        };
        for (root, entry) in [(HOME, "one"), (HOME, "alone"), ("/srv", "web")] {
            assert_eq!(refused(root, entry), None, "{entry}");
        }
        for (root, entry, written, other) in [
            (HOME, "two", "`Azure CLI`", "`azure_cli` in `one`"),
            ("/srv", "first", "`Azure CLI`", "`azure_cli` in `one`"),
            (HOME, "a-web", "`Web Search`", "`web-search` in `/srv/web`"),
        ] {
            let reason = refused(root, entry).unwrap();
            assert!(reason.contains(written) && reason.contains(other), "{reason}");
        }
        for (selector, place) in [("azure-cli", "home/one"), ("node-js", "home/alone"), ("web-search", "/srv/web")] {
            assert_eq!(catalogue.choose(selector).unwrap().place.full(), place);
        }
        assert_eq!(catalogue.choose("two").unwrap().place.full(), "home/two");
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

//! Everything found in one version of a skill, in one pass over its bytes.

use std::collections::{BTreeMap, BTreeSet};

use base::text::cut;

use super::text::{Lines, Text, is_disguised_component, line_around};
use super::{ComponentFact, FileFact, FileKind, Hidden, Reference, credentials, domains, hidden, registry, text};
use crate::Snapshot;

/// Maximum places listed per reference.
pub(super) const MAX_PLACES: usize = 20;
/// Maximum characters of the line of a mention.
const MAX_LINE: usize = 160;
/// Maximum references listed per kind.
const MAX_REFERENCES: usize = 2_000;
/// Maximum findings of hidden characters listed.
const MAX_HIDDEN: usize = 1_000;

/// Describes a component, given its path and bytes.
pub type Inspect<'a> = dyn Fn(&str, &[u8]) -> ComponentFact + 'a;

/// Findings in one version of a skill.
pub(super) struct Facts {
    pub files: Vec<FileFact>,
    pub credentials: BTreeMap<String, FactPlaces>,
    pub domains: BTreeMap<String, FactPlaces>,
    pub hidden: Vec<Hidden>,
    pub components: Vec<ComponentFact>,
}

/// Places of a mention.
#[derive(Default)]
pub(super) struct FactPlaces {
    /// `path:line`, the first few.
    pub at: Vec<String>,
    /// The line of the first one, on one line and with hidden characters written out.
    pub shown: String,
}

/// Collects the facts of a version.
pub(super) fn find(snapshot: &Snapshot, inspect: &Inspect<'_>) -> Facts {
    let mut facts = Facts {
        files: Vec::new(),
        credentials: BTreeMap::new(),
        domains: BTreeMap::new(),
        hidden: Vec::new(),
        components: Vec::new(),
    };
    for (path, file) in &snapshot.files {
        let Text { kind, text, damage } = text::read(path, &file.bytes);
        let bytes = file.bytes.len() as u64;
        facts.files.push(FileFact { path: path.clone(), bytes, hash: file.hash, kind, mode: file.mode });
        facts.hidden.extend(hidden::in_path(path));
        let whole = |what: &str| Hidden {
            path: path.clone(),
            line: 0,
            what: what.to_owned(),
            shown: hidden::visible_name(path),
            count: 1,
        };
        facts.hidden.extend(damage.map(whole));
        if kind == FileKind::Component {
            if is_disguised_component(path, &file.bytes) {
                facts.hidden.push(whole("a WebAssembly component under another name"));
            }
            facts.components.push(inspect(path, &file.bytes));
        }
        if let Some(text) = text {
            facts.text(path, &text, kind);
        }
    }
    facts
}

impl Facts {
    fn text(&mut self, path: &str, text: &str, kind: FileKind) {
        if kind == FileKind::Text {
            self.hidden.extend(hidden::in_text(path, text));
        }
        let lines = Lines::of(text);
        for (name, at) in sorted(credentials::find(path, text), |found| found.1) {
            place(&mut self.credentials, name, path, lines.at(at), || excerpt_at(text, at));
        }
        let mut told = BTreeSet::new();
        for domains::Mention { name, at, disguise } in sorted(domains::find(text), |found| found.at) {
            let line = lines.at(at);
            if let Some(what) = disguise
                && told.insert(what.clone())
            {
                let shown = hidden::visible_name(&cut(line_around(text, at), 160));
                self.hidden.push(Hidden { path: path.to_owned(), line, what, shown, count: 1 });
            }
            if !registry::is_of_record(path, &name) {
                place(&mut self.domains, name, path, line, || excerpt_at(text, at));
            }
        }
    }

    /// The findings of hidden characters; those beyond `MAX_HIDDEN` are only counted.
    pub fn shown_hidden(&self) -> Vec<Hidden> {
        let mut shown: Vec<Hidden> = self.hidden.iter().take(MAX_HIDDEN).cloned().collect();
        if let Some(first) = self.hidden.get(MAX_HIDDEN) {
            let count = self.hidden.iter().skip(MAX_HIDDEN).map(|hidden| hidden.count).sum();
            let what = "more hidden characters, in this file and those after it".to_owned();
            shown.push(Hidden { path: first.path.clone(), line: first.line, what, shown: String::new(), count });
        }
        shown
    }
}

/// References in displayed form. Those beyond `MAX_REFERENCES` are counted, not silently dropped.
pub(super) fn references(found: &BTreeMap<String, FactPlaces>) -> Vec<Reference> {
    let named = found.iter().take(MAX_REFERENCES);
    let mut shown: Vec<Reference> = named
        .map(|(name, places)| Reference { name: name.clone(), at: places.at.clone(), shown: places.shown.clone() })
        .collect();
    let more = found.len().saturating_sub(MAX_REFERENCES);
    if more > 0 {
        shown.push(Reference { name: format!("… and {more} more"), at: Vec::new(), shown: String::new() });
    }
    shown
}

/// The line of a mention, given its byte offset in the text.
fn excerpt_at(text: &str, at: usize) -> String {
    let start = text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    text::excerpt(line_around(text, at), at.saturating_sub(start), MAX_LINE)
}

fn sorted<T>(mut found: Vec<T>, at: impl Fn(&T) -> usize) -> Vec<T> {
    found.sort_by_key(at);
    found
}

fn place(
    found: &mut BTreeMap<String, FactPlaces>,
    name: String,
    path: &str,
    line: u64,
    shown: impl FnOnce() -> String,
) {
    let places = found.entry(name).or_default();
    if places.at.is_empty() {
        places.shown = shown();
    }
    if places.at.len() < MAX_PLACES {
        let place = format!("{path}:{line}");
        if !places.at.contains(&place) {
            places.at.push(place);
        }
    }
}

//! The index: results of reading, kept in the home's cache so that the next start need not read again (SPEC SKILL-7).
//!
//! A row is believed only as long as the stamp of its entry (`snapshot::Stamp`) is unchanged, and never decides whether
//! a skill may be used: that is decided over the bytes, at the time of use. It has no status in it. An attacker who can
//! write into the home's cache (0700) can only forge a list with a wrong name, description or status for a place;
//! nothing becomes usable by it. An index that is missing, damaged, made for other bounds or by another version of this
//! program is ignored.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use store::Links;

use super::catalogue::{Catalogue, CatalogueEntry, Problem, ReadableSkill};
use crate::snapshot::Stamp;
use crate::{SkillBounds, SkillForm, SkillPlace};

/// Version of the fields and of how they are read off a skill. A change to reading that gives another result for the
/// same bytes takes the next number.
const VERSION: u32 = 3;
/// Maximum bytes of an index: a hundred thousand skills with the longest descriptions.
const MAX_BYTES: u64 = 256 << 20;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File<R> {
    version: u32,
    program: String,
    bounds: [u64; 5],
    roots: R,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct IndexRow<S, C, P> {
    entry: S,
    stamp: Stamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    form: Option<SkillForm>,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    skill: Option<C>,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    problem: Option<P>,
}

fn none<T>() -> Option<T> {
    None
}

fn bounds_of(bounds: &SkillBounds) -> [u64; 5] {
    let SkillBounds { file_bytes, text_bytes, component_bytes, entries, total_bytes } = *bounds;
    [file_bytes, text_bytes, component_bytes, entries, total_bytes]
}

/// The content of the index; empty if it cannot be used.
pub(super) fn load(path: &Path, bounds: &SkillBounds) -> Catalogue {
    match read(path) {
        Ok(bytes) => parse(&bytes, bounds).unwrap_or_else(|reason| {
            tracing::info!(reason, "the index of skills is made anew");
            Catalogue::default()
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Catalogue::default(),
        Err(error) => {
            tracing::warn!(%error, "the index of skills cannot be read and is made anew");
            Catalogue::default()
        }
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    store::read_regular(path, Links::Refused, MAX_BYTES)
}

fn parse(bytes: &[u8], bounds: &SkillBounds) -> Result<Catalogue, String> {
    type Rows = BTreeMap<String, Vec<IndexRow<String, ReadableSkill, Problem>>>;
    let file: File<Rows> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if file.version != VERSION || file.program != env!("CARGO_PKG_VERSION") {
        return Err("another version made it".to_owned());
    }
    if file.bounds != bounds_of(bounds) {
        return Err("it was made for other bounds".to_owned());
    }
    let mut entries = Vec::with_capacity(file.roots.values().map(Vec::len).sum());
    for (root, rows) in file.roots {
        for IndexRow { entry, stamp, form, skill, problem } in rows {
            let found = match (skill, problem) {
                (Some(skill), None) => Ok(skill),
                (None, Some(problem)) => Err(problem),
                _ => return Err(format!("`{entry}` is neither a skill nor a problem")),
            };
            let place = SkillPlace { root: root.clone(), entry };
            entries.push(Arc::new(CatalogueEntry { place, stamp: Some(stamp), form, found }));
        }
    }
    Ok(Catalogue::new(entries))
}

/// Replaces the index as a whole by the content of the catalogue. Not durable: after a crash it is the old one, the new
/// one or missing, and each will do.
///
/// # Errors
/// If the disk fails.
pub(super) fn save(path: &Path, catalogue: &Catalogue, bounds: &SkillBounds) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the index has no directory"));
    };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let draft = directory.join(format!(".{}.{}.incomplete", name.to_string_lossy(), std::process::id()));
    let written = write(&draft, &text(catalogue, bounds)?).and_then(|()| std::fs::rename(&draft, path));
    if written.is_err() {
        // It is a cache: leftovers do no harm.
        std::fs::remove_file(&draft).ok();
    }
    written
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    // Leftovers of a crash are replaced; nothing is written through a link.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(content)
}

fn text(catalogue: &Catalogue, bounds: &SkillBounds) -> io::Result<Vec<u8>> {
    let mut roots: BTreeMap<&str, Vec<IndexRow<&str, &ReadableSkill, &Problem>>> = BTreeMap::new();
    for entry in catalogue.entries() {
        // A row without a stamp would not be believed.
        let Some(stamp) = entry.stamp else { continue };
        let (skill, problem) = (entry.found.as_ref().ok(), entry.found.as_ref().err());
        let row = IndexRow { entry: entry.place.entry.as_str(), stamp, form: entry.form, skill, problem };
        roots.entry(&entry.place.root).or_default().push(row);
    }
    let program = env!("CARGO_PKG_VERSION").to_owned();
    let mut text = serde_json::to_vec(&File { version: VERSION, program, bounds: bounds_of(bounds), roots })?;
    text.push(b'\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use base::ContentHash;

    use super::*;
    use crate::SkillName;
    use crate::place::HOME;

    fn catalogue(stamp: Stamp) -> Catalogue {
        let hash = ContentHash::of(b"x");
        let name = SkillName::parse("mail").unwrap();
        let skill = ReadableSkill {
            name,
            written: None,
            description: "reads `\"` mail".to_owned(),
            conforms: false,
            hash,
            modes: hash,
            unavailable: vec!["npx".to_owned()],
        };
        let problem = Problem { name: None, reason: "it has no `SKILL.md`".to_owned() };
        let entry = |root, entry, stamp, found| {
            Arc::new(CatalogueEntry { place: SkillPlace::new(root, entry), stamp, form: None, found })
        };
        Catalogue::new(vec![
            entry(HOME, "mail", Some(stamp), Ok(skill.clone())),
            entry(HOME, "fresh", None, Ok(skill)),
            entry("/srv", "broken", Some(stamp), Err(problem)),
        ])
    }

    #[test]
    fn what_was_saved_is_known_but_what_is_fresh() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("cache/skills.json");
        let (bounds, catalogue) = (SkillBounds::default(), catalogue(crate::snapshot::stamp(home.path()).unwrap()));
        save(&path, &catalogue, &bounds).unwrap();
        save(&path, &catalogue, &bounds).unwrap();
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        let known = load(&path, &bounds);
        assert_eq!(known.entries().len(), 2);
        for place in [SkillPlace::new(HOME, "mail"), SkillPlace::new("/srv", "broken")] {
            assert_eq!(known.get(&place), catalogue.get(&place));
        }
    }

    #[test]
    fn one_that_cannot_be_used_is_none() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("skills.json");
        let bounds = SkillBounds::default();
        assert!(load(&path, &bounds).entries().is_empty());
        save(&path, &catalogue(crate::snapshot::stamp(home.path()).unwrap()), &bounds).unwrap();
        let good = fs::read_to_string(&path).unwrap();
        assert_eq!(load(&path, &bounds).entries().len(), 2);
        assert!(load(&path, &SkillBounds { entries: 7, ..bounds }).entries().is_empty());
        for (what, text) in [
            ("empty", String::new()),
            ("cut", good.get(..good.len() / 2).unwrap().to_owned()),
            ("another version", good.replacen("\"version\":3", "\"version\":4", 1)),
            ("another program", good.replacen(env!("CARGO_PKG_VERSION"), "9.9.9", 1)),
            ("an unknown field", good.replacen("\"conforms\"", "\"status\":\"approved\",\"conforms\"", 1)),
            ("a name that is none", good.replacen("\"mail\",\"desc", "\"../mail\",\"desc", 1)),
            ("neither skill nor problem", good.replacen("\"problem\":{", "\"skill\":{", 1)),
            ("deep", "[".repeat(100_000)),
        ] {
            assert_ne!(text, good, "{what}");
            fs::write(&path, text).unwrap();
            assert!(load(&path, &bounds).entries().is_empty(), "{what}");
        }
        fs::write(&path, &good).unwrap();
        assert_eq!(load(&path, &bounds).entries().len(), 2);
        fs::rename(&path, home.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(home.path().join("elsewhere"), &path).unwrap();
        assert!(load(&path, &bounds).entries().is_empty(), "a link");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(load(&path, &bounds).entries().is_empty(), "a directory");
    }
}

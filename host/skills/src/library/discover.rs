//! Looks at the roots: lists their entries, keeps those with an unchanged stamp, and reads the others.
//!
//! It knows no trust. A name in a root is not a path yet: links are not followed, and `snapshot::read` does the
//! reading, robust against any kind of entry. This module is robust against entries that come, go and change while they
//! are looked at, unreadable roots, and entries changed so recently that another change would not show (they are looked
//! at again).

use std::fs::{self, DirEntry, FileType};
use std::io;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use base::{Timestamp, excerpt};

use super::catalogue::{Catalogue, CatalogueEntry, Problem, ReadableSkill};
use crate::review::unavailable;
use crate::snapshot::{self, SnapshotError, Stamp};
use crate::{SkillBounds, SkillForm, SkillName, SkillPlace, SkillsRoot, Snapshot};

/// Threads that look and read. More than two gain nothing, as the disk is the bottleneck, and take from the guests.
const THREADS: usize = 2;
/// Fewer entries than this are handled by one thread.
const FEW: usize = 16;
/// Maximum names of unavailable commands that a list keeps of a skill.
const MAX_UNAVAILABLE: usize = 12;
/// Maximum entries of one root. A directory with more is not a directory of skills.
const MAX_ENTRIES: usize = 100_000;

/// An entry of a root that is a skill, or should have been one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SkillCandidate {
    pub(super) place: SkillPlace,
    pub(super) form: Option<SkillForm>,
    /// Its name is not UTF-8, so it cannot be selected.
    nameless: bool,
}

/// The entries of a root that are to be looked at.
///
/// # Errors
/// If the root cannot be read.
pub(super) fn candidates(root: &SkillsRoot) -> io::Result<Vec<SkillCandidate>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(&root.path)? {
        found.extend(candidate(root, &entry?));
        if found.len() >= MAX_ENTRIES {
            tracing::warn!(
                root = root.id,
                most = MAX_ENTRIES,
                "a directory of skills has too many entries, the rest is passed over"
            );
            break;
        }
    }
    Ok(found)
}

/// The current candidate at an entry of a root, going by its name; `None` if it is gone or not a skill.
pub(super) fn candidate_at(root: &SkillsRoot, entry: &str) -> Option<SkillCandidate> {
    let kind = fs::symlink_metadata(root.path.join(entry)).ok()?.file_type();
    named(root, entry, kind)
}

fn candidate(root: &SkillsRoot, entry: &DirEntry) -> Option<SkillCandidate> {
    let name = entry.file_name();
    if let Some(text) = name.to_str() {
        // It may be gone already.
        return named(root, text, entry.file_type().ok()?);
    }
    let place = SkillPlace::new(&root.id, &name.to_string_lossy());
    (place.is_plain() && !place.is_tool()).then_some(SkillCandidate { place, form: None, nameless: true })
}

fn named(root: &SkillsRoot, entry: &str, kind: FileType) -> Option<SkillCandidate> {
    let place = SkillPlace::new(&root.id, entry);
    if !place.is_plain() {
        return None;
    }
    let by_name = SkillForm::of_file(entry);
    let form = if kind.is_dir() {
        Some(SkillForm::Directory)
    } else if kind.is_symlink() && by_name.is_none() {
        // A link is not a skill, but the owner of a link to a directory should be told so.
        fs::metadata(root.path.join(entry)).is_ok_and(|target| target.is_dir()).then_some(None)?
    } else {
        Some(by_name?)
    };
    // Runs name a tool without its extension, so there is one spelling of it.
    if place.is_tool() && (form != Some(SkillForm::Component) || !entry.ends_with(".wasm")) {
        return None;
    }
    Some(SkillCandidate { place, form, nameless: false })
}

/// Result of looking at the roots.
pub(super) struct DiscoveredRoot {
    pub(super) entries: Vec<Arc<CatalogueEntry>>,
    /// Whether an entry must be looked at again because its last change is too recent.
    pub(super) unsettled: bool,
    /// The previously known catalogue.
    pub(super) known: Arc<Catalogue>,
}

/// Parameters of looking at the roots.
pub(super) struct Looking<'a> {
    pub(super) roots: &'a [SkillsRoot],
    pub(super) bounds: &'a SkillBounds,
    /// Time when this look began.
    pub(super) now: Timestamp,
    /// Set when the result is no longer wanted.
    pub(super) stop: &'a AtomicBool,
}

impl Looking<'_> {
    /// Looks at `candidates`, reading only those whose stamp differs from the known entry's. `known` is called once,
    /// while another thread already takes stamps.
    pub(super) fn look(&self, candidates: &[SkillCandidate], known: impl FnOnce() -> Arc<Catalogue>) -> DiscoveredRoot {
        let threads = if candidates.len() < FEW { 1 } else { THREADS };
        let next = AtomicUsize::new(0);
        let stamp = || self.stamps(candidates, &next);
        let (known, stamps) = thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(stamp)).collect();
            let known = known();
            let mut stamps = stamp();
            others.into_iter().for_each(|other| stamps.extend(other.join().unwrap_or_default()));
            (known, stamps)
        });
        let next = AtomicUsize::new(0);
        let read = || self.entries(&stamps, &known, &next);
        let (entries, unsettled) = thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(read)).collect();
            let (mut entries, mut unsettled) = read();
            for (more, fresh) in others.into_iter().filter_map(|other| other.join().ok()) {
                entries.extend(more);
                unsettled |= fresh;
            }
            (entries, unsettled)
        });
        DiscoveredRoot { entries, unsettled, known }
    }

    /// The stamps of those candidates that no other thread takes, each with the candidate. A candidate that cannot be
    /// stat'ed has no stamp and never matches.
    fn stamps<'c>(
        &self,
        candidates: &'c [SkillCandidate],
        next: &AtomicUsize,
    ) -> Vec<(&'c SkillCandidate, Option<Stamp>)> {
        let mut taken = Vec::new();
        while let Some(candidate) = candidates.get(next.fetch_add(1, Ordering::Relaxed)) {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let path = self.path(candidate).filter(|_| !candidate.nameless);
            taken.push((candidate, path.and_then(|path| snapshot::stamp(&path).ok())));
        }
        taken
    }

    /// The entries of those candidates that no other thread takes, and whether one of them is too recent.
    fn entries(
        &self,
        stamps: &[(&SkillCandidate, Option<Stamp>)],
        known: &Catalogue,
        next: &AtomicUsize,
    ) -> (Vec<Arc<CatalogueEntry>>, bool) {
        let (mut entries, mut unsettled) = (Vec::new(), false);
        while let Some((candidate, stamp)) = stamps.get(next.fetch_add(1, Ordering::Relaxed)) {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let known = known.get(&candidate.place);
            if let Some(known) = known.filter(|known| stamp.is_some() && known.stamp == *stamp) {
                entries.push(known.clone());
            } else if let Some((entry, fresh)) = self.examine(candidate, *stamp) {
                unsettled |= fresh;
                // An equal entry is kept as the same object, so that nothing seems to have changed.
                entries.push(known.filter(|known| ***known == entry).cloned().unwrap_or_else(|| Arc::new(entry)));
            }
        }
        (entries, unsettled)
    }

    fn path(&self, candidate: &SkillCandidate) -> Option<PathBuf> {
        let root = self.roots.iter().find(|root| root.id == candidate.place.root)?;
        Some(root.path.join(&candidate.place.entry))
    }

    /// Reads an entry; `None` if it is gone. Also tells whether its stamp was too recent to be kept.
    fn examine(&self, candidate: &SkillCandidate, stamp: Option<Stamp>) -> Option<(CatalogueEntry, bool)> {
        let SkillCandidate { place, form, nameless } = candidate;
        let fresh = stamp.is_some_and(|stamp| !stamp.is_settled(self.now));
        let problem =
            |reason: String| Problem { name: SkillName::parse(stem(&place.entry)).ok(), reason: excerpt(reason) };
        let entry = |form, found| CatalogueEntry { place: place.clone(), stamp: stamp.filter(|_| !fresh), form, found };
        if *nameless {
            return Some((entry(*form, Err(problem("its name is not UTF-8".to_owned()))), false));
        }
        let path = self.path(candidate)?;
        // A skill that makes the reader panic must not affect the others.
        let read = || snapshot::read(&path, self.bounds).map(|read| (read.form, contents(&read, place)));
        let Ok(read) = catch_unwind(read) else {
            return Some((entry(*form, Err(problem("it makes the reader of skills fail".to_owned()))), false));
        };
        let found = match read {
            Ok((form, found)) => return Some((entry(Some(form), found.map_err(problem)), fresh)),
            // A plain file that was asked for by its name is skipped, like all others.
            Err(SnapshotError::Missing | SnapshotError::NotASkill) => return None,
            Err(error) => Err(problem(error.to_string())),
        };
        Some((entry(*form, found), fresh))
    }
}

fn contents(snapshot: &Snapshot, place: &SkillPlace) -> Result<ReadableSkill, String> {
    let manifest = snapshot.manifest(&place.entry).map_err(|error| error.to_string())?;
    Ok(ReadableSkill {
        name: manifest.name,
        written: manifest.written,
        description: manifest.description,
        conforms: manifest.strict.is_empty(),
        hash: snapshot.hash,
        modes: snapshot.modes,
        unavailable: unavailable(snapshot).into_iter().map(|one| one.name).take(MAX_UNAVAILABLE).collect(),
    })
}

/// The name derived from an entry.
fn stem(entry: &str) -> &str {
    match SkillForm::of_file(entry) {
        Some(_) => entry.rsplit_once('.').map_or(entry, |(stem, _)| stem),
        None => entry,
    }
}

/// Makes the home's own root if it is missing.
///
/// # Errors
/// If it cannot be made.
pub(super) fn make(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

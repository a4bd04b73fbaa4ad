//! The index (`.git/index`): read in versions 2 to 4, written in 2 or 3.
//!
//! It survives entries whose paths leave the working tree: they are refused when the index is read.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;
use gix_index::entry::{Flags, Mode, Stat};
use gix_index::{State, decode, write};

use crate::error::{Fault, Result};
use crate::limits::{MAX_FILES, MAX_INDEX_BYTES};
use crate::objects::HASH;
use crate::refs::lock;
use crate::repository::{Repository, check_path, read_small};
use crate::worktree;

/// Modes of files as git writes them.
pub(crate) mod mode {
    pub(crate) const FILE: u32 = 0o100_644;
    pub(crate) const EXECUTABLE: u32 = 0o100_755;
    pub(crate) const LINK: u32 = 0o120_000;
    pub(crate) const SUBMODULE: u32 = 0o160_000;
    pub(crate) const TREE: u32 = 0o040_000;

    /// Whether this is the mode of a regular file.
    pub(crate) fn is_file(mode: u32) -> bool {
        mode & 0o170_000 == 0o100_000
    }
}

/// One entry of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub path: BString,
    /// 0, or the side of a conflict: 1 base, 2 ours, 3 theirs.
    pub stage: u32,
    pub mode: u32,
    pub id: ObjectId,
    pub stat: Stat,
    /// Not looked at in the working tree (`--assume-unchanged`, sparse checkouts).
    pub unwatched: bool,
    /// Named by `add -N` and without content yet.
    pub intended: bool,
    flags: Flags,
}

impl Entry {
    pub(crate) fn new(path: BString, mode: u32, id: ObjectId, stat: Stat) -> Self {
        Self { path, stage: 0, mode, id, stat, unwatched: false, intended: false, flags: Flags::empty() }
    }

    /// An entry that announces a file (`git add -N`).
    pub(crate) fn intended(path: BString, mode: u32, id: ObjectId) -> Self {
        let flags = Flags::INTENT_TO_ADD | Flags::EXTENDED;
        Self { intended: true, flags, ..Self::new(path, mode, id, Stat::default()) }
    }
}

/// The whole index, sorted by path and stage.
#[derive(Debug, Clone)]
pub(crate) struct Index {
    place: PathBuf,
    entries: Vec<Entry>,
    /// When it was written: a file that is not older may have changed since without a trace.
    pub written: Option<SystemTime>,
}

impl Index {
    pub(crate) fn read(place: &Path) -> Result<Self> {
        let mut index = Self { place: place.to_owned(), entries: Vec::new(), written: None };
        let Some(bytes) = read_small(place, MAX_INDEX_BYTES)? else { return Ok(index) };
        index.written = fs::symlink_metadata(place).and_then(|metadata| metadata.modified()).ok();
        let options = decode::Options { thread_limit: Some(1), ..Default::default() };
        let (state, _) = State::from_bytes(&bytes, filetime::FileTime::zero(), HASH, options)
            .map_err(|error| Fault::corrupt(format_args!("the index: {error}")))?;
        if state.link().is_some() {
            return Err(Fault::unsupported("a split index (`core.splitIndex`)"));
        }
        if state.is_sparse() || state.entries().iter().any(|entry| entry.mode.is_sparse()) {
            return Err(Fault::unsupported(
                "a sparse index; `git sparse-checkout reapply --no-sparse-index` expands it",
            ));
        }
        if state.entries().len() > MAX_FILES {
            return Err(Fault::limit(format_args!("the index has more than {MAX_FILES} files")));
        }
        for entry in state.entries() {
            let path = entry.path(&state);
            check_path(path)?;
            index.entries.push(Entry {
                path: path.to_owned(),
                stage: entry.stage_raw(),
                mode: entry.mode.bits(),
                id: entry.id,
                stat: entry.stat,
                unwatched: entry.flags.intersects(Flags::ASSUME_VALID | Flags::SKIP_WORKTREE),
                intended: entry.flags.contains(Flags::INTENT_TO_ADD),
                flags: entry.flags
                    & (Flags::ASSUME_VALID | Flags::SKIP_WORKTREE | Flags::INTENT_TO_ADD | Flags::EXTENDED),
            });
        }
        if !index.entries.is_sorted_by(|one, other| (&one.path, one.stage) < (&other.path, other.stage)) {
            return Err(Fault::corrupt("the index is not sorted, or has a path twice"));
        }
        Ok(index)
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn entries_mut(&mut self) -> &mut [Entry] {
        &mut self.entries
    }

    /// The entry of a path without a conflict.
    pub(crate) fn get(&self, path: &BStr) -> Option<&Entry> {
        self.find(path, 0).ok().and_then(|place| self.entries.get(place))
    }

    /// Whether a path is in the index, also in conflict.
    pub(crate) fn has(&self, path: &BStr) -> bool {
        let place = self.entries.partition_point(|entry| entry.path.as_bstr() < path);
        self.entries.get(place).is_some_and(|entry| entry.path == path)
    }

    fn find(&self, path: &BStr, stage: u32) -> std::result::Result<usize, usize> {
        self.entries.binary_search_by(|entry| (entry.path.as_bstr(), entry.stage).cmp(&(path, stage)))
    }

    /// Whether a file below this directory is in the index.
    pub(crate) fn has_below(&self, directory: &BStr) -> bool {
        let start = [directory.as_bytes(), b"/"].concat();
        let place = self.entries.partition_point(|entry| entry.path.as_bytes() < start.as_slice());
        self.entries.get(place).is_some_and(|entry| entry.path.starts_with(&start))
    }

    pub(crate) fn has_conflicts(&self) -> bool {
        self.entries.iter().any(|entry| entry.stage != 0)
    }

    /// Puts an entry in, in place of all others of its path, of a directory above it, or below it.
    pub(crate) fn put(&mut self, entry: Entry) -> Result<()> {
        check_path(entry.path.as_bstr())?;
        if let Ok(place) = self.find(entry.path.as_bstr(), 0) {
            if let Some(old) = self.entries.get_mut(place) {
                *old = entry;
            }
            return Ok(());
        }
        let below = [entry.path.as_bytes(), b"/"].concat();
        self.entries.retain(|old| {
            let above = entry.path.strip_prefix(old.path.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"));
            old.path != entry.path && !above && !old.path.starts_with(&below)
        });
        let place = self.find(entry.path.as_bstr(), 0).unwrap_or_else(|place| place);
        self.entries.insert(place, entry);
        Ok(())
    }

    /// Takes out all entries of a path.
    pub(crate) fn remove(&mut self, path: &BStr) {
        let start = self.entries.partition_point(|entry| entry.path.as_bstr() < path);
        let count = self.entries.iter().skip(start).take_while(|entry| entry.path == path).count();
        self.entries.drain(start..start.saturating_add(count));
    }

    /// Replaces all entries with those of another state; they have to be sorted.
    pub(crate) fn replace(&mut self, entries: Vec<Entry>) {
        self.entries = entries;
    }

    /// Prepares entries for an index of a later time: a file that was changed in the same moment as the old index was written
    /// would look unchanged then, so its size is forgotten, which makes the next look read it.
    pub(crate) fn settle(&mut self, repository: &Repository) -> Result<()> {
        let Some(written) = self.written.take() else { return Ok(()) };
        let written = stat(0, Some(written)).mtime;
        let racy: Vec<usize> = self
            .entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| {
                entry.stage == 0 && !entry.unwatched && entry.stat.size > 0 && entry.stat.mtime >= written
            })
            .map(|(place, _)| place)
            .collect();
        for place in racy {
            let Some(entry) = self.entries.get(place) else { continue };
            let same = worktree::compare(repository, self, entry)? == worktree::Change::Same;
            if let Some(entry) = self.entries.get_mut(place).filter(|_| !same) {
                entry.stat.size = 0;
            }
        }
        Ok(())
    }

    /// Writes the index under its lock.
    pub(crate) fn write(&self) -> Result<()> {
        let locked = self.place.with_extension("lock");
        let mut file = lock(&locked, "the index cannot be written")?;
        let written = self.encode().and_then(|bytes| {
            file.write_all(&bytes)
                .and_then(|()| fs::rename(&locked, &self.place))
                .map_err(|error| Fault::fatal(format_args!("unable to write the index: {error}")))
        });
        if written.is_err() {
            // The fault is the answer, whether or not the lock can be removed.
            drop(fs::remove_file(&locked));
        }
        written
    }

    fn encode(&self) -> Result<Vec<u8>> {
        let mut state = State::new(HASH);
        for entry in &self.entries {
            let stage = Flags::from_bits_truncate(entry.stage.wrapping_shl(12)) & Flags::STAGE_MASK;
            let mode = Mode::from_bits_retain(entry.mode);
            state.dangerously_push_entry(entry.stat, entry.id, stage | entry.flags, mode, entry.path.as_bstr());
        }
        let mut bytes = Vec::new();
        let options = write::Options { extensions: write::Extensions::None, skip_hash: false };
        state
            .write_to(&mut bytes, options)
            .map_err(|error| Fault::fatal(format_args!("unable to write the index: {error}")))?;
        let mut hasher = gix_hash::hasher(HASH);
        hasher.update(&bytes);
        bytes.extend_from_slice(hasher.try_finalize().map_err(Fault::fatal)?.as_slice());
        Ok(bytes)
    }
}

/// The facts of a file that the index remembers. Only its size and time: WASI tells no more, and git takes zeros as unknown.
pub(crate) fn stat(bytes: u64, modified: Option<SystemTime>) -> Stat {
    let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let mtime =
        gix_index::entry::stat::Time { secs: u32::try_from(since.as_secs()).unwrap_or(0), nsecs: since.subsec_nanos() };
    // Sizes are remembered modulo 2^32, as git does.
    #[expect(clippy::cast_possible_truncation, reason = "the format's own truncation")]
    Stat { mtime, size: bytes as u32, ..Stat::default() }
}

//! A fingerprint of a place from its metadata, without reading a file. It says whether a place is worth reading again;
//! it says nothing about trust, because anyone who can set the clock can make a stamp.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use base::{ContentHasher, Timestamp};
use receipts::tree::{DIRECTORY, Unlisted, Walk};
use rustix::fs::{AtFlags, CWD, FileType, Mode, Stat, fstat, openat, statat};
use serde::{Deserialize, Serialize};

use super::directory::{failed, unslashed};
use super::{SkillBounds, SnapshotError, is_history};

/// The deepest nesting of directories that is followed.
const MAX_DEPTH: usize = 66;
/// How long after a change another change may have the same time: the coarsest clocks of common file systems.
const GRANULE_NS: i128 = 2_000_000_000;

/// A fingerprint of the `stat` data of an entry and of everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Stamp {
    high: u64,
    low: u64,
    /// When the last of them changed, in nanoseconds since the epoch. This time cannot be set back without being root.
    changed_ns: i64,
}

impl Stamp {
    /// Whether a change after it was taken would have shown: not right after another change, because both may have the
    /// same time.
    #[must_use]
    pub fn is_settled(&self, now: Timestamp) -> bool {
        i128::from(self.changed_ns) + GRANULE_NS < i128::from(now.as_millis()) * 1_000_000
    }
}

/// The stamp of a place.
///
/// # Errors
/// If the path is missing, or its metadata cannot be read.
pub fn stamp(path: &Path) -> Result<Stamp, SnapshotError> {
    let path = unslashed(path);
    let name = path.file_name().unwrap_or_default().as_bytes();
    // A place that has more entries cannot be read anyway.
    let mut stamping =
        Stamping { hasher: ContentHasher::default(), changed_ns: i64::MIN, left: SkillBounds::default().entries + 2 };
    match openat(CWD, &path, DIRECTORY, Mode::empty()) {
        Ok(directory) => stamping.directory(directory, name)?,
        Err(_) => {
            let status = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| failed("", error))?;
            stamping.note(name, &status, 0);
        }
    }
    Ok(stamping.finish())
}

struct Stamping {
    hasher: ContentHasher,
    changed_ns: i64,
    /// How many entries are still looked at.
    left: u64,
}

impl Stamping {
    fn directory(&mut self, directory: OwnedFd, name: &[u8]) -> Result<(), SnapshotError> {
        self.note(name, &fstat(&directory).map_err(|error| failed("", error))?, 0);
        // A directory that has too many entries is not listed.
        let listed = |list, path: &str| match list {
            Ok(count) => Ok(count),
            Err(Unlisted::TooMany) => Ok(0),
            Err(Unlisted::Failed(error)) => Err(failed(path, error)),
        };
        let mut tree = Walk::new(directory);
        self.left -= listed(tree.list(None, self.left), "")?;
        // An entry that is no part of the skill does not count, and may have more entries than are looked at.
        while let Some(entry) = tree.by_ref().find(|entry| !is_history(&entry.path)) {
            let status = entry.stat().map_err(|error| failed(&entry.path, error))?;
            self.note(entry.name.to_bytes(), &status, entry.depth);
            if FileType::from_raw_mode(status.st_mode) == FileType::Directory && entry.depth < MAX_DEPTH {
                self.left -= listed(tree.list(Some(&entry), self.left), &entry.path)?;
            }
        }
        Ok(())
    }

    fn note(&mut self, name: &[u8], status: &Stat, depth: usize) {
        let (mtime, ctime) =
            (nanos(status.st_mtime, status.st_mtime_nsec), nanos(status.st_ctime, status.st_ctime_nsec));
        self.changed_ns = self.changed_ns.max(ctime);
        let mut record = [0_u8; 72];
        let fields = [
            depth as u64,
            name.len() as u64,
            status.st_size as u64,
            mtime as u64,
            ctime as u64,
            status.st_ino,
            status.st_dev,
            u64::from(status.st_mode),
            status.st_nlink,
        ];
        for (slot, field) in record.chunks_exact_mut(8).zip(fields) {
            slot.copy_from_slice(&field.to_be_bytes());
        }
        self.hasher.update(&record);
        self.hasher.update(name);
    }

    fn finish(self) -> Stamp {
        let hash = self.hasher.finish();
        let word =
            |at: usize| hash.as_bytes().iter().skip(at).take(8).fold(0, |word, &byte| word << 8 | u64::from(byte));
        Stamp { high: word(0), low: word(8), changed_ns: self.changed_ns }
    }
}

fn nanos(seconds: i64, nanos: impl TryInto<i64>) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos.try_into().unwrap_or(0))
}

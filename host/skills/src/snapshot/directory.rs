//! Reads skills from the disk.
//!
//! Every step goes from an open directory to a name in it and follows no link, the skill's own entry included, so
//! nothing outside is read, even if files are moved during the read. Pipes and devices are not opened. A file that is
//! read did not change from beginning to end, as far as the system can tell.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IoSliceMut, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use receipts::tree::{DIRECTORY, FILE, Unlisted, Walk};
use rustix::fs::{AtFlags, CWD, FileType, Mode, Stat, fstat, openat, statat};
use rustix::io::Errno;

use super::archive::read_archive;
use super::rules::Rules;
use super::{PROPOSAL_BYTES, SkillBounds, SkillForm, Snapshot, SnapshotError, is_history, is_proposal, read_component};

/// How often a file that changes during the read is read.
const ATTEMPTS: usize = 2;
/// Bytes of an archive beyond the limit of its files: names and headers.
const ARCHIVE_EXTRA_BYTES: u64 = 1 << 20;

/// Reads a skill of any form. This is the only time that its bytes are read.
///
/// # Errors
/// If it is not a skill, breaks a rule, or cannot be read.
pub fn read(path: &Path, bounds: &SkillBounds) -> Result<Snapshot, SnapshotError> {
    let path = unslashed(path);
    match openat(CWD, &path, DIRECTORY, Mode::empty()) {
        Ok(directory) => {
            let mut reading = DirectoryReading::new(bounds, bounds.entries, &|_| true);
            reading.directory(directory)?;
            reading.rules.finish(SkillForm::Directory)?;
            let snapshot = Snapshot::of(SkillForm::Directory, reading.files, reading.proposal);
            Ok(Snapshot { has_history: reading.has_history, ..snapshot })
        }
        // It is not a directory, or it is a link.
        Err(Errno::NOTDIR | Errno::LOOP) => read_file(&path, bounds),
        Err(error) => Err(failed("", error)),
    }
}

fn read_file(path: &Path, bounds: &SkillBounds) -> Result<Snapshot, SnapshotError> {
    let status = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| failed("", error))?;
    match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => {}
        FileType::Symlink => return Err(SnapshotError::Link { path: String::new() }),
        FileType::Directory => return Err(SnapshotError::Changed { path: String::new() }),
        _ => return Err(SnapshotError::Special { path: String::new() }),
    }
    let name = path.file_name().unwrap_or_default();
    let entry = name.to_str().ok_or_else(|| SnapshotError::path(&name.to_string_lossy(), "is not UTF-8"))?;
    let form = SkillForm::of_file(entry).ok_or(SnapshotError::NotASkill)?;
    let open = || openat(CWD, path, FILE, Mode::empty()).map(File::from);
    if form == SkillForm::Component {
        let (bytes, mode) = file(open, "", bounds.component_bytes)?;
        return read_component(bytes, entry, mode, bounds);
    }
    let (bytes, _) = file(open, "", bounds.component_bytes.saturating_add(ARCHIVE_EXTRA_BYTES))?;
    read_archive(&bytes, bounds)
}

/// The path without a slash at its end, with which the system would follow a link there. The parts before the last may
/// be links: they were named when the root was set up.
pub(super) fn unslashed(path: &Path) -> PathBuf {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    }
}

/// Reads the files below an open directory whose paths `keep` accepts; it enters no other directories. Returns content
/// and permission bits by path. Of other entries only the names are read, at most `most_listed` in each directory.
///
/// # Errors
/// If a kept entry breaks a rule or cannot be read, or a directory has too many entries.
pub(crate) fn read_kept(
    directory: OwnedFd,
    bounds: &SkillBounds,
    most_listed: u64,
    keep: &dyn Fn(&str) -> bool,
) -> Result<DirectoryContents, SnapshotError> {
    let mut reading = DirectoryReading::new(bounds, most_listed, keep);
    reading.directory(directory)?;
    Ok(reading.files)
}

/// Content and permission bits by path.
pub(crate) type DirectoryContents = BTreeMap<String, (Arc<[u8]>, u32)>;

struct DirectoryReading<'a> {
    rules: Rules<'a>,
    most_listed: u64,
    keep: &'a dyn Fn(&str) -> bool,
    files: DirectoryContents,
    proposal: Option<Arc<[u8]>>,
    has_history: bool,
}

impl<'a> DirectoryReading<'a> {
    fn new(bounds: &'a SkillBounds, most_listed: u64, keep: &'a dyn Fn(&str) -> bool) -> Self {
        Self {
            rules: Rules::new(bounds),
            most_listed,
            keep,
            files: BTreeMap::new(),
            proposal: None,
            has_history: false,
        }
    }

    /// Reads a directory, as deep as the rules allow.
    fn directory(&mut self, directory: OwnedFd) -> Result<(), SnapshotError> {
        let most = self.most_listed;
        let unlisted = |path: &str, error| match error {
            Unlisted::Failed(error) => failed(path, error),
            Unlisted::TooMany => SnapshotError::TooMany { limit: most },
        };
        let mut tree = Walk::new(directory);
        tree.list(None, most).map_err(|error| unlisted("", error))?;
        while let Some(entry) = tree.next() {
            let path = entry.path.clone();
            if is_history(&path) {
                self.has_history = true;
                continue;
            }
            if !(self.keep)(&path) {
                continue;
            }
            if entry.name.to_str().is_err() {
                return Err(SnapshotError::path(&path, "has a name that is not UTF-8"));
            }
            match entry.kind().map_err(|error| failed(&path, error))? {
                FileType::Directory => {
                    self.rules.directory(&path)?;
                    tree.list(Some(&entry), most).map_err(|error| unlisted(&path, error))?;
                }
                FileType::RegularFile if is_proposal(&path) => {
                    self.rules.file(&path)?;
                    self.proposal = Some(file(|| entry.open(), &path, PROPOSAL_BYTES)?.0);
                }
                FileType::RegularFile => {
                    self.rules.file(&path)?;
                    let room = self.rules.room(&path);
                    let read = match file(|| entry.open(), &path, room) {
                        // The rules say which of them it broke.
                        Err(SnapshotError::TooLarge { .. }) => {
                            self.rules.sized(&path, room.saturating_add(1))?;
                            return Err(SnapshotError::TooLarge { path, limit: room });
                        }
                        read => read?,
                    };
                    self.rules.sized(&path, read.0.len() as u64)?;
                    self.files.insert(path, read);
                }
                FileType::Symlink => return Err(SnapshotError::Link { path }),
                _ => return Err(SnapshotError::Special { path }),
            }
        }
        Ok(())
    }
}

/// A file's bytes and permission bits, as they were before and after it was read.
pub(super) fn file(
    open: impl Fn() -> Result<File, Errno>,
    path: &str,
    most_bytes: u64,
) -> Result<(Arc<[u8]>, u32), SnapshotError> {
    for _ in 0..ATTEMPTS {
        let mut opened = open().map_err(|error| failed(path, error))?;
        let before = fstat(&opened).map_err(|error| failed(path, error))?;
        if FileType::from_raw_mode(before.st_mode) != FileType::RegularFile {
            return Err(SnapshotError::Special { path: path.to_owned() });
        }
        // Its other name may be outside, where a write would change this file.
        if before.st_nlink > 1 {
            return Err(SnapshotError::HardLink { path: path.to_owned() });
        }
        let bytes = u64::try_from(before.st_size).unwrap_or(u64::MAX);
        if bytes > most_bytes {
            return Err(SnapshotError::TooLarge { path: path.to_owned(), limit: most_bytes });
        }
        let io = |source| SnapshotError::Io { path: path.to_owned(), source };
        let Some(content) = exactly(&mut opened, usize::try_from(bytes).unwrap_or(usize::MAX)).map_err(io)? else {
            continue;
        };
        let after = fstat(&opened).map_err(|error| failed(path, error))?;
        if same(&before, &after) {
            return Ok((content, before.st_mode & 0o7777));
        }
    }
    Err(SnapshotError::Changed { path: path.to_owned() })
}

/// The content of a file of exactly `bytes` bytes; `None` if it has fewer or more.
fn exactly(file: &mut File, bytes: usize) -> io::Result<Option<Arc<[u8]>>> {
    let mut content: Arc<[u8]> = std::iter::repeat_n(0, bytes).collect();
    // There is no other reference yet.
    let Some(mut left) = Arc::get_mut(&mut content) else { return Ok(None) };
    loop {
        // Asks for one byte more, so that one call shows the end too.
        let beyond = &mut [0];
        let expected = left.len();
        match file.read_vectored(&mut [IoSliceMut::new(left), IoSliceMut::new(beyond)]) {
            Ok(read) if read == expected => return Ok(Some(content)),
            Ok(read) if read > expected || read == 0 => return Ok(None),
            Ok(read) => left = left.get_mut(read..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn same(before: &Stat, after: &Stat) -> bool {
    let of = |s: &Stat| (s.st_size, s.st_mtime, s.st_mtime_nsec, s.st_ctime, s.st_ctime_nsec, s.st_mode, s.st_nlink);
    of(before) == of(after)
}

pub(super) fn failed(path: &str, error: Errno) -> SnapshotError {
    let path = path.to_owned();
    match error {
        Errno::NOENT | Errno::NOTDIR if path.is_empty() => SnapshotError::Missing,
        // It was something else when it was listed.
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO => SnapshotError::Changed { path },
        _ => SnapshotError::Io { path, source: error.into() },
    }
}

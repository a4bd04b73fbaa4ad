//! Reading a directory with untrusted content.
//!
//! Every step goes from a directory that is open to a name in it and follows no link, so nothing outside is ever read,
//! even if entries are moved at the same time. Pipes and devices are not opened. It is bounded in depth, in number and in bytes.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;

use base::{ContentHash, ContentHasher};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat, fstat, openat, statat};
use rustix::io::Errno;

/// Opens a directory, and no link to one.
pub const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW).union(OFlags::DIRECTORY);
/// Opens a file, and no link to one. Without waiting: it may have become a pipe.
pub const FILE: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK);
/// Maximum depth of directories within directories.
const MAX_DEPTH: usize = 64;
/// Bytes of all paths together.
const MAX_PATH_BYTES: usize = 4 << 20;

/// The limits of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLimits {
    /// Files, directories and anything else in it.
    pub entries: u64,
    /// Bytes of all its files.
    pub bytes: u64,
}

/// The treatment of entries that are neither files nor directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Odd {
    /// There must be none.
    Refused,
    /// They are passed over.
    Ignored,
}

/// Why a directory cannot be read. Paths are relative to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The system says no.
    #[error("{} cannot be read", named(path))]
    Io {
        /// Path of the entry.
        path: String,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// It has something that is no file.
    #[error("`{path}` is neither a file nor a directory")]
    Odd {
        /// Path of the entry.
        path: String,
    },
    /// A name is no text.
    #[error("the name of `{path}` is not UTF-8")]
    Name {
        /// Where, unreadable parts replaced.
        path: String,
    },
    /// It is nested too deeply.
    #[error("`{path}` is more than {MAX_DEPTH} directories deep")]
    Deep {
        /// Path of the entry.
        path: String,
    },
    /// It has too much in it.
    #[error("it has more than {limit} {unit}")]
    TooMuch {
        /// How much is possible.
        limit: u64,
        /// The counted unit, in words.
        unit: &'static str,
    },
}

fn named(path: &str) -> String {
    if path.is_empty() { "the directory".to_owned() } else { format!("`{path}`") }
}

/// A file's size and content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum {
    /// Number of bytes read.
    pub bytes: u64,
    /// Hash of these bytes.
    pub hash: ContentHash,
}

/// The known facts of a file while the directory is read.
#[derive(Debug)]
pub struct FoundEntry {
    /// Relative, `/` between the parts.
    pub path: String,
    /// Open for reading, at its beginning.
    pub file: File,
}

/// Visits every file, in no order that counts. `skip` is asked about each path before it is looked at.
///
/// # Errors
/// If the directory exceeds the bounds or cannot be read, or `visit` fails.
pub fn walk<E: From<TreeError>>(
    root: &Path,
    entries: u64,
    odd: Odd,
    skip: impl Fn(&str) -> bool,
    mut visit: impl FnMut(FoundEntry) -> Result<(), E>,
) -> Result<(), E> {
    // The root is the caller's to name, by a link if he likes.
    let root = openat(CWD, root, DIRECTORY.difference(OFlags::NOFOLLOW), Mode::empty());
    let unlisted = |path: &str, error| match error {
        Unlisted::Failed(error) => io_at(path, error.into()),
        Unlisted::TooMany => too_many(entries),
    };
    let mut tree = Walk::new(root.map_err(|error| io_at("", error.into()))?);
    tree.list(None, entries).map_err(|error| unlisted("", error))?;
    let (mut seen, mut path_bytes) = (0, 0);
    while let Some(entry) = tree.next() {
        if entry.name.to_str().is_err() {
            return Err(TreeError::Name { path: entry.path }.into());
        }
        if skip(&entry.path) {
            continue;
        }
        seen += 1;
        path_bytes += entry.path.len();
        if seen > entries {
            return Err(too_many(entries).into());
        }
        if path_bytes > MAX_PATH_BYTES {
            return Err(TreeError::TooMuch { limit: MAX_PATH_BYTES as u64, unit: "bytes of names" }.into());
        }
        let failed = |error: Errno| io_at(&entry.path, error.into());
        match entry.kind().map_err(failed)? {
            FileType::Directory => {
                if entry.depth >= MAX_DEPTH {
                    return Err(TreeError::Deep { path: entry.path }.into());
                }
                let room = entries.saturating_sub(tree.waiting.len() as u64);
                tree.list(Some(&entry), room).map_err(|error| unlisted(&entry.path, error))?;
            }
            FileType::RegularFile => {
                let file = entry.open().map_err(failed)?;
                if FileType::from_raw_mode(fstat(&file).map_err(failed)?.st_mode) != FileType::RegularFile {
                    return Err(TreeError::Odd { path: entry.path }.into());
                }
                visit(FoundEntry { path: entry.path, file })?;
            }
            _ if odd == Odd::Refused => return Err(TreeError::Odd { path: entry.path }.into()),
            _ => {}
        }
    }
    Ok(())
}

/// The hash of every file, by path.
///
/// # Errors
/// When the directory exceeds the bounds or cannot be read.
pub fn sums(
    root: &Path,
    bounds: TreeLimits,
    odd: Odd,
    skip: impl Fn(&str) -> bool,
) -> Result<BTreeMap<String, Sum>, TreeError> {
    let mut found = BTreeMap::new();
    let mut left = bounds.bytes;
    walk(root, bounds.entries, odd, skip, |FoundEntry { path, mut file }| {
        let sum = sum(&mut file, left.saturating_add(1)).map_err(|error| io_at(&path, error))?;
        left = left.checked_sub(sum.bytes).ok_or(TreeError::TooMuch { limit: bounds.bytes, unit: "bytes of files" })?;
        found.insert(path, sum);
        Ok::<(), TreeError>(())
    })?;
    Ok(found)
}

/// Hashes at most `most_bytes` bytes of a reader.
///
/// # Errors
/// If reading fails.
pub fn sum(from: &mut impl Read, most_bytes: u64) -> io::Result<Sum> {
    let mut from = from.take(most_bytes);
    let mut hasher = ContentHasher::default();
    let mut buffer = vec![0; 64 << 10];
    let mut bytes = 0;
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(Sum { bytes, hash: hasher.finish() }),
            Ok(read) => {
                hasher.update(buffer.get(..read).unwrap_or_default());
                bytes += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A walk below an open directory: each directory before its entries, these by name. The caller decides which directories
/// are listed.
#[derive(Debug)]
pub struct Walk {
    root: OwnedFd,
    /// The next one last.
    waiting: Vec<Entry>,
}

/// An entry of a directory, which stays open for as long as one of its entries is kept.
#[derive(Debug)]
pub struct Entry {
    parent: Rc<OwnedFd>,
    /// The name in its directory.
    pub name: CString,
    kind: FileType,
    /// Relative to the root, `/` between the parts; parts of names that are not UTF-8 are replaced.
    pub path: String,
    /// Number of parts of the path.
    pub depth: usize,
}

/// Why a directory cannot be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unlisted {
    /// The system refuses to read it.
    Failed(Errno),
    /// It has more entries than asked for.
    TooMany,
}

impl Walk {
    /// A walk that has nothing listed yet.
    #[must_use]
    pub fn new(root: OwnedFd) -> Self {
        Self { root, waiting: Vec::new() }
    }

    /// Lists a directory, the root if `None`: its entries, at most `most`, come next. Returns their number.
    ///
    /// # Errors
    /// If it cannot be read or has more entries.
    pub fn list(&mut self, directory: Option<&Entry>, most: u64) -> Result<u64, Unlisted> {
        // Each listing opens the directory: an open one remembers the position of the listing before.
        let (opened, prefix, depth) = match directory {
            None => (openat(&self.root, c".", DIRECTORY, Mode::empty()), String::new(), 1),
            Some(entry) => (entry.open_directory(), format!("{}/", entry.path), entry.depth + 1),
        };
        let parent = Rc::new(opened.map_err(Unlisted::Failed)?);
        let mut buffer = [MaybeUninit::<u8>::uninit(); 8 << 10];
        let mut found = Vec::new();
        let mut list = RawDir::new(&*parent, &mut buffer);
        while let Some(listed) = list.next() {
            let listed = listed.map_err(Unlisted::Failed)?;
            let (name, kind) = (listed.file_name().to_owned(), listed.file_type());
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if found.len() as u64 >= most {
                return Err(Unlisted::TooMany);
            }
            let path = format!("{prefix}{}", name.to_string_lossy());
            found.push(Entry { parent: parent.clone(), name, kind, path, depth });
        }
        let count = found.len() as u64;
        found.sort_unstable_by(|one, other| other.name.cmp(&one.name));
        self.waiting.append(&mut found);
        Ok(count)
    }
}

impl Iterator for Walk {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        self.waiting.pop()
    }
}

impl Entry {
    /// The type of the entry itself, not of a link's target.
    ///
    /// # Errors
    /// If the system's list does not say it and the entry cannot be looked at.
    pub fn kind(&self) -> Result<FileType, Errno> {
        match self.kind {
            FileType::Unknown => Ok(FileType::from_raw_mode(self.stat()?.st_mode)),
            known => Ok(known),
        }
    }

    /// The status of the entry itself, not of a link's target.
    ///
    /// # Errors
    /// If the entry cannot be looked at.
    pub fn stat(&self) -> Result<Stat, Errno> {
        statat(&*self.parent, &*self.name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Opens the entry as a directory.
    ///
    /// # Errors
    /// If it is no directory, or cannot be opened.
    pub fn open_directory(&self) -> Result<OwnedFd, Errno> {
        openat(&*self.parent, &*self.name, DIRECTORY, Mode::empty())
    }

    /// Opens it as a file; it may be something else by then.
    ///
    /// # Errors
    /// If it is a link, or cannot be opened.
    pub fn open(&self) -> Result<File, Errno> {
        openat(&*self.parent, &*self.name, FILE, Mode::empty()).map(File::from)
    }
}

fn too_many(limit: u64) -> TreeError {
    TreeError::TooMuch { limit, unit: "files and directories" }
}

fn io_at(path: &str, source: io::Error) -> TreeError {
    TreeError::Io { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;

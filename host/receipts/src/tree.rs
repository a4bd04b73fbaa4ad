//! Reading a directory that somebody else filled.
//!
//! Every step goes from a directory that is open to a name in it and follows no link, so nothing outside is ever read,
//! whatever is moved meanwhile. Pipes and devices are not opened. It is bounded in depth, in number and in bytes.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;

use base::{ContentHash, ContentHasher};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, statat};

/// Directories within directories.
const MAX_DEPTH: usize = 64;
/// Bytes of all paths together.
const MAX_PATH_BYTES: usize = 4 << 20;

/// What a directory may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLimits {
    /// Files, directories and anything else in it.
    pub entries: u64,
    /// Bytes of all its files.
    pub bytes: u64,
}

/// What to do about entries that are neither files nor directories.
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
        /// Where.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It has something that is no file.
    #[error("`{path}` is neither a file nor a directory")]
    Odd {
        /// Where.
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
        /// Where.
        path: String,
    },
    /// It has too much in it.
    #[error("it has more than {limit} {unit}")]
    TooMuch {
        /// How much is possible.
        limit: u64,
        /// Of what.
        unit: &'static str,
    },
}

fn named(path: &str) -> String {
    if path.is_empty() { "the directory".to_owned() } else { format!("`{path}`") }
}

/// A file's size and content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum {
    /// Bytes.
    pub bytes: u64,
    /// Of these bytes.
    pub hash: ContentHash,
}

/// What is known of a file while the directory is read.
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
/// When the directory exceeds the bounds or cannot be read, and what `visit` says.
pub fn walk<E: From<TreeError>>(
    root: &Path,
    entries: u64,
    odd: Odd,
    skip: impl Fn(&str) -> bool,
    mut visit: impl FnMut(FoundEntry) -> Result<(), E>,
) -> Result<(), E> {
    let open = OFlags::RDONLY | OFlags::CLOEXEC;
    let directory = open | OFlags::DIRECTORY;
    // The root is the caller's to name, by a link if he likes.
    let root = openat(CWD, root, directory, Mode::empty()).map_err(|error| io_at("", error.into()))?;
    let mut waiting = Vec::new();
    list(root, "", entries, &mut waiting)?;
    let (mut seen, mut path_bytes) = (0, 0);
    while let Some(OpenDirectory { parent, name, path }) = waiting.pop() {
        if skip(&path) {
            continue;
        }
        seen += 1;
        path_bytes += path.len();
        if seen > entries {
            return Err(too_many(entries).into());
        }
        if path_bytes > MAX_PATH_BYTES {
            return Err(TreeError::TooMuch { limit: MAX_PATH_BYTES as u64, unit: "bytes of names" }.into());
        }
        let failed = |error: rustix::io::Errno| io_at(&path, error.into());
        let status = statat(&*parent, &*name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        match FileType::from_raw_mode(status.st_mode) {
            FileType::Directory => {
                if path.matches('/').count() + 1 >= MAX_DEPTH {
                    return Err(TreeError::Deep { path }.into());
                }
                let opened = openat(&*parent, &*name, directory | OFlags::NOFOLLOW, Mode::empty()).map_err(failed)?;
                list(opened, &path, entries, &mut waiting)?;
            }
            FileType::RegularFile => {
                // Without waiting: what was a file may be a pipe by now.
                let flags = open | OFlags::NOFOLLOW | OFlags::NONBLOCK;
                let opened = openat(&*parent, &*name, flags, Mode::empty()).map_err(failed)?;
                let is_file = FileType::from_raw_mode(fstat(&opened).map_err(failed)?.st_mode) == FileType::RegularFile;
                if !is_file {
                    return Err(TreeError::Odd { path }.into());
                }
                visit(FoundEntry { path, file: File::from(opened) })?;
            }
            _ if odd == Odd::Refused => return Err(TreeError::Odd { path }.into()),
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

/// Hashes what can be read, at most so many bytes.
///
/// # Errors
/// When reading fails.
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

/// An entry that was not looked at yet. Its directory stays open for as long as one of its entries waits.
struct OpenDirectory {
    parent: Rc<OwnedFd>,
    name: CString,
    path: String,
}

fn list(directory: OwnedFd, prefix: &str, most: u64, waiting: &mut Vec<OpenDirectory>) -> Result<(), TreeError> {
    let failed = |error: rustix::io::Errno| io_at(prefix, error.into());
    let parent = Rc::new(directory);
    for entry in Dir::read_from(&*parent).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let within = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
        let text = name.to_str().map_err(|_| TreeError::Name { path: within(&name.to_string_lossy()) })?;
        let path = within(text);
        waiting.push(OpenDirectory { parent: parent.clone(), name: name.to_owned(), path });
        if waiting.len() as u64 > most {
            return Err(too_many(most));
        }
    }
    Ok(())
}

fn too_many(limit: u64) -> TreeError {
    TreeError::TooMuch { limit, unit: "files and directories" }
}

fn io_at(path: &str, source: io::Error) -> TreeError {
    TreeError::Io { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;

//! A directory on the disk through one open handle: each path is looked up below it, and no link is followed.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, RenameFlags, ResolveFlags, Statx, StatxFlags, mkdirat, openat,
    openat2, readlinkat, renameat_with, statx, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::error::{LayerError, Result};
use crate::path;

/// The kinds of entries that a run can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// The entry is a regular file.
    File,
    /// The entry is a directory.
    Directory,
    /// The entry is a symbolic link.
    Symlink,
}

impl FileKind {
    /// `None`: devices, pipes and sockets are not visible.
    fn of(found: FileType) -> Option<Self> {
        match found {
            FileType::RegularFile => Some(Self::File),
            FileType::Directory => Some(Self::Directory),
            FileType::Symlink => Some(Self::Symlink),
            _ => None,
        }
    }
}

/// The facts of a file or directory.
#[derive(Debug, Clone, Copy)]
pub struct Stat {
    /// The kind of entry.
    pub kind: FileKind,
    /// Bytes of a file.
    pub size: u64,
    /// Number of names of the same file.
    pub links: u64,
    /// The device that it is on.
    pub device: u64,
    /// Its inode number on that device.
    pub inode: u64,
    /// Its permission bits, without special ones.
    pub mode: u32,
    /// The time of the last access.
    pub accessed: SystemTime,
    /// The time of the last change of the content.
    pub modified: SystemTime,
    /// The time of the last change of content, name or mode; programs cannot set it.
    pub changed: SystemTime,
    /// The time at which it was made, where the file system knows.
    pub made: Option<SystemTime>,
}

/// No link is followed, and nothing above the handle is reached.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);
/// A file may have become a pipe: opening it does not wait.
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW);

/// An open directory, with everything below it.
#[derive(Debug)]
pub struct Tree(OwnedFd);

impl Tree {
    /// Opens a directory by its path on this machine.
    pub fn open(directory: &Path) -> Result<Self> {
        let opened = openat(CWD, directory, DIRECTORY.difference(OFlags::NOFOLLOW), Mode::empty());
        Ok(Self(opened.map_err(io::Error::from)?))
    }

    /// Opens a directory below this one, `None` if it is missing.
    pub fn directory(&self, at: &str) -> Result<OwnedFd, Errno> {
        openat2(&self.0, dot(at), DIRECTORY, Mode::empty(), BENEATH)
    }

    /// A handle of a directory that leads to its entries, and reads nothing.
    ///
    /// # Errors
    /// [`Errno::LOOP`] if a part is a link.
    pub fn handle_of(&self, at: &str) -> Result<OwnedFd, Errno> {
        openat2(&self.0, dot(at), OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY, Mode::empty(), BENEATH)
    }

    /// The facts of the entry at a path; a link is not followed.
    ///
    /// # Errors
    /// [`Errno::LOOP`] if a part before the last is a link.
    pub fn stat(&self, at: &str) -> Result<Stat, Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let found = openat2(&self.0, dot(at), flags, Mode::empty(), BENEATH)?;
        stat_of(&found)
    }

    /// The target of a link.
    pub fn read_link(&self, at: &str) -> Result<String> {
        let (parent, name) = self.parent(at)?;
        let target = readlinkat(parent, name, Vec::new())?;
        // A guest's paths are text.
        target.into_string().map_err(|_| LayerError::Unsupported)
    }

    /// Opens a file for reading.
    pub fn read(&self, at: &str) -> Result<File, Errno> {
        openat2(&self.0, at, READ, Mode::empty(), BENEATH).map(File::from)
    }

    /// Opens a file of the layer for writing.
    pub fn write(&self, at: &str, flags: OFlags) -> Result<File, Errno> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o644) } else { Mode::empty() };
        openat2(&self.0, at, flags, mode, BENEATH).map(File::from)
    }

    /// The names in a directory with their kinds. Names that are not text, and entries that are neither file, directory nor
    /// link, are left out: a run could not name or open them.
    pub fn list(&self, at: &str) -> Result<Vec<(String, FileKind)>, Errno> {
        let directory = self.directory(at)?;
        let mut buffer = Vec::with_capacity(32 << 10);
        let mut list = RawDir::new(&directory, buffer.spare_capacity_mut());
        let mut found = Vec::new();
        while let Some(entry) = list.next() {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => match self.stat(&path::join(at, name)) {
                    Ok(found) => Some(found.kind),
                    Err(Errno::NOENT) => None,
                    Err(error) => return Err(error),
                },
                known => FileKind::of(known),
            };
            found.extend(kind.map(|kind| (name.to_owned(), kind)));
        }
        Ok(found)
    }

    /// Makes a directory of the layer.
    pub fn make_directory(&self, at: &str) -> Result<(), Errno> {
        let (parent, name) = self.parent(at)?;
        mkdirat(parent, name, Mode::from_raw_mode(0o755))
    }

    /// Makes a directory that no other user may look into.
    ///
    /// # Errors
    /// As `mkdir` has them.
    pub fn make_private_directory(&self, at: &str) -> Result<(), Errno> {
        let (parent, name) = self.parent(at)?;
        mkdirat(parent, name, Mode::from_raw_mode(0o700))
    }

    /// Opens a directory below this one as a tree of its own.
    ///
    /// # Errors
    /// If it is missing, or no directory.
    pub fn below(&self, at: &str) -> Result<Self, Errno> {
        self.directory(at).map(Self)
    }

    /// Makes a symbolic link in the tree.
    ///
    /// # Errors
    /// As `symlink` has them.
    pub fn symlink(&self, target: &str, at: &str) -> Result<(), Errno> {
        let (parent, name) = self.parent(at)?;
        symlinkat(target, parent, name)
    }

    /// Makes a directory of the layer and those above it, as far as they are missing.
    pub fn make_directories(&self, at: &str) -> Result<(), Errno> {
        if at.is_empty() {
            return Ok(());
        }
        match self.make_directory(at) {
            Err(Errno::NOENT) => {
                let (above, _) = path::split(at).ok_or(Errno::NOENT)?;
                self.make_directories(above)?;
                self.make_directories(at)
            }
            Err(Errno::EXIST) => match self.stat(at)?.kind {
                FileKind::Directory => Ok(()),
                _ => Err(Errno::NOTDIR),
            },
            made => made,
        }
    }

    /// Removes a file of the layer.
    pub fn remove(&self, at: &str) -> Result<(), Errno> {
        let (parent, name) = self.parent(at)?;
        unlinkat(parent, name, AtFlags::empty())
    }

    /// Removes an empty directory of the layer.
    pub fn remove_directory(&self, at: &str) -> Result<(), Errno> {
        let (parent, name) = self.parent(at)?;
        unlinkat(parent, name, AtFlags::REMOVEDIR)
    }

    /// Removes a directory of the layer with everything in it.
    pub fn remove_all(&self, at: &str) -> Result<(), Errno> {
        for (name, kind) in self.list(at)? {
            let below = path::join(at, &name);
            match kind {
                FileKind::Directory => self.remove_all(&below)?,
                _ => self.remove(&below)?,
            }
        }
        self.remove_directory(at)
    }

    /// Renames an entry of the layer, possibly into another tree of it.
    pub fn rename(&self, from: &str, to_tree: &Self, to: &str, flags: RenameFlags) -> Result<(), Errno> {
        let (from, name) = self.parent(from)?;
        let (to, new) = to_tree.parent(to)?;
        renameat_with(from, name, to, new, flags)
    }

    fn parent<'a>(&self, at: &'a str) -> Result<(OwnedFd, &'a str), Errno> {
        let (above, name) = path::split(at).ok_or(Errno::INVAL)?;
        Ok((self.directory(above)?, name))
    }

    /// The open directory itself.
    pub fn handle(&self) -> &OwnedFd {
        &self.0
    }
}

fn dot(at: &str) -> CString {
    // A path with a zero byte names nothing.
    CString::new(if at.is_empty() { "." } else { at }).unwrap_or_default()
}

/// The facts of an open file.
///
/// # Errors
/// [`Errno::NOENT`] for an entry that a run cannot see.
pub fn stat_of(opened: &impl AsFd) -> Result<Stat, Errno> {
    facts(statx(opened, c"", AtFlags::EMPTY_PATH, WANTED)?)
}

/// The facts of an entry of an open directory; a link is not followed.
///
/// # Errors
/// [`Errno::NOENT`] for an entry that a run cannot see.
pub fn stat_in(directory: &impl AsFd, name: &str) -> Result<Stat, Errno> {
    facts(statx(directory, dot(name), AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT, WANTED)?)
}

/// Opens a file of an open directory for reading; a link is not followed.
///
/// # Errors
/// As `openat` has them.
pub fn read_in(directory: &impl AsFd, name: &str) -> Result<File, Errno> {
    openat(directory, dot(name), READ, Mode::empty()).map(File::from)
}

const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

fn facts(found: Statx) -> Result<Stat, Errno> {
    let kind = FileKind::of(FileType::from_raw_mode(u32::from(found.stx_mode))).ok_or(Errno::NOENT)?;
    let knows = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    let time = |stamp: rustix::fs::StatxTimestamp| {
        let since = Duration::new(u64::try_from(stamp.tv_sec).unwrap_or_default(), stamp.tv_nsec);
        UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH)
    };
    Ok(Stat {
        kind,
        size: found.stx_size,
        links: found.stx_nlink.into(),
        device: rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
        mode: u32::from(found.stx_mode) & 0o777,
        accessed: time(found.stx_atime),
        modified: time(found.stx_mtime),
        changed: time(found.stx_ctime),
        made: knows.then(|| time(found.stx_btime)),
    })
}

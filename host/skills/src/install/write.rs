//! Writes a skill's files below an open directory. Every step goes from an open directory to one name in it, makes the
//! missing entry and follows no link, so nothing outside is ever written.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use receipts::tree::DIRECTORY;
use rustix::fs::{Mode, OFlags, fchmod, mkdirat, openat};
use rustix::io::Errno;

use super::{failed, io_failed};
use crate::{SkillError, Snapshot};

const NEW_FILE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const WRITING: &str = "writing a skill";

/// Writes a tree as the new directory `name`, durably.
pub(super) fn tree(parent: &OwnedFd, name: &str, snapshot: &Snapshot) -> Result<(), SkillError> {
    let top = new_directory(parent.as_fd(), name)?;
    // The directories from the top to the last written file. No more are ever open at a time.
    let mut open: Vec<(String, OwnedFd)> = Vec::new();
    for (path, skill_file) in &snapshot.files {
        let (within, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parts: Vec<&str> = within.split('/').filter(|part| !part.is_empty()).collect();
        let same = open.iter().zip(&parts).take_while(|((open, _), part)| open == *part).count();
        for (_, left) in open.drain(same..).rev() {
            sync(&left)?;
        }
        for part in parts.into_iter().skip(same) {
            let parent = open.last().map_or(top.as_fd(), |(_, parent)| parent.as_fd());
            let directory = directory(parent, part)?;
            open.push((part.to_owned(), directory));
        }
        let parent = open.last().map_or(top.as_fd(), |(_, parent)| parent.as_fd());
        file_in(parent, name, &skill_file.bytes, skill_file.mode)?;
    }
    for (_, left) in open.drain(..).rev() {
        sync(&left)?;
    }
    sync(&top)
}

/// Writes one new file, durably.
pub(super) fn file(parent: &OwnedFd, name: &str, bytes: &[u8], mode: u32) -> Result<(), SkillError> {
    file_in(parent.as_fd(), name, bytes, mode)
}

fn file_in(parent: BorrowedFd<'_>, name: &str, bytes: &[u8], mode: u32) -> Result<(), SkillError> {
    let name = one_name(name)?;
    let opened = openat(parent, name, NEW_FILE, Mode::RUSR | Mode::WUSR).map_err(|error| failed(WRITING, error))?;
    let mut file = File::from(opened);
    file.write_all(bytes).map_err(|source| io_failed(WRITING, source))?;
    fchmod(&file, Mode::from_raw_mode(installed_mode(mode))).map_err(|error| failed(WRITING, error))?;
    Ok(store::sync(&file)?)
}

/// The permission bits that a file gets: its own, without writing by others and changing users, and always readable for
/// the owner.
fn installed_mode(mode: u32) -> u32 {
    mode & 0o755 | 0o400
}

/// The directory of that name, new or existing: files are not in the order of their directories (`a-b` is between `a`
/// and `a/c`).
fn directory(parent: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, SkillError> {
    match new_directory(parent, name) {
        Err(SkillError::Io { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => open(parent, name),
        made => made,
    }
}

fn new_directory(parent: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, SkillError> {
    let mode = Mode::from_raw_mode(0o755);
    mkdirat(parent, one_name(name)?, mode).map_err(|error| failed(WRITING, error))?;
    open(parent, name)
}

fn open(parent: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, SkillError> {
    openat(parent, name, DIRECTORY, Mode::empty()).map_err(|error| failed(WRITING, error))
}

/// The rules for trees were checked before; a name that leads elsewhere is worth a second check.
fn one_name(name: &str) -> Result<&str, SkillError> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
        return Err(failed(WRITING, Errno::INVAL));
    }
    Ok(name)
}

/// Makes the entries of a directory durable.
pub(super) fn sync(directory: &OwnedFd) -> Result<(), SkillError> {
    let directory = directory.try_clone().map_err(|source| io_failed(WRITING, source))?;
    Ok(store::sync(&File::from(directory))?)
}

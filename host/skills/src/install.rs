//! Puts a skill in its place, as a whole or not at all (SPEC SKILL-10).
//!
//! A skill is written to a separate directory inside the root, under an unpredictable name, synced, and then exchanged
//! with the existing entry in one step of the system. The entry is checked before and after that step: a concurrent
//! change by a person is always put back. It must not know trust. Robust against a crash anywhere (leaving the old
//! skill or the new, and leftovers that [`tidy`] removes), a full disk, links in its way, and concurrent writers.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::ContentHash;
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, RenameFlags, flock, fstat, openat, renameat_with, statat,
};
use rustix::io::Errno;

use crate::snapshot::{HISTORY, check_tree, read};
use crate::{SkillBounds, SkillError, SkillFile, SkillForm, Snapshot, SnapshotError};

mod aside;
mod stage;
mod write;

pub use aside::put_aside;
use stage::Stage;
pub use stage::tidy;

/// Required content of the place before an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedState {
    /// The place must be empty.
    Absent,
    /// A skill of exactly these bytes.
    Hash(ContentHash),
}

/// Far more than any configuration allows a skill.
const BOUNDS: SkillBounds = SkillBounds {
    file_bytes: 256 << 20,
    text_bytes: 512 << 20,
    component_bytes: 512 << 20,
    entries: 20_000,
    total_bytes: 1 << 30,
};

/// How long an exchange waits for the turn of another one: attempts and the pause between them, 2 s in all. An exchange
/// takes milliseconds; a foreign program that holds the lock for longer is not waited for.
const MAX_ATTEMPTS: u32 = 400;
const PAUSE: Duration = Duration::from_millis(5);

/// Puts `new` in the place `entry` of a root: a directory with its files, without their proposal, or one file if it is
/// a bare component. Durable on return. Permission bits for writing by others and for changing users are dropped.
///
/// # Errors
/// [`SkillError::Changed`] if the place does not hold the expected content. Existing files stay in place on any error.
pub fn put(root: &Path, entry: &str, new: &Snapshot, expected: ExpectedState) -> Result<(), SkillError> {
    put_watched(root, entry, new, expected, &mut |_| Ok(()))
}

/// Puts one file in the empty place `entry` of a root: an unmodified archive or bare component.
///
/// # Errors
/// If the place is not empty, or the disk fails.
pub fn put_file(root: &Path, entry: &str, bytes: &[u8]) -> Result<(), SkillError> {
    let new = InstallContent::File(bytes);
    put_content(root, entry, &new, ExpectedState::Absent, &mut |_| Ok(()))
}

/// Removes the content of the place `entry` of a root, in one step, and then its bytes.
///
/// # Errors
/// If the place is empty or a link, or the disk fails.
pub fn remove(root: &Path, entry: &str) -> Result<(), SkillError> {
    check_entry(entry)?;
    let root = InstallRoot::open(root)?;
    root.no_link(entry)?.ok_or_else(|| SkillError::Missing { selector: entry.to_owned(), nearest: None })?;
    let stage = Stage::make(&root)?;
    root.take_turn();
    let moved = renameat_with(&root.directory, entry, &stage.directory, entry, RenameFlags::NOREPLACE)
        .map_err(|error| failed("moving a skill away", error))
        .and_then(|()| root.sync());
    stage.discard();
    moved
}

/// An open directory of skills.
struct InstallRoot {
    directory: OwnedFd,
    path: PathBuf,
}

impl InstallRoot {
    /// Opens a root, which the owner may name by a link, and makes it if it is missing.
    fn open(path: &Path) -> Result<Self, SkillError> {
        std::fs::create_dir_all(path).map_err(|source| io_failed("making the skills directory", source))?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY;
        let directory =
            openat(CWD, path, flags, Mode::empty()).map_err(|error| failed("opening the skills directory", error))?;
        Ok(Self { directory, path: path.to_owned() })
    }

    /// File type of an entry; `None` if it is missing. A link is refused.
    fn no_link(&self, entry: &str) -> Result<Option<FileType>, SkillError> {
        match statat(&self.directory, entry, AtFlags::SYMLINK_NOFOLLOW)
            .map(|status| FileType::from_raw_mode(status.st_mode))
        {
            Ok(FileType::Symlink) => {
                let reason = format!("`{entry}` is a link, which is for its owner to remove");
                Err(SkillError::Invalid { reason })
            }
            Ok(kind) => Ok(Some(kind)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(failed("looking at a skill", error)),
        }
    }

    /// Waits until no other writer of this program, in any process, is between its checks, and keeps others waiting
    /// until the root is dropped. Writers that put back the files they exchanged would otherwise take one another's files
    /// for those of a person. No more than that depends on the lock.
    fn take_turn(&self) {
        for _ in 0..MAX_ATTEMPTS {
            match flock(&self.directory, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
                // A file system without locks is written to as well.
                Ok(()) | Err(_) => return,
            }
        }
    }

    fn sync(&self) -> Result<(), SkillError> {
        write::sync(&self.directory)
    }
}

/// Content to be installed.
enum InstallContent<'a> {
    Tree(&'a Snapshot),
    File(&'a [u8]),
}

/// Progress of an installation. Named for tests, which inject failures or changes there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InstallStep {
    /// The working directory exists.
    Staged,
    /// Everything is written and synced.
    Written,
    /// The place holds the expected content.
    Verified,
    /// The new skill is in the place.
    Placed,
    /// The entry that was taken out is the expected one.
    Checked,
}

type InstallWatch<'a> = dyn FnMut(InstallStep) -> io::Result<()> + 'a;

fn put_watched(
    root: &Path,
    entry: &str,
    new: &Snapshot,
    expected: ExpectedState,
    watch: &mut InstallWatch<'_>,
) -> Result<(), SkillError> {
    check_tree(new.form, new.files.iter().map(|(path, file)| (path.as_str(), file.bytes.len() as u64)), &BOUNDS)?;
    match new.form {
        SkillForm::Directory | SkillForm::Archive => {
            put_content(root, entry, &InstallContent::Tree(new), expected, watch)
        }
        SkillForm::Component if SkillForm::of_file(entry) == Some(SkillForm::Component) => {
            let bytes = new.files.values().map(|file: &SkillFile| &*file.bytes).next().unwrap_or_default();
            put_content(root, entry, &InstallContent::File(bytes), expected, watch)
        }
        SkillForm::Component => {
            let reason = format!("a bare component cannot lie in `{entry}`: its file is called `NAME.wasm`");
            Err(SkillError::Invalid { reason })
        }
    }
}

fn put_content(
    root: &Path,
    entry: &str,
    new: &InstallContent<'_>,
    expected: ExpectedState,
    watch: &mut InstallWatch<'_>,
) -> Result<(), SkillError> {
    check_entry(entry)?;
    let root = InstallRoot::open(root)?;
    root.no_link(entry)?;
    let mut stage = Stage::make(&root)?;
    let outcome = placed(&root, &mut stage, entry, new, expected, watch);
    match outcome {
        // The stage holds another writer's files, which no error may destroy.
        Err(StuckInstall::Keep(error)) => {
            stage.keep();
            Err(error)
        }
        Err(StuckInstall::Failed(error)) => {
            stage.discard();
            Err(error)
        }
        Ok(()) => {
            stage.discard();
            Ok(())
        }
    }
}

/// Why an installation failed.
enum StuckInstall {
    /// The place is unchanged.
    Failed(SkillError),
    /// The previous content could not be put back, and is in the working directory.
    Keep(SkillError),
}

impl From<SkillError> for StuckInstall {
    fn from(error: SkillError) -> Self {
        Self::Failed(error)
    }
}

fn placed(
    root: &InstallRoot,
    stage: &mut Stage,
    entry: &str,
    new: &InstallContent<'_>,
    expected: ExpectedState,
    watch: &mut InstallWatch<'_>,
) -> Result<(), StuckInstall> {
    let mut reached = |step| watch(step).map_err(|source| io_failed("putting a skill in its place", source));
    reached(InstallStep::Staged)?;
    match new {
        InstallContent::Tree(snapshot) => write::tree(&stage.directory, entry, snapshot)?,
        InstallContent::File(bytes) => write::file(&stage.directory, entry, bytes, 0o644)?,
    }
    write::sync(&stage.directory)?;
    let ours = Identity::of(&stage.directory, entry).map_err(|error| failed("looking at a skill", error))?;
    reached(InstallStep::Written)?;
    root.take_turn();
    let ExpectedState::Hash(expected) = expected else {
        renameat_with(&stage.directory, entry, &root.directory, entry, RenameFlags::NOREPLACE).map_err(|error| {
            match error {
                Errno::EXIST => SkillError::Invalid { reason: format!("there is something called `{entry}` already") },
                error => failed("putting a skill in its place", error),
            }
        })?;
        let done = reached(InstallStep::Placed).and_then(|()| root.sync());
        return done.map_err(|error| take_back(root, stage, entry, &ours, error));
    };
    verify(&root.path.join(entry), expected)?;
    reached(InstallStep::Verified)?;
    // The history of a repository is no part of the skill, and stays with the place. A crash after the exchange must
    // not let `tidy` remove it.
    let has_history = statat(&root.directory, history(entry), AtFlags::SYMLINK_NOFOLLOW).is_ok();
    if has_history {
        stage.protect()?;
    }
    renameat_with(&stage.directory, entry, &root.directory, entry, RenameFlags::EXCHANGE).map_err(
        |error| match error {
            Errno::NOENT => SkillError::Changed,
            error => failed("putting a skill in its place", error),
        },
    )?;
    let done = reached(InstallStep::Placed)
        .and_then(|()| verify(&stage.path.join(entry), expected))
        .and_then(|()| reached(InstallStep::Checked))
        .and_then(|()| root.sync());
    done.map_err(|error| put_back(root, stage, entry, &ours, error))?;
    if has_history {
        let (from, to) = (&stage.directory, &root.directory);
        renameat_with(from, history(entry), to, history(entry), RenameFlags::NOREPLACE)
            .map_err(|error| failed("moving a repository's history", error))
            .and_then(|()| root.sync())
            .map_err(|error| put_back(root, stage, entry, &ours, error))?;
    }
    Ok(())
}

/// The directory of a repository in a place.
fn history(entry: &str) -> String {
    format!("{entry}/{HISTORY}")
}

/// The file or directory that a name stands for. It is held open so that the system cannot reuse its number.
struct Identity(OwnedFd);

impl Identity {
    fn of(directory: &OwnedFd, name: &str) -> rustix::io::Result<Self> {
        openat(directory, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).map(Self)
    }

    fn is(&self, other: &Self) -> bool {
        let number = |identity: &Self| fstat(&identity.0).map(|status| (status.st_dev, status.st_ino));
        matches!((number(self), number(other)), (Ok(one), Ok(other)) if one == other)
    }
}

/// Takes a new skill out of its place again.
fn take_back(root: &InstallRoot, stage: &Stage, entry: &str, ours: &Identity, error: SkillError) -> StuckInstall {
    let back = renameat_with(&root.directory, entry, &stage.directory, entry, RenameFlags::NOREPLACE);
    settled(root, stage, entry, ours, back, error)
}

/// Puts the previous content back in the place.
fn put_back(root: &InstallRoot, stage: &Stage, entry: &str, ours: &Identity, error: SkillError) -> StuckInstall {
    let back = match renameat_with(&stage.directory, entry, &root.directory, entry, RenameFlags::EXCHANGE) {
        // The new skill was removed concurrently, so there is nothing to exchange.
        Err(Errno::NOENT) => {
            let moved = renameat_with(&stage.directory, entry, &root.directory, entry, RenameFlags::NOREPLACE);
            let synced = moved.map_err(|error| failed("putting a skill back", error)).and_then(|()| root.sync());
            return match synced {
                Ok(()) => StuckInstall::Failed(error),
                Err(worse) => StuckInstall::Keep(worse),
            };
        }
        back => back,
    };
    settled(root, stage, entry, ours, back, error)
}

/// After putting back: only our own skill may be discarded.
fn settled(
    root: &InstallRoot,
    stage: &Stage,
    entry: &str,
    ours: &Identity,
    back: rustix::io::Result<()>,
    error: SkillError,
) -> StuckInstall {
    let done = back.map_err(|error| failed("putting a skill back", error)).and_then(|()| root.sync());
    match done {
        Err(worse) => StuckInstall::Keep(worse),
        Ok(()) if Identity::of(&stage.directory, entry).is_ok_and(|left| left.is(ours)) => StuckInstall::Failed(error),
        Ok(()) => StuckInstall::Keep(error),
    }
}

/// Checks that exactly these bytes are at `path`.
fn verify(path: &Path, expected: ContentHash) -> Result<(), SkillError> {
    match read(path, &BOUNDS) {
        Ok(lies) if lies.hash == expected => Ok(()),
        Err(SnapshotError::Io { source, .. }) => Err(io_failed("reading a skill", source)),
        // An unreadable skill is not the one that was shown.
        _ => Err(SkillError::Changed),
    }
}

/// A single name that leads to no other directory, is not hidden and is plain to read.
fn check_entry(entry: &str) -> Result<(), SkillError> {
    let plain = !entry.is_empty()
        && entry.len() <= 255
        && !entry.starts_with('.')
        && !entry.chars().any(|character| character.is_control() || matches!(character, '/' | '\\'));
    if plain {
        return Ok(());
    }
    Err(SkillError::Invalid {
        reason: format!("`{}` is not the name of a skill's place", crate::review::visible_name(entry)),
    })
}

fn failed(what: &str, error: Errno) -> SkillError {
    io_failed(what, error.into())
}

fn io_failed(what: &str, source: io::Error) -> SkillError {
    SkillError::Io { what: what.to_owned(), source }
}

#[cfg(test)]
mod tests;

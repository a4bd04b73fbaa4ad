//! Working directories, inside a root so that one step moves their content, and hidden so that they are not taken for
//! skills.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use base::Random;
use receipts::tree::DIRECTORY;
use rustix::fs::{FlockOperation, Mode, flock, mkdirat, openat};
use rustix::io::Errno;

use super::{InstallRoot, failed};
use crate::SkillError;

const PREFIX: &str = ".motor-staging-";
/// Prefix of content that could not be put back: for a person to examine, never removed by this program.
const KEPT: &str = ".motor-kept-";
/// Hexadecimal digits of two 64-bit numbers.
const DIGITS: usize = 32;

/// A working directory. It is locked for as long as it is in use.
pub(super) struct Stage {
    pub directory: OwnedFd,
    pub path: PathBuf,
}

impl Stage {
    /// Makes a new one under an unpredictable name.
    pub fn make(root: &InstallRoot) -> Result<Self, SkillError> {
        let random = Random::from_system();
        let name = format!("{PREFIX}{:016x}{:016x}", random.next_u64(), random.next_u64());
        let doing = "making a directory to put a skill together";
        mkdirat(&root.directory, &name, Mode::from_raw_mode(0o700)).map_err(|error| failed(doing, error))?;
        let stage = openat(&root.directory, &name, DIRECTORY, Mode::empty()).and_then(|directory| {
            flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
            Ok(Self { directory, path: root.path.join(&name) })
        });
        stage.map_err(|error| failed(doing, error))
    }

    /// Gives it a name that [`tidy`] never removes, before content is moved into it that must survive a crash.
    pub fn protect(&mut self) -> Result<(), SkillError> {
        let name = self.path.file_name().map(|name| name.to_string_lossy().replacen(PREFIX, KEPT, 1));
        let kept = self.path.with_file_name(name.unwrap_or_default());
        std::fs::rename(&self.path, &kept)
            .map_err(|source| super::io_failed("naming a directory to be kept", source))?;
        self.path = kept;
        Ok(())
    }

    /// The name under which the content of its place is kept beside it.
    pub fn kept_name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().replacen(PREFIX, KEPT, 1)
    }

    /// Removes it with its content. Leftovers are left to [`tidy`].
    pub fn discard(self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!(%error, "leftovers of putting a skill in its place could not be removed");
        }
    }

    /// Leaves it for a person.
    pub fn keep(self) {
        let name = self.kept_name();
        match std::fs::rename(&self.path, self.path.with_file_name(&name)) {
            Ok(()) => tracing::error!(name, "what lay in the place of a skill could not be put back and is kept"),
            Err(error) => tracing::error!(%error, "what lay in the place of a skill could not be put back"),
        }
    }
}

/// Removes leftovers of crashed installations. Anything else stays, and so do working directories in use. Links are not
/// followed.
///
/// # Errors
/// If the root cannot be read.
pub fn tidy(root: &Path) -> Result<(), SkillError> {
    let entries = match std::fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(super::io_failed("reading the skills directory", error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| super::io_failed("reading the skills directory", error))?;
        if entry.file_name().to_str().is_some_and(is_staging) && is_abandoned(&entry.path()) {
            // It does not follow links, of which there may be any number inside.
            if let Err(error) = std::fs::remove_dir_all(entry.path()) {
                tracing::warn!(%error, "leftovers of putting a skill in its place could not be removed");
            }
        }
    }
    Ok(())
}

fn is_staging(name: &str) -> bool {
    let digits = name.strip_prefix(PREFIX);
    digits.is_some_and(|digits| {
        digits.len() == DIGITS && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Whether it is a directory that is not in use.
fn is_abandoned(path: &Path) -> bool {
    let lock = openat(rustix::fs::CWD, path, DIRECTORY, Mode::empty())
        .and_then(|directory| flock(&directory, FlockOperation::NonBlockingLockExclusive));
    match lock {
        Ok(()) => true,
        // It is in use, or is not a directory.
        Err(Errno::WOULDBLOCK | Errno::LOOP | Errno::NOTDIR | Errno::NOENT) => false,
        Err(error) => {
            tracing::warn!(%error, "leftovers of putting a skill in its place could not be looked at");
            false
        }
    }
}

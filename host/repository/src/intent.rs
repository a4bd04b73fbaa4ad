//! The record of a commit: everything that is needed to finish it, or to take it back.

use std::path::PathBuf;

use gix::ObjectId;
use gix::index::entry::Mode;
use serde::{Deserialize, Serialize};

use crate::error::{CommitError, Result};

/// A reference that is to be moved to a commit or back, with the index entries that belong to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// A directory in the working tree.
    pub(crate) directory: PathBuf,
    /// The git directory of the working tree.
    pub(crate) git_dir: PathBuf,
    /// The full name of the reference; `HEAD` if it is detached.
    pub(crate) reference: String,
    /// Whether it is the present branch, and the index goes with it.
    pub(crate) is_head: bool,
    /// The commit that is made or taken back.
    pub(crate) commit: String,
    /// The value of the reference before; `None` if it is not there.
    pub(crate) old: Option<String>,
    /// The value of the reference afterwards; `None` if it is to be deleted.
    pub(crate) new: Option<String>,
    /// The message for the log of the reference.
    pub(crate) log: String,
    pub(crate) who: Identity,
    /// The changes of the index, by path.
    pub(crate) entries: Vec<EntryChange>,
}

/// The author of commits, and of the entries of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub name: String,
    pub email: String,
    /// The time, in seconds since 1970.
    pub seconds: i64,
}

/// The change of one path of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EntryChange {
    /// The path in the working tree.
    pub path: String,
    pub from: Option<Blob>,
    pub to: Option<Blob>,
}

/// The content of an index entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Blob {
    /// The mode as the index has it.
    pub mode: u32,
    pub id: String,
}

/// Where the reference of an intent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// At the old value.
    Before,
    /// At the new value.
    After,
    /// At a later commit, which is built on the new one.
    BuiltOn,
    /// Elsewhere: at another commit, or before it while another branch is checked out.
    Elsewhere,
}

impl Intent {
    /// The intent that takes this one back.
    #[must_use]
    pub fn inverse(&self) -> Self {
        let back = |entry: &EntryChange| EntryChange {
            path: entry.path.clone(),
            from: entry.to.clone(),
            to: entry.from.clone(),
        };
        let short = self.commit.get(..12).unwrap_or(&self.commit);
        let log = if self.makes() { format!("undo: taking back {short}") } else { format!("undo: redoing {short}") };
        Self {
            old: self.new.clone(),
            new: self.old.clone(),
            log,
            entries: self.entries.iter().map(back).collect(),
            ..self.clone()
        }
    }

    /// The commit's id, in hexadecimal.
    #[must_use]
    pub fn commit(&self) -> &str {
        &self.commit
    }

    /// The name of the branch; `HEAD` if none is checked out.
    #[must_use]
    pub fn branch(&self) -> &str {
        self.reference.strip_prefix(BRANCHES).unwrap_or(&self.reference)
    }

    /// Whether it is the branch that is checked out, so that files and index belong to it.
    #[must_use]
    pub fn is_head(&self) -> bool {
        self.is_head
    }

    /// Whether the commit is made by it, and not taken back.
    #[must_use]
    pub fn makes(&self) -> bool {
        self.new.as_ref() == Some(&self.commit)
    }

    /// Number of changed paths.
    #[must_use]
    pub fn paths(&self) -> usize {
        self.entries.len()
    }
}

/// The beginning of the full names of branches.
pub(crate) const BRANCHES: &str = "refs/heads/";

impl Blob {
    pub fn of(mode: Mode, id: ObjectId) -> Self {
        Self { mode: mode.bits(), id: id.to_hex().to_string() }
    }

    pub fn mode(&self) -> Result<Mode> {
        match Mode::from_bits(self.mode) {
            Some(mode @ (Mode::FILE | Mode::FILE_EXECUTABLE | Mode::SYMLINK)) => Ok(mode),
            _ => Err(CommitError::Damaged),
        }
    }
}

pub(crate) fn id(hex: &str) -> Result<ObjectId> {
    ObjectId::from_hex(hex.as_bytes()).map_err(|_| CommitError::Damaged)
}

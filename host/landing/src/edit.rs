//! The edits of a directory.

use std::path::PathBuf;

use layer::{Tree, stat_of};
use serde::{Deserialize, Serialize};

use crate::error::{LandError, Result};

/// A directory of the owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Absolute path on this machine.
    pub directory: PathBuf,
    /// The device that it is on.
    pub device: u64,
    /// Its inode number on that device.
    pub inode: u64,
    /// The path under which the run saw it; empty if it was the whole of `/workspace`.
    pub prefix: String,
}

impl Target {
    /// Opens the directory, if it is still the same.
    pub(crate) fn open(&self) -> Result<Tree> {
        let shown = || format!("`{}`", base::text::Foreign(&self.directory.to_string_lossy()).escaped(200));
        let tree = Tree::open(&self.directory).map_err(|_| LandError::Replaced(shown()))?;
        let found = stat_of(tree.handle()).map_err(|_| LandError::Replaced(shown()))?;
        if (found.device, found.inode) == (self.device, self.inode) {
            Ok(tree)
        } else {
            Err(LandError::Replaced(shown()))
        }
    }
}

/// The entry at a path, before or after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Side {
    /// There is no entry.
    Missing,
    /// The entry is a file.
    File {
        /// Absolute path of a copy. A file before without one was never copied: it is unchanged as long as it was last
        /// changed before the run began.
        content: Option<PathBuf>,
    },
    /// The entry is a directory.
    Directory,
    /// The entry is a symbolic link.
    Symlink {
        /// Where it leads; not known of one before.
        target: Option<String>,
    },
}

/// A change of one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// Index of the target.
    pub target: usize,
    /// Relative to the target, `/` between the parts, without `.` and `..`.
    pub path: String,
    /// The entry that has to be there.
    pub before: Side,
    /// The entry that is to be there.
    pub after: Side,
}

//! Open handles of directories of the owner, so that the entries of one are looked up in one step each.
//!
//! A handle goes on leading to its directory when the owner moves that away. It is kept for one call of the run at most,
//! and leads to no new bytes: a file that came into the directory since the run began has a time of change that says so.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::Errno;

use crate::tree::Tree;

/// The most handles that are open at a time, for each directory of the owner.
const MAX_HANDLES: usize = 32;

/// Open directories by their paths in a tree that the host does not change.
#[derive(Debug, Default)]
pub struct Handles(Mutex<HashMap<String, Arc<OwnedFd>>>);

impl Handles {
    /// The directory at a path; no link on the way is followed.
    ///
    /// # Errors
    /// As `openat2` has them.
    pub fn get(&self, tree: &Tree, directory: &str) -> Result<Arc<OwnedFd>, Errno> {
        if let Some(known) = self.0.lock().get(directory) {
            return Ok(known.clone());
        }
        let opened = Arc::new(tree.handle_of(directory)?);
        let mut known = self.0.lock();
        if known.len() >= MAX_HANDLES {
            known.clear();
        }
        known.insert(directory.to_owned(), opened.clone());
        Ok(opened)
    }

    /// Closes all open directories.
    pub fn clear(&self) {
        self.0.lock().clear();
    }
}

//! Where the run has changed something: elsewhere a lookup need not ask the run's files nor the marks of deletions.
//!
//! It is kept in memory and filled from the disk when a layer is opened. An entry too many costs a lookup, and one too few
//! would show the owner's file in place of the run's: so each path is noted before it is changed.

use std::collections::HashSet;

use parking_lot::RwLock;
use rustix::io::Errno;

use crate::path;
use crate::tree::{FileKind, Tree};

/// The most paths that are remembered; beyond them every lookup asks everywhere.
const MAX_REMEMBERED: usize = 500_000;

/// The paths at which the run's view may differ from the owner's directories.
#[derive(Debug, Default)]
pub struct Altered(RwLock<Paths>);

#[derive(Debug, Default)]
struct Paths {
    everywhere: bool,
    /// Directories of which some entries are altered.
    directories: HashSet<String>,
    /// Entries that are altered with everything below them.
    whole: HashSet<String>,
}

impl Altered {
    /// Finds the changed paths on the disk. `written` is a path that the host writes to by itself.
    ///
    /// # Errors
    /// If a directory of the layer cannot be read.
    pub fn read(upper: &Tree, gone: &Tree, written: &str) -> Result<Self, Errno> {
        let mut paths = Paths::default();
        paths.whole.insert(written.to_owned());
        paths.walk(upper, "")?;
        paths.walk(gone, "")?;
        Ok(Self(RwLock::new(paths)))
    }

    /// Notes that an entry is about to be changed, and everything below it if `whole`.
    pub fn note(&self, at: &str, whole: bool) {
        let mut paths = self.0.write();
        let mut directory = at;
        while let Some((above, _)) = path::split(directory) {
            directory = above;
            // Where it is known, those above it are known, too.
            if !paths.add(directory) {
                break;
            }
        }
        if whole {
            paths.add_whole(at.to_owned());
        }
    }

    /// Whether the entry at a path may be another one than the owner's.
    pub fn at(&self, at: &str) -> bool {
        let Some((above, _)) = path::split(at) else { return true };
        let paths = self.0.read();
        paths.everywhere || paths.directories.contains(above) || paths.is_in_whole(at)
    }

    /// Whether the entries of a directory may be others than the owner's.
    pub fn within(&self, directory: &str) -> bool {
        let paths = self.0.read();
        paths.everywhere || paths.directories.contains(directory) || paths.is_in_whole(directory)
    }
}

impl Paths {
    /// Whether the directory is a new one.
    fn add(&mut self, directory: &str) -> bool {
        self.has_room() && self.directories.insert(directory.to_owned())
    }

    fn add_whole(&mut self, at: String) {
        if self.has_room() {
            self.whole.insert(at);
        }
    }

    fn has_room(&mut self) -> bool {
        self.everywhere |= self.directories.len() + self.whole.len() >= MAX_REMEMBERED;
        !self.everywhere
    }

    fn is_in_whole(&self, at: &str) -> bool {
        let mut next = Some(at);
        while let Some(at) = next.filter(|at| !at.is_empty()) {
            if self.whole.contains(at) {
                return true;
            }
            next = path::split(at).map(|(above, _)| above);
        }
        false
    }

    /// Below a file there is nothing, and a mark stands for everything below it.
    fn walk(&mut self, tree: &Tree, directory: &str) -> Result<(), Errno> {
        let listed = tree.list(directory)?;
        if !listed.is_empty() {
            self.add(directory);
        }
        for (name, kind) in listed {
            let at = path::join(directory, &name);
            match kind {
                _ if self.everywhere => break,
                FileKind::Directory => self.walk(tree, &at)?,
                FileKind::File | FileKind::Symlink => self.add_whole(at),
            }
        }
        Ok(())
    }
}

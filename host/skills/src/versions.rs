//! The bytes of versions, kept by content (SPEC SKILL-12). They are hashed again when read back: a damaged version is
//! an error and never another version.
//!
//! It must not know which version is trusted. It survives a crash at any instant (a version is there with its tree,
//! which is written last), a damaged object (an error when it is read, mended when its bytes are kept again), and a
//! hostile directory: links are not followed, and files that do not match their hash are refused.

mod objects;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use base::ContentHash;
use parking_lot::Mutex;

use self::objects::Objects;
use self::tree::{BOUNDS, Tree};
use crate::snapshot::check_tree;
use crate::{SkillError, Snapshot};

/// A directory of objects (`objects/ab/HEX`) and trees (`trees/HEX`, each naming paths, permission bits and objects).
///
/// Cheap to clone; clones share their lock, so there is one for a directory. Its functions read and write files: call
/// them where that may block.
#[derive(Debug, Clone)]
pub struct Versions {
    directory: PathBuf,
    /// Drafts have fixed names: one writes at a time.
    writing: Arc<Mutex<()>>,
}

impl Versions {
    /// The versions in `directory`, which is made when the first is kept.
    #[must_use]
    pub fn at(directory: PathBuf) -> Self {
        Self { directory, writing: Arc::default() }
    }

    /// Keeps a version: durable when this returns. Existing files are compared and not written again; damaged ones are
    /// mended. The proposal is not part of a version. For the same content the permission bits and the form that were
    /// kept last count.
    ///
    /// # Errors
    /// If the disk fails or is full, or the version is too large.
    pub fn keep(&self, snapshot: &Snapshot) -> Result<(), SkillError> {
        let text = Tree::of(snapshot).text()?;
        // Nothing is left half-done by a panic: every file appears whole.
        let _writing = self.writing.lock();
        let objects = Objects { directory: &self.directory };
        objects.prepare().map_err(keeping)?;
        for file in snapshot.files.values() {
            // A snapshot's fields are public: an object has to match the hash that is its name.
            if ContentHash::of(&file.bytes) != file.hash {
                return Err(damaged(snapshot.hash));
            }
            objects.keep(file.hash, &file.bytes).map_err(keeping)?;
        }
        objects.keep_tree(snapshot.hash, text.as_bytes()).map_err(keeping)
    }

    /// The version of that content, every byte of it hashed again.
    ///
    /// # Errors
    /// If it was not kept, or is damaged.
    pub fn load(&self, hash: ContentHash) -> Result<Snapshot, SkillError> {
        let objects = Objects { directory: &self.directory };
        let text = match objects.tree(hash) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let reason = format!("the files of version {} were not kept", hash.short());
                return Err(SkillError::Unreadable { reason });
            }
            Err(_) => return Err(damaged(hash)),
        };
        let tree = Tree::parse(&text).ok_or_else(|| damaged(hash))?;
        // All checks that need no object come before one is read.
        check_tree(tree.form, tree.files.iter().map(|file| (file.path.as_str(), file.bytes)), &BOUNDS)
            .map_err(|_| damaged(hash))?;
        let mut files: BTreeMap<String, (Vec<u8>, u32)> = BTreeMap::new();
        for file in tree.files {
            let bytes = objects.load(file.hash, file.bytes).map_err(|_| damaged(hash))?;
            if files.insert(file.path, (bytes, file.mode)).is_some() {
                return Err(damaged(hash));
            }
        }
        let snapshot = Snapshot::of(tree.form, files, None);
        if snapshot.hash != hash || snapshot.proposal.is_some() {
            return Err(damaged(hash));
        }
        Ok(snapshot)
    }

    /// Whether a version of that content was kept; [`Versions::load`] tells whether it is whole.
    #[must_use]
    pub fn has(&self, hash: ContentHash) -> bool {
        Objects { directory: &self.directory }.has_tree(hash)
    }
}

fn damaged(hash: ContentHash) -> SkillError {
    SkillError::Unreadable { reason: format!("the kept files of version {} are damaged", hash.short()) }
}

fn keeping(source: io::Error) -> SkillError {
    SkillError::Io { what: "keeping a version of a skill failed".to_owned(), source }
}

//! The files in the directory of versions: found by their hash, written once, durable before anything names them.
//!
//! It must not know their meaning. It survives drafts that a crash left, links and special files in place of objects,
//! and objects whose bytes do not match their name.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use base::ContentHash;
use store::Links;

use super::tree;

pub(super) struct Objects<'a> {
    pub(super) directory: &'a Path,
}

impl Objects<'_> {
    /// Makes the directories of objects and trees.
    pub(super) fn prepare(&self) -> io::Result<()> {
        for directory in [self.directory.join("objects"), self.directory.join("trees")] {
            make(&directory)?;
        }
        Ok(())
    }

    /// Keeps an object, unless it is there and intact.
    pub(super) fn keep(&self, hash: ContentHash, bytes: &[u8]) -> io::Result<()> {
        if self.load(hash, bytes.len() as u64).is_ok() {
            return Ok(());
        }
        let (shelf, name) = self.object(hash);
        make(&shelf)?;
        put(&shelf, &name, bytes)
    }

    /// Reads an object of that size and checks its hash.
    pub(super) fn load(&self, hash: ContentHash, size: u64) -> io::Result<Vec<u8>> {
        let (shelf, name) = self.object(hash);
        let bytes = read(&shelf.join(name), size)?;
        if bytes.len() as u64 != size || ContentHash::of(&bytes) != hash {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(bytes)
    }

    pub(super) fn keep_tree(&self, hash: ContentHash, text: &[u8]) -> io::Result<()> {
        if self.tree(hash).is_ok_and(|found| found == text) {
            return Ok(());
        }
        put(&self.directory.join("trees"), &hash.hex(), text)
    }

    pub(super) fn tree(&self, hash: ContentHash) -> io::Result<Vec<u8>> {
        read(&self.tree_path(hash), tree::MAX_BYTES as u64)
    }

    pub(super) fn has_tree(&self, hash: ContentHash) -> bool {
        fs::symlink_metadata(self.tree_path(hash)).is_ok_and(|found| found.is_file())
    }

    fn tree_path(&self, hash: ContentHash) -> PathBuf {
        self.directory.join("trees").join(hash.hex())
    }

    /// The directory and the name of an object: few entries in each directory.
    fn object(&self, hash: ContentHash) -> (PathBuf, String) {
        let name = hash.hex();
        let shelf = name.get(..2).unwrap_or_default();
        (self.directory.join("objects").join(shelf), name)
    }
}

/// Makes a directory and those above it, for their owner alone, each durable.
fn make(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    if let Some(parent) = directory.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make(parent)?;
    }
    DirBuilder::new().mode(0o700).create(directory)?;
    sync(directory.parent())
}

fn sync(directory: Option<&Path>) -> io::Result<()> {
    let directory = directory.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    store::sync(&File::open(directory)?).map_err(io::Error::other)
}

/// Puts a file in place, whole and durable.
fn put(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    store::replace_file(directory, name, bytes).map_err(io::Error::other)
}

fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    store::read_regular(path, Links::Refused, most)
}

//! Copying files of the owner into the layer, before the run changes them.

use std::fs::{File, FileTimes, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::{OFlags, RenameFlags};
use rustix::io::Errno;

use crate::error::{LayerError, Result};
use crate::layer::Layer;
use crate::lookup::Node;
use crate::path;
use crate::tree::{FileKind, Stat, Tree, stat_of};

/// The growth of the run's own files by a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopySize {
    /// Number of files and directories.
    pub files: u64,
    /// Bytes of the files.
    pub bytes: u64,
}

/// The most entries of a directory of the owner that is renamed as a whole.
const MAX_RENAMED: u64 = 10_000;

/// Whether a copy has the content of its original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// The copy has the content of its original.
    Kept,
    /// None: it is about to be replaced.
    Dropped,
}

impl Layer {
    /// The size of the copy that a change at a path makes first; nothing if the file is the run's own already.
    ///
    /// # Errors
    /// If there is nothing at the path, or a directory is too large.
    pub fn copy_up_size(&self, path: &str) -> Result<CopySize> {
        let (at, node) = self.existing(path, true)?;
        let mut size = CopySize::default();
        self.add_size(&at, &node, &mut size)?;
        Ok(size)
    }

    fn add_size(&self, at: &str, node: &Node, size: &mut CopySize) -> Result<()> {
        if let Node::Lower { stat, .. } = node {
            size.files += 1;
            size.bytes += if stat.kind == FileKind::File { stat.size } else { 0 };
            if size.files > MAX_RENAMED {
                return Err(LayerError::CrossDevice);
            }
        }
        if node.kind() == FileKind::Directory {
            for (name, _) in self.lower_entries(at)? {
                let below = path::join(at, &name);
                if let Some(found) = self.node(&below)? {
                    self.add_size(&below, &found, size)?;
                }
            }
        }
        Ok(())
    }

    /// Makes a file of the owner one of the run.
    pub(crate) fn copy_up(&self, at: &str, node: &Node, content: Content) -> Result<()> {
        let Node::Lower { stat, .. } = node else { return Ok(()) };
        self.keep_base(at, node)?;
        self.make_parents(at)?;
        let original = self.base.read(at)?;
        let size = if content == Content::Kept { u64::MAX } else { 0 };
        let staged = self.copy(&original, size, stat)?;
        match self.staging.rename(&staged, &self.upper, at, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => Ok(self.staging.remove(&staged)?),
            renamed => Ok(renamed?),
        }
    }

    /// Makes everything in a directory of the owner the run's, deleted and kept out entries excepted.
    pub(crate) fn copy_up_directory(&self, at: &str) -> Result<()> {
        self.upper.make_directories(at)?;
        for (name, kind) in self.lower_entries(at)? {
            let below = path::join(at, &name);
            match (kind, self.node(&below)?) {
                (FileKind::Symlink, _) => return Err(LayerError::CrossDevice),
                (FileKind::Directory, _) => self.copy_up_directory(&below)?,
                (FileKind::File, Some(node)) => self.copy_up(&below, &node, Content::Kept)?,
                (FileKind::File, None) => {}
            }
        }
        Ok(())
    }

    /// Keeps a file of the owner as it is, before it is changed for the first time.
    pub(crate) fn keep_base(&self, at: &str, node: &Node) -> Result<()> {
        let Node::Lower { source, below, .. } = node else { return Ok(()) };
        match self.base.stat(at) {
            Ok(_) => return Ok(()),
            Err(Errno::NOENT) => {}
            // The owner replaced a directory by a file, or the other way round.
            Err(_) => return Err(LayerError::Busy),
        }
        let (file, stat) = self.read_lower(*source, below, at)?;
        let staged = self.copy(&file, stat.size, &stat)?;
        // It may have been changed while it was copied.
        if let Err(error) = self.read_lower(*source, below, at) {
            self.staging.remove(&staged)?;
            return Err(error);
        }
        let (above, _) = path::split(at).ok_or(LayerError::IsDirectory)?;
        self.base.make_directories(above).map_err(|_| LayerError::Busy)?;
        Ok(self.staging.rename(&staged, &self.base, at, RenameFlags::NOREPLACE)?)
    }

    /// Copies at most `most` bytes into a new file of the staging directory, with mode and time of the original. Where
    /// the file system can, the two share their blocks.
    fn copy(&self, original: &File, most: u64, stat: &Stat) -> Result<String> {
        let staged = self.staged();
        let mut copy = create(&self.staging, &staged)?;
        if most > 0 && rustix::fs::ioctl_ficlone(&copy, original).is_err() {
            io::copy(&mut original.take(most), &mut copy)?;
        }
        // The run reads and writes its own files.
        copy.set_permissions(Permissions::from_mode(stat.mode | 0o600))?;
        copy.set_times(FileTimes::new().set_modified(stat.modified))?;
        Ok(staged)
    }

    /// Takes the present entry of the owner's directory for the one that the run began with: it was landed, or taken back.
    /// `content` is the file that the run's own changes are measured against; `None`: there is none.
    ///
    /// # Errors
    /// If the system refuses to write it.
    pub fn rebase(&self, at: &str, content: Option<&Path>) -> Result<()> {
        let _one = self.writing.lock();
        match self.base.stat(at) {
            Ok(found) if found.kind == FileKind::Directory => self.base.remove_all(at)?,
            Ok(_) if content.is_none() => self.base.remove(at)?,
            Ok(_) | Err(Errno::NOENT) => {}
            // A file that was there lies where there is a directory now.
            Err(Errno::NOTDIR) if content.is_none() => {}
            Err(error) => return Err(error.into()),
        }
        let Some(content) = content else { return Ok(()) };
        let original = File::open(content)?;
        let staged = self.copy(&original, u64::MAX, &stat_of(&original)?)?;
        let (above, _) = path::split(at).ok_or(LayerError::IsDirectory)?;
        self.base.make_directories(above)?;
        Ok(self.staging.rename(&staged, &self.base, at, RenameFlags::empty())?)
    }

    pub(crate) fn make_parents(&self, at: &str) -> Result<()> {
        let (above, _) = path::split(at).ok_or(LayerError::IsDirectory)?;
        Ok(self.upper.make_directories(above)?)
    }
}

fn create(tree: &Tree, at: &str) -> Result<File> {
    Ok(tree.write(at, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?)
}

//! The operations of a run on its files: all of them in the layer.

use std::fs::File;

use rustix::fs::{OFlags, RenameFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, futimens};
use rustix::io::Errno;

use crate::changes::OUTPUT;
use crate::copy::Content;
use crate::error::{LayerError, Result};
use crate::layer::{Call, Layer, NewTime, OpenMode};
use crate::lookup::{Node, Place};
use crate::path;
use crate::secrets::folded;
use crate::touched::Operation;
use crate::tree::FileKind;

impl Layer {
    /// Opens a file for writing. One of the owner is copied first.
    ///
    /// # Errors
    /// As `open` has them, or [`LayerError::Busy`] if the owner changed the file since the run began.
    pub fn open_write(&self, call: &Call, path: &str, mode: OpenMode, follow: bool) -> Result<File> {
        let _one = self.writing.lock();
        let Place { at, node } = self.place(path, follow && !mode.exclusive)?;
        self.check_writable(&at)?;
        let access = if mode.read { OFlags::RDWR } else { OFlags::WRONLY };
        let Some(node) = node else {
            if !mode.create {
                return Err(LayerError::NotFound);
            }
            if path.ends_with('/') {
                return Err(LayerError::IsDirectory);
            }
            self.check_parent(&at)?;
            self.touch(call, &at, Operation::Create, None)?;
            self.make_parents(&at)?;
            return Ok(self.upper.write(&at, access | OFlags::CREATE | OFlags::EXCL)?);
        };
        match node.kind() {
            _ if mode.create && mode.exclusive => return Err(LayerError::Exists),
            FileKind::Directory => return Err(LayerError::IsDirectory),
            FileKind::Symlink => return Err(LayerError::Loop),
            FileKind::File => {}
        }
        self.touch(call, &at, Operation::Write, None)?;
        self.copy_up(&at, &node, if mode.truncate { Content::Dropped } else { Content::Kept })?;
        let truncate = if mode.truncate { OFlags::TRUNC } else { OFlags::empty() };
        Ok(self.upper.write(&at, access | truncate)?)
    }

    /// Makes a directory in the run's view.
    ///
    /// # Errors
    /// As `mkdir` has them.
    pub fn create_dir(&self, call: &Call, path: &str) -> Result<()> {
        let _one = self.writing.lock();
        let Place { at, node } = self.place(path, false)?;
        if node.is_some() {
            return Err(LayerError::Exists);
        }
        self.check_writable(&at)?;
        self.check_parent(&at)?;
        self.touch(call, &at, Operation::MakeDirectory, None)?;
        self.make_parents(&at)?;
        Ok(self.upper.make_directory(&at)?)
    }

    /// Removes a directory that has no entries for the run.
    ///
    /// # Errors
    /// As `rmdir` has them.
    pub fn remove_dir(&self, call: &Call, path: &str) -> Result<()> {
        let _one = self.writing.lock();
        let (at, node) = self.existing(path.trim_end_matches('/'), false)?;
        if node.kind() != FileKind::Directory {
            return Err(LayerError::NotDirectory);
        }
        self.check_movable(&at)?;
        self.check_writable(&at)?;
        if !self.entries(&at)?.is_empty() {
            return Err(LayerError::NotEmpty);
        }
        self.touch(call, &at, Operation::RemoveDirectory, None)?;
        self.hide_lower(&at)?;
        match node {
            Node::Upper(_) => Ok(self.upper.remove_directory(&at)?),
            Node::Lower { .. } => Ok(()),
        }
    }

    /// Deletes a file or a link.
    ///
    /// # Errors
    /// As `unlink` has them.
    pub fn unlink(&self, call: &Call, path: &str) -> Result<()> {
        let _one = self.writing.lock();
        let (at, node) = self.existing(path, false)?;
        if node.kind() == FileKind::Directory {
            return Err(LayerError::IsDirectory);
        }
        self.check_writable(&at)?;
        self.touch(call, &at, Operation::Delete, None)?;
        self.hide_lower(&at)?;
        match node {
            Node::Upper(_) => Ok(self.upper.remove(&at)?),
            Node::Lower { .. } => Ok(()),
        }
    }

    /// Renames a file or a directory, over an existing entry as `rename` does.
    ///
    /// # Errors
    /// As `rename` has them; [`LayerError::CrossDevice`] if a directory of the owner is too large to be copied, so that a
    /// program moves its entries one by one, and [`LayerError::Unsupported`] for links.
    pub fn rename(&self, call: &Call, from: &str, to: &str) -> Result<()> {
        let _one = self.writing.lock();
        let (from, node) = self.existing(from.trim_end_matches('/'), false)?;
        let Place { at: to, node: replaced } = self.place(to.trim_end_matches('/'), false)?;
        if from == to {
            return Ok(());
        }
        for at in [&from, &to] {
            self.check_movable(at)?;
            self.check_writable(at)?;
        }
        if path::within(&to, &from) {
            return Err(LayerError::Invalid);
        }
        self.check_parent(&to)?;
        let replaced_kind = replaced.as_ref().map(Node::kind);
        match (node.kind(), replaced_kind) {
            (FileKind::Symlink, _) => return Err(LayerError::Unsupported),
            (FileKind::File, Some(FileKind::Directory)) => return Err(LayerError::IsDirectory),
            (FileKind::Directory, Some(FileKind::File | FileKind::Symlink)) => return Err(LayerError::NotDirectory),
            (FileKind::Directory, Some(FileKind::Directory)) if !self.entries(&to)?.is_empty() => {
                return Err(LayerError::NotEmpty);
            }
            _ => {}
        }
        self.touch(call, &from, Operation::Delete, None)?;
        self.touch(call, &to, Operation::Rename, Some(&from))?;
        match node.kind() {
            FileKind::Directory if self.lower(&from)?.is_some() => {
                self.copy_up_size(&from)?;
                self.copy_up_directory(&from)?;
            }
            FileKind::Directory => {}
            _ => self.copy_up(&from, &node, Content::Kept)?,
        }
        match (&replaced, replaced_kind) {
            (Some(file), Some(FileKind::File)) => self.keep_base(&to, file)?,
            (Some(_), Some(_)) => self.hide_lower(&to)?,
            _ => {}
        }
        self.make_parents(&to)?;
        // The run's entry hides the owner's until it is moved: both steps show the one state or the other.
        self.hide_lower(&from)?;
        Ok(self.upper.rename(&from, &self.upper, &to, RenameFlags::empty())?)
    }

    /// Sets times of a file; those of a directory are no part of the layer.
    ///
    /// # Errors
    /// As `utimensat` has them.
    pub fn set_times(
        &self,
        call: &Call,
        path: &str,
        follow: bool,
        accessed: Option<NewTime>,
        modified: Option<NewTime>,
    ) -> Result<()> {
        let _one = self.writing.lock();
        let (at, node) = self.existing(path, follow)?;
        self.check_writable(&at)?;
        match node.kind() {
            FileKind::Directory => return Ok(()),
            FileKind::Symlink => return Err(LayerError::Unsupported),
            FileKind::File => {}
        }
        self.touch(call, &at, Operation::Write, None)?;
        self.copy_up(&at, &node, Content::Kept)?;
        let file = self.upper.write(&at, OFlags::WRONLY)?;
        let times = Timestamps { last_access: timespec(accessed), last_modification: timespec(modified) };
        Ok(futimens(&file, &times)?)
    }

    /// Hides the owner's entry at a path, if the run could see it.
    fn hide_lower(&self, at: &str) -> Result<()> {
        match self.lower(at) {
            Ok(Some(_)) => self.mark_gone(at),
            // Nothing of the owner can be below an entry that is no directory of theirs.
            Ok(None) | Err(LayerError::NotDirectory | LayerError::Loop) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The directory of a new entry has to be there.
    fn check_parent(&self, at: &str) -> Result<()> {
        let (above, _) = path::split(at).ok_or(LayerError::Exists)?;
        match self.node(above)? {
            Some(node) if node.kind() == FileKind::Directory => Ok(()),
            Some(_) => Err(LayerError::NotDirectory),
            None => Err(LayerError::NotFound),
        }
    }

    /// The directories of the owner stay where they are.
    fn check_movable(&self, at: &str) -> Result<()> {
        let root = at.is_empty() || self.sources().iter().any(|source| source.prefix == at);
        if root { Err(LayerError::Io(Errno::BUSY.into())) } else { Ok(()) }
    }

    fn check_writable(&self, at: &str) -> Result<()> {
        // Only the host writes there, and not through the layer.
        if path::within(&folded(at), OUTPUT) {
            return Err(LayerError::ReadOnly);
        }
        let source = self.sources().iter().find(|source| path::within(at, &source.prefix));
        match source {
            Some(source) if !source.writable => Err(LayerError::ReadOnly),
            _ => Ok(()),
        }
    }
}

fn timespec(time: Option<NewTime>) -> Timespec {
    let named = |nanos| Timespec { tv_sec: 0, tv_nsec: nanos };
    match time {
        None => named(UTIME_OMIT),
        Some(NewTime::Now) => named(UTIME_NOW),
        Some(NewTime::At(at)) => {
            let since = at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
            Timespec { tv_sec: seconds, tv_nsec: since.subsec_nanos().into() }
        }
    }
}

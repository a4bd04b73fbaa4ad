//! The layer of a run: made once, opened by each host that works on the run.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use parking_lot::Mutex;
use rustix::fs::{OFlags, RenameFlags};
use rustix::io::Errno;

use crate::altered::Altered;
use crate::changes::OUTPUT;
use crate::error::{LayerError, Result};
use crate::lookup::Node;
use crate::path;
use crate::sources::{Lower, Source, SourceRequest, Sources, VERSION};
use crate::touched::{Operation, Seen, Touch, Touches};
use crate::tree::{FileKind, Stat, Tree, stat_of};

/// The directory of the run's own files, below that of the run.
const WORKSPACE: &str = "workspace";
/// The directory of the layer, below that of the run.
const LAYER: &str = "layer";
const SOURCES: &str = "sources.json";
/// The most names of changed files that are remembered.
const MAX_NOTICED: usize = 100;

/// A layer over the directories of a run.
#[derive(Debug)]
pub struct Layer {
    pub(crate) upper: Tree,
    pub(crate) gone: Tree,
    pub(crate) base: Tree,
    pub(crate) staging: Tree,
    pub(crate) lowers: Vec<Lower>,
    pub(crate) began: SystemTime,
    /// One change at a time.
    pub(crate) writing: Mutex<()>,
    pub(crate) touches: Touches,
    pub(crate) altered: Altered,
    own: Tree,
    run: PathBuf,
    sources: Vec<Source>,
    staged: AtomicU64,
    /// The place of `staging` in the layer's directory. Each open layer has its own: a review may open one beside the run.
    staged_in: String,
    /// Changed files that the run asked for, and how many of them were told.
    noticed: Mutex<(Vec<String>, usize)>,
    /// Whether something was changed since the last time that everything was made durable.
    changed: AtomicBool,
}

/// A call of the run, which changes are noted under.
#[derive(Debug, Clone)]
pub struct Call {
    key: String,
    step: u32,
    seen: Seen,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name in its directory.
    pub name: String,
    /// The kind of the entry.
    pub kind: FileKind,
}

/// A file that is open for reading.
#[derive(Debug)]
pub struct OpenedFile {
    /// The open file, at its beginning.
    pub file: File,
    /// The owner of the file.
    pub from: Origin,
}

/// Whose a file is.
#[derive(Debug)]
pub enum Origin {
    /// The owner's: the guard is asked after each read.
    Lower(Guard),
    /// The file is the run's own.
    Upper,
}

/// Notices that the owner changes a file while it is read.
#[derive(Debug, Clone)]
pub struct Guard {
    began: SystemTime,
}

impl Guard {
    /// The bytes of the file. Fails if it was changed since the run began, as the bytes read may be a mixture, and if it is
    /// no file.
    ///
    /// # Errors
    /// "Busy", or an error of the system.
    pub fn check(&self, file: &File) -> io::Result<u64> {
        let stat = stat_of(file)?;
        if stat.changed < self.began && stat.kind == FileKind::File { Ok(stat.size) } else { Err(Errno::BUSY.into()) }
    }
}

/// How a file is opened for writing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenMode {
    /// A missing file is made.
    pub create: bool,
    /// With `create`: there must be none.
    pub exclusive: bool,
    /// Its present content is dropped.
    pub truncate: bool,
    /// It is read, too.
    pub read: bool,
}

/// A time that is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewTime {
    /// The time of the call.
    Now,
    /// This time, as the guest gave it.
    At(SystemTime),
}

impl Layer {
    /// Makes the layer of a run whose `workspace/` exists. Nothing in the directories is read. `began` is a time by the
    /// clock that stamps files.
    ///
    /// # Errors
    /// If a directory cannot be opened, or the layer cannot be written.
    pub fn create(run: &Path, requests: Vec<SourceRequest>, began: SystemTime) -> Result<Self> {
        let sources = Sources::of(requests, began)?;
        let own = run.join(LAYER);
        for directory in ["", "gone", "base", "staging"] {
            fs::create_dir_all(own.join(directory))?;
        }
        let upper = Tree::open(&run.join(WORKSPACE))?;
        for source in sources.sources.iter().filter(|source| !source.prefix.is_empty()) {
            upper.make_directories(&source.prefix)?;
        }
        let written = own.join("sources.json.new");
        let mut file = File::create(&written)?;
        file.write_all(&serde_json::to_vec_pretty(&sources).map_err(io::Error::other)?)?;
        file.sync_all()?;
        fs::rename(&written, own.join(SOURCES))?;
        File::open(&own)?.sync_all()?;
        Self::open(run)
    }

    /// Opens the layer of a run.
    ///
    /// # Errors
    /// If a directory is gone or is another one now, or the layer cannot be read.
    pub fn open(run: &Path) -> Result<Self> {
        let own = run.join(LAYER);
        let read = fs::read(own.join(SOURCES))?;
        let sources: Sources = serde_json::from_slice(&read).map_err(|_| LayerError::Damaged(SOURCES))?;
        if sources.version != VERSION {
            return Err(LayerError::Damaged(SOURCES));
        }
        let lowers = sources.sources.iter().cloned().map(Lower::open).collect::<Result<_>>()?;
        let layer = Tree::open(&own)?;
        let (staging, staged_in) = stage(&layer)?;
        let (upper, gone) = (Tree::open(&run.join(WORKSPACE))?, Tree::open(&own.join("gone"))?);
        Ok(Self {
            altered: Altered::read(&upper, &gone, OUTPUT)?,
            upper,
            gone,
            base: Tree::open(&own.join("base"))?,
            staging,
            staged_in,
            lowers,
            began: sources.began(),
            writing: Mutex::default(),
            touches: Touches::open(&layer)?,
            own: layer,
            run: run.to_owned(),
            sources: sources.sources,
            staged: AtomicU64::default(),
            noticed: Mutex::default(),
            changed: AtomicBool::default(),
        })
    }

    /// A call of the run; it begins now.
    #[must_use]
    pub fn call(&self, key: &str, step: u32) -> Call {
        self.close_handles();
        Call { key: key.to_owned(), step, seen: Seen::default() }
    }

    /// The directories that it works on.
    #[must_use]
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The time at which the run began, by the clock that stamps files.
    #[must_use]
    pub fn began(&self) -> SystemTime {
        self.began
    }

    /// Paths of files that the run asked for and that the owner changed since it began, which were not told before; at
    /// most 100 in all.
    #[must_use]
    pub fn newly_noticed(&self) -> Vec<String> {
        let mut noticed = self.noticed.lock();
        let (paths, told) = &mut *noticed;
        let new = paths.get(*told..).unwrap_or_default().to_vec();
        *told = paths.len();
        new
    }

    /// Makes all changes durable.
    ///
    /// # Errors
    /// If the system cannot sync them.
    pub fn sync(&self) -> Result<()> {
        self.close_handles();
        if !self.changed.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        // After a failure they are synced again, or no later call would.
        rustix::fs::syncfs(self.own.handle()).inspect_err(|_| self.changed.store(true, Ordering::Relaxed))?;
        Ok(())
    }

    /// The facts of a path.
    ///
    /// # Errors
    /// [`LayerError::NotFound`], or why it cannot be reached.
    pub fn stat(&self, path: &str, follow: bool) -> Result<Stat> {
        Ok(*self.existing(path, follow)?.1.stat())
    }

    /// The target of a link, which may lead anywhere.
    ///
    /// # Errors
    /// If it is no link.
    pub fn read_link(&self, path: &str) -> Result<String> {
        match self.existing(path, false)? {
            (_, Node::Lower { source, below, stat }) if stat.kind == FileKind::Symlink => {
                self.lower_at(source)?.tree.read_link(&below)
            }
            _ => Err(LayerError::Io(Errno::INVAL.into())),
        }
    }

    /// The entries of a directory, in no order that counts.
    ///
    /// # Errors
    /// If it is no directory.
    pub fn list(&self, path: &str) -> Result<Vec<Entry>> {
        let (at, node) = self.existing(path, true)?;
        if node.stat().kind != FileKind::Directory {
            return Err(LayerError::NotDirectory);
        }
        self.entries(&at)
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// [`LayerError::Busy`] if the owner changed it since the run began, or why it cannot be opened.
    pub fn open_read(&self, path: &str, follow: bool) -> Result<OpenedFile> {
        let (at, node) = self.existing(path, follow)?;
        match node.stat().kind {
            FileKind::Directory => return Err(LayerError::IsDirectory),
            FileKind::Symlink => return Err(LayerError::Loop),
            FileKind::File => {}
        }
        match node {
            Node::Upper(_) => Ok(OpenedFile { file: self.upper.read(&at)?, from: Origin::Upper }),
            Node::Lower { source, below, stat } => {
                self.check_unchanged(&stat, &at)?;
                // A change since then is noticed by the guard.
                let file = self.lower_at(source)?.read(&below)?;
                Ok(OpenedFile { file, from: Origin::Lower(Guard { began: self.began }) })
            }
        }
    }

    /// Opens a file of the owner that is as it was when the run began.
    pub(crate) fn read_lower(&self, source: usize, below: &str, at: &str) -> Result<(File, Stat)> {
        let file = self.lower_at(source)?.read(below)?;
        let stat = stat_of(&file)?;
        if stat.kind != FileKind::File {
            return Err(LayerError::NotFound);
        }
        self.check_unchanged(&stat, at)?;
        Ok((file, stat))
    }

    /// Fails, and notes the path, if the owner's file at it was changed since the run began.
    fn check_unchanged(&self, stat: &Stat, at: &str) -> Result<()> {
        if stat.changed < self.began {
            return Ok(());
        }
        let (noticed, _) = &mut *self.noticed.lock();
        if noticed.len() < MAX_NOTICED && !noticed.iter().any(|known| known == at) {
            noticed.push(at.to_owned());
        }
        Err(LayerError::Busy)
    }

    pub(crate) fn lower_at(&self, source: usize) -> Result<&Lower> {
        self.lowers.get(source).ok_or(LayerError::NotFound)
    }

    fn close_handles(&self) {
        self.lowers.iter().for_each(|lower| lower.handles.clear());
    }

    /// A name in the staging directory that is not taken.
    pub(crate) fn staged(&self) -> String {
        self.staged.fetch_add(1, Ordering::Relaxed).to_string()
    }

    pub(crate) fn touch(&self, call: &Call, at: &str, operation: Operation, from: Option<&str>) -> Result<()> {
        let touch = Touch {
            call: call.key.clone(),
            step: call.step,
            path: at.to_owned(),
            operation,
            from: from.map(str::to_owned),
        };
        self.changed.store(true, Ordering::Relaxed);
        let whole = !matches!(operation, Operation::Write | Operation::MakeDirectory);
        self.altered.note(at, whole);
        self.touches.note(&touch, &call.seen)
    }

    /// Every touch of the run's calls, in their order.
    pub(crate) fn touched(&self) -> Result<Vec<Touch>> {
        crate::touched::read(&self.own)
    }

    /// Hides the owner's entry at a path, and everything below it, from the run.
    pub(crate) fn mark_gone(&self, at: &str) -> Result<()> {
        let (above, _) = path::split(at).ok_or(LayerError::Escapes)?;
        match self.gone.make_directories(above) {
            // Something above is gone already.
            Err(Errno::NOTDIR) => return Ok(()),
            made => made?,
        }
        match self.gone.write(at, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL) {
            Ok(_) => Ok(()),
            Err(Errno::EXIST) if self.gone.stat(at)?.kind == FileKind::File => Ok(()),
            Err(Errno::EXIST) => {
                // The marks below are replaced by the one above them, in one step.
                let staged = self.staged();
                self.staging.write(&staged, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
                self.staging.rename(&staged, &self.gone, at, RenameFlags::EXCHANGE)?;
                Ok(self.staging.remove_all(&staged)?)
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn path_of_upper(&self, at: &str) -> PathBuf {
        self.run.join(WORKSPACE).join(at)
    }

    pub(crate) fn path_of_base(&self, at: &str) -> PathBuf {
        self.run.join(LAYER).join("base").join(at)
    }
}

impl Drop for Layer {
    fn drop(&mut self) {
        // A killed host leaves it, and it goes with the run.
        self.own.remove_all(&self.staged_in).ok();
    }
}

/// Makes a directory for copies that are not in their places yet.
fn stage(layer: &Tree) -> Result<(Tree, String)> {
    for number in 0..u32::MAX {
        let at = format!("staging/{number}");
        match layer.make_private_directory(&at) {
            Ok(()) => return Ok((layer.below(&at)?, at)),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(LayerError::Damaged("staging"))
}

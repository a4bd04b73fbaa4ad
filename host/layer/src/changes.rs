//! The changes of a run: every path whose content or existence is another one than when the run began.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;

use crate::error::{LayerError, Result};
use crate::layer::Layer;
use crate::lookup::Node;
use crate::path;
use crate::rules::KeptOut;
use crate::touched::{Operation, Touch, by_path};
use crate::tree::{FileKind, Tree, stat_of};

/// The most paths that a run may have changed and still have them listed.
pub const MAX_CHANGES: usize = 200_000;
/// Directory of the host's own files in a run's workspace.
pub const OUTPUT: &str = ".motor-output";

/// The owner's entry at a path, when the run began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Before {
    /// There was none, or one that the run could not see.
    Missing,
    /// A file, with its copy if the run changed it; without one, it is unchanged as long as its `changed` time is
    /// before the beginning.
    File {
        /// Absolute path of the copy.
        base: Option<PathBuf>,
    },
    /// The entry is a directory.
    Directory,
    /// The entry is a symbolic link.
    Symlink,
}

/// The run's entry at a path, now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum After {
    /// There is no entry.
    Missing,
    /// The entry is a file.
    File {
        /// Absolute path of the run's file.
        content: PathBuf,
    },
    /// The entry is a directory.
    Directory,
}

/// The change of one path by a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The index of its source in [`Layer::sources`].
    pub source: usize,
    /// The path in the source.
    pub path: String,
    /// The path as the run sees it.
    pub at: String,
    /// The owner's entry at the beginning.
    pub before: Before,
    /// The run's entry now.
    pub after: After,
    /// The calls that touched it, in their order.
    pub touches: Vec<Touch>,
    /// The path that it had before it was renamed.
    pub from: Option<String>,
}

/// Everything that a run changed, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes(pub Vec<Change>);

impl Layer {
    /// The changes of the run in its sources, by path. `given` says which paths the host put into the workspace itself.
    ///
    /// # Errors
    /// If more than [`MAX_CHANGES`] paths changed, or a file cannot be read.
    pub fn changes(&self, given: &dyn Fn(&str) -> bool) -> Result<Changes> {
        let mut found = Found { layer: self, changes: BTreeMap::new(), given };
        found.upper("")?;
        found.gone("")?;
        let touched = by_path(self.touched()?);
        let mut changes: Vec<_> = found.changes.into_values().collect();
        for change in &mut changes {
            (change.touches, change.from) = history(&touched, &change.at);
        }
        Ok(Changes(changes))
    }

    /// The file that was at a changed path when the run began; `None` if there was none, or the owner changed it since.
    ///
    /// # Errors
    /// If the system refuses to read it.
    pub fn before(&self, change: &Change) -> Result<Option<File>> {
        match &change.before {
            Before::File { base: Some(base) } => Ok(Some(File::open(base)?)),
            Before::File { base: None } => match self.read_lower(change.source, &change.path, &change.at) {
                Ok((file, _)) => Ok(Some(file)),
                Err(LayerError::Busy | LayerError::NotFound) => Ok(None),
                Err(error) => Err(error),
            },
            Before::Missing | Before::Directory | Before::Symlink => Ok(None),
        }
    }

    /// The paths of the owner's directories that the run does not see, and whether these are all: at most `most_entries` entries are
    /// looked at.
    ///
    /// # Errors
    /// If a directory cannot be read.
    pub fn kept_out(&self, most_entries: usize) -> Result<(Vec<(String, KeptOut)>, bool)> {
        let (mut found, mut seen) = (Vec::new(), 0);
        for lower in &self.lowers {
            let mut waiting = vec![String::new()];
            while let Some(directory) = waiting.pop() {
                for (name, kind) in lower.tree.list(&directory)? {
                    seen += 1;
                    if seen > most_entries {
                        return Ok((found, false));
                    }
                    let below = path::join(&directory, &name);
                    match lower.rules.kept_out(&lower.tree, &below, kind)? {
                        Some(why) => found.push((path::join(&lower.source.prefix, &below), why)),
                        None if kind == FileKind::Directory && name != ".git" => waiting.push(below),
                        None => {}
                    }
                }
            }
        }
        found.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok((found, true))
    }
}

struct Found<'a> {
    layer: &'a Layer,
    changes: BTreeMap<String, Change>,
    given: &'a dyn Fn(&str) -> bool,
}

impl Found<'_> {
    /// Looks at the run's own entries in a directory.
    fn upper(&mut self, directory: &str) -> Result<()> {
        for (name, kind) in self.layer.upper.list(directory)? {
            let at = path::join(directory, &name);
            if at == OUTPUT || (self.given)(&at) {
                continue;
            }
            match kind {
                FileKind::File => self.file(&at)?,
                FileKind::Directory => {
                    match self.before(&at)? {
                        Before::Directory => {}
                        before => self.push(&at, before, After::Directory)?,
                    }
                    self.upper(&at)?;
                }
                // No run can make one.
                FileKind::Symlink => {}
            }
        }
        Ok(())
    }

    fn file(&mut self, at: &str) -> Result<()> {
        let before = self.before(at)?;
        if let Before::File { base: Some(_) } = before
            && same(&self.layer.base, &self.layer.upper, at)?
        {
            return Ok(());
        }
        let content = self.layer.path_of_upper(at);
        self.push(at, before, After::File { content })
    }

    /// The owner's entry at a path.
    fn before(&self, at: &str) -> Result<Before> {
        if self.layer.sources().iter().any(|source| source.prefix == at) {
            return Ok(Before::Directory);
        }
        let base = self.base(at);
        if base.is_some() {
            return Ok(Before::File { base });
        }
        match self.layer.lower_there(at) {
            Ok(None) | Err(LayerError::NotDirectory | LayerError::Loop) => Ok(Before::Missing),
            Ok(Some(node)) => Ok(self.kind(at, &node)),
            Err(error) => Err(error),
        }
    }

    fn kind(&self, at: &str, node: &Node) -> Before {
        match node.kind() {
            FileKind::File => Before::File { base: self.base(at) },
            FileKind::Directory => Before::Directory,
            FileKind::Symlink => Before::Symlink,
        }
    }

    fn base(&self, at: &str) -> Option<PathBuf> {
        let found = self.layer.base.stat(at).ok().filter(|found| found.kind == FileKind::File);
        found.map(|_| self.layer.path_of_base(at))
    }

    /// Looks at the marks of deleted entries in a directory.
    fn gone(&mut self, directory: &str) -> Result<()> {
        for (name, kind) in self.layer.gone.list(directory)? {
            let at = path::join(directory, &name);
            match kind {
                FileKind::Directory => self.gone(&at)?,
                _ => self.deleted(&at)?,
            }
        }
        Ok(())
    }

    /// The owner's entry at a deleted path, with everything in it that the run could see.
    fn deleted(&mut self, at: &str) -> Result<()> {
        let node = match self.layer.lower_there(at) {
            Ok(Some(node)) => node,
            // The owner deleted it, too.
            Ok(None) | Err(LayerError::NotDirectory | LayerError::Loop) => return Ok(()),
            Err(error) => return Err(error),
        };
        // The owner made it after the run began: it was not deleted. A path that was landed and taken back is made anew, too.
        if node.stat().made.is_some_and(|made| made >= self.layer.began) && self.base(at).is_none() {
            return Ok(());
        }
        if let Node::Lower { source, below, stat } = &node
            && stat.kind == FileKind::Directory
        {
            for (name, _) in self.layer.lower_at(*source)?.tree.list(below)? {
                self.deleted(&path::join(at, &name))?;
            }
        }
        match self.layer.upper.stat(at) {
            Ok(_) => Ok(()),
            Err(_) => self.push(at, self.kind(at, &node), After::Missing),
        }
    }

    fn push(&mut self, at: &str, before: Before, after: After) -> Result<()> {
        let sources = self.layer.sources().iter().enumerate();
        let of = |(index, source): (usize, &crate::Source)| Some((index, path::below(at, &source.prefix)?));
        // Entries beside several directories belong to none of them.
        let Some((source, below)) = sources.filter_map(of).next() else { return Ok(()) };
        if self.changes.len() >= MAX_CHANGES {
            return Err(LayerError::TooMany);
        }
        let (path, touches, from) = (below.to_owned(), Vec::new(), None);
        self.changes.insert(at.to_owned(), Change { source, path, at: at.to_owned(), before, after, touches, from });
        Ok(())
    }
}

/// The calls that touched a path, or the nearest directory above it that was touched as a whole.
fn history(touched: &BTreeMap<String, Vec<Touch>>, at: &str) -> (Vec<Touch>, Option<String>) {
    let mut directory = at;
    loop {
        if let Some(touches) = touched.get(directory) {
            let renamed = touches.iter().rev().find(|touch| touch.operation == Operation::Rename);
            let below = path::below(at, directory).unwrap_or_default();
            let from = renamed.and_then(|touch| touch.from.as_deref()).map(|from| match below {
                "" => from.to_owned(),
                below => path::join(from, below),
            });
            return (touches.clone(), from);
        }
        match path::split(directory) {
            Some((above, _)) => directory = above,
            None => return (Vec::new(), None),
        }
    }
}

/// Whether two files have the same content and can be executed alike.
fn same(one: &Tree, other: &Tree, at: &str) -> Result<bool> {
    let (one, other) = (one.read(at)?, other.read(at)?);
    let (left, right) = (stat_of(&one)?, stat_of(&other)?);
    if left.size != right.size || left.mode & 0o111 != right.mode & 0o111 {
        return Ok(false);
    }
    same_content(one, other)
}

fn same_content(one: File, other: File) -> Result<bool> {
    let (mut one, mut other) = (BufReader::with_capacity(64 << 10, one), BufReader::with_capacity(64 << 10, other));
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        if left.is_empty() || right.is_empty() {
            return Ok(left.is_empty() && right.is_empty());
        }
        let common = left.len().min(right.len());
        if left.get(..common) != right.get(..common) {
            return Ok(false);
        }
        one.consume(common);
        other.consume(common);
    }
}

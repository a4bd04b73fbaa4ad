//! Differences between two of: a tree, the index, the working tree.

mod content;
mod format;
mod options;
mod patch;
mod rename;
mod stat;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;

use crate::error::{Fault, Result};
use crate::index::Index;
use crate::limits::{MAX_FILES, MAX_TREE_DEPTH};
use crate::pathspec::Pathspec;
use crate::repository::Repository;
use crate::tree::{self, Child};
use crate::worktree;

pub(crate) use format::show;
pub(crate) use options::{Format, Options};
pub(crate) use rename::detect as detect_renames;

/// The stage of our side of a conflict.
const OURS: u32 = 2;

/// A file on one side of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Side {
    pub path: BString,
    pub mode: u32,
    pub id: ObjectId,
    /// Its content is in the working tree, and perhaps nowhere else.
    pub in_worktree: bool,
}

/// One difference between two sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub old: Option<Side>,
    pub new: Option<Side>,
    /// How similar the two sides of a rename are, in percent.
    pub similarity: Option<u32>,
    /// A path in conflict, with the stages that it has as bits 1, 2 and 4.
    pub conflict: Option<u32>,
}

impl Change {
    fn new(old: Option<Side>, new: Option<Side>) -> Self {
        Self { old, new, similarity: None, conflict: None }
    }

    fn conflict(path: &BStr, stages: u32) -> Self {
        let side =
            Side { path: path.to_owned(), mode: 0, id: ObjectId::null(crate::objects::HASH), in_worktree: false };
        Self { old: Some(side.clone()), new: Some(side), similarity: None, conflict: Some(stages) }
    }

    /// The path that it is sorted and named by.
    pub(crate) fn path(&self) -> &BStr {
        let side = self.new.as_ref().or(self.old.as_ref());
        side.map_or(BStr::new(""), |side| side.path.as_bstr())
    }

    /// git's letter for it.
    pub(crate) fn letter(&self) -> char {
        match (&self.old, &self.new) {
            _ if self.conflict.is_some() => 'U',
            _ if self.similarity.is_some() => 'R',
            (None, _) => 'A',
            (_, None) => 'D',
            (Some(old), Some(new)) if old.mode & 0o170_000 != new.mode & 0o170_000 => 'T',
            _ => 'M',
        }
    }
}

/// The differences between two trees; `None` is the empty tree.
pub(crate) fn trees(
    repository: &Repository,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
    paths: &Pathspec,
) -> Result<Vec<Change>> {
    let mut compare = Trees { repository, paths, changes: Vec::new(), only_whether: false };
    compare.level(old, new, &BString::default(), 0)?;
    compare.changes.sort_by(|one, other| one.path().cmp(other.path()));
    Ok(compare.changes)
}

/// Whether two trees differ in these paths.
pub(crate) fn differs(
    repository: &Repository,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
    paths: &Pathspec,
) -> Result<bool> {
    let mut compare = Trees { repository, paths, changes: Vec::new(), only_whether: true };
    compare.level(old, new, &BString::default(), 0)?;
    Ok(!compare.changes.is_empty())
}

struct Trees<'a> {
    repository: &'a Repository,
    paths: &'a Pathspec,
    changes: Vec<Change>,
    only_whether: bool,
}

impl Trees<'_> {
    fn level(&mut self, old: Option<ObjectId>, new: Option<ObjectId>, prefix: &BString, depth: usize) -> Result<()> {
        if old == new {
            return Ok(());
        }
        if depth > MAX_TREE_DEPTH {
            return Err(tree::too_deep());
        }
        let read = |id: Option<ObjectId>| -> Result<BTreeMap<BString, Child>> {
            let children = match id {
                Some(id) => tree::children(&self.repository.objects, &id)?,
                None => Vec::new(),
            };
            Ok(children.into_iter().map(|child| (child.key(), child)).collect())
        };
        let (old, new) = (read(old)?, read(new)?);
        let keys: BTreeSet<&BString> = old.keys().chain(new.keys()).collect();
        for key in keys {
            let (before, after) = (old.get(key), new.get(key));
            let same = match (before, after) {
                (Some(before), Some(after)) => before.id == after.id && before.mode == after.mode,
                _ => false,
            };
            if same || (self.only_whether && !self.changes.is_empty()) {
                continue;
            }
            let path = BString::from([prefix.as_bytes(), key.as_bytes()].concat());
            if key.ends_with(b"/") {
                let directory = path.strip_suffix(b"/").unwrap_or(&path).as_bstr();
                if self.paths.may_match_below(directory) {
                    let id = |child: Option<&Child>| child.map(|child| child.id);
                    self.level(id(before), id(after), &path, depth.saturating_add(1))?;
                }
            } else if self.changes.len() >= MAX_FILES {
                return Err(Fault::limit(format_args!("more than {MAX_FILES} files differ; name a path")));
            } else if self.paths.matches(path.as_bstr(), false) {
                let side =
                    |child: &Child| Side { path: path.clone(), mode: child.mode, id: child.id, in_worktree: false };
                self.changes.push(Change::new(before.map(side), after.map(side)));
            }
        }
        Ok(())
    }
}

/// The newer side of a comparison with a tree.
#[derive(Clone, Copy)]
pub(crate) enum Newer<'a> {
    /// The index, with the staged changes.
    Index(&'a Index),
    /// The working tree, as far as the index knows it.
    Worktree(&'a Index),
}

/// The changes since a tree.
pub(crate) fn since(
    repository: &Repository,
    tree: Option<ObjectId>,
    newer: Newer<'_>,
    paths: &Pathspec,
) -> Result<Vec<Change>> {
    let (Newer::Index(index) | Newer::Worktree(index)) = newer;
    let mut old = files_of(repository, tree, paths)?;
    let mut changes = Vec::new();
    for (path, stages) in conflicts(index, paths) {
        old.remove(&path);
        changes.push(Change::conflict(path.as_bstr(), stages));
    }
    for entry in index.entries().iter().filter(|entry| entry.stage == 0) {
        // A file that is only intended to be added has no content in the index yet.
        let is_absent = matches!(newer, Newer::Index(_)) && entry.intended;
        if is_absent || !paths.matches(entry.path.as_bstr(), false) {
            continue;
        }
        let before = old.remove(&entry.path);
        let seen = match newer {
            Newer::Index(_) => worktree::Change::Same,
            Newer::Worktree(_) => worktree::compare(repository, index, entry)?,
        };
        let (mode, id, in_worktree) = match seen {
            worktree::Change::Same => (entry.mode, entry.id, false),
            worktree::Change::Changed { mode, id } => (mode, id, true),
            worktree::Change::Deleted => {
                changes.extend(before.map(|side| Change::new(Some(side), None)));
                continue;
            }
        };
        if before.as_ref().is_some_and(|side| side.id == id && side.mode == mode) {
            continue;
        }
        changes.push(Change::new(before, Some(Side { path: entry.path.clone(), mode, id, in_worktree })));
    }
    changes.extend(old.into_values().map(|side| Change::new(Some(side), None)));
    changes.sort_by(|one, other| one.path().cmp(other.path()));
    Ok(changes)
}

/// The changes that are not staged: the working tree against the index.
pub(crate) fn unstaged(repository: &Repository, index: &Index, paths: &Pathspec) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for (path, stages) in conflicts(index, paths) {
        changes.push(Change::conflict(path.as_bstr(), stages));
    }
    // In a conflict, the file is compared with our side of it.
    for entry in index.entries().iter().filter(|entry| entry.stage == 0 || entry.stage == OURS) {
        if !paths.matches(entry.path.as_bstr(), false) {
            continue;
        }
        let side =
            |mode: u32, id: ObjectId, in_worktree: bool| Side { path: entry.path.clone(), mode, id, in_worktree };
        let old = (!entry.intended).then(|| side(entry.mode, entry.id, false));
        match worktree::compare(repository, index, entry)? {
            worktree::Change::Same => {}
            worktree::Change::Deleted if entry.stage == OURS => {}
            worktree::Change::Deleted => changes.push(Change::new(Some(side(entry.mode, entry.id, false)), None)),
            worktree::Change::Changed { mode, id } => changes.push(Change::new(old, Some(side(mode, id, true)))),
        }
    }
    changes.sort_by(|one, other| one.path().cmp(other.path()));
    Ok(changes)
}

fn files_of(repository: &Repository, tree: Option<ObjectId>, paths: &Pathspec) -> Result<BTreeMap<BString, Side>> {
    let files = match tree {
        Some(tree) => tree::files(&repository.objects, &tree)?,
        None => Vec::new(),
    };
    let chosen = files.into_iter().filter(|file| paths.matches(file.path.as_bstr(), false));
    Ok(chosen
        .map(|file| (file.path.clone(), Side { path: file.path, mode: file.mode, id: file.id, in_worktree: false }))
        .collect())
}

/// The paths in conflict, each with the bits of its stages.
fn conflicts(index: &Index, paths: &Pathspec) -> BTreeMap<BString, u32> {
    let mut found: BTreeMap<BString, u32> = BTreeMap::new();
    for entry in index.entries().iter().filter(|entry| entry.stage != 0) {
        if paths.matches(entry.path.as_bstr(), false) {
            let bit = 1_u32.wrapping_shl(entry.stage.saturating_sub(1));
            *found.entry(entry.path.clone()).or_default() |= bit;
        }
    }
    found
}

//! Trees: the files of a commit, and trees made from the index.

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::{ObjectId, oid};
use gix_object::tree::EntryMode;
use gix_object::{Kind, TreeRefIter, WriteTo as _};

use crate::error::{Fault, Result};
use crate::index::{Entry, Index, mode};
use crate::limits::{MAX_FILES, MAX_TREE_DEPTH};
use crate::objects::{HASH, Objects};
use crate::repository::check_path;

/// A file of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub path: BString,
    pub mode: u32,
    pub id: ObjectId,
}

/// One entry of one tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Child {
    pub name: BString,
    pub mode: u32,
    pub id: ObjectId,
}

impl Child {
    pub(crate) fn is_tree(&self) -> bool {
        self.mode == mode::TREE
    }

    /// The key that trees are sorted by: a directory as if its name ended with `/`.
    pub(crate) fn key(&self) -> BString {
        let mut key = self.name.clone();
        if self.is_tree() {
            key.push(b'/');
        }
        key
    }
}

/// The entries of one tree.
pub(crate) fn children(objects: &Objects, id: &oid) -> Result<Vec<Child>> {
    let data = objects.read_as(id, Kind::Tree)?;
    let mut children = Vec::new();
    for entry in TreeRefIter::from_bytes(&data, HASH) {
        let entry = entry.map_err(|_| Fault::corrupt(format_args!("the tree {id} cannot be read")))?;
        if children.len() >= MAX_FILES {
            return Err(too_many());
        }
        // Old trees have other permissions; git knows two.
        let mode = match u32::from(entry.mode.value()) {
            value if mode::is_file(value) && value & 0o100 != 0 => mode::EXECUTABLE,
            value if mode::is_file(value) => mode::FILE,
            value => value,
        };
        children.push(Child { name: entry.filename.to_owned(), mode, id: entry.oid.to_owned() });
    }
    Ok(children)
}

/// All files of a tree, sorted by path.
pub(crate) fn files(objects: &Objects, id: &oid) -> Result<Vec<File>> {
    let mut files = Vec::new();
    collect(objects, id, &BString::default(), 0, &mut files)?;
    // A valid tree is sorted already; a hostile one need not be.
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

fn collect(objects: &Objects, id: &oid, prefix: &BString, depth: usize, files: &mut Vec<File>) -> Result<()> {
    if depth > MAX_TREE_DEPTH {
        return Err(too_deep());
    }
    for child in children(objects, id)? {
        let mut path = prefix.clone();
        path.extend_from_slice(&child.name);
        if child.is_tree() {
            path.push(b'/');
            collect(objects, &child.id, &path, depth.saturating_add(1), files)?;
        } else if files.len() >= MAX_FILES {
            return Err(too_many());
        } else {
            files.push(File { path, mode: child.mode, id: child.id });
        }
    }
    Ok(())
}

/// The entry at a path of a tree; the tree itself has no entry.
pub(crate) fn lookup(objects: &Objects, tree: &oid, path: &BStr) -> Result<Option<Child>> {
    let mut at = Child { name: BString::default(), mode: mode::TREE, id: tree.to_owned() };
    for (depth, name) in path.split_str("/").filter(|name| !name.is_empty()).enumerate() {
        if depth > MAX_TREE_DEPTH {
            return Err(too_deep());
        }
        if !at.is_tree() {
            return Ok(None);
        }
        match children(objects, &at.id)?.into_iter().find(|child| child.name == name) {
            Some(child) => at = child,
            None => return Ok(None),
        }
    }
    Ok((!at.name.is_empty()).then_some(at))
}

pub(crate) fn too_deep() -> Fault {
    Fault::limit(format_args!("a tree has more than {MAX_TREE_DEPTH} levels of directories"))
}

fn too_many() -> Fault {
    Fault::limit(format_args!("a tree has more than {MAX_FILES} files"))
}

/// Stores the trees of an index and returns the topmost.
pub(crate) fn write(objects: &Objects, index: &Index) -> Result<ObjectId> {
    if index.has_conflicts() {
        return Err(Fault::error("a tree cannot be made while paths are in conflict"));
    }
    let entries: Vec<&Entry> = index.entries().iter().filter(|entry| !entry.intended).collect();
    write_level(objects, &entries, 0, 0)
}

/// Stores the tree of entries that share their first `skipped` bytes.
fn write_level(objects: &Objects, entries: &[&Entry], skipped: usize, depth: usize) -> Result<ObjectId> {
    if depth > MAX_TREE_DEPTH {
        return Err(too_deep());
    }
    let mut here: BTreeMap<BString, (EntryMode, BString, ObjectId)> = BTreeMap::new();
    let mut rest = entries;
    while let Some((entry, after)) = rest.split_first() {
        let below = entry.path.get(skipped..).unwrap_or_default();
        match below.split_once_str("/") {
            None => {
                let kind = entry_mode(entry.mode)?;
                here.insert(below.into(), (kind, below.into(), entry.id));
                rest = after;
            }
            Some((name, _)) => {
                let start = [entry.path.get(..skipped).unwrap_or_default(), name, b"/"].concat();
                let count = rest.iter().take_while(|other| other.path.starts_with(&start)).count();
                let (inside, after) = rest.split_at_checked(count).unwrap_or((rest, &[]));
                let id = write_level(objects, inside, start.len(), depth.saturating_add(1))?;
                let key = [name, b"/"].concat();
                here.insert(key.into(), (entry_mode(mode::TREE)?, name.into(), id));
                rest = after;
            }
        }
    }
    let entries = here.into_values().map(|(mode, filename, oid)| gix_object::tree::Entry { mode, filename, oid });
    let tree = gix_object::Tree { entries: entries.collect() };
    let mut data = Vec::new();
    tree.write_to(&mut data).map_err(|error| Fault::fatal(format_args!("a tree cannot be written: {error}")))?;
    objects.write(Kind::Tree, &data)
}

fn entry_mode(mode: u32) -> Result<EntryMode> {
    EntryMode::try_from(mode).map_err(|mode| Fault::corrupt(format_args!("an entry has the mode {mode:o}")))
}

/// The index that has just the files of a tree; the facts that `known` remembers of an equal file are kept.
pub(crate) fn to_entries(files: Vec<File>, known: &Index) -> Result<Vec<Entry>> {
    let mut entries = Vec::with_capacity(files.len());
    for file in files {
        check_path(file.path.as_bstr())?;
        let same = known.get(file.path.as_bstr()).filter(|entry| entry.id == file.id && entry.mode == file.mode);
        entries.push(same.cloned().unwrap_or_else(|| Entry::new(file.path, file.mode, file.id, Default::default())));
    }
    Ok(entries)
}

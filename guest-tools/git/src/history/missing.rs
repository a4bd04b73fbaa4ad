//! The objects that a remote needs for new references, as far as its own references tell.

use std::collections::HashSet;

use gix_hash::ObjectId;
use gix_object::{Kind, TagRefIter};

use super::{Commit, ancestors};
use crate::error::{Fault, Result};
use crate::index::mode;
use crate::limits::{MAX_FILES, MAX_PUSHED_OBJECTS, MAX_TAG_DEPTH, MAX_TREE_DEPTH};
use crate::objects::HASH;
use crate::repository::Repository;
use crate::tree;

/// The objects that `wanted` lead to and `known` do not, each once, in an order that depends on these alone. Of the trees
/// that the remote has, those of the commits next to the new ones are compared: as git does, more may be sent than needed.
pub(crate) fn missing(repository: &Repository, wanted: &[ObjectId], known: &[ObjectId]) -> Result<Vec<ObjectId>> {
    let mut commits = Vec::new();
    for id in known {
        // The remote may have objects that are not here: they say nothing.
        if let Some((_, id, Kind::Commit)) = peel(repository, id)? {
            commits.push(id);
        }
    }
    let hidden = ancestors(repository, &commits)?;
    let mut search = Search { repository, seen: HashSet::new(), found: Vec::new() };
    let (mut waiting, mut trees, mut blobs) = (Vec::new(), Vec::new(), Vec::new());
    for id in wanted {
        let (tags, id, kind) = peel(repository, id)?.ok_or_else(|| repository.objects.missing(id))?;
        for tag in tags {
            search.add(&tag)?;
        }
        match kind {
            Kind::Commit => waiting.push(id),
            Kind::Tree => trees.push(id),
            Kind::Blob | Kind::Tag => blobs.push(id),
        }
    }
    let mut bounds = Vec::new();
    while let Some(id) = waiting.pop() {
        if hidden.contains(&id) {
            bounds.push(id);
        } else if search.add(&id)? {
            let commit = Commit::read(repository, &id)?;
            trees.push(commit.tree);
            waiting.extend(commit.parents);
        }
    }
    for id in bounds {
        search.skip(&Commit::read(repository, &id)?.tree, 0)?;
    }
    for id in trees {
        search.tree(&id, 0)?;
    }
    for id in blobs {
        search.add(&id)?;
    }
    Ok(search.found)
}

/// Follows tags: the tags, the object behind them and its kind. `None` if the object is not here.
fn peel(repository: &Repository, id: &ObjectId) -> Result<Option<(Vec<ObjectId>, ObjectId, Kind)>> {
    let (mut tags, mut id) = (Vec::new(), *id);
    while let Some(header) = repository.objects.header(&id)? {
        if header.kind != Kind::Tag {
            return Ok(Some((tags, id, header.kind)));
        }
        if tags.len() >= MAX_TAG_DEPTH {
            return Err(Fault::limit(format_args!("a tag leads through more than {MAX_TAG_DEPTH} tags")));
        }
        tags.push(id);
        let data = repository.objects.read_as(&id, Kind::Tag)?;
        let target = TagRefIter::from_bytes(&data, HASH).target_id();
        id = target.map_err(|_| Fault::corrupt(format_args!("the tag {id} cannot be read")))?;
    }
    Ok(None)
}

struct Search<'a> {
    repository: &'a Repository,
    /// Objects that were found, and those that the remote has.
    seen: HashSet<ObjectId>,
    found: Vec<ObjectId>,
}

impl Search<'_> {
    /// Adds an object; `false` if it is known already.
    fn add(&mut self, id: &ObjectId) -> Result<bool> {
        if !self.seen.insert(*id) {
            return Ok(false);
        }
        if self.found.len() >= MAX_PUSHED_OBJECTS {
            return Err(Fault::limit(format_args!(
                "more than {MAX_PUSHED_OBJECTS} objects are new to the remote; ask the owner to push"
            )));
        }
        self.found.push(*id);
        Ok(true)
    }

    fn tree(&mut self, id: &ObjectId, depth: usize) -> Result<()> {
        if depth > MAX_TREE_DEPTH {
            return Err(tree::too_deep());
        }
        if !self.add(id)? {
            return Ok(());
        }
        for child in tree::children(&self.repository.objects, id)? {
            if child.is_tree() {
                self.tree(&child.id, depth.saturating_add(1))?;
            } else if child.mode != mode::SUBMODULE {
                self.add(&child.id)?;
            }
        }
        Ok(())
    }

    /// Marks a tree that the remote has. Beyond a limit the rest is sent again, which is harmless.
    fn skip(&mut self, id: &ObjectId, depth: usize) -> Result<()> {
        if depth > MAX_TREE_DEPTH {
            return Err(tree::too_deep());
        }
        if self.seen.len() >= MAX_FILES || !self.seen.insert(*id) {
            return Ok(());
        }
        for child in tree::children(&self.repository.objects, id)? {
            if child.is_tree() {
                self.skip(&child.id, depth.saturating_add(1))?;
            } else {
                self.seen.insert(child.id);
            }
        }
        Ok(())
    }
}

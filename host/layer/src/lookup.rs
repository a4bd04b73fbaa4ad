//! Finding the entry at a path: in the run's files, else in the owner's, unless deleted or kept out.
//!
//! Links of the owner's directory are followed here, name by name in the run's view, so none leads out of it.

use std::collections::{HashMap, HashSet, VecDeque};

use rustix::io::Errno;

use crate::error::{LayerError, Result};
use crate::layer::{Entry, Layer};
use crate::path::{self, Part};
use crate::tree::{FileKind, Stat};

/// The most links in one path, as Linux has it.
const MAX_LINKS: usize = 40;
/// The most names in one path, links followed.
const MAX_PARTS: usize = 4096;

/// The entry at a path.
#[derive(Debug, Clone)]
pub enum Node {
    /// The entry is the run's own.
    Upper(Stat),
    /// The entry is in the owner's directory.
    Lower { source: usize, below: String, stat: Stat },
}

impl Node {
    pub fn stat(&self) -> &Stat {
        match self {
            Self::Upper(stat) | Self::Lower { stat, .. } => stat,
        }
    }

    pub fn kind(&self) -> FileKind {
        self.stat().kind
    }
}

/// A path without links, and the entry there.
#[derive(Debug)]
pub struct Place {
    pub at: String,
    pub node: Option<Node>,
}

impl Layer {
    /// The entry at a path; links on the way are followed, the last one if `follow`.
    pub(crate) fn existing(&self, path: &str, follow: bool) -> Result<(String, Node)> {
        let Place { at, node } = self.place(path, follow)?;
        Ok((at, node.ok_or(LayerError::NotFound)?))
    }

    /// Where a path leads; its directory may be missing.
    pub(crate) fn place(&self, path: &str, follow: bool) -> Result<Place> {
        let slash = path.ends_with('/');
        let place = self.walk(path, follow || slash)?;
        match &place.node {
            Some(node) if slash && node.kind() == FileKind::File => Err(LayerError::NotDirectory),
            _ => Ok(place),
        }
    }

    fn walk(&self, path: &str, follow: bool) -> Result<Place> {
        if let Some(at) = path::plain(path) {
            match self.node(&at) {
                Ok(Some(node)) if follow && node.kind() == FileKind::Symlink => {}
                Err(LayerError::Loop) => {}
                found => return Ok(Place { node: found?, at }),
            }
        }
        let (mut at, mut links) = (String::new(), 0);
        let mut left: VecDeque<Part> = path::parts(path, 0).into();
        while let Some(part) = left.pop_front() {
            if part.name == ".." {
                let depth = if at.is_empty() { 0 } else { at.split('/').count() };
                if depth <= part.floor {
                    return Err(LayerError::Escapes);
                }
                at = path::split(&at).map(|(above, _)| above.to_owned()).unwrap_or_default();
                continue;
            }
            path::push(&mut at, &part.name);
            let node = self.node(&at)?;
            match node {
                Some(Node::Lower { source, below, stat })
                    if stat.kind == FileKind::Symlink && (follow || !left.is_empty()) =>
                {
                    links += 1;
                    let target = self.lower_at(source)?.tree.read_link(&below)?;
                    if target.starts_with('/') {
                        return Err(LayerError::Escapes);
                    }
                    let floor = usize::from(!self.lower_at(source)?.source.prefix.is_empty());
                    let parts = path::parts(&target, floor);
                    if links > MAX_LINKS || left.len() + parts.len() > MAX_PARTS {
                        return Err(LayerError::Loop);
                    }
                    parts.into_iter().rev().for_each(|part| left.push_front(part));
                    at = path::split(&at).map(|(above, _)| above.to_owned()).unwrap_or_default();
                }
                Some(node) if left.is_empty() => return Ok(Place { at, node: Some(node) }),
                Some(node) if node.kind() == FileKind::Directory => {}
                Some(_) => return Err(LayerError::NotDirectory),
                None if left.is_empty() => return Ok(Place { at, node: None }),
                None => return Err(LayerError::NotFound),
            }
        }
        let node = self.node(&at)?;
        Ok(Place { at, node })
    }

    /// The entry at a path that has one form and no link in it.
    ///
    /// # Errors
    /// [`LayerError::Loop`] if a part before the last is a link.
    pub(crate) fn node(&self, at: &str) -> Result<Option<Node>> {
        if !self.altered.at(at) {
            return self.lower_there(at);
        }
        match self.upper.stat(at) {
            Ok(stat) => Ok(Some(Node::Upper(stat))),
            Err(Errno::NOENT) => self.lower(at),
            Err(error) => Err(error.into()),
        }
    }

    /// The owner's entry at a path, unless it is deleted or kept out.
    pub(crate) fn lower(&self, at: &str) -> Result<Option<Node>> {
        if self.is_gone(at)? {
            return Ok(None);
        }
        self.lower_there(at)
    }

    /// The owner's entry at a path, unless it is kept out.
    pub(crate) fn lower_there(&self, at: &str) -> Result<Option<Node>> {
        for (source, lower) in self.lowers.iter().enumerate() {
            let Some(below) = lower.below(at) else { continue };
            let stat = match lower.stat(below) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            if lower.rules.kept_out(&lower.tree, below, stat.kind)?.is_some() {
                return Ok(None);
            }
            return Ok(Some(Node::Lower { source, below: below.to_owned(), stat }));
        }
        Ok(None)
    }

    /// Whether the run deleted the owner's entry at a path, or something above it.
    pub(crate) fn is_gone(&self, at: &str) -> Result<bool> {
        match self.gone.stat(at) {
            Ok(mark) => Ok(mark.kind == FileKind::File),
            Err(Errno::NOTDIR) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The entries of a directory at a path without links.
    pub(crate) fn entries(&self, at: &str) -> Result<Vec<Entry>> {
        let own = if self.altered.within(at) { self.upper.list(at) } else { Err(Errno::NOENT) };
        let mut found: HashMap<String, FileKind> = match own {
            Ok(own) => own.into_iter().collect(),
            Err(Errno::NOENT) => HashMap::new(),
            Err(error) => return Err(error.into()),
        };
        for (name, kind) in self.lower_entries(at)? {
            found.entry(name).or_insert(kind);
        }
        Ok(found.into_iter().map(|(name, kind)| Entry { name, kind }).collect())
    }

    /// The owner's entries in a directory that are neither deleted nor kept out.
    pub(crate) fn lower_entries(&self, at: &str) -> Result<Vec<(String, FileKind)>> {
        let altered = self.altered.within(at);
        if altered && self.is_gone(at)? {
            return Ok(Vec::new());
        }
        let Some((lower, below)) = self.lowers.iter().find_map(|lower| Some((lower, lower.below(at)?))) else {
            return Ok(Vec::new());
        };
        let listed = match lower.tree.list(below) {
            Ok(listed) => listed,
            // The run made a directory where the owner has none.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let gone = if altered { self.gone.list(at) } else { Err(Errno::NOENT) };
        let gone: HashSet<String> = match gone {
            Ok(marks) => marks.into_iter().filter(|(_, kind)| *kind == FileKind::File).map(|(name, _)| name).collect(),
            Err(Errno::NOENT) => HashSet::new(),
            Err(error) => return Err(error.into()),
        };
        let mut found = Vec::with_capacity(listed.len());
        for (name, kind) in listed {
            let there = path::join(below, &name);
            if !gone.contains(&name) && lower.rules.kept_out(&lower.tree, &there, kind)?.is_none() {
                found.push((name, kind));
            }
        }
        Ok(found)
    }
}

//! Which paths of the owner's directory a run does not see: `.gitignore`, `.motorignore`, names of secrets.
//!
//! The files are read from the owner's directory only, each at most once, when a path of its directory is first asked
//! for. Writes of the run there change nothing.

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use parking_lot::Mutex;
use rustix::io::Errno;

use crate::path;
use crate::secrets;
use crate::tree::{FileKind, Tree};

/// Why a path is not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptOut {
    /// A file of the owner says that it is ignored.
    Ignored,
    /// It has a name that secrets are kept under.
    Secret,
}

/// The beginning of the names of directories in which a landing is prepared.
const LANDING: &str = ".motor-landing-";
/// The longest file of rules; the directory of a longer one is not seen at all.
const MAX_RULES_BYTES: u64 = 1 << 20;
/// The most directories whose rules are remembered.
const MAX_REMEMBERED: usize = 100_000;

/// The rules of one directory of the owner.
#[derive(Debug)]
pub struct Rules {
    /// Paths that the owner named: they are seen against all rules.
    shown: Vec<String>,
    known: Mutex<HashMap<String, Within>>,
}

/// The known facts of a directory.
#[derive(Debug, Clone)]
enum Within {
    /// Its entries follow these rules.
    Seen(Option<Arc<Node>>),
    /// It is not seen, nor is anything in it but the paths that the owner named.
    Hidden(KeptOut),
}

/// The rules that a directory has files for.
#[derive(Debug)]
struct Node {
    above: Option<Arc<Self>>,
    directory: String,
    git: Gitignore,
    motor: Gitignore,
}

impl Rules {
    pub fn new(shown: &[String]) -> Self {
        Self { shown: shown.iter().filter_map(|named| path::plain(named)).collect(), known: Mutex::default() }
    }

    /// Why an entry of the owner's directory is not seen; `None`: it is.
    ///
    /// # Errors
    /// If a file of rules cannot be read.
    pub fn kept_out(&self, tree: &Tree, at: &str, kind: FileKind) -> Result<Option<KeptOut>, Errno> {
        let Some((above, _)) = path::split(at) else { return Ok(None) };
        if self.shown.iter().any(|shown| path::within(at, shown)) {
            return Ok(None);
        }
        if kind == FileKind::Directory && self.shown.iter().any(|shown| path::within(shown, at)) {
            return Ok(None);
        }
        match self.within(tree, above)? {
            Within::Hidden(why) => Ok(Some(why)),
            Within::Seen(node) => verdict(tree, node.as_deref(), at, kind),
        }
    }

    /// The rules for the entries of a directory.
    fn within(&self, tree: &Tree, directory: &str) -> Result<Within, Errno> {
        if let Some(known) = self.known.lock().get(directory) {
            return Ok(known.clone());
        }
        let above = match path::split(directory) {
            None => Within::Seen(None),
            Some((above, _)) => match self.within(tree, above)? {
                Within::Seen(node) => match verdict(tree, node.as_deref(), directory, FileKind::Directory)? {
                    None => Within::Seen(node),
                    Some(why) => Within::Hidden(why),
                },
                hidden @ Within::Hidden(_) => hidden,
            },
        };
        let found = match above {
            Within::Seen(node) => read(tree, directory, node)?,
            hidden @ Within::Hidden(_) => hidden,
        };
        let mut known = self.known.lock();
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert(directory.to_owned(), found.clone());
        Ok(found)
    }
}

/// Adds the rules that a directory has files for to those above it.
fn read(tree: &Tree, directory: &str, above: Option<Arc<Node>>) -> Result<Within, Errno> {
    // Git's own directory has no such files.
    if in_git(directory) {
        return Ok(Within::Seen(above));
    }
    let (git, motor) = (rules(tree, directory, ".gitignore")?, rules(tree, directory, ".motorignore")?);
    let (Some(git), Some(motor)) = (git, motor) else { return Ok(Within::Hidden(KeptOut::Ignored)) };
    if git.is_empty() && motor.is_empty() {
        return Ok(Within::Seen(above));
    }
    Ok(Within::Seen(Some(Arc::new(Node { above, directory: directory.to_owned(), git, motor }))))
}

/// The rules of one file; empty ones if there is none, `None` if it is too long.
fn rules(tree: &Tree, directory: &str, name: &str) -> Result<Option<Gitignore>, Errno> {
    let mut text = Vec::new();
    match tree.read(&path::join(directory, name)) {
        Ok(file) => {
            let read = file.take(MAX_RULES_BYTES + 1).read_to_end(&mut text);
            // A directory of this name has no rules.
            match read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)) {
                Ok(_) | Err(Errno::ISDIR) => {}
                Err(error) => return Err(error),
            }
        }
        // As git does: a link is not followed.
        Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => return Ok(Some(Gitignore::empty())),
        Err(error) => return Err(error),
    }
    if text.len() as u64 > MAX_RULES_BYTES {
        return Ok(None);
    }
    let mut builder = GitignoreBuilder::new("");
    for line in String::from_utf8_lossy(&text).trim_start_matches('\u{feff}').lines() {
        // As git does: a line that is no pattern matches nothing.
        builder.add_line(None, line).ok();
    }
    Ok(Some(builder.build().unwrap_or_else(|_| Gitignore::empty())))
}

/// The verdict of the rules on an entry whose directory is seen. A nearer file wins, and `.motorignore` wins over all.
fn verdict(tree: &Tree, nearest: Option<&Node>, at: &str, kind: FileKind) -> Result<Option<KeptOut>, Errno> {
    let ask = |of: fn(&Node) -> &Gitignore| {
        let mut next = nearest;
        while let Some(node) = next {
            if let Some(below) = path::below(at, &node.directory) {
                match of(node).matched(below, kind == FileKind::Directory) {
                    Match::None => {}
                    Match::Ignore(_) => return Some(true),
                    Match::Whitelist(_) => return Some(false),
                }
            }
            next = node.above.as_deref();
        }
        None
    };
    if let Some(ignored) = ask(|node| &node.motor) {
        return Ok(ignored.then_some(KeptOut::Ignored));
    }
    if in_git(at) {
        return Ok(git_config(tree, at, kind)?.then_some(KeptOut::Secret));
    }
    let name = path::split(at).map_or("", |(_, name)| name);
    if name.starts_with(LANDING) {
        return Ok(Some(KeptOut::Ignored));
    }
    if secrets::named(name, kind) {
        return Ok(Some(KeptOut::Secret));
    }
    Ok(ask(|node| &node.git).unwrap_or(false).then_some(KeptOut::Ignored))
}

fn in_git(at: &str) -> bool {
    at.split('/').any(|name| name.eq_ignore_ascii_case(".git"))
}

/// Whether it is a git configuration with a credential in it.
fn git_config(tree: &Tree, at: &str, kind: FileKind) -> Result<bool, Errno> {
    let name = path::split(at).map_or("", |(_, name)| name).to_ascii_lowercase();
    if kind == FileKind::Directory || !matches!(name.as_str(), "config" | "config.worktree") {
        return Ok(false);
    }
    let mut text = Vec::new();
    match tree.read(at) {
        Ok(file) => {
            let read = file.take(MAX_RULES_BYTES + 1).read_to_end(&mut text);
            read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            Ok(text.len() as u64 > MAX_RULES_BYTES || secrets::in_git_config(&String::from_utf8_lossy(&text)))
        }
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

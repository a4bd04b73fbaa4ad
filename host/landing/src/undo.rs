//! The edits that take a landing back.

use std::fs;
use std::path::Path;

use crate::edit::{Edit, Side, Target};
use crate::error::{LandError, Result};
use crate::journal::{Journal, State};

/// The edits that take a landing back, to be planned and landed like anything else.
///
/// # Errors
/// If it is not landed, or its originals cannot be read.
pub fn undo(directory: &Path) -> Result<(Vec<Target>, Vec<Edit>)> {
    let journal = Journal::at(directory);
    match journal.state()? {
        Some(State::Landed) => {}
        Some(other) => return Err(LandError::State(other.name())),
        None => return Err(LandError::State("not begun")),
    }
    let plan = journal.record()?.plan;
    let mut edits = Vec::new();
    for (index, entry) in plan.done() {
        let Edit { target, path, before, after } = &entry.edit;
        let now = match after {
            Side::File { .. } => Side::File { content: Some(journal.landed(index)) },
            other => other.clone(),
        };
        let then = match before {
            Side::Missing => Side::Missing,
            Side::Directory => Side::Directory,
            Side::File { .. } => Side::File { content: Some(journal.original(index)) },
            Side::Symlink { .. } => {
                let target = fs::read_link(journal.original(index)).map_err(LandError::journal)?;
                Side::Symlink { target: target.to_str().map(str::to_owned) }
            }
        };
        edits.push(Edit { target: *target, path: path.clone(), before: now, after: then });
    }
    Ok((plan.targets, joined(edits)))
}

/// The edits of a landing, in their order, with their contents before any merge. `None` if it is not in force: it
/// never began, or was rolled back.
///
/// # Errors
/// If it cannot be read.
pub fn done(directory: &Path) -> Result<Option<(Vec<Target>, Vec<Edit>)>> {
    let journal = Journal::at(directory);
    match journal.state()? {
        Some(State::Landed | State::Undone) => {}
        _ => return Ok(None),
    }
    let plan = journal.record()?.plan;
    let edits = plan.done().map(|(_, entry)| entry.edit.clone()).collect();
    Ok(Some((plan.targets, edits)))
}

/// A deletion and a creation at one path are one edit again.
fn joined(edits: Vec<Edit>) -> Vec<Edit> {
    let mut joined: Vec<Edit> = Vec::with_capacity(edits.len());
    let mut by_path = std::collections::HashMap::new();
    for edit in edits {
        match by_path.get(&(edit.target, edit.path.clone())).and_then(|index: &usize| joined.get_mut(*index)) {
            // The deletion came first: the whole edit restores its `after`.
            Some(earlier) => earlier.before = edit.before,
            None => {
                by_path.insert((edit.target, edit.path.clone()), joined.len());
                joined.push(edit);
            }
        }
    }
    joined
}

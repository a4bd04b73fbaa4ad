//! The commit of a landing: drafted from its plan, recorded in its journal, and finished after its files (SPEC LAND-7).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use repository::{Change, CommitError, Content, Draft, Intent, Place, Repository, Standing};
use serde::{Deserialize, Serialize};

use crate::edit::Side;
use crate::error::{LandError, Result};
use crate::journal::{Journal, State};
use crate::plan::{Expected, Plan, Planned};
use crate::step::Steps;

/// The end of a commit, or of its being taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitEnd {
    /// The reference is moved, and the index updated.
    Done,
    /// The owner had moved the reference: it stays.
    Elsewhere,
}

/// The commit of a landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandedCommit {
    /// The record of the commit.
    pub intent: Intent,
    /// Its end; `None` if it is not there yet.
    pub end: Option<CommitEnd>,
}

/// The commit of the changes of a plan, with its repository. Nothing is written.
///
/// # Errors
/// If the changes are of several repositories, or cannot be committed.
pub fn draft(plan: &Plan, place: &Place) -> Result<(Repository, Draft)> {
    let mut repositories = Vec::with_capacity(plan.targets.len());
    for (index, target) in plan.targets.iter().enumerate() {
        let used = plan.done().any(|(_, entry)| entry.edit.target == index);
        repositories.push(if used { Some(Repository::open(&target.directory)?) } else { None });
    }
    let mut changes = BTreeMap::new();
    for (_, entry) in plan.done() {
        let repository = repositories.get(entry.edit.target).and_then(Option::as_ref);
        let repository = repository.ok_or(LandError::Damaged("plan.json"))?;
        if let Some(after) = content(entry)? {
            // A path that changes its kind has two entries, the deletion first.
            changes.insert(repository.path(&entry.edit.path), after);
        }
    }
    let mut used = repositories.into_iter().flatten();
    let Some(first) = used.next() else { return Err(CommitError::Empty.into()) };
    if used.any(|other| !other.is_same(&first)) {
        return Err(LandError::Repositories);
    }
    let changes = changes.into_iter().map(|(path, after)| Change { path, after }).collect();
    let draft = first.draft(place, changes)?;
    Ok((first, draft))
}

/// The entry of a commit; `None` for directories, which git does not know.
fn content(entry: &Planned) -> Result<Option<Content>> {
    Ok(match (&entry.edit.before, &entry.edit.after) {
        (Side::Directory, Side::Missing) | (_, Side::Directory) => None,
        (_, Side::Missing) => Some(Content::Missing),
        (_, Side::Symlink { target }) => Some(Content::Symlink(target.clone().unwrap_or_default())),
        (_, Side::File { .. }) => {
            let content = entry.content().ok_or(LandError::Damaged("plan.json"))?;
            // The same mode as staging gives it.
            let mode = match entry.expected {
                Expected::Content { mode, .. } => mode,
                _ => fs::metadata(content).map_err(LandError::journal)?.permissions().mode(),
            };
            Some(Content::File { content: content.to_owned(), hash: entry.new, executable: mode & 0o100 != 0 })
        }
    })
}

/// The commit of a landing that is in force, if it has one.
///
/// # Errors
/// If it cannot be read.
pub fn commit(directory: &Path) -> Result<Option<LandedCommit>> {
    let journal = Journal::at(directory);
    match journal.state()? {
        Some(State::Landed | State::Undone) => {}
        _ => return Ok(None),
    }
    let Some(intent) = journal.record()?.commit else { return Ok(None) };
    Ok(Some(LandedCommit { intent, end: journal.commit_end()? }))
}

/// Moves the reference and updates the index, after the files are landed. Can be repeated.
pub(crate) fn finish(journal: &Journal, intent: &Intent, steps: &Steps) -> Result<CommitEnd> {
    if let Some(end) = journal.commit_end()? {
        return Ok(end);
    }
    let repository = Repository::of(intent)?;
    steps.step()?;
    let end = match repository.move_reference(intent)? {
        Standing::After | Standing::BuiltOn => {
            steps.step()?;
            repository.update_index(intent)?;
            CommitEnd::Done
        }
        _ => CommitEnd::Elsewhere,
    };
    steps.step()?;
    journal.set_commit_end(end)?;
    Ok(end)
}

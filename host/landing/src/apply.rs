//! Carrying out a plan, and taking it back when something does not fit.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use layer::{FileKind, Tree};
use receipts::tree::sum;
use repository::Intent;
use rustix::fs::RenameFlags;
use rustix::io::Errno;

use crate::commit::{self, CommitEnd};
use crate::edit::Side;
use crate::error::{LandError, Result};
use crate::journal::{Journal, Record, State, VERSION};
use crate::plan::{Expected, Plan, Planned, nanos};
use crate::stage::Stage;
use crate::step::Steps;

/// A landing that is to be done.
#[derive(Debug)]
pub struct Landing<'a> {
    /// The landing's own directory.
    pub directory: &'a Path,
    /// The name of the directories beside the owner's files, which begins with `.motor-landing-`.
    pub name: &'a str,
    /// The directory of the landing that is taken back.
    pub undoes: Option<&'a Path>,
    /// The commit that is made, or taken back, after the files.
    pub commit: Option<Intent>,
}

/// The result of a landing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Landed {
    /// Number of paths that were changed.
    pub paths: usize,
    /// Directories that stay because there is something in them that the run did not see.
    pub kept: Vec<String>,
    /// The state of the commit, if there is one to make or to take back.
    pub commit: Option<CommitProgress>,
}

/// How far the commit of a landing is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitProgress {
    /// It is at its end.
    Ended(CommitEnd),
    /// It could not be finished for this reason, and is tried again by [`crate::recover`].
    Waits(String),
}

/// Lands a plan without conflicts, all or nothing.
///
/// # Errors
/// If the plan has conflicts, something changed since it was made, or the system refuses: nothing is applied then. If
/// taking back fails, too, the state stays `applying`, and [`crate::recover`] tries again.
pub fn land(plan: Plan, landing: Landing<'_>) -> Result<Landed> {
    land_with(plan, landing, &Steps::default())
}

pub(crate) fn land_with(plan: Plan, landing: Landing<'_>, steps: &Steps) -> Result<Landed> {
    let Landing { directory, name, undoes, commit } = landing;
    let conflicts = plan.conflicts().count();
    if conflicts > 0 {
        return Err(LandError::Conflicts(conflicts));
    }
    let journal = Journal::at(directory);
    let undoes = undoes.map(Path::to_owned);
    let record = Record { version: VERSION, staging: name.to_owned(), undoes, commit: commit.clone(), plan };
    journal.create(&record)?;
    let mut stage = match Stage::prepare(record, journal.clone(), steps) {
        Ok(stage) => stage,
        #[cfg(test)]
        Err(LandError::Killed) => return Err(LandError::Killed),
        Err(error) => {
            Stage::reopen(journal.clone())?.clear(&Steps::default())?;
            journal.set(State::RolledBack)?;
            return Err(error);
        }
    };
    steps.step()?;
    journal.set(State::Applying)?;
    let done = apply(&stage, steps).and_then(|landed| {
        steps.step()?;
        stage.sync()?;
        steps.step()?;
        journal.set(State::Landed)?;
        Ok(landed)
    });
    match done {
        Ok(landed) => {
            finish(&mut stage, steps)?;
            let commit = commit.map(|intent| progress(&journal, &intent, steps)).transpose()?;
            Ok(Landed { commit, ..landed })
        }
        #[cfg(test)]
        Err(LandError::Killed) => Err(LandError::Killed),
        Err(error) => {
            roll_back(&mut stage, &Steps::default())?;
            Err(error)
        }
    }
}

/// Finishes the commit as far as possible: the files stay landed even if it fails.
pub(crate) fn progress(journal: &Journal, intent: &Intent, steps: &Steps) -> Result<CommitProgress> {
    match commit::finish(journal, intent, steps) {
        Ok(end) => Ok(CommitProgress::Ended(end)),
        #[cfg(test)]
        Err(LandError::Killed) => Err(LandError::Killed),
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
            Ok(CommitProgress::Waits(format!("{error}{cause}")))
        }
    }
}

/// Removes a directory. The entry in the slot says that it was this landing that did.
fn removed(tree: &Tree, path: &str, slots: &Tree, slot: &str) -> Result<(), Errno> {
    slots.make_directory(slot)?;
    tree.remove_directory(path).or_else(|error| {
        slots.remove_directory(slot)?;
        Err(error)
    })
}

fn apply(stage: &Stage, steps: &Steps) -> Result<Landed> {
    let mut landed = Landed::default();
    for (index, entry) in stage.record.plan.done() {
        let path = entry.edit.path.as_str();
        let (tree, slots) = (stage.tree(entry.edit.target)?, stage.slots(entry.edit.target)?);
        let slot = index.to_string();
        let changed = || LandError::Changed(entry.at(&stage.record.plan));
        let done = |result: Result<(), Errno>| match result {
            Ok(()) => Ok(()),
            // The owner was here in between.
            Err(Errno::NOENT | Errno::EXIST | Errno::NOTDIR | Errno::LOOP | Errno::ISDIR) => Err(changed()),
            Err(error) => Err(LandError::at(path)(error)),
        };
        steps.step()?;
        match (&entry.edit.before, &entry.edit.after) {
            (Side::Directory, _) => match removed(tree, path, slots, &slot) {
                Ok(()) => {}
                Err(Errno::NOTEMPTY | Errno::EXIST) => {
                    landed.kept.push(entry.at(&stage.record.plan));
                    continue;
                }
                refused => done(refused)?,
            },
            (_, Side::Missing) => {
                // The move itself changes the time by which a write is noticed.
                let now = tree.stat(path).ok().map(|found| nanos(found.changed));
                if let Expected::Entry { changed: then, .. } = entry.expected
                    && now != Some(then)
                {
                    return Err(changed());
                }
                done(tree.rename(path, slots, &slot, RenameFlags::NOREPLACE))?;
                expect(slots, &slot, entry)?.then_some(()).ok_or_else(changed)?;
            }
            (Side::Missing, _) => done(slots.rename(&slot, tree, path, RenameFlags::NOREPLACE))?,
            _ => {
                done(slots.rename(&slot, tree, path, RenameFlags::EXCHANGE))?;
                expect(slots, &slot, entry)?.then_some(()).ok_or_else(changed)?;
            }
        }
        landed.paths += 1;
    }
    Ok(landed)
}

/// Whether the entry that came out is the expected one.
fn expect(slots: &Tree, slot: &str, entry: &Planned) -> Result<bool> {
    let at = LandError::at(&entry.edit.path);
    let found = slots.stat(slot).map_err(&at)?;
    Ok(match &entry.expected {
        Expected::Nothing | Expected::Directory { .. } => false,
        Expected::Content { hash, .. } => {
            let content = found.kind == FileKind::File;
            content && sum(&mut slots.read(slot).map_err(&at)?, u64::MAX).map_err(LandError::journal)?.hash == *hash
        }
        Expected::Entry { inode, size, modified, .. } => {
            (found.inode, found.size, nanos(found.modified)) == (*inode, *size, *modified)
        }
    })
}

/// Keeps the originals, and removes the directories beside the owner's files.
pub(crate) fn finish(stage: &mut Stage, steps: &Steps) -> Result<()> {
    for (index, entry) in stage.record.plan.done() {
        if stage.slots.contains_key(&entry.edit.target) && entry.edit.before != Side::Directory {
            steps.step()?;
            stage.keep(entry.edit.target, index, &stage.journal.original(index))?;
        }
    }
    if let Some(undone) = &stage.record.undoes {
        steps.step()?;
        Journal::at(undone).set(State::Undone)?;
    }
    stage.clear(steps)
}

/// Puts everything back, from the contents of the slots and of the paths.
pub(crate) fn roll_back(stage: &mut Stage, steps: &Steps) -> Result<()> {
    let entries: Vec<_> = stage.record.plan.done().collect();
    for (index, entry) in entries.into_iter().rev() {
        steps.step()?;
        put_back(stage, index, entry)?;
    }
    for (index, entry) in stage.record.plan.done() {
        steps.step()?;
        set_aside(stage, index, entry)?;
    }
    steps.step()?;
    stage.sync()?;
    stage.clear(steps)?;
    steps.step()?;
    stage.journal.set(State::RolledBack)
}

fn put_back(stage: &Stage, index: usize, entry: &Planned) -> Result<()> {
    let path = entry.edit.path.as_str();
    let Some(slots) = stage.slots.get(&entry.edit.target) else { return Ok(()) };
    let tree = stage.tree(entry.edit.target)?;
    let slot = index.to_string();
    let ours = stage.staged.get(index).copied().flatten();
    let number = |of: &Tree, at: &str| of.stat(at).ok().map(|found| found.inode);
    let (in_slot, at_path) = (number(slots, &slot), number(tree, path));
    let back = match (&entry.edit.before, &entry.edit.after) {
        (Side::Directory, _) if in_slot.is_some() => restored(tree, path, slots, &slot, &entry.expected),
        // Unless the owner put something into it.
        (_, Side::Directory) if at_path == ours && ours.is_some() => tree.remove_directory(path),
        (_, Side::Missing) if in_slot.is_some() => slots.rename(&slot, tree, path, RenameFlags::NOREPLACE),
        (Side::Missing, _) if in_slot.is_none() && at_path == ours && ours.is_some() => {
            tree.rename(path, slots, &slot, RenameFlags::NOREPLACE)
        }
        (Side::File { .. }, _) if in_slot.is_some() && in_slot != ours && ours.is_some() => match at_path {
            None => slots.rename(&slot, tree, path, RenameFlags::NOREPLACE),
            Some(_) if at_path == ours => slots.rename(&slot, tree, path, RenameFlags::EXCHANGE),
            // The owner replaced the new file: theirs stays, and the original is set aside.
            Some(_) => Ok(()),
        },
        _ => Ok(()),
    };
    match back {
        Ok(()) | Err(Errno::NOENT | Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR | Errno::LOOP) => Ok(()),
        Err(error) => Err(LandError::at(path)(error)),
    }
}

/// Makes a directory again that was removed. The owner may have done so before.
fn restored(tree: &Tree, path: &str, slots: &Tree, slot: &str, expected: &Expected) -> Result<(), Errno> {
    match tree.make_directory(path) {
        Ok(()) => restore_mode(tree, path, expected)?,
        Err(Errno::EXIST) => {}
        Err(error) => return Err(error),
    }
    slots.remove_directory(slot)
}

fn restore_mode(tree: &Tree, path: &str, expected: &Expected) -> Result<(), Errno> {
    let Expected::Directory { mode } = expected else { return Ok(()) };
    let directory = std::fs::File::from(tree.directory(path)?);
    let set = directory.set_permissions(std::fs::Permissions::from_mode(*mode));
    set.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// An entry in a slot after everything is put back is the landing's own content; anything else is kept.
fn set_aside(stage: &Stage, index: usize, entry: &Planned) -> Result<()> {
    let Some(slots) = stage.slots.get(&entry.edit.target) else { return Ok(()) };
    let slot = index.to_string();
    let Ok(found) = slots.stat(&slot) else { return Ok(()) };
    let ours = stage.staged.get(index).copied().flatten() == Some(found.inode);
    let intact = match found.kind {
        FileKind::File if ours => {
            let mut file = slots.read(&slot).map_err(LandError::at(&entry.edit.path))?;
            Some(sum(&mut file, u64::MAX).map_err(LandError::journal)?.hash) == entry.new
        }
        _ => ours,
    };
    if intact { Ok(()) } else { stage.keep(entry.edit.target, index, &stage.journal.left(index)) }
}

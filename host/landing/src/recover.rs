//! Bringing an interrupted landing to an end: everything is applied, or nothing.

use std::path::Path;

use crate::apply::{finish, progress, roll_back};
use crate::error::{LandError, Result};
use crate::journal::{Journal, State};
use crate::stage::Stage;
use crate::step::Steps;

/// The state of a landing; `None` if it never began.
///
/// # Errors
/// If it cannot be read.
pub fn state(directory: &Path) -> Result<Option<State>> {
    Journal::at(directory).state()
}

/// Ends a landing that was interrupted; a landing that was not stays as it is. Can be called again at any time.
///
/// # Errors
/// If a directory is another one now, or the system refuses.
pub fn recover(directory: &Path) -> Result<Option<State>> {
    recover_with(directory, &Steps::default())
}

pub(crate) fn recover_with(directory: &Path, steps: &Steps) -> Result<Option<State>> {
    let journal = Journal::at(directory);
    match journal.state()? {
        None | Some(State::RolledBack | State::Undone) => {}
        Some(State::Staging) => {
            Stage::reopen(journal.clone())?.clear(steps)?;
            journal.set(State::RolledBack)?;
        }
        Some(State::Applying) => {
            // Without the numbers it cannot be told which files are the landing's own.
            journal.staged()?;
            roll_back(&mut Stage::reopen(journal.clone())?, steps)?;
        }
        Some(State::Landed) => {
            match Stage::reopen(journal.clone()) {
                Ok(mut stage) => finish_left(&mut stage, steps)?,
                // Nothing is left to do in a directory that is gone.
                Err(LandError::Replaced(_)) => {}
                Err(error) => return Err(error),
            }
            if let Some(intent) = journal.record()?.commit {
                progress(&journal, &intent, steps)?;
            }
        }
    }
    journal.state()
}

fn finish_left(stage: &mut Stage, steps: &Steps) -> Result<()> {
    if stage.slots.is_empty() { Ok(()) } else { finish(stage, steps) }
}

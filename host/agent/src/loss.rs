//! A home whose state is gone, shortened or damaged: refused as long as the owner has not accepted the loss.
//!
//! The store notices a state that is behind its mark. Here are the other witnesses: directories of runs, traces and
//! approved skills, which exist only next to a state. Accepting a loss deletes nothing: files that no longer belong
//! to the state are moved into a directory of their own.

use std::path::{Path, PathBuf};
use std::{fs, io};

use base::{Clock, Refusal, RefusalCode, RunId};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::IgnoredAny;
use store::{HomeLock, Store, Table};

use crate::Home;

/// The outcome of [`accept_loss`].
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AcceptedLoss {
    /// Why the state was refused; `None` if nothing was lost, and then nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the next command begins with an empty state.
    pub is_new: bool,
    /// The runs of which the state has no record.
    pub runs: Vec<RunId>,
    /// The directory that now holds them, and the state if it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aside: Option<PathBuf>,
}

/// Refuses to begin a new state where an earlier one has left its traces.
pub(crate) fn check_new_state(home: &Home) -> Result<(), Refusal> {
    if store::exists(&home.state()) {
        return Ok(());
    }
    for (directory, content) in [(home.runs(), "runs"), (home.logs(), "traces of runs"), (home.versions(), "skills")] {
        if !is_empty(&directory).map_err(|error| unreadable(&directory, &error))? {
            let reason = format!("the state is gone: `state` is empty, and `{}` has {content}", directory.display());
            let remedy = "restore the home from a backup, or begin anew with `motor doctor --accept-loss`, which keeps \
                          these files in a directory of their own";
            return Err(Refusal::new(RefusalCode::StateUnusable, reason).with_remedy(remedy));
        }
    }
    Ok(())
}

/// Continues with the rest of the state: on the owner's command, and while no host has the home.
///
/// # Errors
/// If a host has the home, the state is refused for another reason than a loss, or the disk fails.
pub fn accept_loss(home: &Home, clock: &dyn Clock) -> Result<AcceptedLoss, Refusal> {
    home.create()?;
    let _lock = HomeLock::acquire(home.path())?;
    let aside = home.path().join(format!("lost-{}", clock.now().as_millis()));
    fs::create_dir(&aside).map_err(|error| failed(&aside, &error))?;
    let mut runs = Vec::new();
    let mut set_aside_rest = |has: &dyn Fn(Table, &str) -> bool| -> Result<(), Refusal> {
        runs = runs_without(home, |run| has(Table::Runs, run.as_str()))?;
        for run in &runs {
            move_into(&home.run(run), &aside.join("runs"))?;
            move_into(&home.trace_file(run), &aside.join("logs"))?;
        }
        Ok(())
    };
    let (reason, is_new) = match check_new_state(home) {
        Ok(()) => {
            let loss = store::accept_loss(&home.state(), &aside, set_aside_rest)?;
            (loss.reason.map(|error| Refusal::from(error).reason), loss.is_new)
        }
        // There is neither a state nor a mark of one, so that every run is without a record.
        Err(gone) => {
            set_aside_rest(&|_, _| false)?;
            (Some(gone.reason), true)
        }
    };
    if is_new {
        for directory in [home.runs(), home.logs(), home.versions()] {
            if !is_empty(&directory).map_err(|error| unreadable(&directory, &error))? {
                move_into(&directory, &aside.join("rest"))?;
            }
        }
    }
    // It is removed only if nothing was moved into it.
    let is_kept = fs::remove_dir(&aside).is_err();
    Ok(AcceptedLoss { reason, is_new, runs, aside: is_kept.then_some(aside) })
}

/// The directories of runs without a record in the state, by name.
pub(crate) fn unrecorded_runs(home: &Home, store: &Store) -> Result<Vec<RunId>, Refusal> {
    // An unreadable record counts as a record.
    runs_without(home, |run| !matches!(store.get::<IgnoredAny>(Table::Runs, run.as_str()), Ok(None)))
}

fn runs_without(home: &Home, has_record: impl Fn(&RunId) -> bool) -> Result<Vec<RunId>, Refusal> {
    let directory = home.runs();
    let mut runs = Vec::new();
    for entry in fs::read_dir(&directory).map_err(|error| unreadable(&directory, &error))? {
        let name = entry.map_err(|error| unreadable(&directory, &error))?.file_name();
        let Some(id) = name.to_str().and_then(|name| RunId::parse(name).ok()) else { continue };
        if !has_record(&id) {
            runs.push(id);
        }
    }
    runs.sort();
    Ok(runs)
}

fn is_empty(directory: &Path) -> io::Result<bool> {
    match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        entries => Ok(entries?.next().is_none()),
    }
}

fn move_into(path: &Path, directory: &Path) -> Result<(), Refusal> {
    fs::create_dir_all(directory).map_err(|error| failed(directory, &error))?;
    match fs::rename(path, directory.join(path.file_name().unwrap_or_default())) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path, &error)),
        _ => Ok(()),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Refusal {
    Refusal::new(RefusalCode::StorageFailed, format!("`{}` cannot be read: {error}", path.display()))
}

fn failed(path: &Path, error: &io::Error) -> Refusal {
    Refusal::new(RefusalCode::StorageFailed, format!("`{}` cannot be set aside: {error}", path.display()))
        .with_remedy("see to the disk that holds the home, then run the command again")
}

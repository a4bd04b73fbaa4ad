//! Directories in `runs/` without a run: leftovers of a crash between deleting a record and its files, or between
//! making a workspace and its record. They are removed at the start of a host.

use std::fs;
use std::time::{Duration, SystemTime};

use base::{Refusal, RunId};
use motor::Motor;
use tokio_util::sync::CancellationToken;

use super::remove_files;
use crate::Home;

/// How much older than the host a directory must be: clocks of file systems are coarse, and remote ones differ.
const MARGIN: Duration = Duration::from_secs(60);

/// The condition of the state when the host opened it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateFound {
    /// As the last host left it.
    Intact,
    /// New, or not known to be complete: a run without a record may be one whose record was lost.
    Doubtful,
}

impl StateFound {
    /// A state without a single run has just begun; one of an earlier version may have lost runs unnoticed.
    pub fn of(motor: &Motor, was_counted: bool) -> Result<Self, Refusal> {
        let any = motor.list(motor::ListFilter { limit: 1, ..motor::ListFilter::default() })?;
        Ok(if any.is_empty() || !was_counted { Self::Doubtful } else { Self::Intact })
    }
}

/// A directory in `runs/`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunDirectory {
    pub(crate) has_record: bool,
    /// When it or a direct entry last changed; `None` if unknown.
    pub(crate) changed: Option<SystemTime>,
}

/// The one place that decides whether a directory without a run may be removed.
pub(crate) fn may_sweep(state: StateFound, candidate: RunDirectory, host_started: SystemTime) -> bool {
    let is_old = candidate.changed.and_then(|at| at.checked_add(MARGIN)).is_some_and(|at| at < host_started);
    state == StateFound::Intact && !candidate.has_record && is_old
}

/// Removes the directories [`may_sweep`] allows, and returns their number. Other names than those of runs are left
/// alone. `was_counted` is [`store::Store::was_counted`]. Stops once `stop` is cancelled.
///
/// # Errors
/// If storage fails.
pub(super) fn sweep(
    home: &Home,
    motor: &Motor,
    was_counted: bool,
    host_started: SystemTime,
    stop: &CancellationToken,
) -> Result<usize, Refusal> {
    let state = StateFound::of(motor, was_counted)?;
    let mut swept = 0;
    for entry in fs::read_dir(home.runs()).into_iter().flatten().flatten().take_while(|_| !stop.is_cancelled()) {
        let Some(run) = entry.file_name().to_str().and_then(|name| RunId::parse(name).ok()) else { continue };
        let Ok(metadata) = entry.metadata() else { continue };
        let candidate = RunDirectory { has_record: motor.has_record(&run)?, changed: metadata.modified().ok() };
        if metadata.is_dir() && may_sweep(state, candidate, host_started) {
            tracing::info!(%run, "removes the directory of a run without a record");
            remove_files(home, &run);
            swept += 1;
        }
    }
    Ok(swept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_old_directory_without_a_record_beside_an_intact_state_is_swept() {
        let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let old = Some(started - MARGIN * 2);
        for (state, has_record, changed, expected) in [
            (StateFound::Intact, false, old, true),
            (StateFound::Doubtful, false, old, false),
            (StateFound::Intact, true, old, false),
            (StateFound::Intact, false, Some(started), false),
            (StateFound::Intact, false, Some(started - MARGIN), false),
            (StateFound::Intact, false, Some(started + MARGIN), false),
            (StateFound::Intact, false, None, false),
        ] {
            let candidate = RunDirectory { has_record, changed };
            assert_eq!(may_sweep(state, candidate, started), expected, "{state:?} {candidate:?}");
        }
    }
}

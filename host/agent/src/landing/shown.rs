//! The effects of a landing, for the owner's decision.

use landing::{Planned, Side, Verdict};

use super::commit::CommitStep;
use super::{Prepared, StillRun, steps};
use crate::api::changes::{LandRequest, LandingPlan, PathChange, PathKind, PlannedOutcome, PlannedPath};
use crate::changes::{directories, is_after, web_since};

pub(super) fn shown(
    StillRun { record, trace, .. }: &StillRun,
    request: &LandRequest,
    prepared: &Prepared,
) -> LandingPlan {
    let web = web_since(record, trace);
    let planned = |entry: &Planned| {
        let path = entry.at(&prepared.plan);
        let steps = steps(&prepared.changes, &path);
        let (outcome, reason) = match &entry.verdict {
            Verdict::Clean => (PlannedOutcome::Clean, None),
            Verdict::Merged { .. } => (PlannedOutcome::Merged, None),
            Verdict::Same => (PlannedOutcome::Same, None),
            Verdict::Conflict { reason } => (PlannedOutcome::Conflict, Some(reason.clone())),
            Verdict::Refused { reason } => (PlannedOutcome::Refused, Some(reason.clone())),
        };
        PlannedPath {
            path,
            change: match (&entry.edit.before, &entry.edit.after) {
                (_, Side::Missing) => PathChange::Deleted,
                (Side::Missing, _) => PathChange::Created,
                _ => PathChange::Changed,
            },
            kind: match (&entry.edit.before, &entry.edit.after) {
                (Side::Directory, Side::Missing) | (_, Side::Directory) => PathKind::Directory,
                (Side::Symlink { .. }, Side::Missing) | (_, Side::Symlink { .. }) => PathKind::Link,
                _ => PathKind::File,
            },
            outcome,
            reason,
            executed_later: entry.executed_later.clone(),
            after_web: request.undoes.is_none() && is_after(&steps, web),
        }
    };
    LandingPlan {
        run_id: record.id.clone(),
        hash: prepared.hash,
        undoes: request.undoes,
        directories: directories(&record.grant.directories),
        paths: prepared.plan.entries.iter().map(planned).collect(),
        commit: prepared.commit.as_ref().map(CommitStep::planned),
        web_sources: record.web_sources.clone(),
    }
}

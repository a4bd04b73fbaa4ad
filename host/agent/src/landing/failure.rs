//! Errors of layers, landings and commits as refusals.

use base::{Refusal, RefusalCode};
use landing::LandError;
use layer::LayerError;
use repository::CommitError;

pub(super) fn refused(error: &LayerError) -> Refusal {
    let code = match error {
        LayerError::Replaced(_) => RefusalCode::IllegalState,
        _ => RefusalCode::StorageFailed,
    };
    Refusal::new(code, format!("cannot work on the directory: {error}"))
}

pub(super) fn failed(error: &LandError) -> Refusal {
    if let Some((code, remedy)) = code(error) {
        let refusal = Refusal::new(code, format!("{error}{}", cause(error)));
        return match remedy {
            Some(remedy) => refusal.with_remedy(remedy),
            None => refusal,
        };
    }
    let code = match error {
        LandError::Unselected(_) => RefusalCode::NotFound,
        LandError::Io { .. } | LandError::Damaged(_) => RefusalCode::StorageFailed,
        _ => RefusalCode::IllegalState,
    };
    Refusal::new(code, format!("{error}{}", cause(error)))
}

fn cause(error: &LandError) -> String {
    std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default()
}

/// The code of an error of a commit, and its remedy.
fn code(error: &LandError) -> Option<(RefusalCode, Option<&'static str>)> {
    Some(match error {
        LandError::Repositories => (
            RefusalCode::InvalidRequest,
            Some("land the directories one after the other, by path: `motor land RUN PATH`"),
        ),
        LandError::Commit(error) => {
            let code = match error {
                CommitError::NoRepository(_) | CommitError::BranchName(_) | CommitError::Path(_) => {
                    RefusalCode::InvalidRequest
                }
                CommitError::Damaged | CommitError::Failed { .. } => RefusalCode::StorageFailed,
                _ => RefusalCode::IllegalState,
            };
            (code, error.remedy())
        }
        _ => return None,
    })
}

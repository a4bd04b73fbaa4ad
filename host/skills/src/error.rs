//! Why a skill cannot be found, read, changed or used.

use base::{Refusal, RefusalCode};

/// Errors about skills. `Display` is for people: lower case, no final period, host paths only of the skill's own place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// There is no skill of that name.
    #[error("there is no skill `{selector}`")]
    Missing {
        /// The selector that was given.
        selector: String,
        /// The nearest existing name, if any.
        nearest: Option<String>,
    },
    /// Several places hold a skill of that name.
    #[error("there are several skills `{name}`: {}", places.join(", "))]
    Ambiguous {
        /// The selector that is ambiguous.
        name: String,
        /// The places that match it.
        places: Vec<String>,
    },
    /// It cannot be read, for one exact reason.
    #[error("{reason}")]
    Unreadable {
        /// Why it cannot be read.
        reason: String,
    },
    /// It is not approved.
    #[error("{reason}")]
    Untrusted {
        /// The current trust status.
        status: crate::SkillStatus,
        /// Why it has this status.
        reason: String,
    },
    /// Its bytes differ from those that were shown.
    #[error("the skill has changed since it was shown")]
    Changed,
    /// The operation is impossible in its state.
    #[error("{reason}")]
    IllegalTransition {
        /// Why it is impossible.
        reason: String,
        /// The action that is possible instead.
        remedy: String,
    },
    /// The request is invalid.
    #[error("{reason}")]
    Invalid {
        /// Why the request is invalid.
        reason: String,
    },
    /// A pattern of this program is invalid, so texts cannot be searched for lines that the owner should read first.
    #[error("the text of the skill cannot be searched: {0}")]
    Search(#[from] regex::Error),
    /// The store or the disk failed.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// The file system failed.
    #[error("{what}: {source}")]
    Io {
        /// The operation that failed.
        what: String,
        /// The underlying I/O error.
        #[source]
        source: std::io::Error,
    },
}

impl From<crate::manifest::ManifestError> for SkillError {
    fn from(error: crate::manifest::ManifestError) -> Self {
        Self::Unreadable { reason: error.to_string() }
    }
}

impl From<SkillError> for Refusal {
    fn from(error: SkillError) -> Self {
        let text = error.to_string();
        match error {
            SkillError::Missing { nearest: Some(nearest), .. } => {
                Self::new(RefusalCode::NotFound, text).with_remedy(format!("did you mean `{nearest}`?"))
            }
            SkillError::Missing { .. } => {
                Self::new(RefusalCode::NotFound, text).with_remedy("`motor skill list` shows what there is")
            }
            SkillError::Ambiguous { .. } => {
                Self::new(RefusalCode::InvalidRequest, text).with_remedy("name the place instead of the skill")
            }
            // An unreadable skill is not the approved one.
            SkillError::Unreadable { .. } => Self::new(RefusalCode::SkillUntrusted, text)
                .with_remedy("put it right, then `motor skill review` it, or `motor skill rollback` it"),
            SkillError::Untrusted { .. } => Self::new(RefusalCode::SkillUntrusted, text)
                .with_remedy("`motor skill review` it, then `motor skill approve` it"),
            SkillError::Changed => {
                Self::new(RefusalCode::SkillUntrusted, text).with_remedy("look at it again with `motor skill review`")
            }
            SkillError::IllegalTransition { remedy, .. } => {
                Self::new(RefusalCode::IllegalState, text).with_remedy(remedy)
            }
            SkillError::Invalid { .. } => Self::new(RefusalCode::InvalidRequest, text),
            SkillError::Search(_) => Self::new(RefusalCode::Failed, text)
                .with_remedy("this is a defect of the program: report it, and approve nothing until it is mended"),
            SkillError::Store(error) => error.into(),
            SkillError::Io { .. } => Self::new(RefusalCode::StorageFailed, text),
        }
    }
}

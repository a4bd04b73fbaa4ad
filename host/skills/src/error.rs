//! Why a skill cannot be had, read, changed or used.

use base::{Refusal, RefusalCode};

/// What went wrong. `Display` is for people: lower case, no final period, no host paths outside the skill's own place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// There is none of that name.
    #[error("there is no skill `{selector}`")]
    Missing {
        /// What was asked for.
        selector: String,
        /// The nearest name there is.
        nearest: Option<String>,
    },
    /// Several places have one of that name.
    #[error("there are several skills `{name}`: {}", places.join(", "))]
    Ambiguous {
        /// The name.
        name: String,
        /// Where.
        places: Vec<String>,
    },
    /// It cannot be read: the one exact reason.
    #[error("{reason}")]
    Unreadable {
        /// Why.
        reason: String,
    },
    /// It is not approved.
    #[error("{reason}")]
    Untrusted {
        /// Where it stands.
        status: crate::SkillStatus,
        /// Why.
        reason: String,
    },
    /// Its bytes are not those that were shown.
    #[error("the skill has changed since it was shown")]
    Changed,
    /// That cannot be done in its state.
    #[error("{reason}")]
    IllegalTransition {
        /// Why.
        reason: String,
        /// What can be done instead.
        remedy: String,
    },
    /// The request is wrong.
    #[error("{reason}")]
    Invalid {
        /// Why.
        reason: String,
    },
    /// The store or the disk failed.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// The file system failed.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// How it failed.
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
            // What cannot be read is not what was approved.
            SkillError::Unreadable { .. } => {
                Self::new(RefusalCode::SkillUntrusted, text).with_remedy("put it right, then `motor skill review` it")
            }
            SkillError::Untrusted { .. } => Self::new(RefusalCode::SkillUntrusted, text)
                .with_remedy("`motor skill review` it, then `motor skill approve` it"),
            SkillError::Changed => {
                Self::new(RefusalCode::SkillUntrusted, text).with_remedy("look at it again with `motor skill review`")
            }
            SkillError::IllegalTransition { remedy, .. } => {
                Self::new(RefusalCode::IllegalState, text).with_remedy(remedy)
            }
            SkillError::Invalid { .. } => Self::new(RefusalCode::InvalidRequest, text),
            SkillError::Store(error) => error.into(),
            SkillError::Io { .. } => Self::new(RefusalCode::StorageFailed, text),
        }
    }
}

//! Why a run ended without an answer, in categories that a program can act on (SPEC RUN-10).

use base::{Refusal, RefusalCode};
use llm::{ModelError, ModelErrorKind};
use serde::{Deserialize, Serialize};

/// Whose failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCategory {
    /// A tool kept failing.
    ToolFailure,
    /// The model did not produce anything usable, or went in circles.
    ModelFailure,
    /// The endpoint, the disk or the host itself failed.
    InfraFailure,
    /// Iterations or time ran out.
    BudgetExhausted,
    /// The task itself cannot be done.
    InvalidTask,
    /// None of the above.
    Unknown,
}

/// Why a run ended without an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunError {
    /// Whose failure it was.
    pub category: FailureCategory,
    /// One sentence for people.
    pub message: String,
    /// What the run did last, for example `step 3: read`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_step: Option<String>,
    /// A stable code, when the failure is one that a caller can mend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<RefusalCode>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl RunError {
    /// An error of a category, without code or remedy.
    #[must_use]
    pub fn new(category: FailureCategory, message: impl Into<String>) -> Self {
        Self { category, message: message.into(), last_step: None, code: None, remedy: None }
    }

    /// The host could not give the run what it needs.
    #[must_use]
    pub fn refused(refusal: Refusal) -> Self {
        Self {
            code: Some(refusal.code),
            remedy: refusal.remedy,
            ..Self::new(FailureCategory::InfraFailure, refusal.reason)
        }
    }

    /// The model gave no reply, after whatever retries its provider made.
    #[must_use]
    pub fn model(error: &ModelError) -> Self {
        let (category, code) = match error.kind {
            ModelErrorKind::Auth => (FailureCategory::InfraFailure, Some(RefusalCode::CredentialsNeeded)),
            ModelErrorKind::RateLimited => (FailureCategory::InfraFailure, Some(RefusalCode::TryLater)),
            ModelErrorKind::Unavailable | ModelErrorKind::Timeout | ModelErrorKind::ReplayExhausted => {
                (FailureCategory::InfraFailure, Some(RefusalCode::ModelUnavailable))
            }
            ModelErrorKind::Rejected => (FailureCategory::InfraFailure, None),
            ModelErrorKind::Malformed => (FailureCategory::ModelFailure, None),
        };
        Self { code, ..Self::new(category, error.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_key_is_the_owners_to_mend() {
        let error = ModelError {
            model: "openai/x".into(),
            kind: ModelErrorKind::Auth,
            message: "set `OPENAI_API_KEY`".into(),
            retry_after_ms: None,
        };
        let failed = RunError::model(&error);
        assert_eq!(failed.code, Some(RefusalCode::CredentialsNeeded));
        assert_eq!(failed.category, FailureCategory::InfraFailure);
        assert!(failed.message.contains("OPENAI_API_KEY"));

        let garbled = RunError::model(&ModelError { kind: ModelErrorKind::Malformed, ..error });
        assert_eq!((garbled.category, garbled.code), (FailureCategory::ModelFailure, None));
    }
}

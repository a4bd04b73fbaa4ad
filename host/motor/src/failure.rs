//! Why a run ended without an answer, in categories that a program can act on (SPEC RUN-10).

use base::{ErrorCode, Refusal, RefusalCode};
use llm::{ModelError, ModelErrorKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunError {
    /// Whose failure it was.
    pub category: FailureCategory,
    /// One sentence for people.
    pub message: String,
    /// The run's last action, for example `step 3: read`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_step: Option<String>,
    /// A stable code, when the failure is one that a caller can mend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<RefusalCode>,
    /// The advice for the owner, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl RunError {
    /// An error of a category, without code or remedy.
    #[must_use]
    pub fn new(category: FailureCategory, message: impl Into<String>) -> Self {
        Self { category, message: message.into(), last_step: None, code: None, remedy: None }
    }

    /// The host could not set up the run's environment.
    #[must_use]
    pub fn refused(refusal: Refusal) -> Self {
        Self {
            code: Some(refusal.code),
            remedy: refusal.remedy,
            ..Self::new(FailureCategory::InfraFailure, refusal.reason)
        }
    }

    /// The model gave no reply, after all retries of its provider.
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

/// The consequences of a failure for a retry (SPEC RUN-10).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureSummary {
    /// Whose failure it was.
    pub category: FailureCategory,
    /// Whether trying again can help, and an attempt is left.
    pub retryable: bool,
    /// The next action for the owner, in one sentence.
    pub suggested_action: String,
    /// The last tool results, oldest first, cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_tool_results: Vec<LastToolResult>,
    /// The model's own explanation of the failure, if it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A tool result, cut for a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastToolResult {
    /// The name of the tool.
    pub tool: String,
    /// Whether the call succeeded.
    pub ok: bool,
    /// The error of a failed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    /// The beginning of its output. It may be untrusted content.
    pub output: String,
}

impl FailureSummary {
    /// Judges an error. `attempts_left` counts those after the one that failed.
    pub(crate) fn of(error: &RunError, last_tool_results: Vec<LastToolResult>, attempts_left: u32) -> Self {
        use FailureCategory as F;
        let (retryable, suggested) = match (error.category, error.code) {
            (_, Some(RefusalCode::CredentialsNeeded)) => (true, "give the missing credential, then retry"),
            (_, Some(RefusalCode::StateUnusable)) => (false, "restore the state; this run cannot go on"),
            (_, Some(RefusalCode::SpendCapReached)) => (true, "retry with a higher cap on spending, or do without"),
            // The run keeps its prices.
            (_, Some(RefusalCode::PriceUnknown)) => (false, "set the price of the model, then start a new run"),
            (F::ToolFailure, _) => (true, "retry with guidance that avoids the call that kept failing"),
            (F::ModelFailure, _) => (true, "retry with clearer guidance, or with another model"),
            (F::InfraFailure, _) => (true, "retry when the host, its disk or the model's endpoint is well again"),
            (F::BudgetExhausted, _) => (true, "retry with guidance that takes fewer steps, or split the task"),
            (F::InvalidTask, _) => (false, "report to the user: the task cannot be done as it is"),
            (F::Unknown, _) => (true, "look at the last results, then retry with guidance"),
        };
        let (retryable, suggested) = match (retryable, attempts_left) {
            (true, 0) => (false, "report to the user: every attempt was used"),
            other => (other.0, suggested),
        };
        let suggested_action = suggested.to_owned();
        Self { category: error.category, retryable, suggested_action, last_tool_results, hint: None }
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

    #[test]
    fn a_failure_says_whether_trying_again_helps() {
        let check = |category, code, left| {
            let error = RunError { code, ..RunError::new(category, "x") };
            FailureSummary::of(&error, vec![], left).retryable
        };
        assert!(check(FailureCategory::ToolFailure, None, 2));
        assert!(!check(FailureCategory::ToolFailure, None, 0));
        assert!(!check(FailureCategory::InvalidTask, None, 2));
        assert!(check(FailureCategory::InfraFailure, Some(RefusalCode::CredentialsNeeded), 1));
        assert!(!check(FailureCategory::InfraFailure, Some(RefusalCode::StateUnusable), 1));
    }
}

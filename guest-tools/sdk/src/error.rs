//! Short ways to say why a tool could not do its task. Each text is one sentence for the model: lower case, no
//! final period, with the fix.

use crate::bindings::motor::host::types::{Failure, ToolError};

impl ToolError {
    /// Policy forbids the call: name the rule.
    pub fn denied(reason: impl Into<String>) -> Self {
        Self::Denied(reason.into())
    }

    /// The thing named does not exist.
    pub fn missing(reason: impl Into<String>) -> Self {
        Self::Missing(reason.into())
    }

    /// The arguments are wrong: name the argument and the right form.
    pub fn bad_input(reason: impl Into<String>) -> Self {
        Self::BadInput(reason.into())
    }

    /// A limit was exceeded: name it and its value.
    pub fn limit(reason: impl Into<String>) -> Self {
        Self::Limit(reason.into())
    }

    /// It was tried and failed, and would fail again.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(Failure { message: message.into(), retryable: false })
    }

    /// It was tried and failed, but the same call may work later.
    pub fn failed_for_now(message: impl Into<String>) -> Self {
        Self::Failed(Failure { message: message.into(), retryable: true })
    }

    /// The sentence it carries, of any kind.
    #[must_use]
    pub fn sentence(&self) -> &str {
        match self {
            Self::Denied(text) | Self::Missing(text) | Self::BadInput(text) | Self::Limit(text) => text,
            Self::Failed(failure) => &failure.message,
        }
    }
}

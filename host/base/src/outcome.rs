//! Metadata of a tool result: where its content came from, and why it failed (SPEC RUN-8, TOOL-4).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The source of content. `Web` content is untrusted wherever a model sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// Content written by the owner.
    User,
    /// Content received over the network.
    Web,
    /// Content computed by the host or a sandboxed tool.
    Internal,
}

/// The reason a tool call failed, as a stable code that programs may match on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The call ran out of time.
    Timeout,
    /// The thing named does not exist.
    NotFound,
    /// A credential is missing or was refused.
    AuthFailed,
    /// A policy forbids the call.
    PermissionDenied,
    /// The arguments do not fit the tool's schema.
    InvalidArgs,
    /// The tool ran and failed.
    ExecutionError,
    /// The run was not granted this tool.
    ToolNotAvailable,
    /// A limit of the sandbox was exceeded; the message names it and its value.
    LimitExceeded,
    /// The network gate refused a request.
    NetworkBlocked,
    /// The call's write is held for the owner and was not sent (SPEC LAND-5).
    Staged,
    /// The host died during the call: whether it took effect is unknown.
    OutcomeUnknown,
    /// The run was cancelled during the call.
    Cancelled,
    /// Any other failure of the call.
    Unknown,
}

impl ErrorCode {
    /// The code as it appears in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::NotFound => "not_found",
            Self::AuthFailed => "auth_failed",
            Self::PermissionDenied => "permission_denied",
            Self::InvalidArgs => "invalid_args",
            Self::ExecutionError => "execution_error",
            Self::ToolNotAvailable => "tool_not_available",
            Self::LimitExceeded => "limit_exceeded",
            Self::NetworkBlocked => "network_blocked",
            Self::Staged => "staged",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

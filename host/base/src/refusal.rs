//! A refusal is a value: a stable code, the reason, and what to do about it.

use serde::{Deserialize, Serialize};

/// Why the host did not do what it was asked, in a form that programs may match on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RefusalCode {
    /// The request itself is wrong; asking again the same way cannot work.
    InvalidRequest,
    /// The thing named does not exist.
    NotFound,
    /// Another agentic run of this agent holds the place (SPEC RUN-2).
    Busy,
    /// Another process owns this home.
    HomeInUse,
    /// A tool was named that this host does not have.
    UnknownTool,
    /// No model is configured, or the one named cannot be.
    ModelUnavailable,
    /// A key or other credential is missing.
    CredentialsNeeded,
    /// Energy is too low (SPEC EN-3).
    EnergyTooLow,
    /// The run is in a state in which this cannot be done.
    IllegalState,
    /// Only the owner can do this, and the door it came through is not the owner's (SPEC CONSENT-1).
    ConsentNeeded,
    /// The stored state cannot be used: corrupt, or written by a newer version.
    StateUnusable,
    /// The disk is full or failed; nothing acknowledged was lost.
    StorageFailed,
    /// The skill is not approved, or not these bytes of it (SPEC SKILL-6).
    SkillUntrusted,
    /// A component cannot be loaded.
    InvalidComponent,
    /// The host is shutting down or overloaded: ask again.
    TryLater,
    /// Something failed that is not the caller's doing.
    Failed,
}

/// A refusal: what was refused and why, with the step that would mend it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// The stable code.
    pub code: RefusalCode,
    /// One sentence for people: lower case, no final period.
    pub reason: String,
    /// What to do next, when there is something to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Refusal {
    /// A refusal without a remedy.
    #[must_use]
    pub fn new(code: RefusalCode, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), remedy: None }
    }

    /// Says what to do next.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

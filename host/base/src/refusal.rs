//! A refusal is a value: a stable code, the reason, and the remedy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The reason the host refused or failed a request, as a stable code that programs may match on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RefusalCode {
    /// The request itself is wrong; asking again the same way cannot work.
    InvalidRequest,
    /// The thing named does not exist.
    NotFound,
    /// Another agentic run of this agent holds the slot (SPEC RUN-2).
    Busy,
    /// Another process owns this home.
    HomeInUse,
    /// The request names a tool that this host lacks.
    UnknownTool,
    /// No model is configured, or the one named cannot be used.
    ModelUnavailable,
    /// A key or other credential is missing.
    CredentialsNeeded,
    /// Energy is too low (SPEC EN-3).
    EnergyTooLow,
    /// A cap on the money spent on models is reached (SPEC EN-4).
    SpendCapReached,
    /// Spending is capped, and the price of the model is unknown (SPEC EN-4).
    PriceUnknown,
    /// The run is in a state that does not allow this.
    IllegalState,
    /// Only the owner can do this, and the request did not come through the owner's channel (SPEC CONSENT-1).
    ConsentNeeded,
    /// The request carries no valid token (SPEC API-1).
    Unauthorized,
    /// The token is valid, and its scope does not cover this.
    Forbidden,
    /// The stored state cannot be used: corrupt, or written by a newer version.
    StateUnusable,
    /// The disk is full or failed; nothing acknowledged was lost.
    StorageFailed,
    /// Whether it was done is unknown: repeating it with the same idempotency key does it once.
    OutcomeUnknown,
    /// The skill is not approved, or was approved with other bytes (SPEC SKILL-6).
    SkillUntrusted,
    /// A component cannot be loaded.
    InvalidComponent,
    /// The host is shutting down or overloaded: try again later.
    TryLater,
    /// A failure that the caller did not cause.
    Failed,
}

/// A refusal: a code, the reason, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, JsonSchema)]
#[error("{reason}")]
pub struct Refusal {
    /// The stable code that programs match on.
    pub code: RefusalCode,
    /// One sentence for people: lower case, no final period.
    pub reason: String,
    /// The next step, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The idempotency key of a request whose outcome is unknown: repeated with the key, the request is done once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl Refusal {
    /// Creates a refusal without a remedy. A reason that is too long, because it repeats a file or a guest, is cut by
    /// [`excerpt`].
    #[must_use]
    pub fn new(code: RefusalCode, reason: impl Into<String>) -> Self {
        Self { code, reason: excerpt(reason), remedy: None, key: None }
    }

    /// Adds the idempotency key with which the same request is done once, and how to pass it.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        let key = key.into();
        self.remedy = Some(format!(
            "give the same command with `--key {key}` when the host has started again: it is one run, accepted before or not"
        ));
        self.key = Some(key);
        self
    }

    /// Adds the next step to take.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(excerpt(remedy));
        self
    }
}

/// Maximum size of a message for people or a model, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 2_048;
/// Bytes kept from the end of a longer message, where the rule and the remedy are.
const END_BYTES: usize = 512;
/// Upper bound of the size of the mark that replaces the rest.
const MARK_BYTES: usize = 64;

/// A message of at most [`MAX_MESSAGE_BYTES`]: a longer one keeps its beginning and end, and the number of bytes left
/// out. Messages quote files, guests and servers, which may be of any length.
#[must_use]
pub fn excerpt(message: impl Into<String>) -> String {
    let message = message.into();
    if message.len() <= MAX_MESSAGE_BYTES {
        return message;
    }
    let head = message.floor_char_boundary(MAX_MESSAGE_BYTES - END_BYTES - MARK_BYTES);
    let tail = message.ceil_char_boundary(message.len() - END_BYTES);
    let (Some(first), Some(last)) = (message.get(..head), message.get(tail..)) else { return String::new() };
    format!("{first}… ({} bytes left out) …{last}", tail - head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_repeats_a_bounded_piece() {
        let fits = "é".repeat(MAX_MESSAGE_BYTES / 2);
        assert_eq!(excerpt(fits.clone()), fits);
        for (piece, count) in [("x", 2_049), ("é", 50_000), ("\u{1f600}", 30_000), ("x", 100_000)] {
            let reason = format!("unknown key `{}`; the nearest key is `limits.fuel`", piece.repeat(count));
            let refusal = Refusal::new(RefusalCode::InvalidRequest, reason.clone()).with_remedy(reason.clone());
            for text in [&refusal.reason, refusal.remedy.as_ref().unwrap()] {
                assert!(text.len() <= MAX_MESSAGE_BYTES, "{}", text.len());
                assert!(text.starts_with("unknown key `") && text.ends_with("the nearest key is `limits.fuel`"));
                assert!(text.contains("bytes left out"));
            }
        }
    }
}

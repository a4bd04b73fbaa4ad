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
    /// It may have been done or not: asking again with the same idempotency key does it once.
    OutcomeUnknown,
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
    /// The idempotency key of a request whose outcome is unknown: given again with it, the request is done once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl Refusal {
    /// A refusal without a remedy. Of a reason that is too long, because it repeats a file or a guest, [`excerpt`] is kept.
    #[must_use]
    pub fn new(code: RefusalCode, reason: impl Into<String>) -> Self {
        Self { code, reason: excerpt(reason), remedy: None, key: None }
    }

    /// Names the idempotency key with which the same request is done once, and how to give it.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        let key = key.into();
        self.remedy = Some(format!(
            "give the same command with `--key {key}` when the host has started again: it is one run, accepted before or not"
        ));
        self.key = Some(key);
        self
    }

    /// Says what to do next.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(excerpt(remedy));
        self
    }
}

/// The most bytes of a message for people or a model.
pub const MAX_MESSAGE_BYTES: usize = 2_048;
/// Bytes of the end of a longer one that are kept: there a message says the rule and the remedy.
const END_BYTES: usize = 512;
/// What stands for the rest has fewer bytes.
const MARK_BYTES: usize = 64;

/// A message of at most [`MAX_MESSAGE_BYTES`]: of a longer one the beginning and the end, and how much is left out.
/// Messages quote the words of files, guests and servers, which may be of any length.
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

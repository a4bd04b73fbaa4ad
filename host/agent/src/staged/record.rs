//! The stored form of a staged write, and the changes that it may go through.
//!
//! A write that left `Held` for `Sending` may have been sent, also if the host dies; only the gate's word that no byte
//! left leads back.

use base::{ConsentRecord, Refusal, RefusalCode, Timestamp};
use network::HeldWrite;
use serde::{Deserialize, Serialize};

use crate::api::staged::{StagedResponse, StagedStatus};

/// A staged write without its body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StagedRecord {
    pub number: u32,
    pub status: StagedStatus,
    pub staged_at: Timestamp,
    /// Bytes of the whole write, for the run's limit.
    pub bytes: u64,
    pub write: HeldWrite,
    /// The owner's latest decision about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<ConsentRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<StagedResponse>,
}

/// The end of an attempt to send a write.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SendOutcome {
    /// A server answered the write.
    Answered(StagedResponse),
    /// No byte left: the write is as it was.
    NotSent(String),
    /// It may have been sent.
    Unknown(String),
}

impl StagedRecord {
    /// Whether the owner may send it, as a sentence if not. `again`: also if it may have been sent before.
    ///
    /// # Errors
    /// `illegal_state` if it was sent or discarded, is being sent, or may have been sent.
    pub fn check_sendable(&self, again: Again) -> Result<(), Refusal> {
        let illegal = |reason: String| Err(Refusal::new(RefusalCode::IllegalState, reason));
        let number = self.number;
        match self.status {
            StagedStatus::Held => Ok(()),
            StagedStatus::OutcomeUnknown if again == Again::Allowed => Ok(()),
            StagedStatus::OutcomeUnknown => {
                let reason = format!("#{number} may have been sent already: the outcome is unknown");
                Err(Refusal::new(RefusalCode::IllegalState, reason).with_remedy(
                    "look at the server first; `--again` sends it once more, with the same idempotency key",
                ))
            }
            StagedStatus::Sending => illegal(format!("#{number} is being sent")),
            StagedStatus::Sent => illegal(format!("#{number} was sent, and a write is sent once")),
            StagedStatus::Discarded => illegal(format!("#{number} was discarded")),
        }
    }

    /// Notes that it is about to be sent. Durable before the first byte leaves.
    pub fn begin(&mut self, consent: ConsentRecord) {
        (self.status, self.consent) = (StagedStatus::Sending, Some(consent));
        (self.failure, self.response) = (None, None);
    }

    /// Notes the end of an attempt. `before`: its status before the attempt, which comes back if nothing left.
    pub fn end(&mut self, before: StagedStatus, outcome: SendOutcome) {
        match outcome {
            SendOutcome::Answered(response) => {
                (self.status, self.response) = (StagedStatus::Sent, Some(response));
            }
            SendOutcome::NotSent(failure) => (self.status, self.failure) = (before, Some(failure)),
            SendOutcome::Unknown(failure) => {
                (self.status, self.failure) = (StagedStatus::OutcomeUnknown, Some(failure));
            }
        }
    }

    /// Discards the write.
    ///
    /// # Errors
    /// `illegal_state` if it is being sent or was sent.
    pub fn discard(&mut self, consent: ConsentRecord) -> Result<(), Refusal> {
        match self.status {
            StagedStatus::Held | StagedStatus::OutcomeUnknown => {
                (self.status, self.consent) = (StagedStatus::Discarded, Some(consent));
                Ok(())
            }
            StagedStatus::Discarded => Ok(()),
            StagedStatus::Sending | StagedStatus::Sent => {
                let state = if self.status == StagedStatus::Sent { "was sent" } else { "is being sent" };
                let reason = format!("#{} {state} and cannot be discarded", self.number);
                Err(Refusal::new(RefusalCode::IllegalState, reason))
            }
        }
    }
}

/// Whether a write with an unknown outcome may be sent once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// The owner did not say so.
    Refused,
    /// The owner said so.
    Allowed,
}

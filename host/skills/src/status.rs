//! The four states of a skill and the only transitions between them (SPEC SKILL-6).
//!
//! It must not know records, bytes or callers. Robust against a caller that forgets a case: any transition that is not
//! in the table is refused, and the refusal names an alternative.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SkillError;

/// Trust status of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkillStatus {
    /// The motor made or changed it; it awaits review.
    PendingReview,
    /// The security review is done; the owner has not decided.
    Reviewed,
    /// The owner approved exactly these bytes with exactly this policy.
    Approved,
    /// The bytes are not the approved ones, or nothing is known of them.
    NeedsReapproval,
}

/// An event that can happen to a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SkillEvent {
    /// Its security review was completed.
    Reviewed,
    /// The owner approved it.
    Approved,
    /// The owner rejected it.
    Rejected,
    /// The motor changed it: extraction.
    MotorChanged,
    /// Its bytes differ from those of the record.
    ContentChanged,
    /// The owner changed its policy and nothing else.
    PolicyUpdated,
}

/// An event that cannot happen to a skill in this state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a skill that is `{from}` cannot be {}", event.participle())]
pub struct IllegalStatusChange {
    /// The state before the event.
    pub from: SkillStatus,
    /// The event that was refused.
    pub event: SkillEvent,
}

impl SkillStatus {
    /// All four states, in declaration order.
    pub const ALL: [Self; 4] = [Self::PendingReview, Self::Reviewed, Self::Approved, Self::NeedsReapproval];

    /// The state after `event`. There is no other way from one state to another.
    ///
    /// # Errors
    /// If the event cannot happen in this state.
    pub fn transition(self, event: SkillEvent) -> Result<Self, IllegalStatusChange> {
        match (self, event) {
            (_, SkillEvent::MotorChanged) | (Self::PendingReview | Self::Reviewed, SkillEvent::Rejected) => {
                Ok(Self::PendingReview)
            }
            (_, SkillEvent::ContentChanged) | (Self::NeedsReapproval, SkillEvent::Rejected) => {
                Ok(Self::NeedsReapproval)
            }
            (Self::PendingReview | Self::Reviewed | Self::NeedsReapproval, SkillEvent::Reviewed) => Ok(Self::Reviewed),
            // Reviewing an approved skill changes nothing.
            (Self::Approved, SkillEvent::Reviewed | SkillEvent::PolicyUpdated)
            | (Self::Reviewed | Self::NeedsReapproval | Self::Approved, SkillEvent::Approved) => Ok(Self::Approved),
            (Self::PendingReview, SkillEvent::Approved)
            | (Self::Approved, SkillEvent::Rejected)
            | (Self::PendingReview | Self::Reviewed | Self::NeedsReapproval, SkillEvent::PolicyUpdated) => {
                Err(IllegalStatusChange { from: self, event })
            }
        }
    }

    /// The word for it in JSON and on every surface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PendingReview => "pending_review",
            Self::Reviewed => "reviewed",
            Self::Approved => "approved",
            Self::NeedsReapproval => "needs_reapproval",
        }
    }
}

impl fmt::Display for SkillStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl SkillEvent {
    const fn participle(self) -> &'static str {
        match self {
            Self::Reviewed => "reviewed",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::MotorChanged | Self::ContentChanged => "changed",
            Self::PolicyUpdated => "given another policy",
        }
    }
}

impl IllegalStatusChange {
    /// The action that is possible instead.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match (self.from, self.event) {
            (SkillStatus::PendingReview, SkillEvent::Approved) => "`motor skill review` it first",
            (SkillStatus::Approved, SkillEvent::Rejected) => {
                "take its powers away with `motor skill update`, or `motor skill delete` it"
            }
            (SkillStatus::PendingReview, _) => {
                "`motor skill review` it, then `motor skill approve` it with that policy"
            }
            _ => "`motor skill approve` it with that policy",
        }
    }
}

impl From<IllegalStatusChange> for SkillError {
    fn from(error: IllegalStatusChange) -> Self {
        Self::IllegalTransition { reason: error.to_string(), remedy: error.remedy().to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use SkillEvent as E;
    use SkillStatus as S;

    /// Rows: from; columns: reviewed, approved, rejected, motor changed, content changed, policy updated.
    const TABLE: [(S, [Option<S>; 6]); 4] = {
        let (pending, reviewed, approved, needs) =
            (Some(S::PendingReview), Some(S::Reviewed), Some(S::Approved), Some(S::NeedsReapproval));
        [
            (S::PendingReview, [reviewed, None, pending, pending, needs, None]),
            (S::Reviewed, [reviewed, approved, pending, pending, needs, None]),
            (S::Approved, [approved, approved, None, pending, needs, approved]),
            (S::NeedsReapproval, [reviewed, approved, needs, pending, needs, None]),
        ]
    };

    const EVENTS: [E; 6] =
        [E::Reviewed, E::Approved, E::Rejected, E::MotorChanged, E::ContentChanged, E::PolicyUpdated];

    #[test]
    fn the_table_is_the_table() {
        for (from, row) in TABLE {
            for (event, expected) in EVENTS.into_iter().zip(row) {
                let found = from.transition(event);
                assert_eq!(found.ok(), expected, "{from} {event:?}");
                if let Err(error) = found {
                    assert!(error.to_string().starts_with(&format!("a skill that is `{from}` cannot be ")), "{error}");
                    assert!(error.remedy().contains("`motor skill "), "{}", error.remedy());
                }
            }
        }
    }

    #[test]
    fn nothing_but_the_owner_leads_to_approved() {
        for from in S::ALL.into_iter().filter(|from| *from != S::Approved) {
            for event in EVENTS.into_iter().filter(|event| *event != E::Approved) {
                assert_ne!(from.transition(event).ok(), Some(S::Approved), "{from} {event:?}");
            }
        }
    }

    #[test]
    fn words_are_those_of_json() {
        for status in S::ALL {
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
    }
}

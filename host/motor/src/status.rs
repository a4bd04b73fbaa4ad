//! The states of a run and the one function that changes them (SPEC RUN-3).
//!
//! Nothing else decides whether a change is legal: a record applies its events through [`RunStatus::transition`], so a
//! second cancel, a late answer or a damaged history is refused instead of bringing a finished run back to life.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a run is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Durable, not yet started.
    Created,
    /// A driver works on it, or will when the host starts again.
    Running,
    /// It waits for the user's answer to a question.
    AwaitingInput,
    /// It waits for the owner's consent to one action.
    AwaitingApproval,
    /// The model answered without calling tools.
    Completed,
    /// It ended without an answer; the error says why.
    Failed,
    /// The run was cancelled by a command.
    Cancelled,
}

/// The events that can change a run's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusEvent {
    /// A driver takes it up for the first time.
    Start,
    /// A reply, a call or a result: the status stays.
    GoOn,
    /// The model asks the user something.
    AskInput,
    /// An action needs consent.
    AskApproval,
    /// The awaited answer came.
    Answer,
    /// The model gave its answer.
    Complete,
    /// It cannot go on.
    Fail,
    /// A command cancels the run.
    Cancel,
    /// It failed, and is tried again.
    Retry,
}

/// A change of status that must not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run that is {status} cannot {event}")]
pub struct IllegalTransition {
    /// The status the run was in.
    pub status: RunStatus,
    /// The event that was refused.
    pub event: StatusEvent,
}

impl RunStatus {
    /// Every status, in the order of a run's life.
    pub const ALL: [Self; 7] = [
        Self::Created,
        Self::Running,
        Self::AwaitingInput,
        Self::AwaitingApproval,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The status after `event`.
    ///
    /// # Errors
    /// If the event may not happen in this status. An ended run allows no event, except that a failed one can be retried.
    pub fn transition(self, event: StatusEvent) -> Result<Self, IllegalTransition> {
        use StatusEvent as E;
        Ok(match (self, event) {
            (Self::Created, E::Start) | (Self::Running, E::GoOn) => Self::Running,
            (Self::Running, E::AskInput) => Self::AwaitingInput,
            (Self::Running, E::AskApproval) => Self::AwaitingApproval,
            (Self::AwaitingInput | Self::AwaitingApproval, E::Answer) => Self::Running,
            (Self::Running, E::Complete) => Self::Completed,
            (Self::Failed, E::Retry) => Self::Running,
            // A run that no driver can even start has failed too, or it would hold its place for ever.
            (Self::Created | Self::Running | Self::AwaitingInput | Self::AwaitingApproval, E::Fail) => Self::Failed,
            (Self::Created | Self::Running | Self::AwaitingInput | Self::AwaitingApproval, E::Cancel) => {
                Self::Cancelled
            }
            (status, event) => return Err(IllegalTransition { status, event }),
        })
    }

    /// Whether it waits for a person and has no driver.
    #[must_use]
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::AwaitingInput | Self::AwaitingApproval)
    }

    /// Whether it is over: no event follows, unless a failed run is retried.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// The status as it appears in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Running => "running",
            Self::AwaitingInput => "awaiting_input",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl StatusEvent {
    /// Every event, in order of declaration.
    pub const ALL: [Self; 9] = [
        Self::Start,
        Self::GoOn,
        Self::AskInput,
        Self::AskApproval,
        Self::Answer,
        Self::Complete,
        Self::Fail,
        Self::Cancel,
        Self::Retry,
    ];
}

impl fmt::Display for StatusEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::GoOn => "go on",
            Self::AskInput => "ask for input",
            Self::AskApproval => "ask for approval",
            Self::Answer => "take an answer",
            Self::Complete => "complete",
            Self::Fail => "fail",
            Self::Cancel => "be cancelled",
            Self::Retry => "be tried again",
        })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_whole_table() {
        let mut table = String::new();
        for status in RunStatus::ALL {
            let cells = StatusEvent::ALL.map(|event| status.transition(event).map_or("-", RunStatus::as_str));
            table.push_str(&format!("{status}: {}\n", cells.join(" ")));
        }
        // Columns: start, go on, ask input, ask approval, answer, complete, fail, cancel, retry.
        expect![[r#"
            created: running - - - - - failed cancelled -
            running: - running awaiting_input awaiting_approval - completed failed cancelled -
            awaiting_input: - - - - running - failed cancelled -
            awaiting_approval: - - - - running - failed cancelled -
            completed: - - - - - - - - -
            failed: - - - - - - - - running
            cancelled: - - - - - - - - -
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn each_status_waits_is_over_or_is_neither() {
        let mut table = String::new();
        for status in RunStatus::ALL {
            let words = match (status.is_waiting(), status.is_terminal()) {
                (true, true) => "waits and is over",
                (true, false) => "waits",
                (false, true) => "is over",
                (false, false) => "goes on",
            };
            table.push_str(&format!("{status} {words}\n"));
        }
        expect![[r#"
            created goes on
            running goes on
            awaiting_input waits
            awaiting_approval waits
            completed is over
            failed is over
            cancelled is over
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn a_refused_change_names_the_status_and_the_event() {
        let messages = StatusEvent::ALL.map(|event| RunStatus::Cancelled.transition(event).unwrap_err().to_string());
        expect![[r#"
            a run that is cancelled cannot start
            a run that is cancelled cannot go on
            a run that is cancelled cannot ask for input
            a run that is cancelled cannot ask for approval
            a run that is cancelled cannot take an answer
            a run that is cancelled cannot complete
            a run that is cancelled cannot fail
            a run that is cancelled cannot be cancelled
            a run that is cancelled cannot be tried again
        "#]]
        .assert_eq(&(messages.join("\n") + "\n"));
    }

    #[test]
    fn json_and_display_agree() {
        for status in RunStatus::ALL {
            assert_eq!(serde_json::to_string(&status).unwrap(), format!("\"{status}\""));
        }
    }

    proptest! {
        #[test]
        fn what_has_ended_stays_ended_unless_a_failure_is_tried_again(events in prop::collection::vec(prop::sample::select(StatusEvent::ALL.to_vec()), 0..40)) {
            let mut status = RunStatus::Created;
            let mut ended = None;
            for event in events {
                match status.transition(event) {
                    Ok(next) => {
                        let again = status == RunStatus::Failed && event == StatusEvent::Retry;
                        prop_assert!(ended.is_none() || again, "{status} allowed {event}");
                        prop_assert_ne!(next, RunStatus::Created);
                        status = next;
                        ended = status.is_terminal().then_some(status);
                    }
                    Err(refused) => prop_assert_eq!(refused, IllegalTransition { status, event }),
                }
            }
        }
    }
}

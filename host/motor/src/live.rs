//! The live view of a run: every durable event once and in order, and the transient hints in between.
//!
//! A watcher gets the history first and then later events, with no gap and nothing twice: both come from one log under
//! one lock. Text deltas, notes and retries are hints that live nowhere else; a watcher too slow for them loses them,
//! and never a durable event.

use std::fmt;
use std::sync::Arc;

use base::{ConsentRecord, RunId, Timestamp};
use llm::Usage;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::broadcast;

use crate::event::{RunEvent, StoredEvent};
use crate::failure::RunError;
use crate::request::OutgoingRequest;
use crate::skill::InstalledSkill;
use crate::status::RunStatus;
use crate::toolbox::{SandboxUsage, ToolNote, ToolResult};
use crate::wait::{Approval, Question, Scope};

/// Events a watcher may be behind before it loses hints.
pub(crate) const BACKLOG: usize = 1024;

/// An event of a run, as its watchers see it. JSON: `{ "type": "toolStarted", "at": …, … }`.
///
/// Durable events are derived from the stored ones and keep their order and number. Hints exist only in the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum LiveEvent {
    /// A driver started the run.
    RunStarted {
        /// Time of the event.
        at: Timestamp,
        /// Id of the run.
        #[serde(rename = "runId")]
        run: RunId,
    },
    /// A driver resumed the run after the host had stopped.
    Resumed {
        /// Time of the event.
        at: Timestamp,
    },
    /// A component is compiled before its first use. A hint.
    Preparing {
        /// Time of the event.
        at: Timestamp,
        /// The component and its number.
        #[serde(flatten)]
        preparing: Preparing,
    },
    /// The model is asked. A hint.
    StepStarted {
        /// Time of the event.
        at: Timestamp,
        /// Number of the step, from 1.
        step: u32,
        /// Maximum number of steps of the attempt.
        max: u32,
    },
    /// Part of the reply's text. A hint.
    TextDelta {
        /// Time of the event.
        at: Timestamp,
        /// The text since the last delta.
        text: String,
    },
    /// Part of the model's reasoning. A hint.
    ReasoningDelta {
        /// Time of the event.
        at: Timestamp,
        /// The text since the last delta.
        text: String,
    },
    /// The request is retried: the deltas so far are void. A hint.
    ModelRetry {
        /// Time of the event.
        at: Timestamp,
        /// Why the request failed.
        reason: String,
        /// Milliseconds until the retry.
        wait_ms: u64,
    },
    /// The model's reply is complete.
    ModelReplied {
        /// Time of the event.
        at: Timestamp,
        /// Number of the step, from 1.
        step: u32,
        /// `provider/model` that replied.
        model: String,
        /// Tokens and cost of the reply.
        #[serde(with = "llm::shown_usage")]
        #[schemars(with = "llm::shown_usage::ShownUsage")]
        usage: Usage,
        /// Milliseconds of the request, including retries.
        duration_ms: u64,
        /// Text of the reply; empty if it only calls tools.
        text: String,
    },
    /// The host begins a tool call.
    ToolStarted {
        /// Time of the event.
        at: Timestamp,
        /// Number of the step, from 1.
        step: u32,
        /// The model's id of the call.
        call_id: String,
        /// Name of the tool.
        tool: String,
        /// The arguments as executed.
        arguments: Value,
    },
    /// A log line, progress or notice of a call. A hint; log lines are also in the trace.
    ToolNote {
        /// Time of the event.
        at: Timestamp,
        /// Number of the step, from 1.
        step: u32,
        /// The model's id of the call.
        call_id: String,
        /// Name of the tool.
        tool: String,
        /// The note of the call.
        note: ToolNote,
    },
    /// A tool call has a result.
    ToolFinished {
        /// Time of the event.
        at: Timestamp,
        /// Number of the step, from 1.
        step: u32,
        /// The model's id of the call.
        call_id: String,
        /// Name of the tool.
        tool: String,
        /// The result, cut to the limit of a tool message.
        result: ToolResult,
        /// Resources used in the sandbox; absent if no sandbox ran.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<SandboxUsage>,
        /// The network requests of the call, refused ones included.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        requests: Vec<OutgoingRequest>,
    },
    /// The host adds a message for the model.
    HostSaid {
        /// Time of the event.
        at: Timestamp,
        /// Number of the step, from 1.
        step: u32,
        /// Text of the message.
        text: String,
    },
    /// The owner told the run something. The model gets it with the next request.
    OwnerSaid {
        /// Time of the event.
        at: Timestamp,
        /// Number of the last step begun; 0 before the first.
        step: u32,
        /// Text of the message.
        text: String,
        /// Who said it, and through which door.
        consent: ConsentRecord,
    },
    /// The run asks its user and waits for an answer.
    Asked {
        /// Time of the event.
        at: Timestamp,
        /// The question, with its choices.
        question: Question,
    },
    /// The user answered a question.
    Answered {
        /// Time of the event.
        at: Timestamp,
        /// Id of the question, `ask_…`.
        question: String,
        /// Text of the answer.
        answer: String,
        /// Who answered, and through which door.
        consent: ConsentRecord,
    },
    /// The run asks for the owner's consent and waits.
    ApprovalAsked {
        /// Time of the event.
        at: Timestamp,
        /// The request for consent.
        approval: Approval,
    },
    /// The owner decided about a request for consent.
    ApprovalDecided {
        /// Time of the event.
        at: Timestamp,
        /// Id of the request, `apr_…`.
        approval: String,
        /// Whether the owner consented.
        granted: bool,
        /// How long the decision lasts.
        scope: Scope,
        /// Who decided, and through which door.
        consent: ConsentRecord,
    },
    /// Another attempt of the run begins.
    Retried {
        /// Time of the event.
        at: Timestamp,
        /// Number of the attempt, from 1; the first attempt is 0.
        attempt: u32,
        /// Guidance for the attempt, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guidance: Option<String>,
    },
    /// The host stops driving the run, and resumes it at its next start. A hint, and the last event.
    Suspended {
        /// Time of the event.
        at: Timestamp,
        /// Why the host stops.
        reason: String,
    },
    /// The run is over. The last event.
    Finished {
        /// Time of the event.
        at: Timestamp,
        /// The terminal status of the run.
        status: RunStatus,
        /// The answer; absent if the run did not complete.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        /// Why the run failed or was cancelled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<RunError>,
        /// The skills it installed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        installed_skills: Vec<InstalledSkill>,
    },
}

/// A component that is being compiled, among those that are needed. JSON in camel case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preparing {
    /// Name of the component.
    pub component: String,
    /// Its number, from 1.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

impl fmt::Display for Preparing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { component, number, of } = self;
        write!(f, "preparing tools for the first time: {component}")?;
        if *of > 1 { write!(f, " ({number} of {of})") } else { Ok(()) }
    }
}

impl LiveEvent {
    /// Whether it lives nowhere but in the stream: a watcher that comes back does not see it again.
    #[must_use]
    pub fn is_hint(&self) -> bool {
        match self {
            Self::Preparing { .. }
            | Self::StepStarted { .. }
            | Self::TextDelta { .. }
            | Self::ReasoningDelta { .. }
            | Self::ModelRetry { .. }
            | Self::ToolNote { .. }
            | Self::Suspended { .. } => true,
            Self::RunStarted { .. }
            | Self::Resumed { .. }
            | Self::ModelReplied { .. }
            | Self::ToolStarted { .. }
            | Self::ToolFinished { .. }
            | Self::HostSaid { .. }
            | Self::OwnerSaid { .. }
            | Self::Asked { .. }
            | Self::Answered { .. }
            | Self::ApprovalAsked { .. }
            | Self::ApprovalDecided { .. }
            | Self::Retried { .. }
            | Self::Finished { .. } => false,
        }
    }

    /// The live form of a stored event, if watchers see it.
    pub(crate) fn of(run: &RunId, stored: &StoredEvent) -> Option<Self> {
        let at = stored.at;
        Some(match stored.event.clone() {
            RunEvent::Created { .. } => return None,
            RunEvent::Started => Self::RunStarted { at, run: run.clone() },
            RunEvent::Resumed => Self::Resumed { at },
            RunEvent::ModelReplied { step, reply, duration_ms, .. } => {
                Self::ModelReplied { at, step, model: reply.model, usage: reply.usage, duration_ms, text: reply.text }
            }
            RunEvent::ToolIntended { step, call_id, tool, arguments, .. } => {
                Self::ToolStarted { at, step, call_id, tool, arguments }
            }
            // Watchers see the question, and the call when it is made again.
            RunEvent::ToolReturned { held: true, .. } => return None,
            RunEvent::ToolReturned { step, call_id, tool, result, usage, requests, .. } => {
                Self::ToolFinished { at, step, call_id, tool, result, usage, requests }
            }
            RunEvent::Told { step, text, .. } => Self::HostSaid { at, step, text },
            RunEvent::OwnerSaid { step, text, consent, .. } => Self::OwnerSaid { at, step, text, consent },
            RunEvent::Asked { question } => Self::Asked { at, question },
            RunEvent::Answered { question, answer, consent } => Self::Answered { at, question, answer, consent },
            // Watchers see the answer.
            RunEvent::CeilingRaised { .. } => return None,
            RunEvent::ApprovalAsked { approval } => Self::ApprovalAsked { at, approval },
            RunEvent::ApprovalDecided { approval, granted, scope, consent, .. } => {
                Self::ApprovalDecided { at, approval, granted, scope, consent }
            }
            RunEvent::Retried { attempt, guidance, .. } => Self::Retried { at, attempt, guidance },
            RunEvent::Finished { status, summary, error, installed_skills, .. } => {
                Self::Finished { at, status, summary, error, installed_skills }
            }
        })
    }
}

/// The events of a history that watchers see.
pub(crate) fn history<'a>(run: &'a RunId, events: &'a [StoredEvent]) -> impl Iterator<Item = LiveEvent> + 'a {
    events.iter().filter_map(move |stored| LiveEvent::of(run, stored))
}

/// An event on its way to watchers, and how many durable ones there are up to and with it.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) durable: usize,
    pub(crate) event: Arc<LiveEvent>,
}

/// The log that the driver of one run writes and its watchers read.
#[derive(Debug)]
pub(crate) struct LiveLog {
    inner: Mutex<LogInner>,
}

#[derive(Debug)]
struct LogInner {
    durable: Vec<Arc<LiveEvent>>,
    /// `None` once the driver has ended: watchers then drain their queue and end.
    sender: Option<broadcast::Sender<Item>>,
}

impl LiveLog {
    pub(crate) fn new() -> Arc<Self> {
        let sender = Some(broadcast::channel(BACKLOG).0);
        Arc::new(Self { inner: Mutex::new(LogInner { durable: Vec::new(), sender }) })
    }

    /// The history, when a driver takes a run up: the log holds nothing yet.
    pub(crate) fn load(&self, events: impl Iterator<Item = LiveEvent>) {
        for event in events {
            self.publish_durable(event);
        }
    }

    /// An event whose record is on the disk.
    pub(crate) fn publish_durable(&self, event: LiveEvent) {
        let event = Arc::new(event);
        let mut inner = self.inner.lock();
        inner.durable.push(event.clone());
        inner.send(event);
    }

    /// Publishes a hint to current watchers.
    pub(crate) fn publish_hint(&self, event: LiveEvent) {
        self.inner.lock().send(Arc::new(event));
    }

    /// No more events follow.
    pub(crate) fn close(&self) {
        self.inner.lock().sender = None;
    }

    /// The durable events so far, and a receiver of those that follow, if any can.
    pub(crate) fn subscribe(&self) -> (Vec<Arc<LiveEvent>>, Option<broadcast::Receiver<Item>>) {
        let inner = self.inner.lock();
        (inner.durable.clone(), inner.sender.as_ref().map(broadcast::Sender::subscribe))
    }
}

impl LogInner {
    fn send(&self, event: Arc<LiveEvent>) {
        if let Some(sender) = &self.sender {
            // An error means that there are no watchers.
            sender.send(Item { durable: self.durable.len(), event }).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_tagged_and_in_camel_case() {
        let event = LiveEvent::ModelRetry { at: Timestamp::from_millis(7), reason: "503".into(), wait_ms: 20 };
        assert_eq!(
            serde_json::to_string(&event).unwrap(),
            r#"{"type":"modelRetry","at":7,"reason":"503","waitMs":20}"#
        );
    }
}

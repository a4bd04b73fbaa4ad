//! What a run is doing, for those who watch: every durable event once and in order, and what passes in between.
//!
//! A watcher gets the history first and then what follows, with no gap and nothing twice: both come from one log under
//! one lock. Text deltas, notes and retries are hints that live nowhere else; a watcher too slow for them loses them,
//! and never a durable event.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::{ConsentRecord, RunId, Timestamp};
use llm::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::broadcast;

use crate::event::{RunEvent, StoredEvent};
use crate::failure::RunError;
use crate::relay::Relay;
use crate::request::OutgoingRequest;
use crate::skill::InstalledSkill;
use crate::status::RunStatus;
use crate::toolbox::{SandboxUsage, ToolNote, ToolResult};
use crate::wait::{Approval, Question, Scope};

/// Events a watcher may be behind before it loses hints.
const BACKLOG: usize = 1024;

/// Something that a run does. JSON: `{ "type": "toolStarted", "at": …, … }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are those of the stored events")]
pub enum LiveEvent {
    /// A driver took the run up for the first time.
    RunStarted { at: Timestamp, run: RunId },
    /// A driver took it up again after the host had stopped.
    Resumed { at: Timestamp },
    /// The tools are not ready yet: their code is compiled, which is done once. A hint.
    Preparing {
        at: Timestamp,
        #[serde(flatten)]
        preparing: Preparing,
    },
    /// The model is being asked. A hint.
    StepStarted { at: Timestamp, step: u32, max: u32 },
    /// The model writes. A hint.
    TextDelta { at: Timestamp, text: String },
    /// The model thinks. A hint.
    ReasoningDelta { at: Timestamp, text: String },
    /// The request is tried again: what streamed so far is void. A hint.
    ModelRetry { at: Timestamp, reason: String, wait_ms: u64 },
    /// The model's reply is complete.
    ModelReplied { at: Timestamp, step: u32, model: String, usage: Usage, duration_ms: u64, text: String },
    /// A tool call begins.
    ToolStarted { at: Timestamp, step: u32, call_id: String, tool: String, arguments: Value },
    /// The call says something. A hint; its log lines are also in the trace.
    ToolNote { at: Timestamp, step: u32, call_id: String, tool: String, note: ToolNote },
    /// The call has its result.
    ToolFinished {
        at: Timestamp,
        step: u32,
        call_id: String,
        tool: String,
        result: ToolResult,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<SandboxUsage>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        requests: Vec<OutgoingRequest>,
    },
    /// The host told the model something.
    HostSaid { at: Timestamp, step: u32, text: String },
    /// The run waits for an answer.
    Asked { at: Timestamp, question: Question },
    /// The user answered.
    Answered { at: Timestamp, question: String, answer: String, consent: ConsentRecord },
    /// The run waits for the owner's consent.
    ApprovalAsked { at: Timestamp, approval: Approval },
    /// The owner decided.
    ApprovalDecided { at: Timestamp, approval: String, granted: bool, scope: Scope, consent: ConsentRecord },
    /// Another attempt begins.
    Retried {
        at: Timestamp,
        attempt: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guidance: Option<String>,
    },
    /// The host stops driving the run; it goes on when the host starts again. A hint, and the last event.
    Suspended { at: Timestamp, reason: String },
    /// The run is over. The last event.
    Finished {
        at: Timestamp,
        status: RunStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<RunError>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        installed_skills: Vec<InstalledSkill>,
    },
}

/// A component that is being compiled, among those that are needed. JSON in camel case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Preparing {
    /// Its name.
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
            | Self::Asked { .. }
            | Self::Answered { .. }
            | Self::ApprovalAsked { .. }
            | Self::ApprovalDecided { .. }
            | Self::Retried { .. }
            | Self::Finished { .. } => false,
        }
    }

    /// What watchers see of a stored event.
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
            // Watchers see what it asks, and the call when it is made again.
            RunEvent::ToolReturned { held: true, .. } => return None,
            RunEvent::ToolReturned { step, call_id, tool, result, usage, requests, .. } => {
                Self::ToolFinished { at, step, call_id, tool, result, usage, requests }
            }
            RunEvent::Told { step, text, .. } => Self::HostSaid { at, step, text },
            RunEvent::Asked { question } => Self::Asked { at, question },
            RunEvent::Answered { question, answer, consent } => Self::Answered { at, question, answer, consent },
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

/// An event on its way to watchers, and how many durable ones there are up to and with it.
#[derive(Debug, Clone)]
struct Item {
    durable: usize,
    event: Arc<LiveEvent>,
}

/// What the driver of one run writes and its watchers read.
#[derive(Debug)]
pub(crate) struct LiveLog {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    durable: Vec<Arc<LiveEvent>>,
    /// Gone once the driver is: watchers then end after what they still have.
    sender: Option<broadcast::Sender<Item>>,
}

impl LiveLog {
    pub(crate) fn new() -> Arc<Self> {
        let sender = Some(broadcast::channel(BACKLOG).0);
        Arc::new(Self { inner: Mutex::new(Inner { durable: Vec::new(), sender }) })
    }

    // The log is whole between any two statements, so a panic elsewhere cannot have left it half-changed.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut inner = self.lock();
        inner.durable.push(event.clone());
        inner.send(event);
    }

    /// A hint.
    pub(crate) fn publish_hint(&self, event: LiveEvent) {
        self.lock().send(Arc::new(event));
    }

    /// No more events follow.
    pub(crate) fn close(&self) {
        self.lock().sender = None;
    }

    pub(crate) fn watch(self: &Arc<Self>) -> Watch {
        let inner = self.lock();
        let queue = inner.durable.iter().cloned().collect();
        let receiver = inner.sender.as_ref().map(broadcast::Sender::subscribe);
        Watch { queue, seen: inner.durable.len(), receiver, log: Some(Arc::clone(self)), relay: None }
    }
}

impl Inner {
    fn send(&self, event: Arc<LiveEvent>) {
        if let Some(sender) = &self.sender {
            // An error means that nobody watches.
            sender.send(Item { durable: self.durable.len(), event }).ok();
        }
    }
}

/// The events of a run: those that were, then those that come, also while it waits for people. Ends when the run is over,
/// or when nobody is going to drive it.
#[derive(Debug)]
pub struct Watch {
    queue: VecDeque<Arc<LiveEvent>>,
    /// Durable events given out or queued.
    seen: usize,
    receiver: Option<broadcast::Receiver<Item>>,
    log: Option<Arc<LiveLog>>,
    /// Finds the next driver when one is done.
    relay: Option<Relay>,
}

impl Watch {
    /// The events of a run that nobody drives.
    pub(crate) fn of_history(events: impl Iterator<Item = LiveEvent>) -> Self {
        let queue: VecDeque<_> = events.map(Arc::new).collect();
        Self { seen: queue.len(), queue, receiver: None, log: None, relay: None }
    }

    /// Goes on with the run's next driver when this one is done.
    pub(crate) fn relayed(self, relay: Relay) -> Self {
        Self { relay: Some(relay), ..self }
    }

    /// The next event, or `None` after the last: that is [`LiveEvent::Finished`] when the run is over, and
    /// [`LiveEvent::Suspended`] or any other when the host stopped driving it.
    ///
    /// Cancel safe: dropping the future loses no event.
    pub async fn next(&mut self) -> Option<LiveEvent> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Some(Arc::unwrap_or_clone(event));
            }
            let Some(receiver) = self.receiver.as_mut() else {
                let Some(next) = self.relay.as_mut()?.next(self.log.as_ref()).await else {
                    // Nobody drives it any more: what was needed to look for somebody is not kept.
                    self.relay = None;
                    return None;
                };
                self.queue = next.queue.into_iter().skip(self.seen).collect();
                (self.seen, self.receiver, self.log) = (self.seen.max(next.seen), next.receiver, next.log);
                continue;
            };
            match receiver.recv().await {
                // A driver that is made anew tells the run's history first.
                Ok(item) if item.durable <= self.seen && !item.event.is_hint() => {}
                Ok(item) => {
                    self.seen = self.seen.max(item.durable);
                    return Some(Arc::unwrap_or_clone(item.event));
                }
                Err(broadcast::error::RecvError::Lagged(_)) => self.catch_up(),
                Err(broadcast::error::RecvError::Closed) => self.receiver = None,
            }
        }
    }

    /// Too slow: hints are lost, the durable events missed come from the log.
    fn catch_up(&mut self) {
        let Some(log) = &self.log else { return };
        let fresh = log.watch();
        self.queue = fresh.queue.into_iter().skip(self.seen).collect();
        self.seen = self.seen.max(fresh.seen);
        self.receiver = fresh.receiver;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn durable(step: u32) -> LiveEvent {
        LiveEvent::HostSaid { at: Timestamp::from_millis(0), step, text: String::new() }
    }

    fn hint() -> LiveEvent {
        LiveEvent::TextDelta { at: Timestamp::from_millis(0), text: "x".into() }
    }

    async fn steps(watch: &mut Watch) -> Vec<u32> {
        let mut steps = Vec::new();
        while let Some(event) = watch.next().await {
            if let LiveEvent::HostSaid { step, .. } = event {
                steps.push(step);
            }
        }
        steps
    }

    #[tokio::test]
    async fn history_then_what_follows_without_gap_or_double() {
        let log = LiveLog::new();
        log.load([durable(1), durable(2)].into_iter());
        let mut early = log.watch();
        log.publish_hint(hint());
        log.publish_durable(durable(3));
        let mut late = log.watch();
        log.publish_durable(durable(4));
        log.close();
        assert_eq!(steps(&mut early).await, [1, 2, 3, 4]);
        assert_eq!(steps(&mut late).await, [1, 2, 3, 4]);
        assert_eq!(steps(&mut log.watch()).await, [1, 2, 3, 4]);
    }

    #[tokio::test]
    async fn a_slow_watcher_loses_hints_only() {
        let log = LiveLog::new();
        let mut watch = log.watch();
        let mut expected = Vec::new();
        for step in 0..50 {
            log.publish_durable(durable(step));
            expected.push(step);
            for _ in 0..BACKLOG / 10 {
                log.publish_hint(hint());
            }
        }
        let first = watch.next().await;
        assert!(matches!(first, Some(LiveEvent::HostSaid { step: 0, .. })), "{first:?}");
        log.publish_durable(durable(50));
        expected.push(50);
        log.close();
        expected.remove(0);
        assert_eq!(steps(&mut watch).await, expected);
    }

    #[test]
    fn json_is_tagged_and_in_camel_case() {
        let event = LiveEvent::ModelRetry { at: Timestamp::from_millis(7), reason: "503".into(), wait_ms: 20 };
        assert_eq!(
            serde_json::to_string(&event).unwrap(),
            r#"{"type":"modelRetry","at":7,"reason":"503","waitMs":20}"#
        );
    }
}

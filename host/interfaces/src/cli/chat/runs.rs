//! The live runs of a conversation, beside it: one line for each of their tool calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::RunId;
use cognition::{ChatEvent, ChatEventBody};
use motor::LiveEvent;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::output::text;
use crate::session::Session;

/// Lines that wait to be shown.
const MAX_WAITING: usize = 64;
/// Runs that are followed in one life of the command; later ones are shown by their ends alone.
const MAX_FOLLOWED: usize = 256;
/// Columns of a call's result.
const RESULT: usize = 60;

/// Follows the runs that a conversation delegates.
pub(super) struct RunLines {
    sender: mpsc::Sender<String>,
    lines: mpsc::Receiver<String>,
    followed: BTreeMap<RunId, FollowedRun>,
}

/// A run and the task that follows it.
struct FollowedRun {
    /// The id of the last event; 0 before the first.
    last: Arc<AtomicU64>,
    follower: JoinHandle<()>,
}

impl RunLines {
    pub(super) fn new() -> Self {
        let (sender, lines) = mpsc::channel(MAX_WAITING);
        Self { sender, lines, followed: BTreeMap::new() }
    }

    /// Follows a run that the event is the start of, or of another attempt, or of its part after an answer.
    pub(super) fn take(&mut self, event: &ChatEvent, session: &Session) {
        if let ChatEventBody::Delegated { run, .. } = &event.body {
            self.follow(run, session);
        }
    }

    /// Follows a run from the last event that was seen of it.
    pub(super) fn follow(&mut self, run: &RunId, session: &Session) {
        let last = match self.followed.get(run) {
            // Its stream ends with the run or the host, and may not have ended yet.
            Some(FollowedRun { last, follower }) => {
                follower.abort();
                last.clone()
            }
            None if self.followed.len() < MAX_FOLLOWED => Arc::default(),
            None => return,
        };
        let (client, id, sender, shared) = (session.client(), run.clone(), self.sender.clone(), last.clone());
        let follower = tokio::spawn(async move { follow(&client, &id, &sender, &shared).await });
        self.followed.insert(run.clone(), FollowedRun { last, follower });
    }

    /// The next line. Cancel safe.
    pub(super) async fn next(&mut self) -> String {
        match self.lines.recv().await {
            Some(line) => line,
            // There is always this sender.
            None => std::future::pending().await,
        }
    }
}

async fn follow(client: &Client, run: &RunId, lines: &mpsc::Sender<String>, last: &AtomicU64) {
    let after = last.load(Ordering::Relaxed);
    let Ok(mut events) = client.stream(&format!("/v1/tasks/{run}/events"), Some(after)).await else { return };
    while let Some(event) = events.next().await {
        // One of a newer host that this client does not know is not shown.
        let known = serde_json::from_str::<LiveEvent>(&event.data).ok();
        if let Some(line) = known.and_then(|known| line(run, &known))
            && lines.send(line).await.is_err()
        {
            return;
        }
        // No await between a line and its number: aborted, the follower has shown all events up to the last.
        if let Some(id) = event.id {
            last.store(id, Ordering::Relaxed);
        }
    }
}

fn line(run: &RunId, event: &LiveEvent) -> Option<String> {
    let LiveEvent::ToolFinished { step, tool, result, .. } = event else { return None };
    let result = if result.ok { "ok".to_owned() } else { format!("failed: {}", text::brief(&result.output, RESULT)) };
    Some(format!("{run}  step {step}  {}  {result}", text::brief(tool, 30)))
}

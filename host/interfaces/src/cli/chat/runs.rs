//! The live runs of a conversation, beside it: one line for each of their tool calls.

use std::collections::BTreeSet;

use base::RunId;
use cognition::{ChatEvent, ChatEventBody};
use motor::LiveEvent;
use tokio::sync::mpsc;

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
    followed: BTreeSet<RunId>,
}

impl RunLines {
    pub(super) fn new() -> Self {
        let (sender, lines) = mpsc::channel(MAX_WAITING);
        Self { sender, lines, followed: BTreeSet::new() }
    }

    /// Begins to follow a run that the event is the start of.
    pub(super) fn take(&mut self, event: &ChatEvent, session: &Session) {
        let ChatEventBody::Delegated { run, .. } = &event.body else { return };
        if self.followed.len() < MAX_FOLLOWED && self.followed.insert(run.clone()) {
            let (client, run, sender) = (session.client(), run.clone(), self.sender.clone());
            tokio::spawn(async move { follow(&client, &run, &sender).await });
        }
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

async fn follow(client: &Client, run: &RunId, lines: &mpsc::Sender<String>) {
    let Ok(mut events) = client.stream(&format!("/v1/tasks/{run}/events"), None).await else { return };
    while let Some(event) = events.next().await {
        let Ok(event) = serde_json::from_str::<LiveEvent>(&event.data) else { continue };
        if let Some(line) = line(run, &event)
            && lines.send(line).await.is_err()
        {
            return;
        }
    }
}

fn line(run: &RunId, event: &LiveEvent) -> Option<String> {
    let LiveEvent::ToolFinished { step, tool, result, .. } = event else { return None };
    let result = if result.ok { "ok".to_owned() } else { format!("failed: {}", text::brief(&result.output, RESULT)) };
    Some(format!("{run}  step {step}  {}  {result}", text::brief(tool, 30)))
}

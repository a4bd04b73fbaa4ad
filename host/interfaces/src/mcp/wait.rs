//! Waiting for a run, with its steps as progress notifications.

use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agent::TaskSummary;
use base::{Refusal, RunId};
use motor::LiveEvent;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext, RoleServer};

use super::api::Api;
use crate::client::Call;

/// Before a run is looked at again whose events ended.
const PAUSE: Duration = Duration::from_millis(200);

/// How long the result of a run that is over waits for the report of its last steps.
const LAST_STEPS: Duration = Duration::from_secs(1);

/// Where progress is reported.
pub(super) struct Progress {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    /// Reports so far: the number of a report is its progress.
    count: AtomicU32,
}

impl Progress {
    /// The place that the request names, if it asks for progress.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Option<Self> {
        let token = context.meta.get_progress_token()?;
        Some(Self { peer: context.peer.clone(), token, count: AtomicU32::new(0) })
    }

    /// Reports something. Returns whether the client can be reached.
    pub(super) async fn tell(&self, message: String) -> bool {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let progress = ProgressNotificationParam::new(self.token.clone(), f64::from(count)).with_message(message);
        self.peer.notify_progress(progress).await.is_ok()
    }

    /// Reports the steps of a run for as long as they come. A client that misses one misses nothing of the result.
    async fn report(&self, api: &Api, run: &RunId) {
        let Ok(mut events) = api.events(&format!("/v1/tasks/{run}/events")).await else { return };
        while let Some(event) = events.next().await {
            let message = match serde_json::from_str(&event.data) {
                Ok(LiveEvent::StepStarted { step, max, .. }) => format!("step {step} of at most {max}"),
                Ok(LiveEvent::ToolStarted { step, tool, .. }) => format!("step {step}: `{tool}`"),
                _ => continue,
            };
            if !self.tell(message).await {
                return;
            }
        }
    }
}

/// The state of a run once it is over or waits for its owner, after `wait` at the latest.
pub(super) async fn outcome(
    api: &Api,
    run: &RunId,
    wait: Duration,
    progress: Option<&Progress>,
) -> Result<TaskSummary, Refusal> {
    let call = Call::get(format!("/v1/tasks/{run}/outcome?waitMs={}", wait.as_millis()));
    let Some(progress) = progress.filter(|_| !wait.is_zero()) else { return api.ask(&call).await };
    let (mut asking, mut reporting) = (pin!(api.ask::<TaskSummary>(&call)), pin!(progress.report(api, run)));
    tokio::select! {
        biased;
        summary = &mut asking => {
            // A quick run is over before its steps are told; its events end.
            if summary.as_ref().is_ok_and(|summary| summary.status.is_terminal()) {
                tokio::time::timeout(LAST_STEPS, reporting).await.ok();
            }
            summary
        }
        () = &mut reporting => asking.await,
    }
}

/// Returns once the run no longer waits for `waiting`.
pub(super) async fn settled(api: &Api, run: &RunId, waiting: &str) {
    loop {
        if is_settled_by_events(api, run, waiting).await {
            return;
        }
        // The host went away, or the run is over.
        let summary = outcome(api, run, Duration::ZERO, None).await;
        match summary.map(|summary| summary.waiting.is_some_and(|other| other.id() == waiting)) {
            Ok(false) => return,
            Ok(true) | Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Follows the run's events until one settles it, or they end.
async fn is_settled_by_events(api: &Api, run: &RunId, waiting: &str) -> bool {
    let Ok(mut events) = api.events(&format!("/v1/tasks/{run}/events")).await else { return false };
    // Events before the question do not concern it.
    let mut is_asked = false;
    while let Some(event) = events.next().await {
        match serde_json::from_str(&event.data) {
            Ok(LiveEvent::Asked { question, .. }) => is_asked |= question.id == waiting,
            Ok(LiveEvent::ApprovalAsked { approval, .. }) => is_asked |= approval.id == waiting,
            Ok(LiveEvent::Answered { question: id, .. } | LiveEvent::ApprovalDecided { approval: id, .. })
                if id == waiting =>
            {
                return true;
            }
            Ok(LiveEvent::Finished { .. } | LiveEvent::Retried { .. }) if is_asked => return true,
            _ => {}
        }
    }
    false
}

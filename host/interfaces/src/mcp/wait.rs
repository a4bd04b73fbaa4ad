//! Waiting for a run, with its steps as progress notifications.

use agent::TaskSummary;
use base::{Refusal, RunId};
use motor::LiveEvent;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext, RoleServer};

use super::api::Api;
use crate::client::Call;

/// Where progress is reported.
#[derive(Clone)]
pub(super) struct Progress {
    peer: Peer<RoleServer>,
    token: ProgressToken,
}

impl Progress {
    /// The place that the request names, if it asks for progress.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Option<Self> {
        let token = context.meta.get_progress_token()?;
        Some(Self { peer: context.peer.clone(), token })
    }

    /// Reports the steps of a run for as long as they come. A client that misses one misses nothing of the result.
    async fn report(&self, api: &Api, run: &RunId) {
        let Ok(mut events) = api.events(&format!("/v1/tasks/{run}/events")).await else { return };
        let mut count = 0.0;
        while let Some(event) = events.next().await {
            let message = match serde_json::from_str(&event.data) {
                Ok(LiveEvent::StepStarted { step, max, .. }) => format!("step {step} of at most {max}"),
                Ok(LiveEvent::ToolStarted { step, tool, .. }) => format!("step {step}: `{tool}`"),
                _ => continue,
            };
            count += 1.0;
            let progress = ProgressNotificationParam::new(self.token.clone(), count).with_message(message);
            if self.peer.notify_progress(progress).await.is_err() {
                return;
            }
        }
    }
}

/// The state of a run once it is over or waits for its owner, after `seconds` at the latest.
pub(super) async fn outcome(
    api: &Api,
    run: &RunId,
    seconds: u64,
    progress: Option<&Progress>,
) -> Result<TaskSummary, Refusal> {
    let call = Call::get(format!("/v1/tasks/{run}/outcome?waitMs={}", seconds.saturating_mul(1_000)));
    let reporting = async {
        if let Some(progress) = progress.filter(|_| seconds > 0) {
            progress.report(api, run).await;
        }
        std::future::pending().await
    };
    tokio::select! {
        biased;
        summary = api.ask(&call) => summary,
        never = reporting => never,
    }
}

//! When cycles begin, and when overdue commitments are told: soon after an observation that starts one, and now and then for the timer and for settings that changed.
//!
//! Triggers are judged without a model. A trigger during a cycle of the same agent is skipped and logged; its activity stays for
//! the next one. Agents do not wait for each other. A host that only carries out one command schedules nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base::AgentName;
use cognition::Cognition;
use energy::Activity;
use parking_lot::Mutex;
use tokio_util::sync::DropGuard;

use super::Reflections;

/// Time between two looks at the triggers without an observation.
const PAUSE: Duration = Duration::from_secs(10);

impl Reflections {
    /// Begins to reflect, and to give news to these conversations. For a host that resumes its runs; only the first call counts.
    pub(crate) fn begin(&self, cognition: &Cognition) {
        // A closed tracker has its scheduler, or the host is shutting down.
        if !self.0.stays || !self.0.tasks.close() {
            return;
        }
        let (reflections, cognition) = (self.clone(), cognition.clone());
        self.0.tasks.spawn(async move {
            let closing = reflections.0.closing.clone();
            closing.run_until_cancelled(reflections.schedule(&cognition)).await;
        });
    }

    async fn schedule(&self, cognition: &Cognition) {
        let busy: Arc<Mutex<BTreeSet<AgentName>>> = Arc::default();
        loop {
            self.refresh().await;
            self.tell_overdue().await;
            self.steer(cognition).await;
            for (agent, cortex) in self.open_cortexes() {
                let triggers = cortex.due();
                if triggers.is_empty() {
                    continue;
                }
                if let Err(refusal) = self.model_name(&cortex.config()) {
                    tracing::debug!(%agent, %refusal, "no reflection without a model");
                    continue;
                }
                // A model call is not gated by itself; the owner did not ask for this one.
                if let Err(refusal) = self.0.energy.check(&agent, Activity::Agentic { browser: false }) {
                    tracing::debug!(%agent, %refusal, "no reflection now");
                    continue;
                }
                if !busy.lock().insert(agent.clone()) {
                    tracing::debug!(%agent, ?triggers, "trigger skipped: a reflection is under way");
                    continue;
                }
                let (reflections, busy) = (self.clone(), busy.clone());
                self.0.tasks.spawn(async move {
                    if let Err(refusal) = reflections.cycle(&agent, &cortex, triggers).await {
                        tracing::warn!(%agent, %refusal, "a reflection failed");
                    }
                    busy.lock().remove(&agent);
                });
            }
            tokio::select! {
                () = self.0.wake.notified() => {}
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }

    /// Ends the schedule when it is dropped.
    pub(crate) fn end_on_drop(&self) -> DropGuard {
        self.0.closing.clone().drop_guard()
    }

    /// Ends the schedule, and the model calls of cycles under way: these are skipped.
    pub(crate) async fn stop(&self) {
        self.0.closing.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}

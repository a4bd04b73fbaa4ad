//! Delivers the signals of runs to a webhook and to a program that the owner chose (SPEC SIG-2), and traces of ended runs to
//! a collector. Each of these consumers has a Tokio task of its own.
//!
//! A consumer has a durable position, so a restarted host continues from there: nothing is left out, and interrupted
//! deliveries are repeated. Runs do not depend on consumers and never wait for one: a failing consumer delays only its
//! own deliveries. Guests and models cannot choose their target or the program.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests"))]

mod config;
mod follow;
mod hook;
mod line;
mod scrubbed;
mod telemetry;
#[cfg(test)]
mod tests;
mod waiting;
mod webhook;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use base::{Clock, Env, Random, Refusal, RunId};
use network::Gate;
use signals::SignalBus;
use store::{Store, Table};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use vault::Vault;

pub use config::{HookConfig, SignalsConfig, TelemetryConfig, WebhookConfig};
use follow::Position;
pub use follow::{FollowStep, Follower};
pub use telemetry::TraceSource;
pub use waiting::WaitingSignals;

use hook::Hook;
use line::{Consumer, Line, position_key};
use telemetry::PostTraces;
use webhook::PostWebhook;

/// How long an ending host waits for running deliveries. A command that waits for its home waits longer.
const GRACE: Duration = Duration::from_secs(3);
/// Signals read at a time.
const PAGE: usize = 64;

/// Checks the settings of all receivers as the start of a host does, without a request.
///
/// # Errors
/// With the first that is wrong, by its key.
pub fn check(signals: &SignalsConfig, telemetry: &TelemetryConfig, gate: &Gate) -> Result<(), Refusal> {
    signals.webhook.as_ref().map_or(Ok(()), |config| webhook::receiver(config, gate).map(|_| ()))?;
    signals.hook.as_ref().map_or(Ok(()), |config| hook::words(config).map(|_| ()))?;
    telemetry::collector(telemetry, gate).map(|_| ())
}

/// The id up to which each of these consumers has received its signals.
///
/// # Errors
/// If the store cannot be read.
pub fn delivered_to_all(waiting: &WaitingSignals, consumers: &[&str]) -> Result<u64, Refusal> {
    let mut all = waiting.signals.latest();
    for name in consumers {
        // A consumer without a position has received nothing.
        let position = waiting.store.get::<Position>(Table::Meta, position_key(name))?;
        all = all.min(position.map_or(0, |position| position.done()));
    }
    Ok(all)
}

/// The runs with signals that one of these consumers has not received yet; empty without consumers.
///
/// # Errors
/// If the store cannot be read.
pub fn runs_with_undelivered_signals(waiting: &WaitingSignals, consumers: &[&str]) -> Result<HashSet<RunId>, Refusal> {
    let mut runs = HashSet::new();
    let mut after = delivered_to_all(waiting, consumers)?;
    loop {
        let page = waiting.signals.since(after, PAGE)?;
        let Some(last) = page.last().map(|signal| signal.id).filter(|_| !consumers.is_empty()) else { return Ok(runs) };
        runs.extend(page.into_iter().map(|signal| signal.body.run_id));
        after = last;
    }
}

/// The dependencies of deliveries.
pub struct DeliverParts {
    /// The consumers of signals.
    pub config: SignalsConfig,
    /// The collector of traces.
    pub telemetry: TelemetryConfig,
    /// Makes the traces for the collector.
    pub traces: Arc<dyn TraceSource>,
    /// Keeps the positions of the consumers.
    pub store: Store,
    /// The signals to deliver.
    pub signals: SignalBus,
    /// Dates the signatures of webhooks.
    pub clock: Arc<dyn Clock>,
    /// Spreads the pauses between attempts.
    pub random: Arc<Random>,
    /// Makes the connections of webhooks.
    pub gate: Gate,
    /// Holds the secrets of webhooks, and those that no signal and no trace may carry.
    pub vault: Vault,
    /// The variables that a hook's program gets a few of.
    pub env: Env,
}

/// The deliveries of a host. They end when this is dropped.
pub struct Deliveries {
    tasks: TaskTracker,
    /// Cancelled once the signals left by an earlier host are to be delivered too, without waiting for a new signal.
    begin: CancellationToken,
    /// Cancelled to finish: each undelivered signal is tried once more, without pauses.
    stop: CancellationToken,
    /// Cancelled to end at once, without delivering.
    abort: CancellationToken,
}

impl Deliveries {
    /// Starts a task for each configured consumer. It waits until there is a signal, or for [`Deliveries::begin`]: a
    /// host that only answers a question delivers nothing.
    ///
    /// # Errors
    /// If a setting is invalid.
    pub async fn start(parts: DeliverParts) -> Result<Self, Refusal> {
        let SignalsConfig { webhook, hook } = &parts.config;
        let webhook = webhook.as_ref().map(|config| PostWebhook::new(config, &parts)).transpose()?;
        let hook = hook.as_ref().map(|config| Hook::new(config, &parts)).transpose()?;
        let traces = PostTraces::new(&parts)?;
        let deliveries = Self {
            tasks: TaskTracker::new(),
            begin: CancellationToken::new(),
            stop: CancellationToken::new(),
            abort: CancellationToken::new(),
        };
        if let Some(webhook) = webhook {
            deliveries.spawn(webhook, &parts).await;
        }
        if let Some(hook) = hook {
            deliveries.spawn(hook, &parts).await;
        }
        if let Some(traces) = traces {
            deliveries.spawn(traces, &parts).await;
        }
        deliveries.tasks.close();
        Ok(deliveries)
    }

    async fn spawn(&self, consumer: impl Consumer + 'static, parts: &DeliverParts) {
        let line = Line::open(consumer, parts).await;
        let (begin, stop, abort) = (self.begin.clone(), self.stop.clone(), self.abort.clone());
        self.tasks.spawn(async move { abort.run_until_cancelled(line.run(begin, stop)).await });
    }

    /// The names of the configured consumers of signals. Runs are kept until these have received their signals; traces
    /// keep no run.
    pub fn consumers(config: &SignalsConfig) -> Vec<&'static str> {
        let webhook = config.webhook.is_some().then_some(webhook::NAME);
        webhook.into_iter().chain(config.hook.is_some().then_some(hook::NAME)).collect()
    }

    /// Also delivers the signals left by an earlier host. For a host that resumes its runs.
    pub fn begin(&self) {
        self.begin.cancel();
    }

    /// Tries each undelivered signal once more, then ends the deliveries; after [`GRACE`] they are aborted.
    pub async fn stop(&self) {
        self.stop.cancel();
        if tokio::time::timeout(GRACE, self.tasks.wait()).await.is_err() {
            self.abort.cancel();
            self.tasks.wait().await;
        }
    }
}

impl Drop for Deliveries {
    fn drop(&mut self) {
        self.abort.cancel();
    }
}

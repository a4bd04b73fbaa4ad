//! Telling others what runs have to say: a webhook and a program of the owner's (SPEC SIG-2). One task each.
//!
//! A consumer has a durable position, so a host that dies goes on where it was: nothing is left out, and what was under
//! way is told again. It must not know what a run does, and no run ever waits for it: a consumer that fails holds up its own
//! deliveries alone. Nothing that a guest or a model can say chooses where they go or which program is run.

mod follow;
mod hook;
mod line;
#[cfg(test)]
mod tests;
mod waiting;
mod webhook;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use base::{Clock, Random, Refusal, RunId};
use network::Gate;
use signals::SignalBus;
use store::{Store, Table};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use vault::Vault;

use crate::Env;
use crate::config::SignalsConfig;

use follow::Position;
pub use follow::{Followed, Follower};
pub(crate) use waiting::WaitingSignals;

use hook::Hook;
use line::{Consumer, Line, position_key};
use webhook::PostWebhook;

/// How long a host that ends waits for deliveries that are under way. A command that waits for its home waits longer.
const GRACE: Duration = Duration::from_secs(3);
/// Signals read at a time.
const PAGE: usize = 64;

/// The id up to which every one of these consumers has had its signals.
///
/// # Errors
/// When the store cannot be read.
pub(crate) fn delivered_to_all(waiting: &WaitingSignals, consumers: &[&str]) -> Result<u64, Refusal> {
    let mut all = waiting.signals.latest();
    for name in consumers {
        // One without a position has had none.
        let position = waiting.store.get::<Position>(Table::Meta, position_key(name))?;
        all = all.min(position.map_or(0, |position| position.done()));
    }
    Ok(all)
}

/// The runs that one of these consumers has yet to hear of.
///
/// # Errors
/// When the store cannot be read.
pub(crate) fn untold(waiting: &WaitingSignals, consumers: &[&str]) -> Result<HashSet<RunId>, Refusal> {
    let mut runs = HashSet::new();
    let mut after = delivered_to_all(waiting, consumers)?;
    loop {
        let page = waiting.signals.since(after, PAGE)?;
        let Some(last) = page.last().map(|signal| signal.id).filter(|_| !consumers.is_empty()) else { return Ok(runs) };
        runs.extend(page.into_iter().map(|signal| signal.run));
        after = last;
    }
}

/// What deliveries are made from.
pub(crate) struct DeliverParts {
    pub config: SignalsConfig,
    pub store: Store,
    pub signals: SignalBus,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<Random>,
    pub gate: Gate,
    pub vault: Vault,
    pub env: Env,
}

/// The deliveries of a host. They end when this is dropped.
pub(crate) struct Deliveries {
    tasks: TaskTracker,
    /// Deliver also what an earlier host left.
    begin: CancellationToken,
    /// Come to an end: deliver what is there, and wait for nothing.
    stop: CancellationToken,
    /// End now.
    abort: CancellationToken,
}

impl Deliveries {
    /// Starts a task for each consumer that is configured. It waits until there is a signal, or for [`Deliveries::begin`]: a
    /// host that only answers a question tells nobody anything.
    ///
    /// # Errors
    /// When a setting is wrong.
    pub async fn start(parts: DeliverParts) -> Result<Self, Refusal> {
        let SignalsConfig { webhook, hook } = &parts.config;
        let webhook = webhook.as_ref().map(|config| PostWebhook::new(config, &parts)).transpose()?;
        let hook = hook.as_ref().map(|config| Hook::new(config, &parts)).transpose()?;
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
        deliveries.tasks.close();
        Ok(deliveries)
    }

    async fn spawn(&self, consumer: impl Consumer + 'static, parts: &DeliverParts) {
        let line = Line::open(consumer, parts).await;
        let (begin, stop, abort) = (self.begin.clone(), self.stop.clone(), self.abort.clone());
        self.tasks.spawn(async move { abort.run_until_cancelled(line.run(begin, stop)).await });
    }

    /// The names of the consumers that are configured.
    pub fn consumers(config: &SignalsConfig) -> Vec<&'static str> {
        let webhook = config.webhook.is_some().then_some(webhook::NAME);
        webhook.into_iter().chain(config.hook.is_some().then_some(hook::NAME)).collect()
    }

    /// Delivers also what an earlier host left. For a host that takes up its runs.
    pub fn begin(&self) {
        self.begin.cancel();
    }

    /// Ends the deliveries. What is there and not yet told is tried once more, within a time.
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

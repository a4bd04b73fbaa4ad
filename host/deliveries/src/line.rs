//! One consumer and its pending signals: in order, each until it is delivered or given up, with a durable position.
//!
//! Works across a host that dies at any point (deliveries without a saved position are repeated), a disk that takes no
//! position (deliveries continue, and are repeated after a restart), and a consumer that is away for days.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use base::{Clock, Random};
use signals::Signal;
use store::{Batch, Store, StoreError, Table};
use tokio_util::sync::CancellationToken;

use crate::DeliverParts;
use crate::follow::{FollowStep, Follower, Position};
use crate::waiting::WaitingSignals;

/// Pause after a failed read of the store.
const PAUSE: Duration = Duration::from_secs(5);

/// A receiver of signals.
#[async_trait::async_trait]
pub(crate) trait Consumer: Send + Sync {
    /// The name of its position: `deliver/<name>` in the table of single values. It never changes.
    fn name(&self) -> &'static str;

    /// The schedule of further attempts.
    fn retries(&self) -> RetrySchedule;

    /// Whether it wants this signal. `timely` is true while the signal is worth acting upon, or its run waits.
    fn wants(&self, signal: &Signal, timely: bool) -> bool;

    /// Delivers a signal. The error is the reason for the log, without secrets or text from the other side.
    async fn deliver(&self, signal: &Signal) -> Result<(), String>;
}

/// Schedule of further attempts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetrySchedule {
    /// The first pause, at most. Each following pause is twice as long.
    pub first: Duration,
    /// The longest pause between attempts.
    pub longest: Duration,
    /// Number of retries before the signal is given up; `None`: unlimited.
    pub most: Option<usize>,
}

impl RetrySchedule {
    /// The pauses: half of each is random, so that hosts that failed together do not come back together.
    pub(crate) fn pauses(self, seed: u64) -> impl Iterator<Item = Duration> + Send {
        let longest = self.longest / 2;
        let pauses = ExponentialBuilder::new()
            .with_min_delay(longest.min(self.first / 2))
            .with_max_delay(longest)
            .with_jitter()
            .with_jitter_seed(seed);
        match self.most {
            Some(most) => pauses.with_max_times(most).build(),
            None => pauses.without_max_times().build(),
        }
    }
}

/// One consumer and its pending signals.
pub(crate) struct Line<C> {
    consumer: C,
    store: Store,
    waiting: WaitingSignals,
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
    follower: Follower,
    /// The position that is on disk.
    noted: Option<Position>,
}

/// Whether to continue delivering.
enum LineStep {
    GoOn,
    Stop,
}

impl<C: Consumer> Line<C> {
    /// Continues from the position of an earlier host. A new consumer begins here, first with the runs that wait.
    pub async fn open(consumer: C, parts: &DeliverParts) -> Self {
        let waiting = WaitingSignals { store: parts.store.clone(), signals: parts.signals.clone() };
        let noted = match parts.store.get::<Position>(Table::Meta, key(&consumer)) {
            Ok(noted) => noted,
            Err(error) => {
                // Starting over skips at most signals after the unreadable position.
                tracing::warn!(consumer = consumer.name(), %error, "the position of a consumer cannot be read");
                None
            }
        };
        let position = noted.unwrap_or_else(|| Position::beginning(&parts.signals));
        let follower = Follower::new(waiting.clone(), position);
        let (clock, random) = (parts.clock.clone(), parts.random.clone());
        let mut line = Self { consumer, store: parts.store.clone(), waiting, clock, random, follower, noted };
        // Before the first signal of this host: without a saved position, signals before the next start would be lost.
        line.note().await;
        line
    }

    /// Delivers until it is stopped.
    pub async fn run(mut self, begin: CancellationToken, stop: CancellationToken) {
        tokio::select! {
            biased;
            () = self.follower.changed() => {}
            () = begin.cancelled() => {}
            () = stop.cancelled() => return,
        }
        loop {
            let next = match self.follower.next_ready() {
                Ok(Some(followed)) => self.take(followed, &stop).await,
                Ok(None) => {
                    self.note().await;
                    tokio::select! {
                        biased;
                        () = self.follower.changed() => LineStep::GoOn,
                        () = stop.cancelled() => LineStep::Stop,
                    }
                }
                Err(refusal) => {
                    tracing::warn!(consumer = self.consumer.name(), %refusal, "signals cannot be read");
                    pause(PAUSE, &stop).await
                }
            };
            if matches!(next, LineStep::Stop) {
                return;
            }
        }
    }

    async fn take(&mut self, followed: FollowStep, stop: &CancellationToken) -> LineStep {
        let (signal, timely) = match followed {
            FollowStep::Opened(_) => return LineStep::GoOn,
            FollowStep::Waiting(signal) => (signal, true),
            FollowStep::Signal(signal) => {
                let timely = self.is_timely(&signal);
                (signal, timely)
            }
        };
        if !self.consumer.wants(&signal, timely) {
            // Saved with the next delivery, or when there are no more signals.
            return LineStep::GoOn;
        }
        let next = self.tell(&signal, stop).await;
        if matches!(next, LineStep::GoOn) {
            self.note().await;
        }
        next
    }

    /// If the lookup fails, the run may be waiting: a repeated delivery is better than a missing one.
    fn is_timely(&self, signal: &Signal) -> bool {
        !signal.is_expired(self.clock.now())
            || (signal.body.status.is_waiting() && self.waiting.is_waited_for(signal).unwrap_or(true))
    }

    async fn tell(&self, signal: &Signal, stop: &CancellationToken) -> LineStep {
        let mut pauses = self.consumer.retries().pauses(self.random.next_u64());
        loop {
            let Err(reason) = self.consumer.deliver(signal).await else { return LineStep::GoOn };
            let (consumer, id) = (self.consumer.name(), signal.id);
            let Some(wait) = pauses.next() else {
                tracing::warn!(consumer, signal = id, reason, "a signal could not be delivered and is given up");
                return LineStep::GoOn;
            };
            tracing::warn!(consumer, signal = id, reason, retry_in = ?wait, "a signal could not be delivered");
            if matches!(pause(wait, stop).await, LineStep::Stop) {
                return LineStep::Stop;
            }
        }
    }

    /// Makes the current position durable.
    async fn note(&mut self) {
        let position = self.follower.position();
        if self.noted == Some(position) {
            return;
        }
        match self.commit(position).await {
            Ok(()) => self.noted = Some(position),
            Err(error) => {
                let consumer = self.consumer.name();
                tracing::warn!(consumer, %error, "what was delivered cannot be noted and will be told again");
            }
        }
    }

    async fn commit(&self, position: Position) -> Result<(), StoreError> {
        let mut batch = Batch::new();
        batch.put(Table::Meta, key(&self.consumer), &position)?;
        self.store.commit(batch).await
    }
}

fn key(consumer: &impl Consumer) -> String {
    position_key(consumer.name())
}

/// The key of [`Table::Meta`] that holds a consumer's position.
pub(crate) fn position_key(name: &str) -> String {
    format!("deliver/{name}")
}

async fn pause(time: Duration, stop: &CancellationToken) -> LineStep {
    tokio::select! {
        biased;
        () = stop.cancelled() => LineStep::Stop,
        () = tokio::time::sleep(time) => LineStep::GoOn,
    }
}

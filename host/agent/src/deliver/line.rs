//! One consumer and what is on its way to it: in order, each until it was taken or given up, the position durable behind it.
//!
//! Survives a host that dies at any point (what was not noted as done is told again), a disk that takes no position (the
//! deliveries go on, and are told again after a restart), and a consumer that is away for days.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use base::{Clock, Random};
use signals::Signal;
use store::{Batch, Store, StoreError, Table};
use tokio_util::sync::CancellationToken;

use super::DeliverParts;
use super::follow::{Followed, Follower, Position};
use super::waiting::WaitingSignals;

/// Pause after the store could not be read.
const PAUSE: Duration = Duration::from_secs(5);

/// Somebody who is told.
#[async_trait::async_trait]
pub(super) trait Consumer: Send + Sync {
    /// Names its position: `deliver/<name>` in the table of single values. It never changes.
    fn name(&self) -> &'static str;

    /// When to try again.
    fn retries(&self) -> Retries;

    /// Whether it wants to hear of this. `timely` is true while the signal is worth acting upon, or its run waits.
    fn wants(&self, signal: &Signal, timely: bool) -> bool;

    /// Tells it. The error is why not, for the log: no secrets and nothing that the other side said.
    async fn deliver(&self, signal: &Signal) -> Result<(), String>;
}

/// When to try again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retries {
    /// The first pause, at most. Each is twice as long as the one before.
    pub first: Duration,
    /// No pause is longer.
    pub longest: Duration,
    /// So many, and then the signal is given up; none: for ever.
    pub most: Option<usize>,
}

impl Retries {
    /// The pauses: half of each is chance, so that hosts which failed together do not come back together.
    pub(super) fn pauses(self, seed: u64) -> impl Iterator<Item = Duration> + Send {
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

/// One consumer, and what is on its way to it.
pub(super) struct Line<C> {
    consumer: C,
    store: Store,
    waiting: WaitingSignals,
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
    follower: Follower,
    /// What the disk has.
    noted: Option<Position>,
}

/// Whether to go on.
enum Next {
    GoOn,
    Stop,
}

impl<C: Consumer> Line<C> {
    /// Goes on where an earlier host was. A consumer that is new begins here, and hears first of runs that wait.
    pub async fn open(consumer: C, parts: &DeliverParts) -> Self {
        let waiting = WaitingSignals { store: parts.store.clone(), signals: parts.signals.clone() };
        let noted = match parts.store.get::<Position>(Table::Meta, key(&consumer)) {
            Ok(noted) => noted,
            Err(error) => {
                // To begin anew tells too little only of what nobody can read any more.
                tracing::warn!(consumer = consumer.name(), %error, "the position of a consumer cannot be read");
                None
            }
        };
        let position = noted.unwrap_or_else(|| Position::beginning(&parts.signals));
        let follower = Follower::new(waiting.clone(), position);
        let (clock, random) = (parts.clock.clone(), parts.random.clone());
        let mut line = Self { consumer, store: parts.store.clone(), waiting, clock, random, follower, noted };
        // Before the first signal of this host: were it lost, so would be those that came before the next beginning.
        line.note().await;
        line
    }

    /// Delivers until it is told to stop.
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
                        () = self.follower.changed() => Next::GoOn,
                        () = stop.cancelled() => Next::Stop,
                    }
                }
                Err(refusal) => {
                    tracing::warn!(consumer = self.consumer.name(), %refusal, "signals cannot be read");
                    pause(PAUSE, &stop).await
                }
            };
            if matches!(next, Next::Stop) {
                return;
            }
        }
    }

    async fn take(&mut self, followed: Followed, stop: &CancellationToken) -> Next {
        let (signal, timely) = match followed {
            Followed::Opened(_) => return Next::GoOn,
            Followed::Waiting(signal) => (signal, true),
            Followed::Signal(signal) => {
                let timely = self.is_timely(&signal);
                (signal, timely)
            }
        };
        if !self.consumer.wants(&signal, timely) {
            // Noted with the next that is delivered, or when there is no more.
            return Next::GoOn;
        }
        let next = self.tell(&signal, stop).await;
        if matches!(next, Next::GoOn) {
            self.note().await;
        }
        next
    }

    /// A run that cannot be looked up may wait: then it is better told of once too often.
    fn is_timely(&self, signal: &Signal) -> bool {
        !signal.is_expired(self.clock.now())
            || (signal.body.status.is_waiting() && self.waiting.is_waited_for(signal).unwrap_or(true))
    }

    async fn tell(&self, signal: &Signal, stop: &CancellationToken) -> Next {
        let mut pauses = self.consumer.retries().pauses(self.random.next_u64());
        loop {
            let Err(reason) = self.consumer.deliver(signal).await else { return Next::GoOn };
            let (consumer, id) = (self.consumer.name(), signal.id);
            let Some(wait) = pauses.next() else {
                tracing::warn!(consumer, signal = id, reason, "a signal could not be delivered and is given up");
                return Next::GoOn;
            };
            tracing::warn!(consumer, signal = id, reason, retry_in = ?wait, "a signal could not be delivered");
            if matches!(pause(wait, stop).await, Next::Stop) {
                return Next::Stop;
            }
        }
    }

    /// Makes the position durable.
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

/// Under which key of [`Table::Meta`] the position of a consumer is kept.
pub(super) fn position_key(name: &str) -> String {
    format!("deliver/{name}")
}

async fn pause(time: Duration, stop: &CancellationToken) -> Next {
    tokio::select! {
        biased;
        () = stop.cancelled() => Next::Stop,
        () = tokio::time::sleep(time) => Next::GoOn,
    }
}

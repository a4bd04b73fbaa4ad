//! Deleting runs that are over and conversations that are no longer used: by age, by total size, by number, or on the owner's
//! command (`[retention]`).
//!
//! A run is deleted in this order: its record, history and commands in one commit, then its files, then its signals
//! once every consumer has received them, and a week later its idempotency key. A crash in between leaves files or
//! signals without a run, which the next host removes; never a run without its files. A pass also ends the forgetting of peers
//! that an earlier host left unfinished. It works in the background, a run
//! at a time, and no run waits for it. It must not touch a run that is not over: the motor refuses that.

mod conversations;
pub(crate) mod sweep;
mod usage;

use std::fs;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base::{HostTime, Refusal, RunId, Timestamp};
use cognition::Cognition;
use deliveries::{WaitingSignals, delivered_to_all, runs_with_undelivered_signals};
use ledger::Ledger;
use motor::Motor;
use parking_lot::Mutex;
use signals::SignalBus;
use store::{Batch, Table, blocking};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::{Age, RetentionConfig};
use crate::environment::HostEnvironment;
use crate::spending::KEPT_DAYS;
use crate::{Home, landing};

pub use usage::HomeUsage;

/// Pause between two passes.
const PAUSE: Duration = Duration::from_secs(3_600);
/// How long a host lives before it judges the age of runs by its clock: a clock that is wrong at the start is soon set.
const SETTLED: Duration = Duration::from_secs(600);
/// The key of [`Table::Meta`] with the end of the last pass over the home.
const PASSED: &str = "retention/passed";
/// Pause between two deleted runs, so that active runs have the disk for themselves.
const BREATH: Duration = Duration::from_millis(2);
/// Number of records, signals or keys processed at a time.
const PAGE: usize = 64;

/// The dependencies of deletion.
#[derive(Clone)]
pub(crate) struct Pruner {
    pub home: Home,
    pub config: RetentionConfig,
    pub motor: Motor,
    pub environment: Arc<HostEnvironment>,
    pub signals: SignalBus,
    pub ledger: Ledger,
    pub waiting: WaitingSignals,
    /// The names of the consumers that receive signals.
    pub consumers: Vec<&'static str>,
    pub time: HostTime,
    /// Whether a loss from the state would always have been noticed.
    pub was_counted: bool,
}

/// The task that deletes. It ends when this is dropped.
pub(crate) struct Retention {
    tasks: TaskTracker,
    /// Takes the conversations of the home to the task. `None`: it has begun.
    begin: Mutex<Option<oneshot::Sender<Cognition>>>,
    stop: CancellationToken,
    again: Arc<Notify>,
}

impl Retention {
    /// Starts the task. It waits for [`Retention::begin`]: a host that only answers a question deletes nothing. A host
    /// that `stays` makes a pass when it begins; a short-lived one only if the last pass was an hour ago.
    pub fn start(pruner: Pruner, stays: bool) -> Self {
        let (begin, begun) = oneshot::channel();
        let retention = Self {
            tasks: TaskTracker::new(),
            begin: Mutex::new(Some(begin)),
            stop: CancellationToken::new(),
            again: Arc::default(),
        };
        let (stop, again) = (retention.stop.clone(), retention.again.clone());
        #[expect(clippy::disallowed_methods, reason = "compared with the times of files")]
        let started = SystemTime::now();
        retention.tasks.spawn(async move {
            let Some(Ok(cognition)) = stop.run_until_cancelled(begun).await else { return };
            if stays || pruner.is_due() {
                pruner.sweep(started, &stop).await;
            }
            let (mut is_whole, mut next) = (true, Instant::now());
            loop {
                let pass = async {
                    match is_whole {
                        true if stays || pruner.is_due() => pruner.pass(&cognition, &stop).await,
                        true => Ok(()),
                        false => pruner.prune_signals().await,
                    }
                };
                if let Some(Err(refusal)) = stop.run_until_cancelled(pass).await {
                    tracing::warn!(%refusal, "runs are not deleted");
                }
                if is_whole {
                    next = Instant::now() + pruner.pause();
                }
                is_whole = tokio::select! {
                    () = stop.cancelled() => return,
                    () = again.notified() => false,
                    () = tokio::time::sleep_until(next) => true,
                };
            }
        });
        retention.tasks.close();
        retention
    }

    /// Begins to delete. For a host that resumes its runs.
    pub fn begin(&self, cognition: Cognition) {
        if let Some(begin) = self.begin.lock().take() {
            // A task that has stopped needs none.
            begin.send(cognition).ok();
        }
    }

    /// Soon looks again for signals of deleted runs.
    pub fn again(&self) {
        self.again.notify_one();
    }

    /// Stops before the next run or directory.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

impl Drop for Retention {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Pruner {
    /// Whether the last pass over this home is so long ago that even a short-lived host makes one.
    fn is_due(&self) -> bool {
        match self.waiting.store.get::<Timestamp>(Table::Meta, PASSED) {
            Ok(passed) => is_due(passed, self.time.earliest()),
            Err(error) => {
                tracing::warn!(%error, "when runs were last deleted cannot be read");
                true
            }
        }
    }

    /// The age at which runs are deleted, if the host has lived long enough to judge by its clock.
    fn age(&self) -> Option<Duration> {
        self.settled(self.config.age)
    }

    /// A configured age, if the host has lived long enough to judge by its clock.
    fn settled(&self, age: Age) -> Option<Duration> {
        age.0.filter(|age| self.time.lived() >= SETTLED.min(*age))
    }

    /// Time until the next pass.
    fn pause(&self) -> Duration {
        let ages = [self.config.age, self.config.conversation_age];
        let settles = ages.into_iter().filter(|age| self.settled(*age).is_none()).filter_map(|age| age.0).min();
        settles.map(|age| SETTLED.min(age)).map_or(PAUSE, |settles| settles.saturating_sub(self.time.lived()))
    }

    async fn sweep(&self, started: SystemTime, stop: &CancellationToken) {
        let (home, motor, was_counted, stop) = (self.home.clone(), self.motor.clone(), self.was_counted, stop.clone());
        if let Err(refusal) = blocking(move || sweep::sweep(&home, &motor, was_counted, started, &stop)).await {
            tracing::warn!(%refusal, "directories of runs without a record are not removed");
        }
    }

    /// Deletes conversations and runs beyond the limits. Safe to drop at any point.
    async fn pass(&self, cognition: &Cognition, stop: &CancellationToken) -> Result<(), Refusal> {
        match self.prune_conversations(cognition).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(conversations = count, "forgot conversations that are no longer used"),
            Err(refusal) => tracing::warn!(%refusal, "conversations are not forgotten"),
        }
        self.prune(stop).await
    }

    /// Deletes runs beyond the limits, and notes the time of the pass. Safe to drop at any point.
    ///
    /// # Errors
    /// If storage fails.
    pub async fn prune(&self, stop: &CancellationToken) -> Result<(), Refusal> {
        let deleted = self.prune_old().await? + self.prune_for_room(stop).await?;
        if deleted > 0 {
            tracing::info!(runs = deleted, "deleted runs that are over");
        }
        self.prune_signals().await?;
        while self.motor.forget_keys(PAGE).await? == PAGE {}
        self.environment.spend.forget(self.time.earliest(), KEPT_DAYS).await?;
        self.ledger.resume().await?;
        self.environment.access.vault.expire_pending().await?;
        let mut batch = Batch::new();
        batch.put(Table::Meta, PASSED, &self.time.earliest())?;
        self.waiting.store.commit(batch).await?;
        tracing::debug!("a pass over the runs has ended");
        Ok(())
    }

    /// Deletes runs that ended too long ago.
    async fn prune_old(&self) -> Result<usize, Refusal> {
        let Some(age) = self.age() else { return Ok(0) };
        let cutoff = Timestamp::from_millis(self.time.earliest().as_millis().saturating_sub(millis(age)));
        let undelivered = runs_with_undelivered_signals(&self.waiting, &self.consumers)?;
        let (mut deleted, mut after) = (0, None);
        loop {
            let expired = self.motor.expired(cutoff, after.as_ref(), PAGE)?;
            for run in expired.runs.iter().filter(|run| !undelivered.contains(run)) {
                deleted += usize::from(self.delete_old(run).await?);
            }
            after = expired.next;
            if after.is_none() {
                return Ok(deleted);
            }
        }
    }

    /// Deletes the oldest runs until the rest fits the configured number and bytes. Only deletable runs count: other
    /// runs do not reduce their room.
    async fn prune_for_room(&self, stop: &CancellationToken) -> Result<usize, Refusal> {
        let (bytes, runs) = (self.config.bytes.0, Some(self.config.runs).filter(|runs| *runs > 0));
        if bytes.is_none() && runs.is_none() {
            return Ok(0);
        }
        let (home, stop, sized) = (self.home.clone(), stop.clone(), bytes.is_some());
        let measured = blocking(move || Ok(measured(&home, sized, &stop))).await?;
        let mut over: Vec<_> = measured.into_iter().filter(|(run, _)| self.is_over(run)).collect();
        let undelivered = runs_with_undelivered_signals(&self.waiting, &self.consumers)?;
        over.retain(|(run, _)| !undelivered.contains(run));
        let sizes: Vec<_> = over.iter().map(|(_, bytes)| *bytes).collect();
        let mut deleted = 0;
        for (run, _) in over.iter().take(surplus(&sizes, bytes, runs)) {
            deleted += usize::from(self.delete_old(run).await?);
        }
        Ok(deleted)
    }

    /// Whether this run is over. `false` for an unreadable record and a directory without one.
    fn is_over(&self, run: &RunId) -> bool {
        self.motor.record(run).is_ok_and(|record| record.status.is_terminal())
    }

    /// Deletes a run if it is still over. Returns whether it was deleted.
    async fn delete_old(&self, run: &RunId) -> Result<bool, Refusal> {
        tokio::time::sleep(BREATH).await;
        if !self.is_over(run) {
            return Ok(false);
        }
        self.delete(run).await.map(|()| true)
    }

    /// Deletes a run, then its files.
    ///
    /// # Errors
    /// If the run does not exist, it is not over, or storage fails.
    pub async fn delete(&self, run: &RunId) -> Result<(), Refusal> {
        let _turn = self.environment.landing.lock().await;
        // With the run its originals would go, while a directory of the owner is half changed.
        let runs = self.home.runs();
        blocking(move || landing::end_interrupted(&runs)).await?;
        self.motor.delete(run).await?;
        self.environment.access.close(run, false).await;
        let (home, run) = (self.home.clone(), run.clone());
        blocking(move || {
            remove_files(&home, &run);
            Ok(())
        })
        .await
    }

    /// Deletes signals that every consumer has received, if they are too old or their run is gone.
    async fn prune_signals(&self) -> Result<(), Refusal> {
        let (now, age) = (self.time.earliest(), self.age());
        let end = delivered_to_all(&self.waiting, &self.consumers)?;
        let mut after = 0;
        loop {
            let page = self.signals.since(after, PAGE)?;
            let Some(last) = page.last().map(|signal| signal.id) else { return Ok(()) };
            let mut done = Vec::new();
            for signal in page.iter().take_while(|signal| signal.id <= end) {
                let is_old = age.is_some_and(|age| now.since(signal.created_at) > age);
                let is_gone = !self.motor.has_record(&signal.body.run_id)?;
                if is_gone || (is_old && !self.waiting.is_waited_for(signal)?) {
                    done.push(signal.id);
                }
            }
            self.signals.delete(&done).await?;
            if last >= end || page.len() < PAGE {
                return Ok(());
            }
            after = last;
            tokio::time::sleep(BREATH).await;
        }
    }
}

/// The directories of runs with the bytes of each and its trace, the oldest first. Incomplete once `stop` is cancelled.
fn measured(home: &Home, sized: bool, stop: &CancellationToken) -> Vec<(RunId, u64)> {
    let entries = fs::read_dir(home.runs()).into_iter().flatten().flatten();
    let mut runs: Vec<RunId> = entries.filter_map(|entry| RunId::parse(entry.file_name().to_str()?).ok()).collect();
    runs.sort();
    let size = |run: &RunId| usage::on_disk(&home.run(run)) + usage::on_disk(&home.trace_file(run));
    let sizes = runs.into_iter().take_while(|_| !stop.is_cancelled());
    sizes
        .map(|run| {
            let bytes = if sized { size(&run) } else { 0 };
            (run, bytes)
        })
        .collect()
}

/// The number of runs or conversations of these sizes to delete, from the first on, until the others fit.
fn surplus(sizes: &[u64], most_bytes: Option<u64>, most: Option<u64>) -> usize {
    let (mut bytes, mut count) = (sizes.iter().sum::<u64>(), sizes.len() as u64);
    let gone = sizes.iter().take_while(|size| {
        let is_too_much = most_bytes.is_some_and(|most| bytes > most) || most.is_some_and(|most| count > most);
        (bytes, count) = (bytes.saturating_sub(**size), count.saturating_sub(1));
        is_too_much
    });
    gone.count()
}

/// A time in the future is ignored.
fn is_due(passed: Option<Timestamp>, now: Timestamp) -> bool {
    passed.is_none_or(|passed| passed > now || now.since(passed) >= PAUSE)
}

/// Removes the directory and the trace of a run. Entries that cannot be removed are left for the next host.
pub(crate) fn remove_files(home: &Home, run: &RunId) {
    let gone = |result: std::io::Result<()>, what: &str| match result {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(%run, %error, "the {what} of a deleted run cannot be removed");
        }
        _ => {}
    };
    gone(fs::remove_file(home.trace_file(run)), "trace");
    gone(fs::remove_dir_all(home.run(run)), "directory");
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

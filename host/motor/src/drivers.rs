//! The drivers at work: at most one for a run, found by everybody who wants something of it.
//!
//! Survives a panic in a driver or in a tool it calls: the run is ended with that reason, and everybody who waits is
//! told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::{Refusal, RefusalCode, RunId};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::HEARING;
use crate::drive::{Driver, Outcome};
use crate::journal::Books;
use crate::live::{LiveEvent, LiveLog, Watch};
use crate::motor::Environment;

/// How far a driver is.
#[derive(Debug, Clone)]
pub(crate) enum Phase {
    Driving,
    /// What became of the run is durable.
    Settled(Outcome),
    /// The environment has heard of it too, and the driver is no more.
    Gone(Outcome),
}

/// A driver at work, from outside.
#[derive(Clone)]
struct Active {
    cancel: CancellationToken,
    live: Arc<LiveLog>,
    phase: watch::Receiver<Phase>,
}

/// A driver found or made.
pub(crate) struct Launched {
    active: Active,
    /// Whether it was made now.
    pub(crate) is_new: bool,
}

/// All drivers of a home.
pub(crate) struct Drivers {
    books: Books,
    environment: Arc<dyn Environment>,
    closing: CancellationToken,
    tasks: TaskTracker,
    active: Arc<ActiveRuns>,
}

#[derive(Default)]
struct ActiveRuns(Mutex<HashMap<RunId, Active>>);

impl ActiveRuns {
    // The map is whole between any two statements, so a panic elsewhere cannot have left it half-changed.
    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Active>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drivers {
    pub(crate) fn new(books: Books, environment: Arc<dyn Environment>) -> Self {
        let (closing, tasks) = (CancellationToken::new(), TaskTracker::new());
        Self { books, environment, closing, tasks, active: Arc::default() }
    }

    /// The run's driver; a new one when it has none.
    pub(crate) fn launch(&self, run: &RunId) -> Result<Launched, Refusal> {
        self.launch_with(run, CancellationToken::new())
    }

    fn launch_with(&self, run: &RunId, cancel: CancellationToken) -> Result<Launched, Refusal> {
        let mut runs = self.active.lock();
        if let Some(active) = runs.get(run) {
            return Ok(Launched { active: active.clone(), is_new: false });
        }
        // Under the same lock as a shutdown's look at what is still to be waited for.
        if self.closing.is_cancelled() {
            return Err(Refusal::new(RefusalCode::TryLater, "the host is shutting down"));
        }
        let (phase, watching) = watch::channel(Phase::Driving);
        let active = Active { cancel, live: LiveLog::new(), phase: watching };
        runs.insert(run.clone(), active.clone());
        let driver = Driver {
            books: self.books.clone(),
            environment: self.environment.clone(),
            run: run.clone(),
            live: active.live.clone(),
            cancel: active.cancel.clone(),
            closing: self.closing.clone(),
        };
        let seat = Seat { run: run.clone(), active: self.active.clone(), live: active.live.clone(), phase };
        self.tasks.spawn(work(driver, seat, self.environment.clone()));
        Ok(Launched { active, is_new: true })
    }

    /// Cancels the run and waits until what became of it is durable. A run without a driver gets one for that.
    pub(crate) async fn cancel(&self, run: &RunId) -> Result<Outcome, Refusal> {
        // A new driver must find itself cancelled from its first moment.
        let token = CancellationToken::new();
        token.cancel();
        let Launched { active, .. } = self.launch_with(run, token)?;
        active.cancel.cancel();
        let mut phase = active.phase;
        let settled = phase.wait_for(|phase| !matches!(phase, Phase::Driving)).await;
        match settled.as_deref() {
            Ok(Phase::Settled(outcome) | Phase::Gone(outcome)) => Ok(outcome.clone()),
            _ => Err(vanished()),
        }
    }

    /// How far the run's driver is, when it has one.
    pub(crate) fn phase(&self, run: &RunId) -> Option<watch::Receiver<Phase>> {
        self.active.lock().get(run).map(|active| active.phase.clone())
    }

    /// What the run's driver does, when it has one.
    pub(crate) fn watch(&self, run: &RunId) -> Option<Watch> {
        let live = self.active.lock().get(run)?.live.clone();
        Some(live.watch())
    }

    /// Stops all drivers at a durable point.
    pub(crate) async fn shutdown(&self) {
        {
            let _runs = self.active.lock();
            self.closing.cancel();
            self.tasks.close();
        }
        self.tasks.wait().await;
    }
}

/// A driver's place among the drivers. Given up when the driver ends, however it ends.
struct Seat {
    run: RunId,
    active: Arc<ActiveRuns>,
    live: Arc<LiveLog>,
    phase: watch::Sender<Phase>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        // First out of the map, so that whoever hears of the end finds no driver to ask.
        self.active.lock().remove(&self.run);
        self.live.close();
        self.phase.send_modify(|phase| {
            *phase = Phase::Gone(match phase {
                Phase::Settled(outcome) | Phase::Gone(outcome) => outcome.clone(),
                Phase::Driving => Outcome::Suspended(vanished()),
            });
        });
    }
}

async fn work(driver: Driver, seat: Seat, environment: Arc<dyn Environment>) {
    let clock = driver.books.clock.clone();
    // In a task of its own, so that a panic ends the driver and not the bookkeeping about it.
    let driver = Arc::new(driver);
    let driving = tokio::spawn({
        let driver = driver.clone();
        async move { driver.drive().await }
    });
    let (outcome, journal) = match driving.await {
        Ok(done) => done,
        Err(_) => driver.broke_off().await,
    };
    if let Outcome::Suspended(refusal) = &outcome {
        let reason = refusal.reason.clone();
        seat.live.publish_hint(LiveEvent::Suspended { at: clock.now(), reason });
    }
    // No receiver may be left; the outcome is in the store.
    seat.phase.send_replace(Phase::Settled(outcome));
    if let Some(journal) = journal {
        let trace = &journal.state().trace;
        if tokio::time::timeout(HEARING, environment.finished(trace)).await.is_err() {
            tracing::warn!(run = %seat.run, "the environment was too slow to hear of the end of a run");
        }
    }
}

fn vanished() -> Refusal {
    Refusal::new(RefusalCode::Failed, "the run's driver broke off; the run is as it was last stored")
        .with_remedy("start the host again to take it up, or cancel it")
}

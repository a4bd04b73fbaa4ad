//! The drivers at work: at most one for a run, found by everybody who wants something of it.
//!
//! Survives a panic in a driver or in a tool it calls: the run is ended with that reason, and everybody who waits is
//! told.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::{ContentHash, Refusal, RefusalCode, RunId};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::command::{Command, PendingCommand};
use crate::config::{DISK_WAIT, HEARING, MotorConfig, STOP_GRACE};
use crate::drive::Driver;
use crate::environment::Environment;
use crate::hear::inbox;
use crate::journal::RunStore;
use crate::live::{LiveEvent, LiveLog};
use crate::phase::{DriverOutcome, Progress};
use crate::timers::Timers;
use crate::wait::Waiting;

/// A driver at work, from outside.
#[derive(Clone)]
struct Active {
    cancel: CancellationToken,
    live: Arc<LiveLog>,
    progress: Arc<Progress>,
    /// Leads to its inbox.
    orders: mpsc::Sender<PendingCommand>,
}

/// A driver found or made.
pub(crate) struct LaunchedDriver {
    active: Active,
    /// Whether it was made now.
    pub(crate) is_new: bool,
}

/// All drivers of a home. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Drivers(Arc<DriversInner>);

struct DriversInner {
    books: RunStore,
    environment: Arc<dyn Environment>,
    config: Mutex<MotorConfig>,
    tasks: TaskTracker,
    active: Arc<ActiveRuns>,
    timers: Arc<Timers>,
    keeps_time: AtomicBool,
}

impl Drop for DriversInner {
    fn drop(&mut self) {
        self.active.closing.cancel();
    }
}

/// The runs that are driven now.
pub(crate) struct ActiveRuns {
    runs: Mutex<HashMap<RunId, Active>>,
    /// Counts the drivers that were made.
    launches: watch::Sender<u64>,
    pub(crate) closing: CancellationToken,
}

impl ActiveRuns {
    /// Changes whenever a driver was made.
    pub(crate) fn launches(&self) -> watch::Receiver<u64> {
        self.launches.subscribe()
    }

    /// The log of the run's driver, if it has one.
    pub(crate) fn live(&self, run: &RunId) -> Option<Arc<LiveLog>> {
        Some(self.runs.lock().get(run)?.live.clone())
    }
}

impl Drivers {
    pub(crate) fn new(books: RunStore, environment: Arc<dyn Environment>, config: MotorConfig) -> Self {
        let active =
            ActiveRuns { runs: Mutex::default(), launches: watch::channel(0).0, closing: CancellationToken::new() };
        let timers = Arc::new(Timers::new(books.clock.clone()));
        Self(Arc::new(DriversInner {
            books,
            environment,
            config: Mutex::new(config),
            tasks: TaskTracker::new(),
            active: Arc::new(active),
            timers,
            keeps_time: AtomicBool::new(false),
        }))
    }

    /// The settings of drivers that are made now.
    pub(crate) fn config(&self) -> MotorConfig {
        self.0.config.lock().clone()
    }

    /// Changes the settings of drivers that are made from now on.
    pub(crate) fn configure(&self, config: MotorConfig) {
        *self.0.config.lock() = config;
    }

    pub(crate) fn active(&self) -> &Arc<ActiveRuns> {
        &self.0.active
    }

    /// Takes a run up that waits, when its time is over.
    pub(crate) fn take_up_at_the_end_of(&self, waiting: &Waiting, run: &RunId) {
        self.take_up_after(self.0.timers.left(run, waiting.expires_at()), run.clone());
    }

    /// Takes the run up after `wait`.
    fn take_up_after(&self, wait: Duration, run: RunId) {
        self.0.timers.add(wait, run);
        if self.0.keeps_time.swap(true, Ordering::Relaxed) {
            return;
        }
        // The task of the timers must not keep the drivers alive.
        let drivers = Arc::downgrade(&self.0);
        let keep = self.0.timers.clone().keep(
            self.0.active.closing.clone(),
            // A closing host launches nothing; the next one has the same timers.
            move |run| {
                let Some(drivers) = drivers.upgrade().map(Self) else { return };
                // It may have been answered and have ended long before its time was up.
                if drivers.0.books.record(run).is_ok_and(|record| record.status.is_terminal()) {
                    return;
                }
                drop(drivers.launch(run));
            },
        );
        self.0.tasks.spawn(keep);
    }

    /// The run's driver; a new one when it has none.
    pub(crate) fn launch(&self, run: &RunId) -> Result<LaunchedDriver, Refusal> {
        self.launch_with(run, CancellationToken::new(), &mut None)
    }

    /// The order is taken by a new driver, and left where it is when there is one already.
    fn launch_with(
        &self,
        run: &RunId,
        cancel: CancellationToken,
        order: &mut Option<PendingCommand>,
    ) -> Result<LaunchedDriver, Refusal> {
        let inner = &self.0;
        let mut runs = inner.active.runs.lock();
        if let Some(active) = runs.get(run) {
            return Ok(LaunchedDriver { active: active.clone(), is_new: false });
        }
        // Under the same lock as a shutdown's look at the remaining tasks.
        if inner.active.closing.is_cancelled() {
            return Err(Refusal::new(RefusalCode::TryLater, "the host is shutting down"));
        }
        let progress = Progress::new();
        let (orders, inbox) = inbox();
        let active = Active { cancel, live: LiveLog::new(), progress: progress.clone(), orders };
        runs.insert(run.clone(), active.clone());
        let driver = Driver {
            books: inner.books.clone(),
            environment: inner.environment.clone(),
            config: self.config(),
            run: run.clone(),
            live: active.live.clone(),
            cancel: active.cancel.clone(),
            closing: inner.active.closing.clone(),
            order: Mutex::new(order.take()),
            timers: inner.timers.clone(),
            inbox,
        };
        let seat = DriverGuard { run: run.clone(), active: inner.active.clone(), live: active.live.clone(), progress };
        inner.tasks.spawn(work(driver, seat, self.clone()));
        inner.active.launches.send_modify(|count| *count += 1);
        Ok(LaunchedDriver { active, is_new: true })
    }

    /// Cancels the run and waits until its outcome is durable. A run without a driver gets one for that.
    pub(crate) async fn cancel(&self, run: &RunId) -> Result<DriverOutcome, Refusal> {
        loop {
            // A new driver must find itself cancelled from its first moment.
            let token = CancellationToken::new();
            token.cancel();
            let LaunchedDriver { active, .. } = self.launch_with(run, token, &mut None)?;
            active.cancel.cancel();
            match active.progress.settled().await {
                // It was parking already and has not seen the cancel: once it is gone, the next driver will.
                DriverOutcome::Parked(_) => drop(active.progress.gone().await),
                outcome => return Ok(outcome),
            }
        }
    }

    /// Has a driver carry out an order, and gives its reply when that is durable.
    pub(crate) async fn order(
        &self,
        run: &RunId,
        command: Command,
        fingerprint: ContentHash,
    ) -> Result<Value, Refusal> {
        let (done, reply) = oneshot::channel();
        let mut order = Some(PendingCommand { command: command.clone(), fingerprint, done });
        loop {
            command.fits(&self.0.books.record(run)?)?;
            let LaunchedDriver { active, is_new } = self.launch_with(run, CancellationToken::new(), &mut order)?;
            if is_new {
                break;
            }
            // The driver that asked is not gone yet, or another order came first. Which of the two is in the record.
            tokio::time::timeout(STOP_GRACE, active.progress.gone()).await.ok();
        }
        reply.await.map_err(|_| vanished())?
    }

    /// Has the run's driver take a message while it works, and gives its reply when that is durable. A run without a
    /// driver gets one, which takes the run up as after a restart.
    pub(crate) async fn tell(&self, run: &RunId, command: Command, fingerprint: ContentHash) -> Result<Value, Refusal> {
        loop {
            command.fits(&self.0.books.record(run)?)?;
            let LaunchedDriver { active, .. } = self.launch(run)?;
            let (done, mut reply) = oneshot::channel();
            let order = PendingCommand { command: command.clone(), fingerprint, done };
            let settled = async {
                if active.orders.send(order).await.is_ok()
                    && let Ok(reply) = (&mut reply).await
                {
                    return Err(reply);
                }
                Ok(active.progress.settled().await)
            };
            let outcome = tokio::select! {
                biased;
                outcome = settled => outcome,
                outcome = active.progress.settled() => Ok(outcome),
            };
            match (outcome, reply.try_recv()) {
                (Err(reply), _) | (Ok(_), Ok(reply)) => return reply,
                (Ok(DriverOutcome::Suspended { refusal, .. }), Err(_)) => return Err(refusal),
                // It parked or ended without having taken the message. Which of the two is in the record.
                (Ok(_), Err(_)) => drop(tokio::time::timeout(STOP_GRACE, active.progress.gone()).await),
            }
        }
    }

    /// Whether a timer will take the run up.
    pub(crate) fn will_take_up(&self, run: &RunId) -> bool {
        self.0.timers.has(run)
    }

    /// How far the run's driver is, when it has one.
    pub(crate) fn progress(&self, run: &RunId) -> Option<Arc<Progress>> {
        self.0.active.runs.lock().get(run).map(|active| active.progress.clone())
    }

    /// Stops all drivers at a durable point.
    pub(crate) async fn shutdown(&self) {
        {
            let _runs = self.0.active.runs.lock();
            self.0.active.closing.cancel();
            self.0.tasks.close();
        }
        self.0.tasks.wait().await;
    }
}

/// A driver's place among the drivers. Given up when the driver ends, however it ends.
struct DriverGuard {
    run: RunId,
    active: Arc<ActiveRuns>,
    live: Arc<LiveLog>,
    progress: Arc<Progress>,
}

impl Drop for DriverGuard {
    fn drop(&mut self) {
        // Removed from the map first, so that those who hear of the end find no driver.
        self.active.runs.lock().remove(&self.run);
        self.live.close();
        self.progress.end(|| DriverOutcome::Suspended { refusal: vanished(), again: false });
    }
}

async fn work(driver: Driver, seat: DriverGuard, drivers: Drivers) {
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
    match &outcome {
        DriverOutcome::Suspended { refusal, again } => {
            let reason = refusal.reason.clone();
            seat.live.publish_hint(LiveEvent::Suspended { at: clock.now(), reason });
            if *again {
                drivers.take_up_after(DISK_WAIT, seat.run.clone());
            }
        }
        DriverOutcome::Parked(record) => {
            if let Some(waiting) = &record.waiting {
                drivers.take_up_at_the_end_of(waiting, &seat.run);
            }
        }
        DriverOutcome::Finished(_) => drivers.0.timers.forget(&seat.run),
    }
    let is_over = matches!(outcome, DriverOutcome::Finished(_));
    seat.progress.settle(outcome);
    if let Some(journal) = journal {
        let trace = &journal.state().trace;
        let environment = &drivers.0.environment;
        let heard =
            async { if is_over { environment.finished(trace).await } else { environment.stepped(trace).await } };
        // A run that waits and is cancelled does not wait for who only listens.
        let heard = async {
            tokio::select! {
                biased;
                () = driver.cancel.cancelled(), if !is_over => {}
                () = heard => {}
            }
        };
        if tokio::time::timeout(HEARING, heard).await.is_err() {
            tracing::warn!(run = %seat.run, "the environment was too slow to hear of the end of a run");
        }
    }
}

fn vanished() -> Refusal {
    Refusal::new(RefusalCode::Failed, "the run's driver broke off; the run is as it was last stored")
        .with_remedy("start the host again to take it up, or cancel it")
}

//! The progress of a driver, for the commands that wait for it.
//!
//! The first to wait is woken first. A `watch` channel wakes in an order of its own, and two commands that wait for the
//! same driver would be applied in an order that no seed decides (SPEC SIM-1).

use std::sync::Arc;

use base::Refusal;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::record::RunRecord;

/// How a driver leaves its run.
#[derive(Debug, Clone)]
pub(crate) enum DriverOutcome {
    /// The run is over, and that is durable.
    Finished(Box<RunRecord>),
    /// The run waits for people, and that is durable.
    Parked(Box<RunRecord>),
    /// The run is as it was last durable, and has no driver. `again`: it will be tried again in a while.
    Suspended { refusal: Refusal, again: bool },
}

/// How far a driver is.
#[derive(Debug, Clone)]
pub(crate) enum Phase {
    Driving,
    /// The outcome of the run is durable.
    Settled(DriverOutcome),
    /// The environment has heard of it too, and the driver is no more.
    Gone(DriverOutcome),
}

/// The phase of one driver.
#[derive(Debug)]
pub(crate) struct Progress {
    phase: Mutex<Phase>,
    moved: Notify,
}

impl Progress {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { phase: Mutex::new(Phase::Driving), moved: Notify::new() })
    }

    pub(crate) fn settle(&self, outcome: DriverOutcome) {
        *self.phase.lock() = Phase::Settled(outcome);
        self.moved.notify_waiters();
    }

    /// The driver has ended; `otherwise` is its outcome if it left none.
    pub(crate) fn end(&self, otherwise: impl FnOnce() -> DriverOutcome) {
        {
            let mut phase = self.phase.lock();
            *phase = Phase::Gone(match &*phase {
                Phase::Settled(outcome) | Phase::Gone(outcome) => outcome.clone(),
                Phase::Driving => otherwise(),
            });
        }
        self.moved.notify_waiters();
    }

    /// The outcome of the run, as soon as it is durable.
    pub(crate) async fn settled(&self) -> DriverOutcome {
        self.wait(|phase| match phase {
            Phase::Driving => None,
            Phase::Settled(outcome) | Phase::Gone(outcome) => Some(outcome.clone()),
        })
        .await
    }

    /// The outcome of the run, once the driver has ended.
    pub(crate) async fn gone(&self) -> DriverOutcome {
        self.wait(|phase| match phase {
            Phase::Driving | Phase::Settled(_) => None,
            Phase::Gone(outcome) => Some(outcome.clone()),
        })
        .await
    }

    async fn wait(&self, reached: impl Fn(&Phase) -> Option<DriverOutcome>) -> DriverOutcome {
        loop {
            // Before the look, so that a change in between wakes it.
            let moved = self.moved.notified();
            if let Some(outcome) = reached(&self.phase.lock()) {
                return outcome;
            }
            moved.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use base::{Refusal, RefusalCode};

    use super::*;

    fn suspended(reason: &str) -> DriverOutcome {
        DriverOutcome::Suspended { refusal: Refusal::new(RefusalCode::TryLater, reason), again: false }
    }

    fn reason(outcome: &DriverOutcome) -> &str {
        match outcome {
            DriverOutcome::Suspended { refusal, .. } => &refusal.reason,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn waiters_are_woken_in_the_order_in_which_they_came() {
        let progress = Progress::new();
        let woken: Arc<Mutex<Vec<usize>>> = Arc::default();
        let waiting: Vec<_> = (0..50)
            .map(|waiter| {
                let (progress, woken) = (progress.clone(), woken.clone());
                tokio::spawn(async move {
                    progress.settled().await;
                    woken.lock().push(waiter);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        progress.settle(suspended("a"));
        for waiter in waiting {
            waiter.await.unwrap();
        }
        assert_eq!(*woken.lock(), (0..50).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn everybody_hears_of_the_end_and_what_was_settled_stays() {
        let progress = Progress::new();
        progress.settle(suspended("settled"));
        assert!(tokio::time::timeout(std::time::Duration::from_millis(1), progress.gone()).await.is_err());
        progress.end(|| suspended("vanished"));
        assert_eq!(reason(&progress.gone().await), "settled");
        assert_eq!(reason(&progress.settled().await), "settled");
        let silent = Progress::new();
        silent.end(|| suspended("vanished"));
        assert_eq!(reason(&silent.settled().await), "vanished");
    }
}

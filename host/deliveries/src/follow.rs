//! Following signals: from a position, or, for a new follower, first those of runs that still wait and then new ones.
//!
//! Independent of the follower. Works for a follower that is slow or away for weeks: each read takes one page of the
//! table, and signals answered in the meantime are skipped.

use std::collections::VecDeque;

use base::Refusal;
use serde::{Deserialize, Serialize};
use signals::{Signal, SignalBus};
use tokio::sync::watch;

use crate::waiting::WaitingSignals;

/// Signals read from the store at a time.
const PAGE: usize = 100;

/// How far a consumer has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Position {
    /// All signals up to this id are done, except for the opening.
    pub after: u64,
    /// The opening is not over: of the signals up to `after` whose runs wait, those up to this one are done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<u64>,
}

impl Position {
    /// The position of a new consumer, with the waiting signals still to come.
    pub fn beginning(signals: &SignalBus) -> Self {
        Self { after: signals.latest(), opening: Some(0) }
    }

    /// All signals up to this id are no longer needed. The rest of an opening is found by the runs that wait.
    pub fn done(&self) -> u64 {
        self.after
    }

    /// The position after a signal.
    pub fn behind(id: u64) -> Self {
        Self { after: id, opening: None }
    }
}

/// The next step of a follower.
#[derive(Debug, Clone, PartialEq)]
pub enum FollowStep {
    /// An earlier signal, whose run still waits.
    Waiting(Signal),
    /// The opening is over; new signals have higher ids than this one.
    Opened(u64),
    /// A new signal in order.
    Signal(Signal),
}

/// Reads signals in order, each once.
pub struct Follower {
    waiting: WaitingSignals,
    wake: watch::Receiver<u64>,
    position: Position,
    /// The rest of the opening, once it is known.
    opening: VecDeque<u64>,
    is_opening_known: bool,
    ready: VecDeque<Signal>,
}

impl Follower {
    pub(crate) fn new(waiting: WaitingSignals, position: Position) -> Self {
        // Subscribed before the first read: signals delivered in between wake the next one.
        let wake = waiting.signals.subscribe();
        Self { waiting, wake, position, opening: VecDeque::new(), is_opening_known: false, ready: VecDeque::new() }
    }

    /// Starts after an id, or at the beginning of an opening.
    #[must_use]
    pub fn from(waiting: WaitingSignals, after: Option<u64>) -> Self {
        let position = after.map_or_else(|| Position::beginning(&waiting.signals), Position::behind);
        Self::new(waiting, position)
    }

    /// The follower's position once its last result is done.
    pub(crate) fn position(&self) -> Position {
        self.position
    }

    /// Waits for the next signal.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn next(&mut self) -> Result<FollowStep, Refusal> {
        loop {
            if let Some(followed) = self.next_ready()? {
                return Ok(followed);
            }
            self.changed().await;
        }
    }

    /// The next signal that is already there.
    pub(crate) fn next_ready(&mut self) -> Result<Option<FollowStep>, Refusal> {
        if let Some(done) = self.position.opening {
            return self.next_waiting(done).map(Some);
        }
        if self.ready.is_empty() {
            self.wake.borrow_and_update();
            self.ready = self.waiting.signals.since(self.position.after, PAGE)?.into();
        }
        let Some(signal) = self.ready.pop_front() else { return Ok(None) };
        self.position = Position::behind(signal.id);
        Ok(Some(FollowStep::Signal(signal)))
    }

    fn next_waiting(&mut self, done: u64) -> Result<FollowStep, Refusal> {
        if !self.is_opening_known {
            let end = self.position.after;
            self.opening = self.waiting.ids()?.into_iter().filter(|id| (done + 1..=end).contains(id)).collect();
            self.is_opening_known = true;
        }
        while let Some(id) = self.opening.front().copied() {
            // It may have been answered since.
            let still = self.waiting.get(id)?;
            self.opening.pop_front();
            self.position.opening = Some(id);
            if let Some(signal) = still {
                return Ok(FollowStep::Waiting(signal));
            }
        }
        self.position.opening = None;
        Ok(FollowStep::Opened(self.position.after))
    }

    /// Returns when there may be more.
    pub(crate) async fn changed(&mut self) {
        // The sender lives as long as this follower, which holds a handle to it.
        if self.wake.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

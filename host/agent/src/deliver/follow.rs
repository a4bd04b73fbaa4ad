//! Following signals: from a position, or, for whoever has none, first those of runs that still wait and then what comes.
//!
//! It must not know who follows. It survives a follower that is slow, or is gone for weeks: what is read is a page of the
//! table, never all of it, and what was answered in the meantime is not told any more.

use std::collections::VecDeque;

use base::Refusal;
use serde::{Deserialize, Serialize};
use signals::{Signal, SignalBus};
use tokio::sync::watch;

use super::waiting::WaitingSignals;

/// Signals read from the store at a time.
const PAGE: usize = 100;

/// How far somebody is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Position {
    /// Everything up to this id is done with, but for the opening.
    pub after: u64,
    /// The opening is not over: of the signals up to `after` whose runs wait, those up to this one are done with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<u64>,
}

impl Position {
    /// Of somebody who begins now and has the waiting ones still to come.
    pub fn beginning(signals: &SignalBus) -> Self {
        Self { after: signals.latest(), opening: Some(0) }
    }

    /// The id up to which nothing is needed any more. What an opening still has to tell is found by the runs that wait.
    pub fn done(&self) -> u64 {
        self.after
    }

    /// Behind a signal.
    pub fn behind(id: u64) -> Self {
        Self { after: id, opening: None }
    }
}

/// What a follower comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Followed {
    /// A signal from before, whose run still waits.
    Waiting(Signal),
    /// These were all; what comes now has higher ids than this one.
    Opened(u64),
    /// A signal.
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
        // Subscribed before the first read: what is delivered in between wakes the next one.
        let wake = waiting.signals.subscribe();
        Self { waiting, wake, position, opening: VecDeque::new(), is_opening_known: false, ready: VecDeque::new() }
    }

    /// From behind an id, or from the beginning of an opening.
    pub(crate) fn from(waiting: WaitingSignals, after: Option<u64>) -> Self {
        let position = after.map_or_else(|| Position::beginning(&waiting.signals), Position::behind);
        Self::new(waiting, position)
    }

    /// Where the follower is when it is done with what it was given last.
    pub(crate) fn position(&self) -> Position {
        self.position
    }

    /// The next signal, when it comes.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn next(&mut self) -> Result<Followed, Refusal> {
        loop {
            if let Some(followed) = self.next_ready()? {
                return Ok(followed);
            }
            self.changed().await;
        }
    }

    /// The next signal that is there already.
    pub(crate) fn next_ready(&mut self) -> Result<Option<Followed>, Refusal> {
        if let Some(done) = self.position.opening {
            return self.next_waiting(done).map(Some);
        }
        if self.ready.is_empty() {
            self.wake.borrow_and_update();
            self.ready = self.waiting.signals.since(self.position.after, PAGE)?.into();
        }
        let Some(signal) = self.ready.pop_front() else { return Ok(None) };
        self.position = Position::behind(signal.id);
        Ok(Some(Followed::Signal(signal)))
    }

    fn next_waiting(&mut self, done: u64) -> Result<Followed, Refusal> {
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
                return Ok(Followed::Waiting(signal));
            }
        }
        self.position.opening = None;
        Ok(Followed::Opened(self.position.after))
    }

    /// Returns when there may be more.
    pub(crate) async fn changed(&mut self) {
        // Whoever delivers lives as long as this follower: it has a handle of its own to it.
        if self.wake.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

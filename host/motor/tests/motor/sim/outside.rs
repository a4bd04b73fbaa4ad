//! The world outside the simulated host: replies, effects and commands. No crash takes it away.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use base::{AgentName, ErrorCode, Refusal, RefusalCode, RunId};
use motor::LiveEvent;
use serde_json::Value;
use signals::Signal;

/// A call of a tool that had its effect.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub run: RunId,
    pub call_id: String,
    pub tool: String,
    pub key: String,
    pub arguments: Value,
    /// Whether its tool may be called again without asking.
    pub is_repeatable: bool,
}

/// A command. Each has a mark of its own that the history keeps.
#[derive(Debug, Clone)]
pub enum Order {
    Start {
        agent: AgentName,
        key: String,
    },
    Respond {
        question: Option<String>,
    },
    Approve {
        approval: Option<String>,
        grant: bool,
        /// It names another action than the one that was shown.
        is_astray: bool,
    },
    Retry,
    Cancel,
}

/// The host's reply to a command.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    Run(RunId),
    Done,
    Attempt(u32),
}

/// An order that was given.
#[derive(Debug, Clone)]
pub struct Issued {
    /// In the history: the words of an answer, or when the owner consented.
    pub mark: String,
    pub run: RunId,
    pub order: Order,
    pub told: Option<Result<Told, Refusal>>,
    /// From the order to the word.
    pub took: Duration,
    /// The disk had no room at some time in between, or might have had none.
    pub short_of_room: bool,
}

impl Issued {
    /// Whether the host promised that nothing came of it. After a failure of its disk it cannot know.
    pub fn is_refused(&self) -> bool {
        let unclear =
            [RefusalCode::StorageFailed, RefusalCode::OutcomeUnknown, RefusalCode::TryLater, RefusalCode::Failed];
        matches!(&self.told, Some(Err(refusal)) if !unclear.contains(&refusal.code))
    }

    pub fn is_done(&self) -> bool {
        matches!(self.told, Some(Ok(_)))
    }
}

#[derive(Debug, Default)]
pub struct Known {
    pub deliveries: Vec<Delivery>,
    pub orders: Vec<Issued>,
    pub signals: Vec<Signal>,
    pub shown: Vec<(RunId, LiveEvent)>,
    /// Everything in the order in which it happened, for people: of two who wait for the same, tokio wakes either first.
    pub diary: Vec<String>,
    /// By how much wall clocks were set forward, in all.
    pub ahead: std::time::Duration,
    /// The violations that were found.
    pub broken: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Outside(Mutex<Known>);

impl Outside {
    pub fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap()
    }

    pub fn note(&self, line: String) {
        self.known().diary.push(line);
    }

    pub fn broken(&self, what: String) {
        let mut known = self.known();
        known.diary.push(format!("BROKEN: {what}"));
        known.broken.push(what);
    }

    pub fn told(&self, order: usize, told: Result<Told, Refusal>, took: Duration, short_of_room: bool) {
        let mut known = self.known();
        let said = match &told {
            Ok(told) => format!("{told:?}"),
            Err(refusal) => format!("{:?}: {}", refusal.code, refusal.reason),
        };
        known.diary.push(format!("order {order}: {said}"));
        let issued = &mut known.orders[order];
        issued.told = Some(told);
        issued.took = took;
        issued.short_of_room |= short_of_room;
    }

    pub fn deliver(&self, delivery: Delivery) {
        let mut known = self.known();
        known.diary.push(format!("{} {} {} {}", delivery.tool, delivery.call_id, delivery.key, delivery.arguments));
        known.deliveries.push(delivery);
    }
}

/// Failures that tools give.
pub const CODES: [ErrorCode; 4] =
    [ErrorCode::NotFound, ErrorCode::ExecutionError, ErrorCode::NetworkBlocked, ErrorCode::AuthFailed];

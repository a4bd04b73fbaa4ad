//! The slots of a listener: how many connections ask something at once, and how many wait for something that takes long.
//!
//! Both have bounds of their own, so that a thousand watchers leave room for the owner's commands, and clients that connect
//! and say nothing do not end a watch. A connection begins with a slot for requests. It exchanges it for a slot for watchers
//! when its answer is a stream of events, or takes longer than [`LONG_ANSWER`].

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use base::{Refusal, RefusalCode};
use parking_lot::Mutex;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::reply::ErrorReply;

/// The descriptors that a host asks the system for. More would only slow down child processes that close them all.
const MAX_DESCRIPTORS: u64 = 8_192;
/// Descriptors left for the state, components, workspaces, requests of runs and child processes.
const RESERVED_DESCRIPTORS: u64 = 256;
/// Listeners of a host: the home's socket and a port.
const LISTENERS: u64 = 2;
/// Watchers of a listener, where descriptors allow so many.
const MAX_WATCHERS: usize = 2_048;
/// Watchers of a listener, however few descriptors there are.
const MIN_WATCHERS: usize = 64;
/// An answer that takes longer gives its slot for requests to another connection.
pub(super) const LONG_ANSWER: Duration = Duration::from_secs(1);

/// The bounds of one listener.
#[derive(Debug, Clone, Copy)]
pub(super) struct SocketLimits {
    /// Connections that ask something, or have yet to ask. Default 256.
    pub served: usize,
    /// Connections with a stream of events, or with an answer that takes longer than a second. Default 2,048, or as many as
    /// the process has descriptors for, at least 64.
    pub watching: usize,
    /// Connections that wait for a slot. More stay in the queue of the kernel. Default 64.
    pub waiting: usize,
    /// How long a client may take to send the head of a request, also the next one of a connection. Default 10 s.
    pub head: Duration,
    /// How long a connection waits for a slot before it is refused: longer than connections without a request last.
    /// Default 15 s.
    pub wait: Duration,
}

impl Default for SocketLimits {
    fn default() -> Self {
        let (head, wait) = (Duration::from_secs(10), Duration::from_secs(15));
        Self { served: 256, watching: MAX_WATCHERS, waiting: 64, head, wait }
    }
}

impl SocketLimits {
    /// The defaults, with as many watchers as a process with so many descriptors can have.
    pub(super) fn fitting(descriptors: u64) -> Self {
        let limits = Self::default();
        let requests = LISTENERS * (limits.served + limits.waiting) as u64;
        let left = descriptors.saturating_sub(RESERVED_DESCRIPTORS + requests) / LISTENERS;
        let watching = usize::try_from(left).unwrap_or(MAX_WATCHERS).clamp(MIN_WATCHERS, MAX_WATCHERS);
        Self { watching, ..limits }
    }
}

/// Raises the soft limit of open descriptors towards the hard one, and returns the limit in force.
pub(super) fn raise_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    // `None` is no limit.
    let current = limit.current.unwrap_or(u64::MAX);
    let wanted = limit.maximum.map_or(MAX_DESCRIPTORS, |hard| hard.min(MAX_DESCRIPTORS));
    if current >= wanted {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum }) {
        Ok(()) => wanted,
        Err(error) => {
            tracing::warn!(%error, "the limit of open descriptors cannot be raised: fewer watchers are served");
            current
        }
    }
}

/// The slots of one listener.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) limits: SocketLimits,
    served: Arc<Semaphore>,
    watching: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

/// A connection that was accepted and waits for a slot, until dropped.
pub(super) struct WaitingPlace(#[expect(dead_code, reason = "held")] Option<OwnedSemaphorePermit>);

impl Slots {
    pub(super) fn new(limits: SocketLimits) -> Arc<Self> {
        let slots = |count| Arc::new(Semaphore::new(count));
        let (served, watching, waiting) = (slots(limits.served), slots(limits.watching), slots(limits.waiting));
        Arc::new(Self { limits, served, watching, waiting })
    }

    /// Waits until another connection may be accepted.
    pub(super) async fn place(&self) -> WaitingPlace {
        // The semaphores are never closed.
        WaitingPlace(self.waiting.clone().acquire_owned().await.ok())
    }

    /// Waits for a slot for requests. `None` if there is none in time.
    pub(super) async fn enter(self: &Arc<Self>) -> Option<ConnectionSlot> {
        let slot = tokio::time::timeout(self.limits.wait, self.served.clone().acquire_owned()).await.ok()?.ok()?;
        Some(ConnectionSlot { slots: self.clone(), held: Arc::new(Mutex::new(Held::Request(slot))) })
    }

    /// Connections that ask something, and connections that watch.
    pub(super) fn open(&self) -> (usize, usize) {
        let taken = |all: usize, slots: &Semaphore| all.saturating_sub(slots.available_permits());
        (taken(self.limits.served, &self.served), taken(self.limits.watching, &self.watching))
    }

    /// The refusal of a connection without a slot.
    pub(super) fn full(&self) -> ErrorReply {
        no_slot(format!("the host has {} connections open, as many as it takes", self.limits.served))
    }
}

fn no_slot(reason: String) -> ErrorReply {
    let refusal = Refusal::new(RefusalCode::TryLater, reason);
    ErrorReply::from(refusal.with_remedy("end commands that watch runs or signals, and try again"))
}

/// The slot of one connection, which has one request at a time.
#[derive(Debug, Clone)]
pub(super) struct ConnectionSlot {
    slots: Arc<Slots>,
    held: Arc<Mutex<Held>>,
}

/// The permit is given back when it is dropped.
#[derive(Debug)]
enum Held {
    Request(#[expect(dead_code, reason = "held")] OwnedSemaphorePermit),
    Watch(#[expect(dead_code, reason = "held")] OwnedSemaphorePermit),
}

impl ConnectionSlot {
    /// The answer of a request, within the bounds of its kind.
    pub(super) async fn hold(
        self,
        answering: impl Future<Output = Result<Response, Infallible>>,
    ) -> Result<Response, Infallible> {
        let mut answering = pin!(answering);
        let answer = match tokio::time::timeout(LONG_ANSWER, &mut answering).await {
            Ok(answer) => answer?,
            Err(_) => {
                // Without a free slot for watchers it keeps the other one.
                self.watch();
                answering.await?
            }
        };
        Ok(if is_stream(&answer) {
            if self.watch() { answer } else { self.too_many_watchers() }
        } else if self.ask() {
            answer
        } else {
            last(answer)
        })
    }

    /// Makes this a connection that watches. False if there is no slot.
    fn watch(&self) -> bool {
        let mut held = self.held.lock();
        if matches!(*held, Held::Request(_)) {
            let Ok(slot) = self.slots.watching.clone().try_acquire_owned() else { return false };
            *held = Held::Watch(slot);
        }
        true
    }

    /// Makes this a connection that asks again. False if there is no slot.
    fn ask(&self) -> bool {
        let mut held = self.held.lock();
        if matches!(*held, Held::Watch(_)) {
            let Ok(slot) = self.slots.served.clone().try_acquire_owned() else { return false };
            *held = Held::Request(slot);
        }
        true
    }

    fn too_many_watchers(&self) -> Response {
        let most = self.slots.limits.watching;
        no_slot(format!("{most} connections watch runs or signals, as many as the host takes")).into_response()
    }
}

/// The answer as the last of its connection.
fn last(mut answer: Response) -> Response {
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

fn is_stream(answer: &Response) -> bool {
    answer.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_watchers_as_there_are_descriptors_for() {
        for (descriptors, expected) in
            [(0, 64), (256, 64), (1_024, 64), (1_296, 200), (4_096, 1_600), (8_192, 2_048), (u64::MAX, 2_048)]
        {
            let limits = SocketLimits::fitting(descriptors);
            assert_eq!((limits.served, limits.watching), (256, expected), "{descriptors}");
        }
    }

    #[test]
    fn the_limit_of_descriptors_is_raised_as_far_as_allowed() {
        let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        assert!(raise_descriptors() >= hard.min(MAX_DESCRIPTORS));
        assert!(getrlimit(Resource::Nofile).current.is_none_or(|soft| soft >= hard.min(MAX_DESCRIPTORS)));
    }
}

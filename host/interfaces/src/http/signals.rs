//! Signals: `/v1/signals`.

use std::collections::VecDeque;
use std::convert::Infallible;

use agent::Host;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::Event;
use futures_util::{Stream, StreamExt as _, stream};
use serde::Deserialize;
use signals::Signal;
use tokio::sync::watch;

use super::events::{event, last_event_id, sse};
use super::reply::{Failure, Reply};
use super::{Door, Query};

/// Signals in one answer, at most.
const MOST: usize = 1_000;
/// Signals read from the store at a time while following.
const PAGE: usize = 100;

/// Which signals.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Range {
    /// Those with a higher id. Default 0: from the first.
    #[serde(default)]
    after: u64,
    /// At most so many. Default 100.
    #[serde(default = "default_limit")]
    limit: usize,
}

fn default_limit() -> usize {
    100
}

pub(super) async fn list(State(door): State<Door>, Query(range): Query<Range>) -> Reply<Vec<Signal>> {
    Ok(Json(door.host.signals(range.after, range.limit.min(MOST))?))
}

/// Where to begin.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct From {
    #[serde(default)]
    after: u64,
}

/// Signals as they are delivered, at least once, in order. `Last-Event-ID` goes before `after`.
pub(super) async fn events(
    State(door): State<Door>,
    Query(from): Query<From>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Failure> {
    let after = last_event_id(&headers)?.unwrap_or(from.after);
    // Subscribed before the first read: what is delivered in between wakes the next read.
    let following = Following { wake: door.host.subscribe_signals(), host: door.host, after, ready: VecDeque::new() };
    let stream = stream::unfold(following, |mut following| async move {
        let signal = following.next().await?;
        Some((Ok(event(Some(signal.id), &signal)), following))
    });
    Ok(sse(stream.take_until(door.closing.cancelled_owned())))
}

struct Following {
    host: Host,
    wake: watch::Receiver<u64>,
    after: u64,
    ready: VecDeque<Signal>,
}

impl Following {
    async fn next(&mut self) -> Option<Signal> {
        loop {
            if let Some(signal) = self.ready.pop_front() {
                self.after = signal.id;
                return Some(signal);
            }
            self.wake.borrow_and_update();
            match self.host.signals(self.after, PAGE) {
                Ok(page) if page.is_empty() => self.wake.changed().await.ok()?,
                Ok(page) => self.ready = page.into(),
                Err(refusal) => {
                    tracing::warn!(%refusal, "signals cannot be read: the stream ends");
                    return None;
                }
            }
        }
    }
}

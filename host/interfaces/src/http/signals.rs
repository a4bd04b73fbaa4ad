//! Signals: `/v1/signals`.

use std::convert::Infallible;

use agent::{FollowStep, Follower};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::Event;
use base::Refusal;
use futures_util::{Stream, StreamExt as _, stream};
use serde::Deserialize;
use signals::Signal;

use super::events::{event, last_event_id, sse};
use super::reply::{ApiResult, ErrorReply};
use super::{ApiState, Query};

/// Signals in one answer, at most.
const MAX_SIGNALS: usize = 1_000;

/// The signals to list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SignalRange {
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

pub(super) async fn list(State(door): State<ApiState>, Query(range): Query<SignalRange>) -> ApiResult<Vec<Signal>> {
    let signals = door.host.signals.since(range.after, range.limit.min(MAX_SIGNALS));
    Ok(Json(signals.map_err(Refusal::from)?))
}

/// The signals of runs that still wait.
pub(super) async fn waiting(State(door): State<ApiState>, Query(range): Query<SignalRange>) -> ApiResult<Vec<Signal>> {
    Ok(Json(door.host.waiting.since(range.after, range.limit.min(MAX_SIGNALS))?))
}

/// Where the stream begins.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct From {
    #[serde(default)]
    after: Option<u64>,
}

/// Signals as they are delivered, at least once, in order. `Last-Event-ID` goes before `after`.
///
/// Without either, the signals of runs that still wait come first. These events have no id of their own: their ids are
/// lower than where the stream begins, and a client that came back with one would get everything since. After them an
/// event without data tells where the stream begins.
pub(super) async fn events(
    State(door): State<ApiState>,
    Query(from): Query<From>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ErrorReply> {
    let follower = Follower::from(door.host.waiting.clone(), last_event_id(&headers)?.or(from.after));
    let stream = stream::unfold(follower, |mut follower| async move {
        match follower.next().await {
            Ok(followed) => Some((Ok(shown(&followed)), follower)),
            Err(refusal) => {
                tracing::warn!(%refusal, "signals cannot be read: the stream ends");
                None
            }
        }
    });
    Ok(sse(stream.take_until(door.closing.cancelled_owned())))
}

fn shown(followed: &FollowStep) -> Event {
    match followed {
        FollowStep::Waiting(signal) => event(None, signal),
        FollowStep::Opened(after) => Event::default().id(after.to_string()),
        FollowStep::Signal(signal) => event(Some(signal.id), signal),
    }
}

//! Signals: `/v1/signals`.

use std::convert::Infallible;

use agent::{FollowStep, Follower};
use axum::Json;
use axum::extract::State;
use axum::response::sse::Event;
use base::Refusal;
use futures_util::{Stream, StreamExt as _, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use signals::Signal;

use super::events::{EventStream, LastEventId, event};
use super::reply::{ApiResult, ErrorReply};
use super::scope::{Access, Reader};
use super::{ApiState, Query};

/// Signals in one answer, at most.
const MAX_SIGNALS: usize = 1_000;

/// The signals to list.
#[derive(Debug, Deserialize, JsonSchema)]
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

pub(super) async fn list(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Query(range): Query<SignalRange>,
) -> ApiResult<Vec<Signal>> {
    let read = |after, limit| api.host.signals.since(after, limit).map_err(Refusal::from);
    Ok(Json(within(&access, &range, read)?))
}

/// The signals of runs that still wait.
pub(super) async fn waiting(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Query(range): Query<SignalRange>,
) -> ApiResult<Vec<Signal>> {
    Ok(Json(within(&access, &range, |after, limit| api.host.waiting.since(after, limit))?))
}

/// The signals of a range that the caller may see, read in pages.
fn within(
    access: &Access,
    range: &SignalRange,
    read: impl Fn(u64, usize) -> Result<Vec<Signal>, Refusal>,
) -> Result<Vec<Signal>, Refusal> {
    let limit = range.limit.min(MAX_SIGNALS);
    let (mut after, mut found) = (range.after, Vec::new());
    while found.len() < limit {
        let page = read(after, limit)?;
        let Some(last) = page.last() else { break };
        after = last.id;
        found.extend(page.into_iter().filter(|signal| access.sees(&signal.agent)));
    }
    found.truncate(limit);
    Ok(found)
}

/// Where the stream begins.
#[derive(Debug, Deserialize, JsonSchema)]
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
    Reader(access): Reader,
    State(api): State<ApiState>,
    Query(from): Query<From>,
    LastEventId(seen): LastEventId,
) -> Result<EventStream<Signal, impl Stream<Item = Result<Event, Infallible>> + Send>, ErrorReply> {
    let follower = Follower::from(api.host.waiting.clone(), seen.or(from.after));
    let stream = stream::unfold((follower, access), |(mut follower, access)| async move {
        loop {
            match follower.next().await {
                Ok(FollowStep::Waiting(signal) | FollowStep::Signal(signal)) if !access.sees(&signal.agent) => {}
                Ok(followed) => return Some((Ok(shown(&followed)), (follower, access))),
                Err(refusal) => {
                    tracing::warn!(%refusal, "signals cannot be read: the stream ends");
                    return None;
                }
            }
        }
    });
    Ok(EventStream::new(stream.take_until(api.closing.cancelled_owned())))
}

fn shown(followed: &FollowStep) -> Event {
    match followed {
        FollowStep::Waiting(signal) => event(None, signal),
        FollowStep::Opened(after) => Event::default().id(after.to_string()),
        FollowStep::Signal(signal) => event(Some(signal.id), signal),
    }
}

//! Server-sent events: their common parts.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse, Response, Sse};
use base::{Refusal, RefusalCode};
use futures_util::Stream;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::ApiState;
use super::openapi::{Answer, Argument, Operation};
use super::reply::ErrorReply;

/// Silence after which a comment is sent, so that both sides notice if the other is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A stream of events as an answer.
pub(super) fn sse<S>(stream: S) -> Sse<impl Stream<Item = Result<Event, Infallible>>>
where
    S: Stream<Item = Result<Event, Infallible>> + Send + 'static,
{
    Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

/// A stream of events that can be described. The data of each is a `T` in JSON.
pub(super) struct EventStream<T, S> {
    events: S,
    data: PhantomData<fn() -> T>,
}

impl<T, S> EventStream<T, S> {
    pub(super) fn new(events: S) -> Self {
        Self { events, data: PhantomData }
    }
}

impl<T, S> IntoResponse for EventStream<T, S>
where
    S: Stream<Item = Result<Event, Infallible>> + Send + 'static,
{
    fn into_response(self) -> Response {
        sse(self.events).into_response()
    }
}

impl<T: JsonSchema, S> Answer for EventStream<T, S> {
    fn describe(operation: &mut Operation<'_>) {
        operation.streams::<T>();
    }
}

/// An event with a value of ours in it. Such values always serialise: their keys are strings.
pub(super) fn event(id: Option<u64>, value: &impl Serialize) -> Event {
    let event = Event::default().data(serde_json::to_string(value).unwrap_or_default());
    match id {
        Some(id) => event.id(id.to_string()),
        None => event,
    }
}

/// The id after which a client wants to go on, if it names one.
pub(super) struct LastEventId(pub(super) Option<u64>);

impl FromRequestParts<ApiState> for LastEventId {
    type Rejection = ErrorReply;

    async fn from_request_parts(parts: &mut Parts, _: &ApiState) -> Result<Self, ErrorReply> {
        last_event_id(&parts.headers).map(Self)
    }
}

impl Argument for LastEventId {
    fn describe(operation: &mut Operation<'_>) {
        let about = "The id of the last event that the client has: the stream begins after it";
        operation.header("Last-Event-ID", about, &json!({ "type": "integer", "format": "uint64", "minimum": 0 }));
    }
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, ErrorReply> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let id = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    id.map(Some).ok_or_else(|| {
        ErrorReply::from(Refusal::new(
            RefusalCode::InvalidRequest,
            "`Last-Event-ID` is not an id of this stream: send a number",
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_goes_on_where_it_was() {
        let headers = |text: &str| HeaderMap::from_iter([("last-event-id".parse().unwrap(), text.parse().unwrap())]);
        assert_eq!(last_event_id(&HeaderMap::new()).unwrap(), None);
        assert_eq!(last_event_id(&headers("42")).unwrap(), Some(42));
        for text in ["", "-1", "x", "99999999999999999999999"] {
            assert!(last_event_id(&headers(text)).is_err(), "{text:?}");
        }
    }
}

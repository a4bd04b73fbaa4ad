//! Reads a reply from the connection: server-sent events, or one piece of JSON from endpoints that ignore `stream`.
//!
//! Content types are not trusted: gateways send events as `text/plain`, and JSON as `text/event-stream`.

use base::sse::{Decoder, Event};
use llm::{ChatReply, ModelErrorKind};
use serde_json::Value;

use crate::draft::OnDelta;
use crate::failure::{ProviderFailure, said};
use crate::http::ProviderReply;

/// Puts the events of a reply together.
pub(crate) trait Assembly: Send {
    /// Takes the next event, or a whole body.
    fn take(&mut self, event: &Value, on_delta: OnDelta<'_>) -> Result<(), ProviderFailure>;

    /// Whether the endpoint said why the reply ended: then it is whole, even if the connection breaks.
    fn is_finished(&self) -> bool;

    /// Whether nothing more comes, though the connection may stay open.
    fn is_over(&self) -> bool {
        false
    }

    /// The reply, complete or as far as it came.
    fn finish(self, end: ReplyEnd) -> Result<ChatReply, ProviderFailure>;
}

/// How a reply ended on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyEnd {
    /// The endpoint marked the end, or its body was one whole piece of JSON.
    Marked,
    /// The stream was closed in order.
    Closed,
}

/// Why reading stops before the body ends.
enum Stop {
    Done,
    Failed(ProviderFailure),
}

/// Reads a reply to its end.
pub(crate) async fn receive<A: Assembly>(
    mut reply: ProviderReply,
    mut assembly: A,
    on_delta: OnDelta<'_>,
) -> Result<ChatReply, ProviderFailure> {
    let mut head = Vec::new();
    let events = loop {
        match sniff(&head, reply.is_event_stream()) {
            Some(events) => break events,
            None => match reply.next().await? {
                Some(bytes) => head.extend_from_slice(&bytes),
                // The bytes so far are too short for an event.
                None => break false,
            },
        }
    };
    if !events {
        return whole(reply, head, assembly, on_delta).await;
    }
    let mut decoder = Decoder::default();
    let mut take = |event: Event| -> Result<(), Stop> {
        for value in parse(&event.data)? {
            assembly.take(&value, on_delta).map_err(Stop::Failed)?;
        }
        if assembly.is_over() { Err(Stop::Done) } else { Ok(()) }
    };
    let mut stopped = decoder.push(&head).into_iter().try_for_each(&mut take);
    while stopped.is_ok() {
        stopped = match reply.next().await {
            Ok(Some(bytes)) => decoder.push(&bytes).into_iter().try_for_each(&mut take),
            Ok(None) => break,
            Err(failure) => Err(Stop::Failed(failure)),
        };
    }
    match stopped.and_then(|()| decoder.end().map_or(Ok(()), take)) {
        Ok(()) => assembly.finish(ReplyEnd::Closed),
        Err(Stop::Done) => assembly.finish(ReplyEnd::Marked),
        // The reply itself had ended: only the tail that counts tokens is lost.
        Err(Stop::Failed(_)) if assembly.is_finished() => assembly.finish(ReplyEnd::Marked),
        Err(Stop::Failed(failure)) => Err(failure),
    }
}

/// Whether a body is a stream of events, from its first bytes. `None`: too few of them.
fn sniff(head: &[u8], declared: bool) -> Option<bool> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    match head.first()? {
        b'{' | b'[' => Some(false),
        _ if declared => Some(true),
        _ if head.len() < 6 => None,
        _ => {
            Some([b"data:".as_slice(), b"event:", b"id:", b"retry:", b":"].iter().any(|field| head.starts_with(field)))
        }
    }
}

/// The values in an event's data: one, or one a line where a server forgets the empty line between events.
fn parse(data: &str) -> Result<Vec<Value>, Stop> {
    if data.trim().is_empty() {
        return Ok(Vec::new());
    }
    if let Ok(value) = serde_json::from_str(data) {
        return Ok(vec![value]);
    }
    let mut values = Vec::new();
    for line in data.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line == "[DONE]" {
            return if values.is_empty() { Err(Stop::Done) } else { Ok(values) };
        }
        let malformed = "the endpoint sent an event that is not JSON";
        let value = serde_json::from_str(line);
        values.push(value.map_err(|_| Stop::Failed(ProviderFailure::new(ModelErrorKind::Malformed, malformed)))?);
    }
    Ok(values)
}

async fn whole<A: Assembly>(
    mut reply: ProviderReply,
    mut bytes: Vec<u8>,
    mut assembly: A,
    on_delta: OnDelta<'_>,
) -> Result<ChatReply, ProviderFailure> {
    while let Some(more) = reply.next().await? {
        bytes.extend_from_slice(&more);
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    // Also lines of JSON, and Gemini's array: both are the events of a stream in another wrapping.
    for value in serde_json::Deserializer::from_slice(bytes).into_iter::<Value>() {
        let value = value.map_err(|_| {
            let start = said(&String::from_utf8_lossy(bytes.get(..200).unwrap_or(bytes)));
            ProviderFailure::new(
                ModelErrorKind::Malformed,
                format!("the endpoint answered something that is not JSON: {start}"),
            )
        })?;
        match value {
            Value::Array(values) => values.iter().try_for_each(|value| assembly.take(value, on_delta))?,
            value => assembly.take(&value, on_delta)?,
        }
    }
    assembly.finish(ReplyEnd::Marked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_known_by_its_first_bytes() {
        for (head, declared, expected) in [
            ("", true, None),
            (" \r\n", false, None),
            ("data: {", false, Some(true)),
            ("event: x", false, Some(true)),
            (": ping\n\n", false, Some(true)),
            ("dat", false, None),
            ("dat", true, Some(true)),
            ("{\"a\"", true, Some(false)),
            ("\u{feff}{", true, Some(false)),
            ("<html>", false, Some(false)),
        ] {
            assert_eq!(sniff(head.as_bytes(), declared), expected, "{head:?}");
        }
    }

    #[test]
    fn events_without_an_empty_line_between_them_are_told_apart() {
        let values = |data| parse(data).map_err(|_| ()).map(|values| values.len());
        assert_eq!(values("{\"a\":1}"), Ok(1));
        assert_eq!(values("{\"a\":\n1}"), Ok(1));
        assert_eq!(values("{\"a\":1}\n{\"a\":2}\n[DONE]"), Ok(2));
        assert_eq!(values(" "), Ok(0));
        assert_eq!(values("[DONE]"), Err(()));
        assert_eq!(values("{\"a\":"), Err(()));
    }
}

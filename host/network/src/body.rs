//! Bodies on their way: a request's is gathered within its limit, a response's is decoded, counted, and scrubbed of secrets.
//!
//! Survives endless streams, a gigabyte where a page was expected, decompression bombs, lies about the length, servers that
//! stall, and secrets cut in two by the network (SPEC NET-4, VAULT-3).

mod decode;

use std::error::Error as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, Sleep};
use vault::{RunSecrets, ScrubStream};

use crate::budget::CallBudget;
use crate::connect::GateConnection;
use crate::recorded::Recording;
use crate::trace::OpenTrace;
use crate::values::Collector;
use crate::{GateError, RequestBody};

pub(crate) use decode::Decoder;

/// The connection that a response comes in on. It makes progress only while it is read.
pub(crate) type Http = http1::Connection<TokioIo<Box<dyn GateConnection>>, Full<Bytes>>;

/// The whole body of a request. Placeholders in it can only be found when it is there. Trailers are dropped.
pub(crate) async fn gather(mut body: RequestBody, budget: &CallBudget) -> Result<Bytes, GateError> {
    let mut first = Bytes::new();
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else { continue };
        budget.take(piece.len() as u64)?;
        if first.is_empty() && whole.is_empty() {
            first = piece;
        } else {
            if whole.is_empty() {
                whole.extend_from_slice(&first);
            }
            whole.extend_from_slice(&piece);
        }
    }
    Ok(if whole.is_empty() { first } else { whole.into() })
}

/// When a response has to have come.
pub(crate) struct Patience {
    host: String,
    deadline: Pin<Box<Sleep>>,
    total: Duration,
    between: Option<(Duration, Pin<Box<Sleep>>)>,
}

impl Patience {
    pub(crate) fn new(host: String, deadline: Instant, total: Duration, between: Option<Duration>) -> Self {
        let between = between.map(|time| time.min(total)).map(|time| (time, Box::pin(tokio::time::sleep(time))));
        Self { host, deadline: Box::pin(tokio::time::sleep_until(deadline)), total, between }
    }

    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<GateError> {
        let over = |host: &str, time: Duration| Poll::Ready(timeout(host, time));
        if self.deadline.as_mut().poll(cx).is_ready() {
            return over(&self.host, self.total);
        }
        if let Some((time, sleep)) = &mut self.between
            && sleep.as_mut().poll(cx).is_ready()
        {
            return over(&self.host, *time);
        }
        Poll::Pending
    }

    fn heard(&mut self) {
        if let Some((time, sleep)) = &mut self.between {
            sleep.as_mut().reset(Instant::now() + *time);
        }
    }
}

pub(crate) fn timeout(host: &str, time: Duration) -> GateError {
    GateError::Timeout { host: host.to_owned(), after_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX) }
}

/// The body of a response.
pub(crate) struct ScrubbedBody {
    /// None when it is over, one way or the other.
    source: Option<Source>,
    /// Received bytes that are not decoded yet.
    pending: Bytes,
    decoder: Option<Decoder>,
    scrub: Option<ScrubStream>,
    /// Bytes given out at the end only, when too much was held back (see [`vault::FalseStarts`]).
    kept: Vec<u8>,
    secrets: Arc<RunSecrets>,
    patience: Patience,
    budget: Arc<CallBudget>,
    received: u64,
    decoded: u64,
    trace: Option<OpenTrace>,
    feed: BodyFeed,
}

/// Adds the parts of a response that the guest is given to the run's record of values, and to a recording. A collector that is
/// dropped with it remembers the parts so far.
pub(crate) struct BodyFeed {
    pub(crate) collector: Option<Collector>,
    pub(crate) content_type: Option<String>,
    pub(crate) recording: Option<Recording>,
}

impl BodyFeed {
    fn piece(&mut self, piece: &[u8]) {
        if let Some(collector) = &mut self.collector {
            collector.piece(self.content_type.as_deref(), piece);
        }
        if let Some(recording) = &mut self.recording {
            recording.piece(piece);
        }
    }

    fn end(&mut self) {
        if let Some(collector) = self.collector.take() {
            collector.end();
        }
        if let Some(recording) = self.recording.take() {
            recording.end();
        }
    }
}

struct Source {
    connection: Option<Pin<Box<Http>>>,
    incoming: Incoming,
}

impl ScrubbedBody {
    pub(crate) fn new(
        (connection, incoming): (Option<Pin<Box<Http>>>, Incoming),
        decoder: Option<Decoder>,
        secrets: &Arc<RunSecrets>,
        patience: Patience,
        budget: Arc<CallBudget>,
        feed: BodyFeed,
    ) -> Self {
        let scrub = (!secrets.scrubber().is_empty()).then(|| secrets.stream());
        let source = Some(Source { connection, incoming });
        let (secrets, pending, kept) = (secrets.clone(), Bytes::new(), Vec::new());
        let (received, decoded, trace) = (0, 0, None);
        Self { source, pending, decoder, scrub, kept, secrets, patience, budget, received, decoded, trace, feed }
    }

    /// The trace ends with the body.
    pub(crate) fn traced(mut self, trace: OpenTrace) -> Self {
        self.trace = Some(trace);
        self
    }

    /// The new bytes, ready for the guest; empty if they are held back.
    fn take_in(&mut self) -> Result<Bytes, GateError> {
        let counted = self.received.max(self.decoded);
        let piece = match &mut self.decoder {
            None => std::mem::take(&mut self.pending),
            Some(decoder) => {
                let before = self.pending.len();
                let output = decoder.step(&mut self.pending).map_err(|error| broken(&self.patience.host, &error))?;
                self.received += (before - self.pending.len()) as u64;
                output.into()
            }
        };
        self.decoded += piece.len() as u64;
        self.count(counted)?;
        let Some(scrub) = &mut self.scrub else { return Ok(piece) };
        let scrubbed = scrub.push(&piece);
        if self.secrets.false_starts().are_too_many() {
            self.kept.extend_from_slice(&scrubbed);
            return Ok(Bytes::new());
        }
        Ok(scrubbed.into())
    }

    /// The bytes that were held back.
    fn rest(&mut self) -> Result<Bytes, GateError> {
        let counted = self.received.max(self.decoded);
        let mut rest = Bytes::new();
        // Nothing at all is a complete body, too: answers to `HEAD` and empty ones.
        if let Some(decoder) = self.decoder.take().filter(|_| self.received > 0) {
            rest = decoder.finish().map_err(|error| broken(&self.patience.host, &error))?.into();
        }
        self.decoded += rest.len() as u64;
        self.count(counted)?;
        if let Some(mut scrub) = self.scrub.take() {
            let mut whole = std::mem::take(&mut self.kept);
            whole.extend(scrub.push(&rest));
            whole.extend(scrub.finish());
            rest = whole.into();
        }
        Ok(rest)
    }

    /// Bytes count as they came or as they were decoded, whichever are more.
    fn count(&mut self, before: u64) -> Result<(), GateError> {
        let now = self.received.max(self.decoded);
        self.budget.take(now - before)?;
        if let Some(trace) = &mut self.trace {
            trace.received(now);
        }
        Ok(())
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, GateError>>> {
        loop {
            let Some(source) = &mut self.source else { return Poll::Ready(None) };
            if let Poll::Ready(error) = self.patience.poll_over(cx) {
                return Poll::Ready(Some(Err(error)));
            }
            if self.pending.is_empty() {
                match ready!(source.poll(cx)) {
                    Some(Ok(piece)) => {
                        self.patience.heard();
                        self.pending = piece;
                    }
                    Some(Err(error)) => {
                        let message = described(&error);
                        return Poll::Ready(Some(Err(GateError::Protocol {
                            host: self.patience.host.clone(),
                            message,
                        })));
                    }
                    None => {
                        let rest = self.rest();
                        self.source = None;
                        return Poll::Ready(Some(rest).filter(|rest| !rest.as_ref().is_ok_and(Bytes::is_empty)));
                    }
                }
            }
            match self.take_in() {
                Ok(piece) if piece.is_empty() => {}
                outcome => return Poll::Ready(Some(outcome)),
            }
        }
    }
}

impl Source {
    /// The next piece. Trailers are dropped.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, hyper::Error>>> {
        loop {
            if let Some(connection) = &mut self.connection
                && connection.as_mut().poll(cx).is_ready()
            {
                // Its errors arrive in the body.
                self.connection = None;
            }
            match ready!(Pin::new(&mut self.incoming).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data()
                        && !piece.is_empty()
                    {
                        return Poll::Ready(Some(Ok(piece)));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl Body for ScrubbedBody {
    type Data = Bytes;
    type Error = GateError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, GateError>>> {
        let this = self.get_mut();
        Poll::Ready(match ready!(this.poll_piece(cx)) {
            Some(Ok(piece)) => {
                this.feed.piece(&piece);
                Some(Ok(Frame::data(piece)))
            }
            Some(Err(error)) => {
                let error = error.scrubbed(this.secrets.scrubber());
                if let Some(mut trace) = this.trace.take() {
                    trace.failed(&error);
                }
                this.source = None;
                Some(Err(error))
            }
            None => {
                this.feed.end();
                this.trace = None;
                None
            }
        })
    }
}

fn broken(host: &str, error: &std::io::Error) -> GateError {
    GateError::Protocol { host: host.to_owned(), message: format!("the encoded body is damaged: {error}") }
}

/// An error of the HTTP library with its cause.
pub(crate) fn described(error: &hyper::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

#[cfg(test)]
mod tests {
    use http_body_util::StreamBody;

    use super::*;

    fn body(pieces: &[&'static str], end: Option<GateError>) -> RequestBody {
        let frames = pieces.iter().map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes()))));
        let frames: Vec<_> = frames.chain(end.map(Err)).collect();
        StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync()
    }

    #[tokio::test]
    async fn a_body_is_gathered_within_its_limit() {
        let budget = CallBudget::new("request_bytes", 10);
        for (pieces, expected) in [(&[][..], ""), (&["abc"], "abc"), (&["ab", "", "c", "d"], "abcd")] {
            assert_eq!(gather(body(pieces, None), &budget).await.unwrap(), expected);
        }
        let limit = GateError::Limit { limit: "request_bytes", value: 10 };
        assert_eq!(gather(body(&["abc", "d"], None), &budget).await.unwrap_err(), limit);
        let dropped = gather(body(&[], Some(GateError::RequestBody)), &budget).await;
        assert_eq!(dropped.unwrap_err(), GateError::RequestBody);
    }
}

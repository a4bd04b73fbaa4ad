//! The events of a response, as our own host writes them.

use std::collections::VecDeque;

use axum::body::Body;
use base::sse::Decoder;
pub use base::sse::Event;
use http_body_util::BodyExt as _;

/// The longest event. A tool result is at most some megabytes.
const MAX_BYTES: usize = 64 << 20;

/// The events of a response, as they come.
#[derive(Debug)]
pub struct EventStream {
    body: Body,
    decoder: Decoder,
    ready: VecDeque<Event>,
}

impl EventStream {
    pub(super) fn new(body: Body) -> Self {
        Self { body, decoder: Decoder::default(), ready: VecDeque::new() }
    }

    /// The next event; `None` if the host ended the stream or went away.
    ///
    /// Cancel safe: dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let frame = self.body.frame().await?.ok()?;
            if let Some(data) = frame.data_ref() {
                self.ready.extend(self.decoder.push(data));
            }
            if self.decoder.pending_bytes() > MAX_BYTES {
                return None;
            }
        }
    }
}

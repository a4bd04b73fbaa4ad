//! Server-sent events (WHATWG HTML, section 9.2), as far as our own host writes them.

use std::collections::VecDeque;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;

/// The longest line taken. A tool result is at most some megabytes.
const MOST_BYTES: usize = 64 << 20;

/// One event of a server-sent stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Its id; hints have none.
    pub id: Option<u64>,
    /// Its data, usually one JSON value.
    pub data: String,
}

/// The events of a response, as they come.
#[derive(Debug)]
pub struct EventStream {
    body: Incoming,
    parser: Parser,
    ready: VecDeque<Event>,
}

impl EventStream {
    pub(super) fn new(body: Incoming) -> Self {
        Self { body, parser: Parser::default(), ready: VecDeque::new() }
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
                self.parser.feed(data, &mut self.ready).ok()?;
            }
        }
    }
}

/// Takes bytes as they come and gives events.
#[derive(Debug, Default)]
struct Parser {
    line: Vec<u8>,
    event: Event,
    has_data: bool,
}

/// A line that is longer than any we write.
#[derive(Debug, PartialEq, Eq)]
struct TooLong;

impl Parser {
    fn feed(&mut self, bytes: &[u8], ready: &mut VecDeque<Event>) -> Result<(), TooLong> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if self.line.len() > MOST_BYTES || self.event.data.len() > MOST_BYTES {
                return Err(TooLong);
            }
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.take(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']), ready);
            }
        }
        Ok(())
    }

    fn take(&mut self, line: &str, ready: &mut VecDeque<Event>) {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            if std::mem::take(&mut self.has_data) {
                ready.push_back(event);
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.event.id = value.parse().ok(),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            // Comments keep the connection alive; names repeat a part of the data.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(chunks: &[&[u8]]) -> Vec<(Option<u64>, String)> {
        let (mut parser, mut ready) = (Parser::default(), VecDeque::new());
        for chunk in chunks {
            parser.feed(chunk, &mut ready).unwrap();
        }
        ready.into_iter().map(|event| (event.id, event.data)).collect()
    }

    #[test]
    fn events_come_out_however_the_bytes_are_split() {
        let text =
            "id: 7\nevent: x\ndata: {\"a\":\"ü\"}\n\n: keep-alive\n\ndata:two\ndata: lines\r\n\r\nid: 9\n\n".as_bytes();
        let expected = vec![(Some(7), "{\"a\":\"ü\"}".to_owned()), (None, "two\nlines".to_owned())];
        assert_eq!(events(&[text]), expected);
        let single: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(events(&single), expected);
    }

    #[test]
    fn what_did_not_end_is_no_event() {
        assert_eq!(events(&[b"data: x\n"]), []);
        assert_eq!(events(&[b"data: x"]), []);
        assert_eq!(events(&[b"id: nonsense\ndata: x\n\n"]), [(None, "x".to_owned())]);
    }

    #[test]
    fn an_endless_line_ends_the_stream() {
        let (mut parser, mut ready) = (Parser::default(), VecDeque::new());
        let chunk = vec![b'x'; 1 << 20];
        let fed = (0..100).try_for_each(|_| parser.feed(&chunk, &mut ready));
        assert_eq!(fed, Err(TooLong));
    }
}

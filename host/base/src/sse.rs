//! Decodes server-sent events (WHATWG HTML, section 9.2.6) from a byte stream.
//!
//! The bytes are untrusted and arrive in pieces of any size: each byte is looked at once, and the caller bounds their
//! number.

/// A decoded server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The id, if it is a number: those of our own host are.
    pub id: Option<u64>,
    /// The data; several `data` fields are joined by line breaks.
    pub data: String,
}

/// Cuts a byte stream into events. Events without data, comments, event names and `retry` are skipped.
#[derive(Debug, Default)]
pub struct Decoder {
    line: Vec<u8>,
    id: Option<u64>,
    data: Option<String>,
    after_return: bool,
}

impl Decoder {
    /// Takes the next bytes and returns the events that end in them.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        for &byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                other => self.line.push(other),
            }
        }
        events
    }

    /// The event at the end of the stream whose empty line is missing, as some servers omit it.
    pub fn end(&mut self) -> Option<Event> {
        self.end_line().or_else(|| self.end_line())
    }

    /// Bytes of the unfinished event.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.line.len() + self.data.as_ref().map_or(0, String::len)
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let id = self.id.take();
            return self.data.take().map(|data| Event { id, data });
        }
        let line = String::from_utf8_lossy(&line);
        // A byte order mark may begin the stream; a line elsewhere never begins with one.
        let (field, value) = line.strip_prefix('\u{feff}').unwrap_or(&line).split_once(':')?;
        let value = value.strip_prefix(' ').unwrap_or(value);
        match (field, &mut self.data) {
            ("id", _) => self.id = value.parse().ok(),
            ("data", Some(data)) => {
                data.push('\n');
                data.push_str(value);
            }
            ("data", none) => *none = Some(value.to_owned()),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the events before and at the end of the stream, for pieces of several sizes.
    fn check(text: &str, ended: &[(Option<u64>, &str)], at_end: Option<&str>) {
        for size in [1, 2, 3, 7, text.len().max(1)] {
            let mut decoder = Decoder::default();
            let events: Vec<Event> = text.as_bytes().chunks(size).flat_map(|piece| decoder.push(piece)).collect();
            let events: Vec<_> = events.iter().map(|event| (event.id, event.data.as_str())).collect();
            assert_eq!(events, ended, "{text:?} in pieces of {size}");
            assert_eq!(decoder.end().map(|event| event.data).as_deref(), at_end, "{text:?}");
            assert_eq!(decoder.end(), None, "{text:?}");
        }
    }

    #[test]
    fn events_are_decoded_for_any_split() {
        check("data: a\n\ndata: b\n\n", &[(None, "a"), (None, "b")], None);
        check("data:a\r\n\r\ndata: ü\r\rdata: c", &[(None, "a"), (None, "ü")], Some("c"));
        check(": ping\n\nevent: x\nid: 3\ndata: one\ndata: two\n\n", &[(Some(3), "one\ntwo")], None);
        check("\n\n\n", &[], None);
        check("data\n\nnonsense\n\n", &[], None);
        check("\u{feff}data: a\n\n", &[(None, "a")], None);
        check(
            "id: 7\nevent: x\ndata: {\"a\":\"ü\"}\n\n: keep-alive\n\ndata:two\ndata: lines\r\n\r\nid: 9\n\n",
            &[(Some(7), "{\"a\":\"ü\"}"), (None, "two\nlines")],
            None,
        );
        check("id: nonsense\ndata: x\n\n", &[(None, "x")], None);
    }

    #[test]
    fn an_unfinished_event_is_returned_at_the_end_only() {
        check("data: x\n", &[], Some("x"));
        check("data: x", &[], Some("x"));
        check("id: 1\n\ndata: x\n\n", &[(None, "x")], None);
    }

    #[test]
    fn pending_bytes_count_the_unfinished_event() {
        let mut decoder = Decoder::default();
        assert!(decoder.push(b"data: abc\ndata: d").is_empty());
        assert_eq!(decoder.pending_bytes(), 3 + 7);
        assert_eq!(decoder.push(b"\n\n").len(), 1);
        assert_eq!(decoder.pending_bytes(), 0);
    }
}

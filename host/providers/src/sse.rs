//! Server-sent events out of a byte stream (WHATWG HTML, 9.2.6): only `data` matters here.
//!
//! The bytes are untrusted and come in any pieces: the caller bounds their sum, each byte is looked at once.

/// Cuts a byte stream into events.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    line: Vec<u8>,
    data: Option<String>,
    after_return: bool,
}

impl Decoder {
    /// Takes the next bytes and hands each finished event's data to `on_event`, until that says stop.
    pub(crate) fn push<E>(&mut self, bytes: &[u8], on_event: &mut dyn FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        for &byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => self.end_line(on_event)?,
                other => self.line.push(other),
            }
        }
        Ok(())
    }

    /// The stream is over: servers that forget the last empty line still meant the event.
    pub(crate) fn end<E>(&mut self, on_event: &mut dyn FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        self.end_line(on_event)?;
        self.end_line(on_event)
    }

    fn end_line<E>(&mut self, on_event: &mut dyn FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return self.data.take().map_or(Ok(()), |data| on_event(&data));
        }
        // A byte order mark may begin the stream; a line elsewhere never begins with one.
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
        if let Some(value) = line.strip_prefix(b"data:") {
            let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(&value);
                }
                None => self.data = Some(value.into_owned()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        for size in [1, 2, 3, 7, text.len().max(1)] {
            let mut found = Vec::new();
            let mut take = |data: &str| -> Result<(), ()> {
                found.push(data.to_owned());
                Ok(())
            };
            let mut decoder = Decoder::default();
            for piece in text.as_bytes().chunks(size) {
                decoder.push(piece, &mut take).unwrap();
            }
            decoder.end(&mut take).unwrap();
            assert_eq!(found, expected, "{text:?} in pieces of {size}");
        }
    }

    #[test]
    fn events_come_whole_whatever_the_pieces() {
        check("data: a\n\ndata: b\n\n", &["a", "b"]);
        check("data:a\r\n\r\ndata: ü\r\rdata: c", &["a", "ü", "c"]);
        check(": ping\n\nevent: x\nid: 3\ndata: one\ndata: two\n\n", &["one\ntwo"]);
        check("\n\n\n", &[]);
        check("data\n\nnonsense\n\n", &[]);
        check("\u{feff}data: a\n\n", &["a"]);
    }
}

//! Reads the values of a response as it comes in.

use http::HeaderMap;

use super::json::Walk;
use super::{GivenValues, Memory};

/// Bytes of a body that are looked at.
const MAX_BODY_BYTES: usize = 512 << 10;
/// Places of one response that are sources of their own; later values have the page as their source.
const MAX_PLACES: usize = 256;

/// Whether the body of a response is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Its content type is not known yet.
    NotBegun,
    Text,
    /// It has no content type: a text if it is UTF-8.
    Untyped,
    Ignored,
}

/// Remembers the values of one response. They are known once it has ended or was dropped.
pub(crate) struct Collector {
    given: GivenValues,
    host: u64,
    /// Host and path of the page.
    page: String,
    reading: Reading,
    body: Vec<u8>,
}

impl Collector {
    pub(super) fn new(given: GivenValues, host: u64, page: &str) -> Self {
        Self { given, host, page: page.to_owned(), reading: Reading::NotBegun, body: Vec::new() }
    }

    /// Takes in the headers: a redirect, a cookie or a link to the next page is given too.
    pub(crate) fn headers(&mut self, headers: &HeaderMap) {
        let mut memory = self.given.0.lock();
        let source = memory.add_source(&self.page);
        for value in headers.values().filter_map(|value| value.to_str().ok()) {
            memory.remember(self.host, source, value, true);
        }
    }

    /// Takes in a piece of the body. At most 512 KiB of a body that is text are looked at.
    pub(crate) fn piece(&mut self, content_type: Option<&str>, bytes: &[u8]) {
        if self.reading == Reading::NotBegun {
            self.reading = match content_type {
                None => Reading::Untyped,
                Some(of_type) if is_text(of_type) => Reading::Text,
                Some(_) => Reading::Ignored,
            };
        }
        if self.reading != Reading::Ignored {
            let room = MAX_BODY_BYTES - self.body.len().min(MAX_BODY_BYTES);
            self.body.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        }
    }

    /// Stores the collected values in the record.
    pub(crate) fn end(self) {
        drop(self);
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if self.body.is_empty() || (self.reading == Reading::Untyped && !is_utf8(&self.body)) {
            return;
        }
        let text = String::from_utf8_lossy(&self.body);
        remember(&mut self.given.0.lock(), self.host, &self.page, &text);
    }
}

/// Whether bytes are UTF-8, but for a last character that may be cut.
fn is_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true)
}

fn is_text(content_type: &str) -> bool {
    let essence = super::body::essence(content_type);
    let (kind, subtype) = essence.split_once('/').unwrap_or_default();
    kind == "text"
        || ["json", "xml", "javascript", "ecmascript", "jsonl", "yaml", "csv", "markdown", "x-www-form-urlencoded"]
            .iter()
            .any(|text| {
                subtype == *text || subtype.strip_suffix(text).is_some_and(|before| before.ends_with(['+', '-']))
            })
}

fn remember(memory: &mut Memory, host: u64, page: &str, text: &str) {
    let whole = memory.add_source(page);
    if !text.trim_start().starts_with(['{', '[']) {
        memory.remember(host, whole, text, false);
        return;
    }
    let (mut place, mut source, mut places) = (String::new(), whole, 0);
    let mut walk = Walk::new(text, |found| {
        if found.element != place && places < MAX_PLACES {
            place = found.element.to_owned();
            places += 1;
            source = if place.is_empty() { whole } else { memory.add_source(&format!("{page} {place}")).or(whole) };
        }
        let source = if found.element == place { source } else { whole };
        if found.is_value() {
            memory.remember(host, source, &found.text(), !found.is_key);
        }
    });
    // Lines of JSON follow each other.
    while walk.next_value().is_some() && !walk.rest().is_empty() {}
    let rest = walk.rest();
    memory.remember(host, whole, rest, false);
}

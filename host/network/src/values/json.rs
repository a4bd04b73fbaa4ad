//! Walks the leaves of a JSON text in order, with their raw text. A parser into a tree would drop the first of two equal
//! keys and round long numbers, and so hide them.
//!
//! It survives deep nesting and long names, which every leaf below them repeats: at 128 levels, serde_json's own limit, and at
//! names of 1,024 bytes it ends as it does where a text is not JSON.

use std::borrow::Cow;
use std::fmt::Write as _;

const MAX_DEPTH: usize = 128;
/// Bytes of the dotted name of a leaf.
const MAX_PATH_BYTES: usize = 1 << 10;

/// A leaf: raw text, and its place.
pub(super) struct JsonLeaf<'a, 'p> {
    /// The raw text: a string with its quotes, a number, a literal, or `[]` or `{}`.
    pub(super) raw: &'a str,
    /// The dotted name of the field.
    pub(super) path: &'p str,
    /// The dotted name down to the first element of an array.
    pub(super) element: &'p str,
    /// Whether it is the name of a member and not a value.
    pub(super) is_key: bool,
}

impl<'a> JsonLeaf<'a, '_> {
    /// The text of a string; anything else as it is written.
    pub(super) fn text(&self) -> Cow<'a, str> {
        let Some(inside) = inside(self.raw) else { return Cow::Borrowed(self.raw) };
        if !inside.contains('\\') {
            return Cow::Borrowed(inside);
        }
        serde_json::from_str(self.raw).map_or(Cow::Borrowed(inside), Cow::Owned)
    }

    /// Whether it is a string or a number.
    pub(super) fn is_value(&self) -> bool {
        self.raw.starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit())
    }
}

fn inside(raw: &str) -> Option<&str> {
    raw.strip_prefix('"')?.strip_suffix('"')
}

/// A walk through a text.
pub(super) struct Walk<'a, F> {
    text: &'a str,
    at: usize,
    path: String,
    /// The length of the path after the first element of an array.
    element: Option<usize>,
    spaces: usize,
    found: F,
}

impl<'a, F: FnMut(JsonLeaf<'a, '_>)> Walk<'a, F> {
    pub(super) fn new(text: &'a str, found: F) -> Self {
        Self { text, at: 0, path: String::new(), element: None, spaces: 0, found }
    }

    /// Walks the next value. `None` if the text is not JSON from [`Walk::rest`] on: lenient, for texts that were cut.
    pub(super) fn next_value(&mut self) -> Option<()> {
        self.path.clear();
        self.element = None;
        self.value(0)?;
        self.skip_spaces();
        Some(())
    }

    /// Where the walk is.
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Bytes of white space outside of strings so far.
    pub(super) fn spaces(&self) -> usize {
        self.spaces
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        self.skip_spaces();
        match self.peek()? {
            _ if depth > MAX_DEPTH => None,
            b'{' => self.members(depth),
            b'[' => self.elements(depth),
            b'"' => {
                let raw = self.string()?;
                self.leaf(raw, false);
                Some(())
            }
            _ => {
                let ends =
                    |sign: char| sign.is_ascii_whitespace() || matches!(sign, ',' | ']' | '}' | ':' | '"' | '[' | '{');
                let raw = self.rest().split(ends).next()?;
                let is_number = raw.starts_with(|first: char| first == '-' || first.is_ascii_digit());
                if !is_number && !matches!(raw, "true" | "false" | "null") {
                    return None;
                }
                self.at += raw.len();
                self.leaf(raw, false);
                Some(())
            }
        }
    }

    fn members(&mut self, depth: usize) -> Option<()> {
        self.at += 1;
        self.skip_spaces();
        if self.take(b'}') {
            self.leaf("{}", false);
            return Some(());
        }
        let length = self.path.len();
        loop {
            self.skip_spaces();
            let key = self.string()?;
            self.leaf(key, true);
            self.push_key(key)?;
            self.skip_spaces();
            if !self.take(b':') {
                return None;
            }
            self.value(depth + 1)?;
            self.path.truncate(length);
            self.skip_spaces();
            if self.take(b'}') {
                return Some(());
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    fn elements(&mut self, depth: usize) -> Option<()> {
        self.at += 1;
        self.skip_spaces();
        if self.take(b']') {
            self.leaf("[]", false);
            return Some(());
        }
        let (length, is_first) = (self.path.len(), self.element.is_none());
        for index in 0_usize.. {
            write!(self.path, "[{index}]").ok()?;
            if is_first {
                self.element = Some(self.path.len());
            }
            self.value(depth + 1)?;
            self.path.truncate(length);
            self.skip_spaces();
            if self.take(b']') {
                break;
            }
            if !self.take(b',') {
                return None;
            }
        }
        if is_first {
            self.element = None;
        }
        Some(())
    }

    /// Names a member `a.b`, or `a["b.c"]` where the dot would lie.
    fn push_key(&mut self, raw: &str) -> Option<()> {
        if self.path.len() + raw.len() > MAX_PATH_BYTES {
            return None;
        }
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|sign| sign.is_alphanumeric() || matches!(sign, '_' | '-'))
        };
        match inside(raw).filter(|name| is_name(name)) {
            Some(name) => {
                if !self.path.is_empty() {
                    self.path.push('.');
                }
                self.path.push_str(name);
            }
            None => {
                self.path.push('[');
                self.path.push_str(raw);
                self.path.push(']');
            }
        }
        Some(())
    }

    fn leaf(&mut self, raw: &'a str, is_key: bool) {
        let path = self.path.as_str();
        let element = self.element.and_then(|length| path.get(..length)).unwrap_or(path);
        (self.found)(JsonLeaf { raw, path, element, is_key });
    }

    fn string(&mut self) -> Option<&'a str> {
        let inside = self.rest().strip_prefix('"')?;
        let mut is_escaped = false;
        let end = inside.bytes().position(|byte| {
            let ends = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            ends
        })?;
        let raw = self.rest().get(..end + 2)?;
        self.at += raw.len();
        Some(raw)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, sign: u8) -> bool {
        let is_next = self.peek() == Some(sign);
        self.at += usize::from(is_next);
        is_next
    }

    fn skip_spaces(&mut self) {
        let start = self.at;
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.spaces += self.at - start;
    }
}

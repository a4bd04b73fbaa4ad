//! The fields of a request: its query parameters, and its body as JSON, form or multipart form.
//!
//! Nothing of a body is hidden: equal names are fields of their own, and a body that does not parse exactly is one field
//! with all of its text. A server may read a body in another way than its content type says, so a JSON body is taken
//! apart by its text.

use std::borrow::Cow;
use std::collections::HashMap;

use base::CredentialName;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use percent_encoding::percent_decode_str;
use serde::de::IgnoredAny;

use super::json::Walk;
use super::{SALT, Sent, digest, show};

/// Fields that are kept apart: as many that matter most to an owner, and as many others.
const MAX_KEPT: usize = 512;
/// White space of a JSON body for each leaf, beyond which it may be there to carry data.
const MAX_SPACES_PER_LEAF: usize = 32;
/// Signs of the boundary of a multipart form. RFC 2046 allows 70; clients use up to 46, and each one may carry data.
const MAX_BOUNDARY: usize = 48;
/// How the content type of a multipart form begins.
const FORM_WITH_BOUNDARY: &str = "multipart/form-data; boundary=";
/// Content types of bodies that are shown by their fields, or as text.
const PLAIN_TYPES: [&str; 4] =
    ["application/json", "application/x-www-form-urlencoded", "text/plain", "text/plain;charset=utf-8"];

/// How a value was written, so that one shown in a form is not taken for one in JSON.
#[derive(Debug, Clone, Copy)]
enum Writing {
    Query,
    Json,
    Form,
    Part,
    Body,
    Header,
}

/// A field with its exact value.
pub(super) struct Leaf<'a> {
    /// The dotted name, as it is.
    pub(super) name: String,
    /// The exact value, with its name where that has more than one spelling.
    raw: &'a [u8],
    /// The text of the value; `None` if it is not text.
    text: Option<Cow<'a, str>>,
    writing: Writing,
    /// Whether the owner looks at it first, by its name or look.
    pub(super) matters: bool,
}

impl Leaf<'_> {
    pub(super) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    pub(super) fn bytes(&self) -> usize {
        self.raw.len()
    }

    pub(super) fn hash(&self, salt: u64) -> u64 {
        digest(salt, &[&[self.writing as u8], self.raw])
    }
}

/// The fields of a request.
pub(super) struct Leaves<'a> {
    /// Those that are kept, in order.
    pub(super) kept: Vec<Leaf<'a>>,
    /// How many are not, and their bytes.
    pub(super) others: (usize, usize),
    /// The hash of those.
    pub(super) rest: u64,
    salt: u64,
    names: HashMap<String, usize>,
    rooms: [usize; 2],
    /// Whether white space in the body may carry data.
    is_spaced: bool,
}

impl<'a> Leaves<'a> {
    pub(super) fn of(sent: &Sent<'a>, salt: u64) -> Self {
        let mut leaves = Self {
            kept: Vec::new(),
            others: (0, 0),
            salt,
            rest: 0,
            names: HashMap::new(),
            rooms: [MAX_KEPT; 2],
            is_spaced: false,
        };
        if let Some((_, query)) = sent.path_and_query.split_once('?') {
            leaves.add_pairs("?", query, Writing::Query);
        }
        leaves.add_body(sent.body, sent.content_type.unwrap_or_default());
        leaves
    }

    /// Adds the headers that say something of their own: a card that leaves out where a copy goes shows too little.
    pub(super) fn add_headers(&mut self, headers: &'a HeaderMap) {
        for (name, value) in headers.iter().filter(|(name, value)| !is_plain(name, value)) {
            let text = std::str::from_utf8(value.as_bytes()).ok().map(Cow::Borrowed);
            self.add(&format!("{name}:"), value.as_bytes(), text, Writing::Header);
        }
    }

    /// Entries without a field, by name: never the user's words.
    pub(super) fn special(&self, sent: &Sent<'_>) -> Vec<(&'static str, u64)> {
        let mut special = vec![(SALT, self.salt), ("@headers", headers(sent, self.salt))];
        if self.is_spaced {
            special.push(("@body", digest(self.salt, &[sent.body])));
        }
        if self.others.0 > 0 {
            special.push(("…", self.rest));
        }
        special
    }

    fn add_body(&mut self, body: &'a [u8], content_type: &str) {
        let Ok(text) = std::str::from_utf8(body) else {
            if self.add_parts(body, content_type).is_none() {
                self.add("body", body, None, Writing::Body);
            }
            return;
        };
        if text.is_empty() || self.add_json(text).is_some() || self.add_parts(body, content_type).is_some() {
            return;
        }
        if essence(content_type) == "application/x-www-form-urlencoded" {
            self.add_pairs("", text, Writing::Form);
        } else {
            self.add("body", body, Some(Cow::Borrowed(text)), Writing::Body);
        }
    }

    fn add_json(&mut self, text: &'a str) -> Option<()> {
        if !text.trim_ascii_start().starts_with(['{', '[']) {
            return None;
        }
        serde_json::from_str::<IgnoredAny>(text).ok()?;
        // A first walk sees whether it nests too deeply.
        let mut count = 0;
        let mut walk = Walk::new(text, |found| count += usize::from(!found.is_key));
        walk.next_value()?;
        let spaces = walk.spaces();
        self.is_spaced = spaces > MAX_SPACES_PER_LEAF * count;
        Walk::new(text, |found| {
            if !found.is_key {
                let name = if found.path.is_empty() { "body" } else { found.path };
                self.add(name, found.raw.as_bytes(), Some(found.text()), Writing::Json);
            }
        })
        .next_value()
    }

    /// The pairs of a query or a form. The spelling of a name belongs to the exact value.
    fn add_pairs(&mut self, prefix: &str, pairs: &'a str, writing: Writing) {
        for pair in pairs.split('&') {
            let (name, value) = match pair.split_once('=') {
                Some((name, value)) => (form_name(&decoded(name)).into_owned(), value),
                // Without a name it is a value, and no name may hide it.
                None if prefix.is_empty() => ("body".to_owned(), pair),
                None => (String::new(), pair),
            };
            self.add(&format!("{prefix}{name}"), pair.as_bytes(), Some(decoded(value)), writing);
        }
    }

    /// The parts of a multipart form. `None` if it does not parse exactly (RFC 7578).
    fn add_parts(&mut self, body: &'a [u8], content_type: &str) -> Option<()> {
        if essence(content_type) != "multipart/form-data" {
            return None;
        }
        let (key, boundary) = content_type.split_once(';')?.1.split_once('=')?;
        let boundary = boundary.trim().trim_matches('"');
        let is_boundary = |sign: char| sign.is_ascii_alphanumeric() || "'()+_,-./:=?".contains(sign);
        let is_bounded = (1..=MAX_BOUNDARY).contains(&boundary.len()) && boundary.chars().all(is_boundary);
        if !key.trim().eq_ignore_ascii_case("boundary") || !is_bounded {
            return None;
        }
        let delimiter = format!("\r\n--{boundary}");
        let mut rest = body.strip_prefix(delimiter.as_bytes().get(2..)?)?;
        let mut parts = Vec::new();
        while let Some(after) = rest.strip_prefix(b"\r\n") {
            let (part, next) = split_at(after, delimiter.as_bytes())?;
            let (head, content) = split_at(part, b"\r\n\r\n")?;
            parts.push((std::str::from_utf8(head).ok()?, content));
            rest = next;
        }
        if !matches!(rest, b"--" | b"--\r\n") {
            return None;
        }
        for (head, content) in parts {
            let name = head.split_once("; name=\"").and_then(|(_, after)| after.split('"').next()).unwrap_or_default();
            let name = form_name(name);
            self.add(&name, content, std::str::from_utf8(content).ok().map(Cow::Borrowed), Writing::Part);
            if head != format!("Content-Disposition: form-data; name=\"{name}\"") {
                self.add(&format!("{name} (part)"), head.as_bytes(), Some(Cow::Borrowed(head)), Writing::Part);
            }
        }
        Some(())
    }

    fn add(&mut self, name: &str, raw: &'a [u8], text: Option<Cow<'a, str>>, writing: Writing) {
        // Beyond all rooms nothing is looked at: a body has millions of leaves.
        let matters = self.rooms != [0, 0] && show::matters(name, text.as_deref().unwrap_or_default());
        let [other, important] = &mut self.rooms;
        let room = if matters { important } else { other };
        if *room == 0 {
            self.others = (self.others.0 + 1, self.others.1 + raw.len());
            self.rest = digest(self.salt, &[&self.rest.to_le_bytes(), name.as_bytes(), &[writing as u8], raw]);
            return;
        }
        *room -= 1;
        let count = self.names.entry(name.to_owned()).or_insert(0);
        *count += 1;
        let name = if *count == 1 { name.to_owned() } else { format!("{name}#{count}") };
        self.kept.push(Leaf { name, raw, text, writing, matters });
    }
}

/// A content type without its parameters, in lower case.
pub(crate) fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A name of a form as it is, or quoted if it could be taken for another one.
fn form_name(name: &str) -> Cow<'_, str> {
    let is_plain = |sign: char| sign.is_alphanumeric() || matches!(sign, '_' | '-' | '.' | '[' | ']');
    if !name.is_empty() && name.chars().all(is_plain) { Cow::Borrowed(name) } else { Cow::Owned(format!("[{name:?}]")) }
}

fn decoded(value: &str) -> Cow<'_, str> {
    let spaced = value.replace('+', " ");
    Cow::Owned(percent_decode_str(&spaced).decode_utf8_lossy().into_owned())
}

fn split_at<'a>(text: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = memchr::memmem::find(text, separator)?;
    Some((text.get(..at)?, text.get(at + separator.len()..)?))
}

/// Whether a header says nothing that a card does not show already: a usual content type, or a credential in its usual place.
fn is_plain(name: &HeaderName, value: &HeaderValue) -> bool {
    let Ok(value) = value.to_str() else { return false };
    if *name == header::CONTENT_TYPE {
        let boundary = value.strip_prefix(FORM_WITH_BOUNDARY).filter(|boundary| boundary.len() <= MAX_BOUNDARY);
        return boundary.is_some()
            || PLAIN_TYPES.iter().any(|plain| value.replace("; ", ";").eq_ignore_ascii_case(plain));
    }
    let placeholder = value.strip_prefix("Bearer ").unwrap_or(value);
    let inside = placeholder.strip_prefix("<credential:").and_then(|rest| rest.strip_suffix('>'));
    *name == header::AUTHORIZATION && inside.is_some_and(|inside| CredentialName::parse(inside).is_ok())
}

/// The hash of the headers. The boundary of a multipart form is another one in every request.
fn headers(sent: &Sent<'_>, salt: u64) -> u64 {
    let mut headers: Vec<(&str, &[u8])> =
        sent.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    headers.sort_unstable();
    let hash = headers.iter().fold(0, |hash: u64, (name, value)| {
        let is_multipart = *name == "content-type" && value.starts_with(FORM_WITH_BOUNDARY.as_bytes());
        let value = if is_multipart { b"multipart/form-data" } else { *value };
        digest(salt, &[&hash.to_le_bytes(), name.as_bytes(), value])
    });
    digest(salt, &[&hash.to_le_bytes(), essence(sent.content_type.unwrap_or_default()).as_bytes()])
}

//! A request as it will leave the host: the unit of consent (SPEC APPR-1).
//!
//! It is made of the guest's request, placeholders included, in the same way for every tool. It knows no policy and no run. Survives
//! requests that differ in one byte, that disguise a write as a read, and parts that would run into each other.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use base::{ContentHash, ContentHasher, CredentialName};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, header};

use crate::headers::{is_reading, overrides};
use crate::values::{CarriedBytes, Sent, essence};
use crate::{Field, GivenValues, Shape, Target};

/// A request as it will leave.
#[derive(Debug, Clone)]
pub struct Unit {
    /// The method, as it is sent.
    pub method: Method,
    /// Scheme, host, port, path and query.
    pub target: Target,
    /// The guest's headers without those that the gate sets itself.
    pub headers: HeaderMap,
    /// The body, with placeholders still in it.
    pub body: Bytes,
    /// The credentials that are put in.
    pub credentials: BTreeSet<CredentialName>,
    /// The credentials that a component of the run may have computed with: the results may be anywhere in the request.
    pub computed_with: BTreeSet<CredentialName>,
    /// Whether every value of a credential in it could be replaced by its placeholder, so that its parts may be shown.
    pub is_showable: bool,
}

/// Whether a request reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// It only asks for content.
    Read,
    /// It asks with a credential, or with a value that a component computed with one.
    KeyedRead,
    /// It carries something outwards, or may change something there: another method than `GET`, `HEAD` and `OPTIONS`, a
    /// method override by header, query or form, or a body.
    Write,
}

/// Headers that clients set each in their own way and that change no meaning: they are no part of the hash, so that one consent
/// is for all tools. With more than [`MAX_NEUTRAL_BYTES`] they are content and count, unless a shipped tool sends them.
const NEUTRAL: [HeaderName; 3] = [header::ACCEPT, header::ACCEPT_LANGUAGE, header::USER_AGENT];
/// Bytes of all values of one neutral header.
const MAX_NEUTRAL_BYTES: usize = 64;
/// Values that the shipped tools send in such headers by themselves. Any other value is a choice, and carries data.
const OF_TOOLS: [&str; 6] = [
    "*/*",
    "application/json",
    "text/markdown, text/html;q=0.9, application/json;q=0.9, text/*;q=0.8, */*;q=0.5",
    "curl/8.5.0",
    "git/2.47.0",
    concat!("motor-cortex/", env!("CARGO_PKG_VERSION")),
];
/// Names in a query or a form by which servers take a request for one of another method, in lower case. Signs that some servers turn
/// into `_` are `_` here.
const NAMES_OF_OVERRIDES: [&str; 6] =
    ["_method", "_httpmethod", "http_method", "x_http_method_override", "x_method_override", "x_http_method"];
/// Stands in a class for a body where the method has none.
const BODY: &str = "BODY";
/// Stands in a class for a part of a multipart body that names a method.
const OVERRIDE: &str = "OVERRIDE";
/// The longest method of a class, in bytes.
const MAX_METHOD_BYTES: usize = 64;

impl Unit {
    /// A request without credentials, by a run that has computed with none.
    #[must_use]
    pub fn new(method: Method, target: Target, headers: HeaderMap, body: Bytes) -> Self {
        let (credentials, computed_with) = (BTreeSet::new(), BTreeSet::new());
        Self { method, target, headers, body, credentials, computed_with, is_showable: true }
    }

    /// The path, as it is sent.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.path_and_query().path()
    }

    /// The query, as it is sent, without `?`.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.target.path_and_query().query()
    }

    /// The hash that a lease names. It covers method, scheme, host, port, path, query, all headers but short neutral ones,
    /// the names of the credentials that are put in, and the body.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        let mut hasher = HashedParts::default();
        hasher.part(b"motor request 1");
        hasher.part(self.method.as_str().as_bytes());
        hasher.part(self.target.scheme().as_str().as_bytes());
        hasher.part(self.target.host().to_string().as_bytes());
        hasher.part(&self.target.port().to_be_bytes());
        hasher.part(self.path().as_bytes());
        hasher.list(self.query().into_iter().map(str::as_bytes));
        let mut names: Vec<&HeaderName> = self.headers.keys().filter(|name| !self.is_neutral(name)).collect();
        names.sort_unstable_by_key(|name| name.as_str());
        hasher.list(names.iter().map(|name| name.as_str().as_bytes()));
        for name in names {
            hasher.list(self.headers.get_all(name).iter().map(http::HeaderValue::as_bytes));
        }
        hasher.list(self.credentials.iter().map(|name| name.as_str().as_bytes()));
        hasher.part(&self.body);
        hasher.0.finish()
    }

    /// Whether a header does not change the meaning of the request.
    fn is_neutral(&self, name: &HeaderName) -> bool {
        let bytes = || self.headers.get_all(name).iter().map(http::HeaderValue::len).sum::<usize>();
        NEUTRAL.contains(name) && (self.is_of_tool(name) || bytes() <= MAX_NEUTRAL_BYTES)
    }

    /// Whether a header has a value that a shipped tool sends by itself.
    fn is_of_tool(&self, name: &HeaderName) -> bool {
        let mut values = self.headers.get_all(name).iter();
        let is_of_tool = values.next().is_some_and(|value| OF_TOOLS.iter().any(|of_tool| value == of_tool));
        NEUTRAL.contains(name) && is_of_tool && values.next().is_none()
    }

    /// The headers without some.
    fn headers_without(&self, is_left_out: impl Fn(&HeaderName) -> bool) -> HeaderMap {
        let kept = self.headers.iter().filter(|(name, _)| !is_left_out(name));
        kept.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Whether the request reads or writes.
    #[must_use]
    pub fn nature(&self) -> Nature {
        let only_asks = is_reading(self.method.as_str()) && self.overrides().all(|method| is_reading(&method));
        if !only_asks || !self.body.is_empty() {
            Nature::Write
        } else if self.keys().next().is_some() {
            Nature::KeyedRead
        } else {
            Nature::Read
        }
    }

    /// The credentials that it carries, or may carry the work of.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &CredentialName> {
        self.credentials.union(&self.computed_with)
    }

    /// The methods that it asks a server to take it for, in capitals.
    fn overrides(&self) -> impl Iterator<Item = String> {
        // Some servers part a query at `;`, too.
        let parts = self.query().unwrap_or_default().split(['&', ';']);
        let pairs = parts.flat_map(|part| form_urlencoded::parse(part.as_bytes()));
        let named = pairs.filter(|(name, _)| is_override(name));
        let in_headers = overrides(&self.headers);
        in_headers.chain(named.map(|(_, method)| method.trim().to_ascii_uppercase())).chain(self.overrides_in_body())
    }

    /// Those of a body that frameworks read as a form.
    fn overrides_in_body(&self) -> impl Iterator<Item = String> {
        let content_type = self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = essence(content_type.unwrap_or_default());
        let form = if essence == "application/x-www-form-urlencoded" { self.body.as_ref() } else { b"" };
        let named = form_urlencoded::parse(form).filter(|(name, _)| is_override(name));
        let parts = if essence.starts_with("multipart/") { self.body.as_ref() } else { b"" };
        let in_part = memchr::memmem::find(parts, b"_method").map(|_| OVERRIDE.to_owned());
        named.map(|(_, method)| method.trim().to_ascii_uppercase()).chain(in_part)
    }

    /// The class of similar requests: `POST host/path` of a write, `GET host with CREDENTIAL` of a keyed read, `GET host`
    /// of a plain one. `None` if servers may read the request in different ways, so that no class describes it: a method
    /// that is not in capitals, or a path with `//`, `.`, `..` or `*` in it.
    #[must_use]
    pub fn class(&self) -> Option<Shape> {
        let path = (self.nature() == Nature::Write).then(|| self.path());
        self.shape(path)
    }

    /// The class of similar reads that carry data: `GET host/path`, with its credentials.
    #[must_use]
    pub fn carrying_class(&self) -> Option<Shape> {
        self.shape(Some(self.path()))
    }

    fn shape(&self, path: Option<&str>) -> Option<Shape> {
        let is_write = self.nature() == Nature::Write;
        let method = if is_write { self.write_method()? } else { Method::GET };
        let credentials = if is_write { Vec::new() } else { self.keys().cloned().collect() };
        Some(Shape::of(method, &self.target, path, credentials)?).filter(|_| self.is_showable)
    }

    /// The method of a write as shapes have it, exactly: the method, and joined to it by `+` all others that the request
    /// asks to be taken for. A read that is a write by its body alone is `GET+BODY`. So the shape of a read covers no write,
    /// and the shape of one write no disguise of another. `None` if it is not a method in capitals.
    pub(crate) fn write_method(&self) -> Option<Method> {
        let method = self.method.as_str();
        let reads = is_reading(method);
        let mut words: BTreeSet<String> = self.overrides().filter(|word| !is_reading(word) && word != method).collect();
        if reads && words.is_empty() {
            words.insert(BODY.to_owned());
        }
        let method = if reads { Method::GET.as_str() } else { method };
        let text = words.iter().fold(method.to_owned(), |text, word| format!("{text}+{word}"));
        let are_methods = text.split('+').all(is_method);
        (are_methods && text.len() <= MAX_METHOD_BYTES).then(|| Method::from_bytes(text.as_bytes()).ok()).flatten()
    }
}

/// The view of a run's record of values on a request.
impl Unit {
    /// Its fields, each with its origin.
    pub(crate) fn fields(&self, given: &GivenValues) -> Vec<Field> {
        let (host, headers) = (self.target.authority(), self.headers_without(|name| self.is_neutral(name)));
        given.fields(&self.sent(&host, &headers, None))
    }

    /// The hashes of its values, by field.
    pub(crate) fn shown(&self, given: &GivenValues) -> BTreeMap<String, u64> {
        let (host, headers) = (self.target.authority(), self.headers_without(|name| self.is_neutral(name)));
        given.shown(&self.sent(&host, &headers, None))
    }

    /// Whether it has the fields that were shown, each with the shown value or one of the user's.
    pub(crate) fn has_shown(&self, shown: &BTreeMap<String, u64>, given: &GivenValues) -> bool {
        let (host, headers) = (self.target.authority(), self.headers_without(|name| self.is_neutral(name)));
        given.covers(shown, &self.sent(&host, &headers, None))
    }

    /// Bytes that it carries, without a body, beyond the user's words and the values of its own host. `open` is the fixed end of
    /// the host's name when only a wildcard grants it.
    pub(crate) fn carried(&self, open: Option<&str>, given: &GivenValues) -> CarriedBytes {
        let (host, headers) = (self.target.authority(), self.headers_without(|name| self.is_of_tool(name)));
        given.carried(&self.sent(&host, &headers, open))
    }

    fn sent<'a>(&'a self, host: &'a str, headers: &'a HeaderMap, open: Option<&'a str>) -> Sent<'a> {
        Sent {
            host,
            path_and_query: self.target.path_and_query().as_str(),
            headers,
            body: &self.body,
            content_type: self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()),
            wide_pattern_suffix: open,
        }
    }
}

/// Whether servers take a field of this name for the method.
fn is_override(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase().replace(['-', '.', ' ', '['], "_");
    NAMES_OF_OVERRIDES.contains(&name.as_str())
}

/// Whether a text is a method in capitals.
pub(crate) fn is_method(text: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    text.starts_with(|first: char| first.is_ascii_uppercase()) && text.bytes().all(is_sign)
}

/// Hashes parts each behind its length, so that none runs into the next.
#[derive(Default)]
struct HashedParts(ContentHasher);

impl HashedParts {
    fn part(&mut self, part: &[u8]) {
        self.0.update(&(part.len() as u64).to_be_bytes());
        self.0.update(part);
    }

    fn list<'a>(&mut self, parts: impl Iterator<Item = &'a [u8]>) {
        for part in parts {
            self.0.update(b"+");
            self.part(part);
        }
        self.0.update(b".");
    }
}

//! Requests to the outside, through the host's network gate.
//!
//! It must not know any policy: whether a request is let out is the gate's decision, and the checks here only give
//! the better message. It survives servers: redirects to other schemes, for ever, or to another origin that
//! would get data meant for the first; responses that break off. A response is a stream: its reader bounds
//! how much of it is read.

mod redirect;
#[cfg(target_family = "wasm")]
mod wasi;

use std::fmt;
use std::io::{self, Read};

use url::Url;

use crate::ToolError;

pub use redirect::follow;

/// A request that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method, in any case.
    pub method: String,
    /// An absolute `http` or `https` URL.
    pub url: String,
    /// Names and values, in order. `Content-Length` is set from the body.
    pub headers: Vec<(String, String)>,
    /// The body; empty if there is none.
    pub body: Vec<u8>,
    /// Milliseconds for the connection, for the first byte after it, and between two pieces of the response. Default: the host's.
    pub timeout_ms: Option<u64>,
}

/// A response whose body has yet to be read.
#[derive(Debug)]
pub struct Response {
    /// The HTTP status code.
    pub status: u16,
    /// Names, in lower case, and values in the order they came. A byte that is not UTF-8 became U+FFFD.
    pub headers: Vec<(String, String)>,
    /// The body, as a stream.
    pub body: Body,
    /// Where it came from, after redirects.
    pub url: String,
}

/// The body of a response. Errors of reading carry an [`HttpError`].
pub struct Body(Box<dyn Read>);

/// Why there is no response, or no more of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpError {
    /// A rule of the network gate refused it. Nothing was sent.
    Blocked {
        /// The rule, such as `domain_not_allowed`.
        rule: String,
        /// The refused request, and the reason.
        reason: String,
        /// The remedy for the owner or the model.
        remedy: String,
    },
    /// It was tried and failed.
    Failed {
        /// One sentence about the failure.
        message: String,
        /// The part in which it failed.
        kind: FailureKind,
    },
    /// A request that cannot be sent.
    BadRequest {
        /// The fault in the request, and the right form.
        message: String,
    },
}

/// In which part a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// The name has no address.
    Dns,
    /// No server listens there, or the connection broke.
    Connect,
    /// No trusted TLS connection was made.
    Tls,
    /// It took longer than its time limit.
    Timeout,
    /// A limit of the host on requests, their size or the response's.
    Limit,
    /// The server does not speak HTTP as it should, redirects for ever, or broke off.
    Protocol,
}

impl Request {
    /// A GET request without headers or body.
    #[must_use]
    pub fn get(url: impl Into<String>) -> Self {
        Self { method: "GET".to_owned(), url: url.into(), headers: Vec::new(), body: Vec::new(), timeout_ms: None }
    }

    /// The first value of a header; the case of its name does not matter.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        first(&self.headers, name)
    }
}

impl Response {
    /// The first value of a header; the case of its name does not matter.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        first(&self.headers, name)
    }

    /// The whole body, which has at most `max` bytes.
    ///
    /// # Errors
    /// If it has more, which is a limit, or breaks off.
    pub fn bytes(self, max: u64) -> Result<Vec<u8>, HttpError> {
        let mut bytes = Vec::new();
        let read = self.body.take(max.saturating_add(1)).read_to_end(&mut bytes);
        match read.map_err(|error| HttpError::of_read(&error))? as u64 {
            length if length > max => {
                Err(HttpError::failed(FailureKind::Limit, format!("the response has more than {max} bytes")))
            }
            _ => Ok(bytes),
        }
    }

    /// The whole body as text. A byte that is not UTF-8 becomes U+FFFD.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes).
    pub fn text(self, max: u64) -> Result<String, HttpError> {
        Ok(String::from_utf8_lossy(&self.bytes(max)?).into_owned())
    }
}

fn first<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

impl Body {
    /// A body that is read from `reader`.
    pub fn from_reader(reader: impl Read + 'static) -> Self {
        Self(Box::new(reader))
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from_reader(io::Cursor::new(bytes))
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Body")
    }
}

impl HttpError {
    /// A request that could not be sent.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::BadRequest { message: message.into() }
    }

    /// One that was tried and failed.
    pub fn failed(kind: FailureKind, message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), kind }
    }

    /// The reason behind an error of reading a [`Body`].
    #[must_use]
    pub fn of_read(error: &io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<Self>()) {
            Some(reason) => reason.clone(),
            None => Self::failed(FailureKind::Protocol, format!("the response broke off: {error}")),
        }
    }

    /// Whether the request is a write that the host holds for its owner. It was not sent, and there is no response.
    #[must_use]
    pub fn is_staged(&self) -> bool {
        matches!(self, Self::Blocked { rule, .. } if rule == "staged")
    }

    /// Whether the same request may work later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Failed { kind: FailureKind::Dns | FailureKind::Connect | FailureKind::Timeout, .. })
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The reason itself begins with `staged #3`.
            Self::Blocked { reason, remedy, .. } if self.is_staged() => write!(f, "{reason}; {remedy}"),
            Self::Blocked { reason, remedy, .. } if remedy.is_empty() => write!(f, "network_blocked: {reason}"),
            Self::Blocked { reason, remedy, .. } => write!(f, "network_blocked: {reason}; {remedy}"),
            Self::Failed { message, .. } | Self::BadRequest { message } => f.write_str(message),
        }
    }
}

impl std::error::Error for HttpError {}

/// A refusal of the gate is `denied` with its remedy, so that a tool passes it on with `?`.
impl From<HttpError> for ToolError {
    fn from(error: HttpError) -> Self {
        let sentence = error.to_string();
        match error {
            HttpError::Blocked { .. } => Self::denied(sentence),
            HttpError::BadRequest { .. } => Self::bad_input(sentence),
            HttpError::Failed { kind: FailureKind::Limit, .. } => Self::limit(sentence),
            error if error.is_retryable() => Self::failed_for_now(sentence),
            HttpError::Failed { .. } => Self::failed(sentence),
        }
    }
}

/// Sends a request and returns its response, also when that is a redirect or says that something is wrong.
///
/// # Errors
/// If it cannot be sent, the gate refuses it, or it fails before the body of its response.
pub fn send(request: Request) -> Result<Response, HttpError> {
    dispatch(&request)
}

/// Sends a request and follows at most `most` redirects, each of which is a request of its own to the gate (SPEC NET-2).
///
/// # Errors
/// As [`send`]; also when there are more redirects, one leads where no request can go, or one would take a credential
/// to another origin.
pub fn send_following(request: Request, most: usize) -> Result<Response, HttpError> {
    follow(request, most, dispatch)
}

fn dispatch(request: &Request) -> Result<Response, HttpError> {
    let checked = check(request)?;
    #[cfg(target_family = "wasm")]
    return wasi::send(request, &checked);
    #[cfg(not(target_family = "wasm"))]
    crate::testing::send(request, &checked)
}

/// Requests larger than the gate would take are not even copied out.
const MAX_URL_BYTES: usize = 64 << 10;

/// Checks all that can be told without the host. The host checks again.
fn check(request: &Request) -> Result<Url, HttpError> {
    if !is_token(&request.method) {
        return Err(HttpError::bad_request("the method is not one: use `GET`, `POST` or another HTTP method"));
    }
    for (name, value) in &request.headers {
        let shown = cut(name);
        if !is_token(name) {
            return Err(HttpError::bad_request(format!("`{shown}` is not the name of a header")));
        }
        if value.chars().any(|c| c.is_control() && c != '\t') {
            return Err(HttpError::bad_request(format!("the header `{shown}` holds a control character")));
        }
    }
    parse(&request.url)
}

/// Reads an absolute URL that a request can go to.
fn parse(text: &str) -> Result<Url, HttpError> {
    if text.len() > MAX_URL_BYTES {
        return Err(HttpError::bad_request(format!("the URL is longer than {MAX_URL_BYTES} bytes")));
    }
    let url = Url::parse(text).map_err(|error| {
        HttpError::bad_request(format!("`{}` is not a URL: {error}; use `https://HOST/PATH`", cut(text)))
    })?;
    accept(url)
}

fn accept(url: Url) -> Result<Url, HttpError> {
    if !matches!(url.scheme(), "http" | "https") {
        let scheme = cut(url.scheme());
        return Err(HttpError::bad_request(format!("the scheme `{scheme}` is not supported: use `https` or `http`")));
    }
    if !url.username().is_empty() || url.password().is_some() {
        let message = "the URL holds a user or a password: leave them out and send an `Authorization` header";
        return Err(HttpError::bad_request(message));
    }
    Ok(url)
}

/// A token of RFC 9110 section 5.6.2.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// A piece of foreign text that is safe and short enough for a message.
fn cut(text: &str) -> String {
    let mut shown: String = text.chars().take(100).flat_map(char::escape_debug).collect();
    if text.chars().nth(100).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_url(url: &str, expected: &str) {
        let shown = match check(&Request::get(url)) {
            Ok(url) => url.to_string(),
            Err(HttpError::BadRequest { message }) => message,
            Err(other) => panic!("wrong kind of error: {other:?}"),
        };
        assert!(shown.contains(expected), "{url}: {shown}");
    }

    #[test]
    fn urls_are_normalised_or_refused_with_a_reason() {
        check_url("HTTP://Example.COM:80/a b?q=<x>", "http://example.com/a%20b?q=%3Cx%3E");
        check_url("https://example.com:8443", "https://example.com:8443/");
        check_url("http://0x7f.1/", "http://127.0.0.1/");
        check_url("example.com", "is not a URL");
        check_url("", "is not a URL");
        check_url("http://", "is not a URL");
        check_url("http://[::1", "is not a URL");
        check_url("ftp://example.com/", "`ftp` is not supported");
        check_url("file:///etc/passwd", "`file` is not supported");
        check_url("javascript:alert(1)", "`javascript` is not supported");
        check_url("https://user@example.com/", "user or a password");
        check_url("https://:secret@example.com/", "user or a password");
        check_url(&format!("https://example.com/{}", "a".repeat(70_000)), "longer than 65536 bytes");
    }

    #[test]
    fn no_line_is_smuggled_into_a_request() {
        let bad = |method: &str, name: &str, value: &str| {
            let headers = vec![(name.to_owned(), value.to_owned())];
            check(&Request { method: method.to_owned(), headers, ..Request::get("https://example.com") }).is_err()
        };
        assert!(!bad("GET", "x-name", "a\tb ü <credential:key>"));
        assert!(!bad("propfind", "x", ""));
        for method in ["", "GET /", "GET\r\nX: y", "GÉT"] {
            assert!(bad(method, "x", "y"), "{method:?}");
        }
        for (name, value) in [("", "x"), ("a b", "x"), ("a:", "x"), ("a\r\n", "x"), ("a", "x\r\nY: z"), ("a", "\0")] {
            assert!(bad("GET", name, value), "{name:?}: {value:?}");
        }
    }

    #[test]
    fn an_error_of_reading_keeps_its_reason() {
        let limit = HttpError::failed(FailureKind::Limit, "too long");
        assert_eq!(HttpError::of_read(&io::Error::other(limit.clone())), limit);
        let other = HttpError::of_read(&io::Error::from(io::ErrorKind::UnexpectedEof));
        assert!(matches!(other, HttpError::Failed { kind: FailureKind::Protocol, .. }), "{other:?}");
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let blocked = HttpError::Blocked {
            rule: "domain_not_allowed".to_owned(),
            reason: "`example.com` was not granted".to_owned(),
            remedy: "ask the user for access to it".to_owned(),
        };
        assert_eq!(
            blocked.to_string(),
            "network_blocked: `example.com` was not granted; ask the user for access to it"
        );
    }
}

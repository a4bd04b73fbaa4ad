//! Stand-ins for the host in an author's unit tests: a workspace in a temporary directory, names of credentials, and responses by
//! method and URL with a record of the requests. It reaches no network and has no secret.
//!
//! They belong to the thread that made the sandbox, which is one for each test, and are the last one's if it made several.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, io, process};

use url::Url;

use crate::credentials::{CredentialError, SignatureAlgorithm};
use crate::http::{Body, FailureKind, HttpError, Request, Response};

thread_local! {
    static CURRENT: RefCell<Option<State>> = const { RefCell::new(None) };
}

/// A workspace, credentials and a site for the tools that this thread calls, until it is dropped.
///
/// ```
/// use motor_sdk::testing::Sandbox;
/// use motor_sdk::{http, workspace};
///
/// let sandbox = Sandbox::new().with_file("in.txt", "one").with_response("GET", "https://example.com/", (200, "a page"));
/// let response = http::send(http::Request::get("https://example.com/")).unwrap();
/// workspace::write("page.txt", response.bytes(1024).unwrap()).unwrap();
/// assert_eq!(sandbox.file("page.txt").unwrap(), b"a page");
/// assert_eq!(sandbox.requests()[0].url, "https://example.com/");
/// ```
#[derive(Debug)]
pub struct Sandbox {
    root: PathBuf,
}

/// A response of the site.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// The HTTP status code.
    pub status: u16,
    /// Names, in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The bytes of the body.
    pub body: Vec<u8>,
}

#[derive(Debug, Default)]
struct State {
    root: PathBuf,
    /// Names, with the secret of those that may be revealed.
    credentials: BTreeMap<String, Option<String>>,
    site: Vec<Exchange>,
    requests: Vec<Request>,
}

#[derive(Debug)]
struct Exchange {
    method: String,
    url: String,
    result: Result<Reply, HttpError>,
}

impl<B: Into<Vec<u8>>> From<(u16, B)> for Reply {
    fn from((status, body): (u16, B)) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }
}

impl Sandbox {
    /// An empty workspace, no credential, and a site that answers nothing.
    ///
    /// # Panics
    /// If the machine has no place for temporary files.
    #[must_use]
    pub fn new() -> Self {
        let root = make_directory().unwrap_or_else(|error| panic!("no temporary directory can be made: {error}"));
        CURRENT.set(Some(State { root: root.clone(), ..State::default() }));
        Self { root }
    }

    /// Puts a file into the workspace.
    ///
    /// # Panics
    /// If it cannot be written.
    #[must_use]
    pub fn with_file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        crate::workspace::write(path, content).unwrap_or_else(|error| panic!("{error}"));
        self
    }

    /// Grants a credential. The host's answers for it are stand-ins of the right length, the same for the same data.
    #[must_use]
    pub fn with_credential(self, name: &str) -> Self {
        self.change(|state| state.credentials.insert(name.to_owned(), None));
        self
    }

    /// Grants a credential that may be revealed, with a value for the test.
    #[must_use]
    pub fn with_revealed(self, name: &str, value: &str) -> Self {
        self.change(|state| state.credentials.insert(name.to_owned(), Some(value.to_owned())));
        self
    }

    /// Answers a request, `(200, "text")` or a [`Reply`]. Given again for the same request, it is the response to the next one;
    /// the last response stays.
    #[must_use]
    pub fn with_response(self, method: &str, url: &str, reply: impl Into<Reply>) -> Self {
        self.with_result(method, url, Ok(reply.into()))
    }

    /// Lets a request fail, as [`with_response`](Self::with_response) answers it.
    #[must_use]
    pub fn with_failure(self, method: &str, url: &str, error: HttpError) -> Self {
        self.with_result(method, url, Err(error))
    }

    fn with_result(self, method: &str, url: &str, result: Result<Reply, HttpError>) -> Self {
        let exchange = Exchange { method: method.to_ascii_uppercase(), url: normal(url), result };
        self.change(|state| state.site.push(exchange));
        self
    }

    /// All requests of the tools so far, in order, with their placeholders as they were written.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.change(|state| state.requests.clone()).unwrap_or_default()
    }

    /// The content of a file of the workspace, if it is there.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<Vec<u8>> {
        fs::read(self.root.join(path)).ok()
    }

    /// Reads or changes the state, if it is still this one's.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> Option<T> {
        CURRENT.with_borrow_mut(|current| current.as_mut().filter(|state| state.root == self.root).map(change))
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|current| {
            current.take_if(|state| state.root == self.root);
        });
        // One that is left lies among the machine's temporary files.
        fs::remove_dir_all(&self.root).ok();
    }
}

/// A new directory: one that is there, with anything in it, is never taken.
fn make_directory() -> io::Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = env::temp_dir().join(format!("motor-sdk-{}-{number}", process::id()));
        match fs::create_dir(&root) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| root),
        }
    }
}

/// A URL as it is compared: in its canonical form, without its fragment, which is never sent.
fn normal(url: &str) -> String {
    match Url::parse(url) {
        Ok(mut url) => {
            url.set_fragment(None);
            url.into()
        }
        Err(_) => url.to_owned(),
    }
}

/// The workspace of this thread's sandbox.
pub(crate) fn workspace() -> Option<PathBuf> {
    CURRENT.with_borrow(|current| current.as_ref().map(|state| state.root.clone()))
}

/// Answers a request to a URL that was checked.
pub(crate) fn send(request: &Request, url: &Url) -> Result<Response, HttpError> {
    CURRENT.with_borrow_mut(|current| {
        let Some(state) = current else {
            let message = format!("cannot reach `{}` outside a component", url.authority());
            return Err(HttpError::failed(FailureKind::Connect, message));
        };
        state.requests.push(request.clone());
        state.refuse_credentials(request)?;
        state.answer(&request.method.to_ascii_uppercase(), &normal(url.as_str())).map(|reply| Response {
            status: reply.status,
            headers: reply.headers,
            body: Body::from(reply.body),
            url: url.to_string(),
        })
    })
}

impl State {
    /// Refuses a request with a credential that was not granted, as the gate does.
    fn refuse_credentials(&self, request: &Request) -> Result<(), HttpError> {
        let body = String::from_utf8_lossy(&request.body);
        let values = request.headers.iter().map(|(_, value)| value.as_str());
        for text in values.chain([request.url.as_str(), &*body]) {
            for name in text.split("<credential:").skip(1).filter_map(|rest| rest.split_once('>')).map(|(name, _)| name)
            {
                if !self.credentials.contains_key(name) {
                    let reason = format!("the credential `{name}` is not set, or this run was not granted it");
                    let remedy = format!("ask the user for the credential `{name}`");
                    return Err(HttpError::Blocked { rule: "credential_not_granted".to_owned(), reason, remedy });
                }
            }
        }
        Ok(())
    }

    fn answer(&mut self, method: &str, url: &str) -> Result<Reply, HttpError> {
        let is_it = |exchange: &Exchange| exchange.method == method && exchange.url == url;
        let Some(first) = self.site.iter().position(is_it) else {
            let reason = format!("the sandbox of the test has no response to `{method} {url}`");
            let remedy = "add it with `with_response`".to_owned();
            return Err(HttpError::Blocked { rule: "not_recorded".to_owned(), reason, remedy });
        };
        let is_last = self.site.iter().filter(|exchange| is_it(exchange)).count() == 1;
        match self.site.get(first) {
            Some(exchange) if is_last => exchange.result.clone(),
            _ => self.site.remove(first).result,
        }
    }
}

/// As [`credentials::exists`](crate::credentials::exists).
pub(crate) fn exists(name: &str) -> bool {
    credential(name).is_ok()
}

/// As [`credentials::hmac_sha256`](crate::credentials::hmac_sha256), with a stand-in.
pub(crate) fn hmac_sha256(name: &str, data: &[u8]) -> Result<Vec<u8>, CredentialError> {
    credential(name).map(|_| stand_in(32, &(name, data)))
}

/// As [`credentials::sign`](crate::credentials::sign), with a stand-in.
pub(crate) fn sign(name: &str, algorithm: SignatureAlgorithm, data: &[u8]) -> Result<Vec<u8>, CredentialError> {
    let (kind, length) = match algorithm {
        SignatureAlgorithm::Ed25519 => (0, 64),
        SignatureAlgorithm::EcdsaP256Sha256 => (1, 64),
        SignatureAlgorithm::RsaPkcs1Sha256 => (2, 256),
    };
    credential(name).map(|_| stand_in(length, &(name, kind, data)))
}

/// As [`credentials::reveal`](crate::credentials::reveal).
pub(crate) fn reveal(name: &str) -> Result<String, CredentialError> {
    credential(name)?.ok_or_else(|| CredentialError::Denied(format!("`{name}` is not set for being revealed")))
}

fn credential(name: &str) -> Result<Option<String>, CredentialError> {
    CURRENT.with_borrow(|current| {
        let granted = current.as_ref().and_then(|state| state.credentials.get(name).cloned());
        granted.ok_or_else(|| {
            CredentialError::Missing(format!("no credential `{name}` is granted to this run; ask the user to set it"))
        })
    })
}

/// Bytes that depend on the input, and keep nothing secret.
fn stand_in(length: usize, input: &impl std::hash::Hash) -> Vec<u8> {
    let block = |number: usize| {
        let mut hasher = DefaultHasher::new();
        (number, input).hash(&mut hasher);
        hasher.finish().to_le_bytes()
    };
    (0..length.div_ceil(8)).flat_map(block).take(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolError;
    use crate::credentials::{self, placeholder};
    use crate::http::{send, send_following};

    const PAGE: &str = "https://example.com/page";

    fn with_key() -> Request {
        let headers = vec![("authorization".to_owned(), format!("Bearer {}", placeholder("key")))];
        Request { headers, ..Request::get(PAGE) }
    }

    #[test]
    fn the_site_answers_by_method_and_url_in_order() {
        let sandbox = Sandbox::new()
            .with_response("GET", PAGE, (503, ""))
            .with_response("get", "HTTPS://Example.com:443/page#top", (200, "second"))
            .with_failure("POST", PAGE, HttpError::failed(FailureKind::Timeout, "slow"));
        let status = |request| send(request).map(|response| response.status);
        assert_eq!([(); 3].map(|()| status(Request::get(PAGE)).unwrap()), [503, 200, 200]);
        let post = Request { method: "POST".to_owned(), body: b"x".to_vec(), ..Request::get(PAGE) };
        assert!(status(post.clone()).unwrap_err().is_retryable());
        let absent = ToolError::from(status(Request::get("https://example.com/")).unwrap_err());
        assert!(matches!(&absent, ToolError::Denied(text) if text.contains("GET https://example.com/")), "{absent:?}");
        assert_eq!(sandbox.requests().len(), 5);
        assert_eq!(sandbox.requests()[3], post);
    }

    #[test]
    fn redirects_are_followed_on_the_site() {
        let there = vec![("location".to_owned(), "/there".to_owned())];
        let moved = Reply { status: 302, headers: there, body: Vec::new() };
        let sandbox = Sandbox::new().with_response("GET", PAGE, moved).with_response(
            "GET",
            "https://example.com/there",
            (200, "a page"),
        );
        assert_eq!(send_following(Request::get(PAGE), 1).unwrap().bytes(6).unwrap(), b"a page");
        assert_eq!(sandbox.requests()[1].url, "https://example.com/there");
    }

    #[test]
    fn a_longer_body_than_asked_for_is_a_limit() {
        let _sandbox = Sandbox::new().with_response("GET", PAGE, (200, "a page"));
        let refused = send(Request::get(PAGE)).unwrap().bytes(5).unwrap_err();
        assert!(matches!(ToolError::from(refused), ToolError::Limit(text) if text.contains("5 bytes")));
    }

    #[test]
    fn a_request_has_only_credentials_that_were_granted() {
        let sandbox = Sandbox::new().with_response("GET", PAGE, (200, ""));
        let refused = send(with_key()).unwrap_err();
        assert!(matches!(refused, HttpError::Blocked { rule, .. } if rule == "credential_not_granted"));
        let sandbox = sandbox.with_credential("key");
        assert_eq!(send(with_key()).unwrap().status, 200);
        assert_eq!(sandbox.requests()[1].header("authorization"), Some("Bearer <credential:key>"));
    }

    #[test]
    fn computing_needs_the_credential_and_depends_on_the_data() {
        let _sandbox = Sandbox::new().with_credential("key").with_revealed("raw", "value");
        assert!(credentials::exists("key") && !credentials::exists("other"));
        let of = |data: &[u8]| credentials::hmac_sha256("key", data).unwrap();
        assert_eq!((of(b"a"), of(b"a").len()), (of(b"a"), 32));
        assert_ne!(of(b"a"), of(b"b"));
        assert_eq!(credentials::sign("key", SignatureAlgorithm::Ed25519, b"a").unwrap().len(), 64);
        assert_eq!(credentials::reveal("raw").unwrap(), "value");
        assert!(matches!(ToolError::from(credentials::reveal("key").unwrap_err()), ToolError::Denied(_)));
        assert!(matches!(credentials::hmac_sha256("other", b"a"), Err(CredentialError::Missing(_))));
    }

    #[test]
    fn nothing_is_left_after_it() {
        let sandbox = Sandbox::new().with_file("a", "x").with_credential("key").with_response("GET", PAGE, (200, ""));
        let root = sandbox.root.clone();
        assert!(root.join("a").is_file());
        drop(sandbox);
        assert!(!root.exists() && !credentials::exists("key"));
        assert!(send(Request::get(PAGE)).unwrap_err().to_string().contains("outside a component"));
    }
}

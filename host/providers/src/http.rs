//! The HTTP client, and the path of every request to a model.
//!
//! It survives endpoints that send without end, never answer, redirect a key elsewhere, or reset: bytes are counted,
//! silence is timed, redirects are refused, and errors never show an address's user part.

use std::collections::HashMap;
use std::error::Error as _;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use base::Secret;
use llm::ModelErrorKind;
use reqwest::header::{HeaderMap, HeaderValue};

use crate::failure::{MAX_WAIT, ProviderFailure, seconds};
use crate::remedy::RequestOrigin;
use crate::settings::{ModelLimits, Writing};

/// Of an error's body at most this much is read, in bytes.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// A client, the endpoint it speaks to, and the key for that endpoint.
pub(crate) struct ProviderClient {
    pub client: reqwest::Client,
    /// Without a slash at its end.
    pub base: String,
    pub key: Option<Secret<String>>,
    pub origin: RequestOrigin,
    pub writing: Writing,
}

/// How an API wants its requests.
pub(crate) struct Manner {
    /// The header with the key: `authorization`, where it stands after `Bearer`, or another.
    pub key_header: &'static str,
    /// Additional headers of the request.
    pub headers: &'static [(&'static str, &'static str)],
}

/// The clients of this process, by the time they wait for a connection. Making one reads the certificate authorities of the machine,
/// which takes longer than all else that the host does for a reply; and its connections are there for the next conversation.
static CLIENTS: LazyLock<Mutex<HashMap<Duration, reqwest::Client>>> = LazyLock::new(Mutex::default);

/// A client with these limits, apart from the deadline of a request, which each has of its own.
pub(crate) fn client(limits: &ModelLimits) -> Result<reqwest::Client, String> {
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = clients.get(&limits.connect) {
        return Ok(client.clone());
    }
    let client = reqwest::Client::builder()
        .connect_timeout(limits.connect)
        // A redirect could carry the key, and the conversation, to another host.
        .redirect(reqwest::redirect::Policy::none())
        // A compressed body of a few bytes may unpack to any size.
        .no_gzip()
        .user_agent(concat!("motor/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| format!("cannot make an HTTP client: {}", error.without_url()))?;
    clients.insert(limits.connect, client.clone());
    Ok(client)
}

/// Checks a base URL, and takes the slash off its end.
pub(crate) fn base_url(text: &str) -> Result<String, String> {
    let url = reqwest::Url::parse(text).map_err(|error| format!("the base URL is not one: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("the base URL must begin with `http://` or `https://`".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("the base URL must not have a `?` or `#` part".to_owned());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// A reply that has begun: success, with a body still to be read.
pub(crate) struct ProviderReply {
    response: reqwest::Response,
    idle: Duration,
    left: usize,
    /// Whose reply it is.
    pub origin: RequestOrigin,
}

impl ProviderClient {
    /// Sends JSON and waits for the headers of a successful reply.
    pub(crate) async fn post(
        &self,
        path: &str,
        manner: &Manner,
        body: &serde_json::Value,
        limits: &ModelLimits,
    ) -> Result<ProviderReply, ProviderFailure> {
        self.send(self.client.post(format!("{}{path}", self.base)).json(body), manner, limits).await
    }

    /// Asks for a document and waits for the headers of a successful reply.
    pub(crate) async fn get(
        &self,
        path: &str,
        manner: &Manner,
        limits: &ModelLimits,
    ) -> Result<ProviderReply, ProviderFailure> {
        self.send(self.client.get(format!("{}{path}", self.base)), manner, limits).await
    }

    async fn send(
        &self,
        mut request: reqwest::RequestBuilder,
        manner: &Manner,
        limits: &ModelLimits,
    ) -> Result<ProviderReply, ProviderFailure> {
        request = request.timeout(limits.deadline);
        for (name, value) in manner.headers {
            request = request.header(*name, *value);
        }
        if let Some(key) = &self.key {
            let prefix = if manner.key_header == "authorization" { "Bearer " } else { "" };
            let mut value = HeaderValue::from_str(&format!("{prefix}{}", key.expose())).map_err(|_| {
                let message = format!("`{}` holds characters that no key has", self.origin.key_variable);
                ProviderFailure::new(ModelErrorKind::Auth, message)
            })?;
            value.set_sensitive(true);
            request = request.header(manner.key_header, value);
        }
        let response = match tokio::time::timeout(limits.idle, request.send()).await {
            Ok(sent) => sent.map_err(|error| from_reqwest(error, &self.origin))?,
            Err(_) => return Err(silent(limits.idle)),
        };
        let status = response.status();
        #[expect(clippy::disallowed_methods, reason = "an HTTP date is compared with the wall clock")]
        let retry_after = retry_after(response.headers(), SystemTime::now());
        let (idle, left) = (limits.idle, limits.response_bytes);
        let mut reply = ProviderReply { response, idle, left, origin: self.origin.clone() };
        if status.is_success() {
            return Ok(reply);
        }
        reply.left = MAX_ERROR_BYTES;
        let mut words = Vec::new();
        // The status decides: incomplete words are shown as far as they came.
        while let Ok(Some(bytes)) = reply.next().await {
            words.extend_from_slice(&bytes);
        }
        Err(ProviderFailure::from_status(status.as_u16(), retry_after, &String::from_utf8_lossy(&words), &self.origin))
    }
}

impl ProviderReply {
    /// Whether it is a stream of events.
    pub(crate) fn is_event_stream(&self) -> bool {
        let kind = self.response.headers().get(reqwest::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
    }

    /// The next bytes; `None` at the end.
    pub(crate) async fn next(
        &mut self,
    ) -> Result<Option<impl AsRef<[u8]> + use<> + std::ops::Deref<Target = [u8]>>, ProviderFailure> {
        let bytes = match tokio::time::timeout(self.idle, self.response.chunk()).await {
            Ok(chunk) => chunk.map_err(|error| from_reqwest(error, &self.origin))?,
            Err(_) => return Err(silent(self.idle)),
        };
        if let Some(bytes) = &bytes {
            self.left = self.left.checked_sub(bytes.len()).ok_or_else(|| {
                ProviderFailure::new(ModelErrorKind::Malformed, "the reply is larger than the limit on model replies")
                    .for_good()
            })?;
        }
        Ok(bytes)
    }
}

fn silent(idle: Duration) -> ProviderFailure {
    let idle = idle.as_secs_f32();
    ProviderFailure::new(
        ModelErrorKind::Timeout,
        format!("the endpoint was silent for {idle} s; a slow model needs a larger `models.idle_seconds`"),
    )
}

/// The failure that an error of the client means. The address stays out of the message: it may hold a user and password.
fn from_reqwest(error: reqwest::Error, origin: &RequestOrigin) -> ProviderFailure {
    let error = error.without_url();
    if error.is_builder() {
        return ProviderFailure::new(ModelErrorKind::Rejected, "the request cannot be made: check the base URL");
    }
    let (kind, what) = if error.is_timeout() {
        (
            ModelErrorKind::Timeout,
            if error.is_connect() {
                "connecting took too long".to_owned()
            } else {
                "the endpoint took too long; a slow model needs a larger `models.deadline_seconds`".to_owned()
            },
        )
    } else if error.is_connect() {
        (ModelErrorKind::Unavailable, format!("cannot connect; {}", origin.unreachable()))
    } else {
        (ModelErrorKind::Unavailable, "the connection broke".to_owned())
    };
    // The last cause is the system's own word: `connection refused`, `certificate has expired`.
    let mut cause: &dyn std::error::Error = &error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    let cause = if error.source().is_some() {
        format!(": {}", crate::failure::said(&cause.to_string()))
    } else {
        String::new()
    };
    ProviderFailure::new(kind, format!("{what}{cause}"))
}

/// Retry-After in either form (RFC 9110, 10.2.3), or `retry-after-ms`.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.parse::<u64>().ok()) {
        return Some(Duration::from_millis(millis).min(MAX_WAIT));
    }
    let text = text("retry-after")?;
    if text.parse::<f64>().is_ok() {
        return seconds(text);
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default().min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_retry_after_are_read() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        for (name, value, expected) in [
            ("retry-after", "2", Some(2_000)),
            ("retry-after", "1.5", Some(1_500)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT", Some(3_000)),
            ("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("retry-after", "99999999999999999999", Some(86_400_000)),
            ("retry-after", "-3", Some(0)),
            ("retry-after", "NaN", None),
            ("retry-after", "soon", None),
            ("retry-after-ms", "250", Some(250)),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            assert_eq!(retry_after(&headers, now), expected.map(Duration::from_millis), "{name}: {value}");
        }
    }

    #[test]
    fn a_base_url_is_an_address() {
        assert_eq!(base_url("http://127.0.0.1:8080/v1/").unwrap(), "http://127.0.0.1:8080/v1");
        for wrong in ["", "localhost:80", "file:///etc/passwd", "http://", "https://h/v1?key=x", "javascript:1"] {
            assert!(base_url(wrong).is_err(), "{wrong}");
        }
    }
}

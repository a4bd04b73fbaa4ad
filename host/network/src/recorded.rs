//! A recorded site: responses in place of servers, so that tests of tools give the same result each time, offline.
//!
//! Everything of the gate but the look-up of names and the connection is as for a real request: policy, credentials, taint,
//! limits, scrubbing. A request without a recorded response is refused, never sent, unless the site is being recorded.

mod recorder;

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::{Buf as _, Bytes};
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connect::GateConnection;
use crate::target::{Target, shown};
use crate::{BlockReason, Rule};

pub use recorder::Recorder;
pub(crate) use recorder::Recording;

/// Headers of a response that the recording sets itself.
const OWN_HEADERS: [HeaderName; 3] = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION];

/// Requests with their responses.
#[derive(Debug, Clone)]
pub struct RecordedSite {
    exchanges: Vec<RecordedExchange>,
    /// Real servers have the responses that are missing, and this is given them.
    recorder: Option<Recorder>,
}

#[derive(Debug, Clone)]
struct RecordedExchange {
    method: Method,
    target: Target,
    body: Option<Value>,
    /// The response as it stands on the wire.
    response: Bytes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    request: StoredRequest,
    response: StoredResponse,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRequest {
    #[serde(default = "get")]
    method: String,
    url: String,
    body: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredResponse {
    #[serde(default = "ok")]
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: Value,
}

fn get() -> String {
    Method::GET.to_string()
}

fn ok() -> u16 {
    StatusCode::OK.as_u16()
}

impl RecordedSite {
    /// Reads a site: a JSON array of `{"request": {"method", "url", "body"}, "response": {"status", "headers", "body"}}`. Required is
    /// the URL; defaults are `GET`, any body of the request, status 200, and nothing else. A body is text, or any other JSON.
    ///
    /// # Errors
    /// If it is not such an array; the text names the place, or the number of the exchange from 1.
    pub fn parse(json: &str) -> Result<Self, String> {
        let stored: Vec<Stored> = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let read = |(index, stored)| {
            RecordedExchange::read(stored).map_err(|reason| format!("exchange {}: {reason}", index + 1))
        };
        let exchanges = stored.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
        Ok(Self { exchanges, recorder: None })
    }

    /// Asks the real servers for missing responses from now on, and collects them. Requests with credentials are
    /// refused all the same.
    #[must_use]
    pub fn recording(self, recorder: Recorder) -> Self {
        Self { recorder: Some(recorder), ..self }
    }

    /// A connection that has the response to this request: the first that was recorded for it. None if the real server is to be
    /// asked.
    ///
    /// # Errors
    /// If none was recorded, and the server may not be asked.
    pub(crate) fn connect(
        &self,
        method: &Method,
        target: &Target,
        body: &[u8],
        has_credentials: bool,
    ) -> Result<Option<Box<dyn GateConnection>>, BlockReason> {
        if let Some(RecordedExchange { response, .. }) = self.find(method, target, body) {
            return Ok(Some(Box::new(Replay { response: response.clone(), waiting: Some(None) })));
        }
        let remedy = match (&self.recorder, has_credentials) {
            (Some(_), false) => return Ok(None),
            (Some(_), true) => "add it to the file of the site by hand: no credential is sent to record a response",
            (None, _) => "add the request with its response to the file of the site, or mend the request",
        };
        Err(BlockReason {
            rule: Rule::NotRecorded,
            asked: target.authority(),
            reason: format!("the recorded site has no response to `{method}` `{target}`"),
            remedy: remedy.to_owned(),
        })
    }

    /// The recording of this request, if the site is being recorded and lacks it.
    pub(crate) fn record(&self, method: &Method, target: &Target, body: &Bytes) -> Option<Recording> {
        let recorder = self.recorder.clone().filter(|_| self.find(method, target, body).is_none())?;
        Some(Recording::start(recorder, method, target, body))
    }

    fn find(&self, method: &Method, target: &Target, body: &[u8]) -> Option<&RecordedExchange> {
        self.exchanges.iter().find(|exchange| {
            exchange.method == *method
                && exchange.target == *target
                && exchange.body.as_ref().is_none_or(|it| is(it, body))
        })
    }
}

impl RecordedExchange {
    fn read(Stored { request, response }: Stored) -> Result<Self, String> {
        let method = Method::from_bytes(request.method.as_bytes());
        let method = method.map_err(|_| format!("`{}` is not a method", shown(&request.method)))?;
        let target = Target::parse(&request.url).map_err(|blocked| blocked.reason)?;
        if (method == Method::HEAD || matches!(response.status, 204 | 304)) && !response.body.is_null() {
            return Err("the response has no body: leave it out".to_owned());
        }
        Ok(Self { method, target, body: request.body, response: response.on_the_wire()? })
    }
}

impl StoredResponse {
    fn on_the_wire(self) -> Result<Bytes, String> {
        let status = StatusCode::from_u16(self.status).ok().filter(|status| status.as_u16() >= 200);
        let status = status.ok_or_else(|| format!("{} is not the status of a response", self.status))?;
        let mut head = format!("HTTP/1.1 {} \r\n", status.as_u16()).into_bytes();
        for (name, value) in &self.headers {
            let (Ok(name), Ok(value)) = (HeaderName::try_from(name.as_str()), HeaderValue::from_str(value)) else {
                return Err(format!("`{}` is not a header with a value", shown(name)));
            };
            if OWN_HEADERS.contains(&name) {
                return Err(format!("leave out the header `{name}`: it follows from the body"));
            }
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        let body = match self.body {
            Value::Null => String::new(),
            Value::String(text) => text,
            json => json.to_string(),
        };
        head.extend_from_slice(format!("content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
        Ok(head.into())
    }
}

/// Whether a body is the recorded one.
fn is(recorded: &Value, body: &[u8]) -> bool {
    match recorded {
        Value::String(text) => text.as_bytes() == body,
        json => serde_json::from_slice::<Value>(body).is_ok_and(|body| body == *json),
    }
}

/// A connection to nowhere: it takes a request, and then has the response.
struct Replay {
    response: Bytes,
    /// Until the request begins: the reader that waits for that, if there is one.
    waiting: Option<Option<Waker>>,
}

impl AsyncRead for Replay {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Some(waiting) = &mut self.waiting {
            *waiting = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let length = self.response.remaining().min(into.remaining());
        into.put_slice(&self.response.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Replay {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if let Some(Some(reader)) = self.waiting.take() {
            reader.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::{CredentialName, Secret};
    use http_body_util::{BodyExt as _, Full};
    use vault::{GrantedCredential, RunSecrets};

    use super::*;
    use crate::{CallLimits, CallNetwork, Gate, GateError, NetworkConfig, Policy, Taint, Timeouts};

    const SITE: &str = r#"[
        {"request": {"url": "https://api.example/items?n=1"},
         "response": {"headers": {"content-type": "application/json"}, "body": {"items": [1, 2]}}},
        {"request": {"method": "POST", "url": "https://api.example/items", "body": {"a": 1}},
         "response": {"status": 201, "body": "made with <credential:key>"}},
        {"request": {"url": "https://other.example/"}, "response": {}}
    ]"#;

    fn call(site: &str) -> CallNetwork {
        let secret = GrantedCredential {
            name: CredentialName::parse("key").unwrap(),
            value: Secret::new("swordfish".to_owned()),
            domains: vec!["api.example".to_owned()],
            raw: false,
        };
        let secrets = Arc::new(RunSecrets::new(vec![secret], Arc::default()));
        let gate = Gate::recorded(&NetworkConfig::default(), RecordedSite::parse(site).unwrap()).unwrap();
        let policy = Policy { domains: vec!["api.example".parse().unwrap()], ..Policy::default() };
        let limits = CallLimits { requests: 9, request_bytes: 9_000, response_bytes: 9_000, idempotency_key: None };
        gate.run(policy, secrets, Taint::default()).call(limits)
    }

    async fn send(call: &CallNetwork, method: &str, url: &str, body: &'static str) -> Result<(u16, String), GateError> {
        let body = Full::new(Bytes::from_static(body.as_bytes())).map_err(|never| match never {}).boxed_unsync();
        let request =
            http::Request::builder().method(method).uri(url).header("authorization", "Bearer <credential:key>");
        let response = call.send(request.body(body).unwrap(), Timeouts::default()).await?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, String::from_utf8(body.to_vec()).unwrap()))
    }

    fn rule<T: std::fmt::Debug>(result: Result<T, GateError>) -> Rule {
        match result {
            Err(GateError::Blocked(blocked)) => blocked.rule,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_recorded_response_comes_through_the_gate_each_time() {
        for _ in 0..2 {
            let call = call(SITE);
            let got = send(&call, "GET", "https://api.example/items?n=1", "").await.unwrap();
            assert_eq!(got, (200, r#"{"items":[1,2]}"#.to_owned()));
            let [trace] = call.traces().try_into().unwrap();
            assert_eq!((trace.status, trace.credentials.len()), (Some(200), 1), "{trace:?}");
        }
        let made = send(&call(SITE), "POST", "https://api.example/items", r#"{"a":1}"#).await.unwrap();
        assert_eq!(made, (201, "made with <credential:key>".to_owned()));
    }

    #[tokio::test]
    async fn a_request_that_is_not_recorded_or_not_granted_is_refused() {
        for (method, url, body) in [
            ("GET", "https://api.example/items?n=2", ""),
            ("GET", "http://api.example:443/items?n=1", ""),
            ("HEAD", "https://api.example/items?n=1", ""),
            ("POST", "https://api.example/items", r#"{"a":2}"#),
        ] {
            let refused = rule(send(&call(SITE), method, url, body).await);
            assert!(
                [Rule::NotRecorded, Rule::CredentialNotForDomain].contains(&refused),
                "{method} {url} {body}: {refused}"
            );
        }
        assert_eq!(rule(send(&call(SITE), "GET", "https://other.example/", "").await), Rule::DomainNotAllowed);
    }

    #[test]
    fn an_invalid_site_names_the_exchange() {
        let one = |request: &str, response: &str| {
            let ok = r#"{"request": {"url": "https://a.example/"}, "response": {}}"#;
            format!(r#"[{ok}, {{"request": {request}, "response": {response}}}]"#)
        };
        let url = r#"{"url": "https://a.example/"}"#;
        for (site, word) in [
            (one(r#"{"url": "a"}"#, "{}"), "exchange 2"),
            (one(r#"{"url": "https://a.example/", "method": "a b"}"#, "{}"), "exchange 2: `a b` is not a method"),
            (one(url, r#"{"status": 100}"#), "exchange 2: 100 is not"),
            (one(url, r#"{"headers": {"a": "b\r\nc: d"}}"#), "exchange 2: `a` is not a header"),
            (one(url, r#"{"headers": {"Content-Length": "1"}}"#), "leave out the header"),
            (one(url, r#"{"status": 204, "body": "a"}"#), "the response has no body"),
            (one(url, r#"{"stats": 200}"#), "unknown field"),
            ("{}".to_owned(), "expected a sequence"),
        ] {
            let error = RecordedSite::parse(&site).unwrap_err();
            assert!(error.contains(word), "{site}: {error}");
        }
        RecordedSite::parse(&one(url, "{}")).unwrap();
    }
}

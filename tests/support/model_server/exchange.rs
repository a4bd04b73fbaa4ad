//! Answers as raw HTTP: status, headers and body as a provider sends them, byte for byte, one for each request in order.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Recorded;

/// One answer. Of `sse`, `json` and `raw` it has one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The HTTP status. Default: 200.
    #[serde(default = "ok")]
    status: u16,
    /// Default: the content type that fits the body.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Events. An object is an event's data; a text is too, unless it begins with `:`, a comment; `{"raw": TEXT}` stands
    /// in the stream as it is.
    sse: Option<Vec<Value>>,
    /// A body given as JSON.
    json: Option<Value>,
    /// A body given as text.
    raw: Option<String>,
    /// The line end of the events. Default: `\n`.
    #[serde(default = "line_feed")]
    eol: String,
    /// Bytes of each piece on the wire, wherever that cuts a character. Default: an event a piece.
    split: Option<usize>,
    /// The end of the connection. Default: an orderly one.
    #[serde(default)]
    end: Ending,
}

/// The end of the connection after the body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Ending {
    #[default]
    Close,
    /// The connection breaks off.
    Break,
    /// Nothing, and the connection stays open.
    Silence,
}

fn ok() -> u16 {
    200
}

fn line_feed() -> String {
    "\n".to_owned()
}

impl Answer {
    /// The data of its events, or its body as one.
    #[must_use]
    pub fn payloads(&self) -> Vec<Value> {
        let events = self.sse.clone().into_iter().flatten().filter(|event| event.is_object());
        events.chain(self.json.clone()).collect()
    }

    /// The pieces of the body.
    fn pieces(&self, named: bool) -> Vec<Vec<u8>> {
        let eol = &self.eol;
        let event = |event: &Value| match event {
            Value::String(comment) if comment.starts_with(':') => format!("{comment}{eol}{eol}"),
            Value::String(data) => format!("data: {data}{eol}{eol}"),
            Value::Object(map) if map.contains_key("raw") => map["raw"].as_str().unwrap_or_default().to_owned(),
            // Anthropic names its events.
            event if named => {
                format!("event: {}{eol}data: {event}{eol}{eol}", event["type"].as_str().unwrap_or("message"))
            }
            event => format!("data: {event}{eol}{eol}"),
        };
        let whole = self.raw.clone().into_iter().chain(self.json.as_ref().map(Value::to_string));
        let events: Vec<String> = self.sse.iter().flatten().map(event).chain(whole).collect();
        match self.split {
            Some(size) => events.concat().as_bytes().chunks(size).map(<[u8]>::to_vec).collect(),
            None => events.into_iter().map(String::into_bytes).collect(),
        }
    }

    fn response(&self, named: bool) -> Response {
        let kind = if self.sse.is_some() { "text/event-stream" } else { "application/json" };
        let end = self.end;
        let tail = futures_util::stream::once(async move {
            // A pause, so that the body reaches the client first.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            match end {
                Ending::Silence => std::future::pending().await,
                _ => Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
            }
        });
        let pieces = futures_util::stream::iter(self.pieces(named)).then(async |piece| {
            // Lets the connection send each piece by itself.
            tokio::task::yield_now().await;
            Ok(piece)
        });
        let body = if end == Ending::Close { Body::from_stream(pieces) } else { Body::from_stream(pieces.chain(tail)) };
        let status = StatusCode::from_u16(self.status).expect("a status");
        let mut response = (status, [(header::CONTENT_TYPE, kind)], body).into_response();
        for (name, value) in &self.headers {
            let name = header::HeaderName::try_from(name).expect("a name of a header");
            response.headers_mut().insert(name, value.parse().expect("a value of a header"));
        }
        response
    }
}

/// Looks at a request before it is answered: a refusal as `(status, body)` takes the place of the answer.
pub type Check = Box<dyn Fn(&Recorded) -> Result<(), (u16, Value)> + Send + Sync>;

/// A server that gives answers in order. It stops when dropped.
#[derive(Debug)]
pub struct Exchanges {
    address: SocketAddr,
    state: Arc<State>,
    task: tokio::task::JoinHandle<()>,
}

struct State {
    answers: Vec<Answer>,
    check: Check,
    /// With the number of answers given.
    requests: Mutex<(Vec<Recorded>, usize)>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("answers", &self.answers).finish_non_exhaustive()
    }
}

impl Exchanges {
    /// Starts on a free port. A refused request takes no answer.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start(answers: Vec<Answer>, check: Check) -> Self {
        let state = Arc::new(State { answers, check, requests: Mutex::default() });
        let shared = Arc::clone(&state);
        let router = Router::new().fallback(move |uri: Uri, headers: HeaderMap, body: Bytes| {
            let shared = Arc::clone(&shared);
            async move { Ok::<_, Infallible>(shared.answer(&uri, &headers, &body)) }
        });
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let task = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("serving");
        });
        Self { address, state, task }
    }

    /// The address without a path.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that came.
    ///
    /// # Panics
    /// If the server panicked.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.state.requests.lock().expect("no panic in the server").0.clone()
    }
}

impl Drop for Exchanges {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl State {
    fn answer(&self, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> Response {
        let text = |value: &header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let request = Recorded {
            path: uri.path().to_owned(),
            headers: headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
            body: serde_json::from_slice(body).unwrap_or_default(),
        };
        let refusal = (self.check)(&request).err();
        let mut requests = self.requests.lock().expect("no panic in the server");
        requests.0.push(request);
        if let Some((status, body)) = refusal {
            let status = StatusCode::from_u16(status).expect("a status");
            return (status, axum::Json(body)).into_response();
        }
        requests.1 += 1;
        match self.answers.get(requests.1 - 1) {
            Some(answer) => answer.response(uri.path().ends_with("/messages")),
            None => {
                let message = format!("there are {} answers, this is request {}", self.answers.len(), requests.1);
                (StatusCode::IM_A_TEAPOT, axum::Json(json!({"error": {"message": message}}))).into_response()
            }
        }
    }
}

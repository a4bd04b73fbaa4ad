//! A scripted model endpoint: real HTTP on this machine, the chat completions API (also OpenAI's responses, Anthropic's and
//! Gemini's), streamed and in one piece, with the faults that real endpoints have.
//!
//! The turn is chosen by how many messages of the model the request holds, so a retry or a resumed run gets the same
//! one; faults go by the number of the request, from 1. The same server runs in a test and as `model-server SCRIPT.json`.
//!
//! A script is JSON:
//!
//! ```json
//! {
//!   "key": "sk-test",
//!   "turns": [
//!     {"text": "looking", "tool_calls": [{"name": "list", "arguments": {"path": "."}}]},
//!     {"tool_calls": [{"id": "c7", "name": "read", "arguments_text": "{not json"}], "gate": true},
//!     {"text": "done", "reasoning": "hm", "usage": {"input": 12, "output": 3, "cost": 0.5}, "finish": "stop"}
//!   ],
//!   "faults": {
//!     "1": {"status": {"code": 429, "retry_after": "1", "body": "slow down"}},
//!     "2": {"reset": {"after_chunks": 2}},
//!     "3": {"slow": {"headers_ms": 100, "chunk_ms": 10}},
//!     "4": "malformed_event",
//!     "5": "malformed_body",
//!     "6": "cut",
//!     "7": "never",
//!     "8": {"error_event": {"code": 503}}
//!   }
//! }
//! ```
//!
//! `key`: requests with another key get 401, and the answer repeats theirs, as hostile endpoints may. `gate`: the
//! turn waits until [`ModelServer::release`] (or `POST /release`). `GET /requests` lists the requests so far.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};

mod dialect;
pub mod exchange;
pub mod strict;

use dialect::Dialect;

/// The turns of the server, and its faults.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// The key it requires. Default: any key, or no key.
    pub key: Option<String>,
    /// Its turns in the first attempt.
    pub turns: Vec<Turn>,
    /// Its turns in the attempts after the first. Default: those of the first.
    #[serde(default)]
    pub attempts: Vec<Vec<Turn>>,
    /// Faults by number of the request, from 1.
    pub faults: BTreeMap<usize, Fault>,
}

impl Script {
    fn of_attempt(&self, attempt: usize) -> &[Turn] {
        let later = attempt.checked_sub(1).and_then(|later| self.attempts.get(later));
        later.unwrap_or(&self.turns)
    }
}

/// One reply of the model.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    /// The text of the reply.
    pub text: String,
    /// The reasoning before the text.
    pub reasoning: String,
    /// The tool calls of the reply.
    pub tool_calls: Vec<Call>,
    /// Default: `tool_calls` when it calls, else `stop`.
    pub finish: Option<String>,
    /// Default: ten tokens in, five out, no cost.
    pub usage: Option<Usage>,
    /// Whether it waits for the gate.
    pub gate: bool,
}

/// One tool call of a reply.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Call {
    /// Default: from turn and position.
    pub id: Option<String>,
    /// The name of the tool.
    pub name: String,
    /// The arguments of the call, as JSON.
    pub arguments: Value,
    /// In place of `arguments`: text that need not be JSON.
    pub arguments_text: Option<String>,
}

/// Tokens and cost of one request.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Tokens of the prompt.
    pub input: u64,
    /// Those of them that were in the provider's cache, in the dialect of OpenAI. Default: none.
    #[serde(default)]
    pub cached: u64,
    /// Tokens of the reply.
    pub output: u64,
    /// The cost in US dollars.
    pub cost: Option<f64>,
}

/// A way for a request to fail.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// A status other than success.
    Status {
        /// The HTTP status code.
        code: u16,
        /// The header of that name.
        retry_after: Option<String>,
        /// The body of the answer, as text.
        body: Option<String>,
    },
    /// The connection breaks after some chunks.
    Reset {
        /// The number of chunks that get through.
        after_chunks: usize,
    },
    /// The stream ends early, as if it were whole.
    Cut,
    /// An answer with pauses in it.
    Slow {
        /// Milliseconds before the headers.
        #[serde(default)]
        headers_ms: u64,
        /// Milliseconds before each chunk.
        #[serde(default)]
        chunk_ms: u64,
    },
    /// An event that is not JSON, after the first.
    MalformedEvent,
    /// A body that is not JSON.
    MalformedBody,
    /// An error in the midst of the stream.
    ErrorEvent {
        /// The code of the error.
        code: u64,
    },
    /// A stream that never ends and grows.
    Flood,
    /// The request is never answered.
    Never,
}

/// A request that the server received.
#[derive(Debug, Clone, Serialize)]
pub struct Recorded {
    /// The path of the request.
    pub path: String,
    /// The headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body; null when it was not JSON.
    pub body: Value,
}

/// Decides a turn by the body of the request.
pub type Decide = Box<dyn Fn(&Value) -> Turn + Send + Sync>;

/// The running server. It stops when dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    state: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

struct Shared {
    script: Script,
    /// In place of the script's turns.
    decide: Option<Decide>,
    requests: Mutex<Vec<Recorded>>,
    calls: watch::Sender<usize>,
    waiting: watch::Sender<usize>,
    gate: Semaphore,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("script", &self.script).finish_non_exhaustive()
    }
}

impl ModelServer {
    /// Starts on a free port.
    pub async fn start(script: Script) -> Self {
        Self::start_on(script, 0).await
    }

    /// Starts with a script as JSON.
    pub async fn scripted(script: Value) -> Self {
        Self::start(serde_json::from_value(script).expect("a script")).await
    }

    /// Starts without a script. It keeps no requests: such a server may get many.
    pub async fn deciding(decide: Decide) -> Self {
        Self::serving(Script::default(), Some(decide), 0).await
    }

    /// Starts on a port of this machine.
    pub async fn start_on(script: Script, port: u16) -> Self {
        Self::serving(script, None, port).await
    }

    async fn serving(script: Script, decide: Option<Decide>, port: u16) -> Self {
        let state = Arc::new(Shared {
            script,
            decide,
            requests: Mutex::default(),
            calls: watch::Sender::new(0),
            waiting: watch::Sender::new(0),
            gate: Semaphore::new(0),
        });
        let router = Router::new()
            .route("/v1/chat/completions", post(chat))
            .route("/v1/responses", post(chat))
            .route("/v1/messages", post(chat))
            .route("/v1/models", get(models))
            .route("/v1beta/models/{call}", post(chat))
            .route("/requests", get(async |State(state): State<Arc<Shared>>| Json(state.seen())))
            .route("/release", post(async |State(state): State<Arc<Shared>>| state.gate.add_permits(1)))
            .with_state(Arc::clone(&state));
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let task = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("serving");
        });
        Self { address, state, task }
    }

    /// The address without a path, for `ANTHROPIC_BASE_URL` and `OLLAMA_HOST`.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The value for `OPENAI_BASE_URL`.
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.origin())
    }

    /// The number of requests so far.
    pub fn calls(&self) -> usize {
        *self.state.calls.borrow()
    }

    /// All requests so far, in order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.state.seen()
    }

    /// Lets one request through the gate, now or when it comes.
    pub fn release(&self) {
        self.state.gate.add_permits(1);
    }

    /// Waits until so many requests have come.
    pub async fn wait_for_calls(&self, calls: usize) {
        self.state.calls.subscribe().wait_for(|now| *now >= calls).await.expect("the server runs");
    }

    /// Waits until a request stands at the gate.
    pub async fn wait_at_gate(&self) {
        self.state.waiting.subscribe().wait_for(|now| *now > 0).await.expect("the server runs");
    }

    /// Waits until no request stands at the gate: all were let through, or their clients went away.
    pub async fn wait_gate_empty(&self) {
        self.state.waiting.subscribe().wait_for(|now| *now == 0).await.expect("the server runs");
    }

    /// Serves until the process ends.
    pub async fn serve(mut self) {
        (&mut self.task).await.ok();
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn seen(&self) -> Vec<Recorded> {
        self.requests.lock().expect("no panic in the server").clone()
    }
}

/// Lowers the count of those who wait at the gate also when the client goes away.
struct AtGate<'a>(&'a Shared);

impl Drop for AtGate<'_> {
    fn drop(&mut self) {
        self.0.waiting.send_modify(|waiting| *waiting -= 1);
    }
}

/// The list of its models.
async fn models(State(state): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let sent = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let expected = state.script.key.as_ref().map(|key| format!("Bearer {key}"));
    if expected.is_some() && sent != expected.as_deref() {
        return (StatusCode::UNAUTHORIZED, json!({"error": {"message": "no such key"}}).to_string()).into_response();
    }
    Json(json!({"object": "list", "data": [{"id": "scripted-small"}, {"id": "scripted-large"}]})).into_response()
}

async fn chat(State(state): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let text = |value: &header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    if state.decide.is_none() {
        state.requests.lock().expect("no panic in the server").push(Recorded {
            path: uri.path().to_owned(),
            headers: headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
            body: body.clone(),
        });
    }
    let mut number = 0;
    state.calls.send_modify(|calls| {
        *calls += 1;
        number = *calls;
    });
    let fault = state.script.faults.get(&number);
    match fault {
        Some(Fault::Never) => std::future::pending().await,
        Some(Fault::Slow { headers_ms, .. }) => tokio::time::sleep(Duration::from_millis(*headers_ms)).await,
        Some(Fault::MalformedBody) => {
            return ([(header::CONTENT_TYPE, "application/json")], "{\"choices\": [").into_response();
        }
        Some(Fault::Status { code, retry_after, body }) => {
            let status = StatusCode::from_u16(*code).expect("a status");
            let body = body.clone().unwrap_or_else(|| json!({"error": {"message": "scripted"}}).to_string());
            let mut response = (status, body).into_response();
            if let Some(wait) = retry_after {
                response.headers_mut().insert(header::RETRY_AFTER, wait.parse().expect("a header"));
            }
            return response;
        }
        _ => {}
    }
    let sent = ["authorization", "x-api-key", "x-goog-api-key"].iter().find_map(|name| headers.get(*name)).map(text);
    if let Some(key) = &state.script.key
        && sent.as_deref().map(|sent| sent.trim_start_matches("Bearer ")) != Some(key)
    {
        let message = format!("invalid key {}", sent.unwrap_or_default());
        return (StatusCode::UNAUTHORIZED, Json(json!({"error": {"message": message}}))).into_response();
    }
    let dialect = Dialect::of(uri.path());
    let number = dialect.turn(&body);
    let turns = state.script.of_attempt(dialect::attempt(&body));
    let decided = state.decide.as_ref().map(|decide| decide(&body));
    let Some(turn) = decided.as_ref().or_else(|| turns.get(number)) else {
        let message = format!("the script has {} turns, this is call {}", turns.len(), number + 1);
        return (StatusCode::BAD_REQUEST, Json(json!({"error": {"message": message}}))).into_response();
    };
    if turn.gate {
        state.waiting.send_modify(|waiting| *waiting += 1);
        let _waiting = AtGate(&state);
        state.gate.acquire().await.expect("an open gate").forget();
    }
    if dialect == Dialect::OpenAi && body["stream"] != true {
        return Json(dialect::whole(turn, number, &body)).into_response();
    }
    stream(dialect.events(turn, number, &body), fault)
}

/// A piece of a streamed body; an error breaks the connection.
type Piece = Result<String, std::io::Error>;

fn stream(mut events: Vec<String>, fault: Option<&Fault>) -> Response {
    let mut pause = Duration::ZERO;
    let broken = || std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    let mut end: Option<Piece> = None;
    match fault {
        Some(Fault::Reset { after_chunks }) => {
            events.truncate(*after_chunks);
            // A pause, so that the chunks before the break reach the client.
            pause = Duration::from_millis(20);
            end = Some(Err(broken()));
        }
        Some(Fault::Cut) => events.truncate(1),
        Some(Fault::Slow { chunk_ms, .. }) => pause = Duration::from_millis(*chunk_ms),
        Some(Fault::MalformedEvent) => {
            events.truncate(1);
            end = Some(Ok("data: {\"choices\": [\n\n".to_owned()));
        }
        Some(Fault::ErrorEvent { code }) => {
            events.truncate(1);
            end = Some(Ok(format!("data: {}\n\n", json!({"error": {"code": code, "message": "scripted"}}))));
        }
        Some(Fault::Flood) => {
            let flood = futures_util::stream::repeat_with(|| Piece::Ok("x".repeat(64 << 10)));
            return event_stream(Body::from_stream(flood));
        }
        _ => {}
    }
    let pieces = events.into_iter().map(Piece::Ok).chain(end);
    event_stream(Body::from_stream(futures_util::stream::iter(pieces).then(move |piece| async move {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        piece
    })))
}

fn event_stream(body: Body) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

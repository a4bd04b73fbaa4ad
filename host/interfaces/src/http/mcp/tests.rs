//! Sessions against foreign, idle and greedy callers, over an endpoint with a fixture behind it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ServerCapabilities, ServerConfig};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::*;

/// A server with one tool, whose calls wait for a permit.
#[derive(Clone)]
struct Fixture {
    begun: Arc<AtomicUsize>,
    go: Arc<Semaphore>,
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.go.acquire().await.unwrap().forget();
        Ok(CallToolResponse::Complete(CallToolResult::success(Vec::new())))
    }
}

struct Served {
    endpoint: Endpoint<Fixture>,
    fixture: Fixture,
    closing: CancellationToken,
}

fn serve(limits: SessionLimits) -> Served {
    let fixture = Fixture { begun: Arc::default(), go: Arc::new(Semaphore::new(0)) };
    let closing = CancellationToken::new();
    let made = fixture.clone();
    Served { endpoint: Endpoint::new(move || made.clone(), limits, closing.clone()), fixture, closing }
}

impl Served {
    async fn send(&self, method: &str, token: &str, session: Option<&str>, message: Value) -> Response {
        let mut request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "localhost")
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-06-18");
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        let body = if method == "POST" { Body::from(message.to_string()) } else { Body::empty() };
        self.endpoint.answer(request.body(body).unwrap()).await
    }

    async fn open(&self, token: &str) -> Result<String, StatusCode> {
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello });
        let response = self.send("POST", token, None, hello).await;
        let Some(session) = super::session(response.headers()).map(str::to_owned) else {
            return Err(response.status());
        };
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.send("POST", token, Some(&session), ready).await.status(), StatusCode::ACCEPTED);
        Ok(session)
    }

    async fn list(&self, token: &str, session: &str) -> StatusCode {
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
        self.send("POST", token, Some(session), list).await.status()
    }

    async fn begins(&self, calls: usize) {
        while self.fixture.begun.load(Ordering::SeqCst) < calls {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_session_exists_for_its_own_token_alone() {
    let served = serve(SessionLimits::default());
    let session = served.open("a").await.unwrap();
    for method in ["POST", "GET", "DELETE"] {
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
        for (token, id) in [("b", session.as_str()), ("a", "no-such-session")] {
            let status = served.send(method, token, Some(id), list.clone()).await.status();
            assert_eq!(status, StatusCode::NOT_FOUND, "{method} {token} {id}");
        }
        assert_eq!(served.list("a", &session).await, StatusCode::OK, "{method}");
    }
    assert_eq!(served.send("DELETE", "a", Some(&session), Value::Null).await.status(), StatusCode::ACCEPTED);
    assert_eq!(served.list("a", &session).await, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn sessions_are_bounded_for_one_caller_and_for_all() {
    let served = serve(SessionLimits { sessions: 3, of_one: 2, ..SessionLimits::default() });
    let (first, second) = (served.open("a").await.unwrap(), served.open("a").await.unwrap());
    assert_eq!(served.list("a", &first).await, StatusCode::OK);
    let third = served.open("a").await.unwrap();
    // The one that was unused for longest made room.
    let mut found = Vec::new();
    for session in [&first, &second, &third] {
        found.push(served.list("a", session).await);
    }
    assert_eq!(found, [StatusCode::OK, StatusCode::NOT_FOUND, StatusCode::OK]);
    served.open("b").await.unwrap();
    assert_eq!(served.open("c").await, Err(StatusCode::SERVICE_UNAVAILABLE));
    served.send("DELETE", "a", Some(&first), Value::Null).await;
    served.open("c").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_ends() {
    let served = serve(SessionLimits::default());
    let (used, idle) = (served.open("a").await.unwrap(), served.open("a").await.unwrap());
    for _ in 0..3 {
        tokio::time::sleep(SessionLimits::default().idle / 2).await;
        assert_eq!(served.list("a", &used).await, StatusCode::OK);
    }
    assert_eq!(served.list("a", &idle).await, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn calls_of_a_session_are_bounded_also_if_nobody_waits_for_them() {
    let served = serve(SessionLimits { calls: 2, ..SessionLimits::default() });
    let session = served.open("a").await.unwrap();
    let call = |id: u64| {
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "wait" } });
        served.send("POST", "a", Some(&session), call)
    };
    // Their clients go away at once.
    drop(call(1).await);
    drop(call(2).await);
    served.begins(2).await;
    let mut third = std::pin::pin!(call(3));
    let waited = tokio::time::timeout(Duration::from_millis(100), &mut third).await;
    assert!(waited.is_err() && served.fixture.begun.load(Ordering::SeqCst) == 2);
    served.fixture.go.add_permits(2);
    let response = third.await;
    assert_eq!(response.status(), StatusCode::OK);
    let text = response.into_body().collect();
    served.fixture.go.add_permits(1);
    let text = text.await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&text).contains("\"id\":3"), "{text:?}");
}

#[tokio::test]
async fn streams_end_when_the_host_closes() {
    let served = serve(SessionLimits::default());
    let session = served.open("a").await.unwrap();
    let stream = served.send("GET", "a", Some(&session), Value::Null).await;
    assert_eq!(stream.status(), StatusCode::OK);
    let reading = tokio::spawn(stream.into_body().collect());
    served.closing.cancel();
    reading.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_request_without_a_session_is_told_so_and_one_without_a_handshake_needs_none() {
    let served = serve(SessionLimits::default());
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    assert_eq!(served.send("POST", "a", None, list).await.status(), StatusCode::BAD_REQUEST);
    let mut list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    list["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = Request::builder().method("POST").uri("/mcp").header("host", "localhost");
    let request = request.header("content-type", "application/json").header("mcp-method", "tools/list");
    let request = request.header("accept", "application/json, text/event-stream");
    let request = request.header("mcp-protocol-version", "2026-07-28").body(Body::from(list.to_string())).unwrap();
    let response = served.endpoint.answer(request).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "application/json");
}

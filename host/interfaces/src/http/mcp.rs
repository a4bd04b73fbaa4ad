//! MCP over streamable HTTP: `/mcp` (SPEC MCP-1).
//!
//! An [`Endpoint`] serves any handler of rmcp, so that fixtures of tests are served as the product's own server is. It
//! takes requests whose host, origin and sender were checked before, as for every route.

mod sessions;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequest as _, Request, State};
use axum::http::{HeaderMap, Method};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use base::{Refusal, RefusalCode};
use http_body_util::BodyExt as _;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::port::TcpPort;
use super::reply::{ErrorReply, RawBody};
use super::same_origin::HostNames;
use super::scope::Reader;
use super::slots::{Slots, SocketLimits};
use super::{ApiState, Channel, MAX_BYTES, connections, guarded};
use crate::mcp::McpServer;
use sessions::{OwnSessions, SessionLimits, SessionOwner, Sessions};

/// The header that names a session.
const SESSION: &str = "mcp-session-id";

/// The product's server as the routes share it.
pub(super) type McpEndpoint = Arc<Endpoint<McpServer>>;

/// A server whose tools call the routes of `router`.
pub(super) fn endpoint(router: Router, closing: CancellationToken) -> McpEndpoint {
    let make = move || McpServer::at_port(router.clone());
    Arc::new(Endpoint::new(make, SessionLimits::default(), closing))
}

/// Answers a message of an MCP client. The caller needs a token even to list the tools; the routes that a tool calls
/// decide about the tool.
pub(super) async fn serve(_: Reader, State(api): State<ApiState>, request: Request) -> Response {
    let attachment = api.attached.attach();
    match &api.mcp {
        Some(endpoint) => {
            let response = endpoint.answer(request).await;
            // An answer may be a stream: until it ends, its client depends on this host.
            response.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    let _attachment = &attachment;
                    frame
                }))
            })
        }
        None => ErrorReply::from(Refusal::new(RefusalCode::NotFound, "there is no such endpoint")).into_response(),
    }
}

/// Serves a handler at `/mcp` of a port as the product serves its own, except that every caller is let in: for fixtures of
/// tests. Returns the address in use, and the task that ends after `closing`.
///
/// # Errors
/// If the port cannot be taken.
pub async fn serve_fixture<H: ServerHandler>(
    port: TcpPort,
    make: impl Fn() -> H + Send + Sync + 'static,
    closing: CancellationToken,
) -> Result<(SocketAddr, JoinHandle<()>), Refusal> {
    let listener = port.bind().await?;
    let address = listener.local_addr().map_err(|error| port.failed(&error))?;
    let endpoint = Arc::new(Endpoint::new(make, SessionLimits::default(), closing.clone()));
    let router = guarded(mounted(endpoint), Channel::Network(HostNames::Loopback));
    let serving = connections::serve(listener, router, Slots::new(SocketLimits::default()), closing);
    Ok((address, tokio::spawn(serving)))
}

fn mounted<H: ServerHandler>(endpoint: Arc<Endpoint<H>>) -> Router {
    let answer =
        |State(endpoint): State<Arc<Endpoint<H>>>, request: Request| async move { endpoint.answer(request).await };
    Router::new().route("/mcp", any(answer)).with_state(endpoint)
}

/// The MCP endpoint of one handler.
///
/// Requests of clients with a handshake (2025) belong to sessions, because a server can only ask such a client, or notify
/// it, within one. Requests of 2026-07-28 stand for themselves; their answer is JSON unless the handler reports progress.
pub(super) struct Endpoint<H> {
    make: Arc<dyn Fn() -> H + Send + Sync>,
    sessions: Arc<Sessions>,
    config: StreamableHttpServerConfig,
}

impl<H: ServerHandler> Endpoint<H> {
    /// An endpoint that makes a handler for each session and each request without one. Its streams end at `closing`.
    fn new(make: impl Fn() -> H + Send + Sync + 'static, limits: SessionLimits, closing: CancellationToken) -> Self {
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(true)
            .with_json_response(true)
            .with_cancellation_token(closing)
            .with_max_request_body_bytes(MAX_BYTES)
            .disable_allowed_hosts();
        Self { make: Arc::new(make), sessions: Arc::new(Sessions::new(limits)), config }
    }

    /// Answers a request of the caller that its `Authorization` header names.
    pub(super) async fn answer(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let mut reading = Request::new(body);
        // The limit of a body is an extension.
        reading.extensions_mut().clone_from(&parts.extensions);
        let body = match RawBody::from_request(reading, &()).await {
            Ok(RawBody(body)) => body,
            Err(refused) => return refused.into_response(),
        };
        let sessions = Arc::new(OwnSessions::new(self.sessions.clone(), SessionOwner::of(&parts.headers)));
        if parts.method == Method::DELETE && session(&parts.headers).is_some_and(|id| !sessions.has(id)) {
            return ErrorReply::from(Refusal::new(RefusalCode::NotFound, "there is no such session")).into_response();
        }
        let make = self.make.clone();
        let service = StreamableHttpService::new(move || Ok(make()), sessions.clone(), self.config.clone());
        let response = service.handle(Request::from_parts(parts, Body::from(body))).await;
        match sessions.refused() {
            Some(refusal) => ErrorReply::from(refusal).into_response(),
            None => response.map(Body::new),
        }
    }
}

fn session(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION).and_then(|value| value.to_str().ok())
}

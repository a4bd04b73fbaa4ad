//! MCP over streamable HTTP: `/mcp` (SPEC MCP-1).

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use base::{Refusal, RefusalCode};
use http_body_util::BodyExt as _;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::reply::ErrorReply;
use super::scope::Reader;
use super::{ApiState, MAX_BYTES};
use crate::mcp::McpServer;

/// The server behind the route.
pub(super) type McpService = StreamableHttpService<McpServer, NeverSessionManager>;

/// A server whose tools call the routes of `router`.
///
/// It keeps no sessions: each request stands for itself, and nothing is lost when the host is replaced. The host and
/// origin of requests are checked before, as for every route.
pub(super) fn service(router: Router, closing: CancellationToken) -> McpService {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_cancellation_token(closing)
        .with_max_request_body_bytes(MAX_BYTES)
        .disable_allowed_hosts();
    StreamableHttpService::new(
        move || Ok(McpServer::at_port(router.clone())),
        Arc::new(NeverSessionManager::default()),
        config,
    )
}

/// Answers a message of an MCP client. The caller needs a token even to list the tools; the routes that a tool calls
/// decide about the tool.
pub(super) async fn serve(_: Reader, State(api): State<ApiState>, request: Request) -> Response {
    let attachment = api.attached.attach();
    match &api.mcp {
        Some(mcp) => {
            let response = mcp.handle(request).await;
            // An answer with progress is a stream: until it ends, its client depends on this host.
            let held = response.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    let _attachment = &attachment;
                    frame
                }))
            });
            held.into_response()
        }
        None => ErrorReply::from(Refusal::new(RefusalCode::NotFound, "there is no such endpoint")).into_response(),
    }
}

//! The HTTP API (SPEC API-1): one router for every kind of listener.
//!
//! A handler reads a request, calls the facade and writes its answer; nothing else is decided here. Its first argument is
//! the scope that its callers need ([`scope`]). Long-lived answers (events, waiting) end when the host closes.

mod act;
mod answer;
mod attached;
mod claim;
mod connections;
mod drain;
mod elicitation;
mod events;
mod host;
pub mod listen;
mod mcp;
mod offers;
mod owner;
mod page;
pub mod port;
pub mod reply;
mod routes;
mod same_origin;
mod scope;
mod signals;
mod skills;
mod tasks;
mod tokens;

use std::sync::{Arc, OnceLock};

use agent::Host;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn;
use base::{Refusal, RefusalCode};
use tokio_util::sync::CancellationToken;

use attached::Attachments;
pub use claim::DOOR;
pub use host::{PageAddress, ResumeReply, Status};
pub use mcp::serve_fixture;
pub(crate) use offers::SkillsChanged;
pub use owner::NewToken;
pub(crate) use page::standalone as standalone_page;
use reply::{Body, ErrorReply, Path, Query};
pub use routes::Route;
use routes::Routes;
use same_origin::HostNames;
pub(crate) use scope::FromMcpServer;
pub use scope::RouteScope;
pub use tasks::DeleteReply;
pub use tokens::CreatedToken;

/// The largest request body, in bytes: a task or a program with data in it. Files are passed by path.
const MAX_BYTES: usize = 4 << 20;

/// State shared by the handlers.
#[derive(Clone)]
pub struct ApiState {
    host: Host,
    channel: Channel,
    lifetime: Lifetime,
    attached: Attachments,
    /// The address of the owner's page, once there is one that this machine's browsers reach.
    page: Arc<OnceLock<String>>,
    /// Ends long-lived answers.
    closing: CancellationToken,
    /// A client asked the host to end.
    shutdown: CancellationToken,
    /// The MCP server; it calls the other routes of this API.
    mcp: Option<mcp::McpEndpoint>,
}

/// The listener that a request came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Channel {
    /// The home's socket: the client is a program of the owner's user.
    Socket,
    /// A TCP port: the client is known by its token alone.
    Network(HostNames),
}

/// How long a host lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Until it is told to end: `motor serve`.
    Stays,
    /// As long as the command that opened it.
    Command,
}

/// Every route of the API.
fn routes() -> Routes {
    let api = Routes::new()
        .get("/healthz", host::healthy)
        .get("/readyz", host::ready)
        .post("/v1/tasks", act::act)
        .post("/v1/explanations", act::explain)
        .post("/v1/executions", act::execute)
        .get("/v1/tasks", tasks::list)
        .get("/v1/tasks/{id}", tasks::show)
        .get("/v1/tasks/{id}/log", tasks::log)
        .get("/v1/tasks/{id}/receipt", tasks::receipt)
        .get("/v1/tasks/{id}/artifacts", tasks::artifacts)
        .get("/v1/tasks/{id}/artifacts/{*path}", tasks::artifact)
        .get("/v1/tasks/{id}/events", tasks::events)
        .get("/v1/tasks/{id}/outcome", tasks::wait)
        .post("/v1/tasks/{id}/cancellation", tasks::cancel)
        .delete("/v1/tasks/{id}", tasks::delete)
        .post("/v1/tasks/{id}/answer", answer::respond)
        .post("/v1/tasks/{id}/approval", answer::approve)
        .post("/v1/tasks/{id}/retries", answer::retry)
        .get("/v1/tasks/{id}/elicitation", elicitation::show)
        .post("/v1/tasks/{id}/elicitation", elicitation::answer)
        .get("/v1/owner", owner::owner)
        .post("/v1/owner/token", owner::replace_token)
        .get("/v1/signals", signals::list)
        .get("/v1/signals/waiting", signals::waiting)
        .get("/v1/signals/events", signals::events)
        .get("/v1/credentials", owner::credentials)
        .post("/v1/credentials", owner::set_credential)
        .delete("/v1/credentials/{name}", owner::delete_credential)
        .get("/v1/network/decisions", owner::decisions)
        .post("/v1/network/decisions", owner::decide)
        .post("/v1/network/withdrawals", owner::forget)
        .get("/v1/skills", skills::list)
        .post("/v1/skills/reviews", skills::review)
        .post("/v1/skills/questions", skills::question)
        .post("/v1/skills/approvals", skills::approve)
        .post("/v1/skills/rejections", skills::reject)
        .post("/v1/skills/updates", skills::update)
        .post("/v1/skills/deletions", skills::delete)
        .get("/v1/skills/versions", skills::versions)
        .post("/v1/skills/diffs", skills::diff)
        .post("/v1/skills/rollbacks", skills::rollback)
        .post("/v1/skills/verifications", skills::verify)
        .post("/v1/skills", skills::add)
        .get("/v1/skills/tools", offers::tools)
        .post("/v1/skills/calls", offers::call)
        .get("/v1/skills/resources", offers::resources)
        .get("/v1/skills/resources/{name}/{*path}", offers::resource)
        .get("/v1/skills/events", offers::events)
        .get("/v1/energy", host::energy)
        .get("/v1/page", host::page)
        .get("/v1/host", host::status)
        .get("/v1/host/findings", host::doctor)
        .post("/v1/host/resumption", host::resume)
        .post("/v1/host/shutdown", host::shutdown)
        .get("/v1/tokens", tokens::list)
        .post("/v1/tokens", tokens::create)
        .delete("/v1/tokens/{name}", tokens::revoke)
        .post("/mcp", mcp::serve)
        .get("/mcp", mcp::serve)
        .delete("/mcp", mcp::serve);
    page::add_to(api)
}

/// The methods, paths and scopes of all routes.
#[must_use]
pub fn route_table() -> Vec<Route> {
    routes().table
}

/// The API over one host.
fn router(api: ApiState) -> Router {
    let mcp = mcp::endpoint(without_mcp(api.clone()), api.closing.clone());
    without_mcp(ApiState { mcp: Some(mcp), ..api })
}

fn without_mcp(api: ApiState) -> Router {
    let channel = api.channel;
    let router = routes()
        .router
        .fallback(|| async { ErrorReply::from(Refusal::new(RefusalCode::NotFound, "there is no such endpoint")) })
        .method_not_allowed_fallback(reply::method_not_allowed)
        .with_state(api);
    guarded(router, channel)
}

/// A router behind the checks that every request passes before its handler.
fn guarded(router: Router, channel: Channel) -> Router {
    let router = router.layer(DefaultBodyLimit::max(MAX_BYTES)).layer(from_fn(drain::unread));
    match channel {
        Channel::Socket => router,
        Channel::Network(names) => router.layer(from_fn(move |request, next| same_origin::check(names, request, next))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_lists_every_route_with_its_scope() {
        let document = include_str!("../../../docs/http.md");
        let is_row = |line: &&str| ["| GET", "| POST", "| DELETE"].iter().any(|method| line.starts_with(method));
        let listed: Vec<&str> = document.lines().filter(is_row).collect();
        let rows = route_table().into_iter().map(|Route { method, path, scope }| {
            let scope = serde_json::to_value(scope).unwrap();
            format!("| {method} | `{path}` | {} |", scope.as_str().unwrap())
        });
        assert_eq!(listed, rows.collect::<Vec<_>>());
    }
}

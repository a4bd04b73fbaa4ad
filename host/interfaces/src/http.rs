//! The HTTP API (SPEC API-1): one router for every kind of listener.
//!
//! A handler reads a request, calls the facade and writes its answer; nothing else is decided here. Served on the
//! home's socket, every client runs as the owner's user; the owner's decisions also take the owner's token ([`claim`]).
//! Long-lived answers (events, waiting) end when the host closes.

mod act;
mod answer;
mod attached;
mod claim;
mod connections;
mod events;
mod host;
pub mod listen;
mod owner;
pub mod reply;
mod signals;
mod skills;
mod tasks;

use agent::Host;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use base::{Refusal, RefusalCode};
use tokio_util::sync::CancellationToken;

use attached::Attachments;
use claim::ClaimHeaders;
pub use claim::DOOR;
pub use host::{ResumeReply, Status};
pub use owner::NewToken;
use reply::{Body, ErrorReply, Query};
pub use tasks::DeleteReply;

/// The largest request body, in bytes: a task or a program with data in it. Files are passed by path.
const MAX_BYTES: usize = 4 << 20;

/// State shared by the handlers.
#[derive(Clone)]
pub struct ApiState {
    host: Host,
    lifetime: Lifetime,
    attached: Attachments,
    /// Ends long-lived answers.
    closing: CancellationToken,
    /// A client asked the host to end.
    shutdown: CancellationToken,
}

/// How long a host lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Until it is told to end: `motor serve`.
    Stays,
    /// As long as the command that opened it.
    Command,
}

/// The API over one host.
fn router(door: ApiState) -> Router {
    Router::new()
        .route("/v1/act", post(act::act))
        .route("/v1/explain", post(act::explain))
        .route("/v1/execute", post(act::execute))
        .route("/v1/tasks", get(tasks::list))
        .route("/v1/tasks/{id}", get(tasks::show))
        .route("/v1/tasks/{id}/log", get(tasks::log))
        .route("/v1/tasks/{id}/receipt", get(tasks::receipt))
        .route("/v1/tasks/{id}/events", get(tasks::events))
        .route("/v1/tasks/{id}/wait", get(tasks::wait))
        .route("/v1/tasks/{id}/cancel", post(tasks::cancel))
        .route("/v1/tasks/{id}/delete", post(tasks::delete))
        .route("/v1/tasks/{id}/respond", post(answer::respond))
        .route("/v1/tasks/{id}/approve", post(answer::approve))
        .route("/v1/tasks/{id}/retry", post(answer::retry))
        .route("/v1/owner", get(owner::owner))
        .route("/v1/owner/token", post(owner::replace_token))
        .route("/v1/signals", get(signals::list))
        .route("/v1/signals/waiting", get(signals::waiting))
        .route("/v1/signals/events", get(signals::events))
        .route("/v1/credentials", get(owner::credentials).post(owner::set_credential))
        .route("/v1/credentials/delete", post(owner::delete_credential))
        .route("/v1/network", get(owner::decisions).post(owner::decide))
        .route("/v1/network/forget", post(owner::forget))
        .route("/v1/skills", get(skills::list))
        .route("/v1/skills/review", post(skills::review))
        .route("/v1/skills/question", post(skills::question))
        .route("/v1/skills/approve", post(skills::approve))
        .route("/v1/skills/reject", post(skills::reject))
        .route("/v1/skills/update", post(skills::update))
        .route("/v1/skills/delete", post(skills::delete))
        .route("/v1/skills/versions", get(skills::versions))
        .route("/v1/skills/diff", post(skills::diff))
        .route("/v1/skills/rollback", post(skills::rollback))
        .route("/v1/skills/verify", post(skills::verify))
        .route("/v1/skills/add", post(skills::add))
        .route("/v1/energy", get(host::energy))
        .route("/v1/status", get(host::status))
        .route("/v1/doctor", get(host::doctor))
        .route("/v1/resume", post(host::resume))
        .route("/v1/shutdown", post(host::shutdown))
        .fallback(|| async { ErrorReply(Refusal::new(RefusalCode::NotFound, "there is no such endpoint")) })
        .method_not_allowed_fallback(reply::method_not_allowed)
        .layer(DefaultBodyLimit::max(MAX_BYTES))
        .with_state(door)
}

//! The HTTP API (SPEC API-1): one router for every kind of listener.
//!
//! A handler reads a request, calls the facade and writes its answer; nothing else is decided here. Its first argument is
//! the scope that its callers need ([`scope`]). Long-lived answers (events, waiting) end when the host closes.

mod act;
mod answer;
mod attached;
mod claim;
mod connections;
mod conversations;
mod cortex;
mod drain;
mod elicitation;
mod events;
mod exposition;
mod host;
mod idempotency;
mod landings;
mod ledger;
pub mod listen;
mod mcp;
mod memories;
mod meters;
mod metrics;
mod neurons;
mod offers;
mod openapi;
mod owner;
mod page;
mod plans;
pub mod port;
mod refusals;
pub mod reply;
mod routes;
mod same_origin;
mod scope;
mod signals;
mod skills;
mod slots;
mod staged;
mod tasks;
mod tokens;
mod why;

use std::sync::{Arc, OnceLock};

use agent::Host;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use base::{Refusal, RefusalCode};
use tokio_util::sync::CancellationToken;

use attached::Attachments;
pub use claim::DOOR;
pub use conversations::MessageReply;
pub(crate) use conversations::NewChatMessage;
pub(crate) use cortex::{CloseCommitment, CortexSwitch, RemoveDirective};
pub use host::{AskModelRequest, PageAddress, ResumeReply, Status};
pub(crate) use ledger::{NewJudgement, NewNote};
pub use mcp::serve_fixture;
use meters::Meters;
pub(crate) use offers::SkillsChanged;
pub use owner::NewToken;
pub(crate) use page::standalone as standalone_page;
use reply::{Body, ErrorReply, Path, Query};
pub use routes::Route;
use routes::{ApiRoutes, Routes};
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
    meters: Arc<Meters>,
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

/// Every route of the API that `/openapi.json` describes. A query, a body or an answer without a schema does not compile.
fn api_routes() -> ApiRoutes {
    ApiRoutes::new()
        .get("/healthz", "Answer for as long as the process does", host::healthy)
        .get("/openapi.json", "Describe the API", openapi::serve)
        .get("/readyz", "Answer while the host takes work", host::ready)
        .post("/v1/tasks", "Start a run of a task", act::act)
        .refusing(&refusals::ACT)
        .post("/v1/explanations", "Explain the run that the same task would start", act::explain)
        .refusing(&refusals::ACT)
        .post("/v1/plans", "Let a model draft the access of a task", plans::draft)
        .refusing(&refusals::ACT)
        .post("/v1/plans/checks", "Check a plan, and show what its run could do", plans::check)
        .refusing(&refusals::ACT)
        .post("/v1/executions", "Execute a program in the sandbox", act::execute)
        .refusing(&refusals::EXECUTE)
        .get("/v1/tasks", "List runs, newest first", tasks::list)
        .get("/v1/tasks/{id}", "Show a run with its steps", tasks::show)
        .get("/v1/tasks/{id}/changes", "Show what a run changed in the owner's directories", landings::changes)
        .refusing(&refusals::LAND)
        .get("/v1/tasks/{id}/landings", "List the landings of a run, the oldest first", landings::list)
        .refusing(&refusals::LAND)
        .post("/v1/tasks/{id}/landings/plans", "Show what a landing would do, deletions first", landings::plan)
        .refusing(&refusals::LAND)
        .post("/v1/tasks/{id}/landings", "Land what a run changed, or take a landing back", landings::land)
        .refusing(&refusals::LAND)
        .get("/v1/tasks/{id}/log", "Read the end of a run's log", tasks::log)
        .get("/v1/tasks/{id}/receipt", "Download the signed receipt of a finished run", tasks::receipt)
        .refusing(&refusals::STATE)
        .get("/v1/tasks/{id}/artifacts", "List the files that a run produced", tasks::artifacts)
        .get("/v1/tasks/{id}/artifacts/{*path}", "Download a file that a run produced", tasks::artifact)
        .get(
            "/v1/tasks/{id}/events",
            "Follow the events of a run from its beginning, or after `Last-Event-ID`",
            tasks::events,
        )
        .refusing(&refusals::TAKE_UP)
        .get("/v1/tasks/{id}/outcome", "Wait until a run is over", tasks::wait)
        .post("/v1/tasks/{id}/cancellation", "Cancel a run", tasks::cancel)
        .refusing(&refusals::COMMAND)
        .delete("/v1/tasks/{id}", "Delete a run that is over", tasks::delete)
        .refusing(&refusals::COMMAND)
        .get("/v1/tasks/{id}/why", "Show where a file, a request or the answer of a run came from", why::show)
        .post("/v1/tasks/{id}/answer", "Answer a run's question", answer::respond)
        .refusing(&refusals::COMMAND)
        .post("/v1/tasks/{id}/approval", "Decide about a run's request for consent", answer::approve)
        .refusing(&refusals::COMMAND)
        .post("/v1/tasks/{id}/messages", "Tell a run something while it works", answer::tell)
        .refusing(&refusals::COMMAND)
        .post("/v1/tasks/{id}/retries", "Begin another attempt at a failed run", answer::retry)
        .refusing(&refusals::RETRY)
        .get("/v1/tasks/{id}/staged", "Show the writes that a run staged", staged::show)
        .post("/v1/tasks/{id}/staged/send", "Send staged writes, each at most once", staged::send)
        .refusing(&refusals::COMMAND)
        .post("/v1/tasks/{id}/staged/discard", "Discard staged writes", staged::discard)
        .refusing(&refusals::COMMAND)
        .get("/v1/tasks/{id}/elicitation", "Show the question that an MCP client may answer", elicitation::show)
        .refusing(&refusals::COMMAND)
        .post("/v1/tasks/{id}/elicitation", "Answer the question as an MCP client", elicitation::answer)
        .refusing(&refusals::COMMAND)
        .get("/v1/owner", "Show the state of the owner's token", owner::owner)
        .post("/v1/owner/token", "Replace the owner's token", owner::replace_token)
        .refusing(&refusals::CONSENT)
        .get("/v1/signals", "List signals, oldest first", signals::list)
        .get("/v1/signals/waiting", "List the signals of runs that still wait, oldest first", signals::waiting)
        .get("/v1/signals/events", "Follow signals as they are delivered", signals::events)
        .get("/v1/credentials", "List credentials, without their values", owner::credentials)
        .refusing(&refusals::VAULT)
        .post("/v1/credentials", "Store a credential", owner::set_credential)
        .refusing(&refusals::CREDENTIAL)
        .delete("/v1/credentials/{name}", "Delete a credential", owner::delete_credential)
        .refusing(&refusals::CREDENTIAL)
        .post("/v1/credentials/pending/acceptances", "Accept a credential that a run saved", owner::accept_credential)
        .refusing(&refusals::SAVED)
        .post("/v1/credentials/pending/rejections", "Reject a credential that a run saved", owner::reject_credential)
        .refusing(&refusals::SAVED)
        .get("/v1/network/decisions", "List the owner's decisions about domains", owner::decisions)
        .post("/v1/network/decisions", "Allow or deny a domain", owner::decide)
        .refusing(&refusals::DECISION)
        .post("/v1/network/withdrawals", "Withdraw a decision about a domain", owner::forget)
        .refusing(&refusals::DECISION)
        .get("/v1/skills", "List skills", skills::list)
        .post("/v1/skills/reviews", "Review a skill", skills::review)
        .refusing(&refusals::SKILL)
        .post("/v1/skills/texts", "Show the text of a skill's file", skills::show)
        .refusing(&refusals::SKILL)
        .post("/v1/skills/questions", "Show the powers that approving a skill would grant", skills::question)
        .refusing(&refusals::SKILL)
        .post("/v1/skills/approvals", "Approve a skill", skills::approve)
        .refusing(&refusals::SKILL)
        .post("/v1/skills/rejections", "Reject a skill", skills::reject)
        .refusing(&refusals::SKILL)
        .post("/v1/skills/updates", "Change the policy of an approved skill", skills::update)
        .refusing(&refusals::SKILL)
        .post("/v1/skills/deletions", "Delete a skill", skills::delete)
        .refusing(&refusals::SKILL)
        .get("/v1/skills/versions", "List the versions of a skill", skills::versions)
        .refusing(&refusals::SKILL)
        .post("/v1/skills/diffs", "Compare two versions of a skill", skills::diff)
        .refusing(&refusals::SKILL)
        .post("/v1/skills/rollbacks", "Roll a skill back to an earlier version", skills::rollback)
        .refusing(&refusals::SKILL)
        .post("/v1/skills/fetches", "Update a skill from the source it was added from", skills::fetch)
        .refusing(&refusals::SKILL)
        .post("/v1/skills/verifications", "Verify the bytes of one skill, or of all", skills::verify)
        .refusing(&refusals::SKILL)
        .post("/v1/skills", "Add a skill", skills::add)
        .refusing(&refusals::SKILL)
        .get("/v1/skills/tools", "List the tools of approved skills", offers::tools)
        .refusing(&refusals::SKILL)
        .post("/v1/skills/calls", "Call a tool of an approved skill", offers::call)
        .refusing(&refusals::SKILL)
        .get("/v1/skills/resources", "List the files of approved skills", offers::resources)
        .refusing(&refusals::SKILL)
        .get("/v1/skills/resources/{name}/{*path}", "Download a file of an approved skill", offers::resource)
        .refusing(&refusals::SKILL)
        .get("/v1/skills/events", "Follow which skills are approved", offers::events)
        .get("/v1/energy", "Show the energy of an agent", host::energy)
        .get("/v1/spend", "Show the money spent on models, by day and agent", host::spend)
        .get("/v1/ledger/peers", "List the peers of an agent, in the order of their ids", ledger::list)
        .get("/v1/ledger/peers/{peer}", "Show a peer with its latest entries", ledger::show)
        .delete("/v1/ledger/peers/{peer}", "Forget a peer: delete everything about it", ledger::forget)
        .refusing(&refusals::CONSENT)
        .post("/v1/ledger/peers/{peer}/interactions", "Note an interaction with a peer", ledger::note)
        .post("/v1/ledger/peers/{peer}/assessments", "Assess a peer while the cortex is off", ledger::assess)
        .refusing(&refusals::STATE)
        .get("/v1/ledger/forgotten", "List when peers were forgotten, without their ids", ledger::forgotten)
        .get("/v1/memories", "List or search the memories of an agent", memories::list)
        .delete("/v1/memories", "Delete all memories of an agent with a source", memories::forget_source)
        .refusing(&refusals::CONSENT)
        .get("/v1/memories/{id}", "Show a memory of an agent", memories::show)
        .delete("/v1/memories/{id}", "Delete a memory of an agent", memories::forget)
        .refusing(&refusals::CONSENT)
        .post("/v1/messages", "Send a message to an agent", conversations::send)
        .refusing(&refusals::MESSAGE)
        .get("/v1/conversations", "List the conversations of an agent", conversations::list)
        .get(
            "/v1/conversations/{channel}",
            "Show the latest events of a conversation, oldest first",
            conversations::show,
        )
        .delete("/v1/conversations/{channel}", "Forget a conversation with its memories", conversations::forget)
        .refusing(&refusals::FORGET)
        .get(
            "/v1/forgotten-conversations",
            "List when conversations were forgotten, without the ids of peers",
            conversations::forgotten,
        )
        .get(
            "/v1/conversations/{channel}/events",
            "Follow the events of a conversation from its beginning, or after `Last-Event-ID`",
            conversations::events,
        )
        .get("/v1/cortex", "Show the state of an agent's cortex", cortex::status)
        .get("/v1/cortex/beliefs", "List the active beliefs, the latest confirmed last", cortex::beliefs)
        .get("/v1/cortex/history", "List the latest cycles, the newest first", cortex::history)
        .get("/v1/cortex/events", "Follow assessments and applied cycles as they happen", cortex::events)
        .get("/v1/cortex/commitments", "List the commitments, the oldest first", cortex::commitments)
        .post("/v1/cortex/commitment-closings", "Close a commitment as kept or dropped", cortex::close_commitment)
        .refusing(&refusals::CONSENT)
        .get("/v1/cortex/directives", "List the directives, the latest last", cortex::directives)
        .post("/v1/cortex/directive-removals", "Remove a directive", cortex::remove_directive)
        .refusing(&refusals::CONSENT)
        .get("/v1/cortex/signals", "List the latest signals of the cortex, the newest first", cortex::signals)
        .post("/v1/cortex/reflections", "Reflect now, and wait for the end of the cycle", cortex::reflect)
        .refusing(&refusals::REFLECT)
        .post("/v1/cortex/switch", "Switch the cortex of an agent on or off", cortex::switch)
        .refusing(&refusals::STATE)
        .get("/v1/cortex/reflectors", "List the reflectors, the bundled one first", cortex::reflectors)
        .post("/v1/cortex/reflectors/approvals", "Approve the shown bytes of a reflector", cortex::approve_reflector)
        .refusing(&refusals::REFLECTOR)
        .post("/v1/cortex/reflectors/revocations", "Withdraw the approval of a reflector", cortex::revoke_reflector)
        .refusing(&refusals::CONSENT)
        .get("/v1/neurons", "List the neurons of an agent, by name", neurons::list)
        .post("/v1/neurons", "Propose a neuron of the owner, and wait for its quarantine", neurons::propose)
        .refusing(&refusals::NEURON)
        .get("/v1/neurons/{name}", "Show a neuron with its program and its history", neurons::show)
        .delete("/v1/neurons/{name}", "Delete a neuron with its history and its signals", neurons::forget)
        .refusing(&refusals::CONSENT)
        .post("/v1/neuron-approvals", "Let the shown version of a neuron be tried", neurons::approve)
        .refusing(&refusals::CONSENT)
        .post("/v1/neuron-rejections", "Refuse a neuron that is not approved", neurons::reject)
        .refusing(&refusals::CONSENT)
        .post("/v1/neuron-switch", "Switch one neuron or all of them on or off", neurons::switch)
        .refusing(&refusals::CONSENT)
        .get("/v1/neuron-signals", "List the latest signals of neurons, the newest first", neurons::emitted)
        .get("/v1/page", "Show the address of the owner's page", host::page)
        .get("/v1/host", "Show the state of the host", host::status)
        .get("/v1/host/findings", "Examine the host's state", host::doctor)
        .post("/v1/host/findings/model", "Ask the model for one word, and say what came of it", host::model_answer)
        .get("/v1/host/verification", "Verify the home and every skill in it, byte by byte", host::verify)
        .post("/v1/host/model", "Ask the model for one word, as a test", host::ask_model)
        .post("/v1/host/settings", "Read the configuration again", host::reload)
        .post("/v1/host/resumption", "Resume the runs that an earlier host left", host::resume)
        .post("/v1/host/shutdown", "Stop the host", host::shutdown)
        .refusing(&refusals::STATE)
        .get("/v1/tokens", "List API tokens, without their texts", tokens::list)
        .post("/v1/tokens", "Make an API token", tokens::create)
        .refusing(&refusals::CONSENT)
        .delete("/v1/tokens/{name}", "Revoke an API token", tokens::revoke)
        .refusing(&refusals::CONSENT)
}

/// Every route, also of MCP and of the page.
fn routes() -> Routes {
    let mcp = api_routes().routes.post("/mcp", mcp::serve).get("/mcp", mcp::serve).delete("/mcp", mcp::serve);
    page::add_to(mcp.get("/metrics", metrics::show))
}

/// The methods, paths and scopes of all routes.
#[must_use]
pub fn route_table() -> Vec<Route> {
    routes().table
}

/// The API over one host.
fn router(api: ApiState) -> Router {
    let (mcp, meters) = (mcp::endpoint(without_mcp(api.clone()), api.closing.clone()), api.meters.clone());
    without_mcp(ApiState { mcp: Some(mcp), ..api }).layer(from_fn_with_state(meters, meters::count))
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

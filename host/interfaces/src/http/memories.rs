//! Memories of agents: `/v1/memories` (SPEC COG-1). They come from the owner's conversations, so no API token reads them, and only the
//! owner deletes them.

use axum::Json;
use axum::extract::State;
use base::{AgentName, Refusal, RefusalCode};
use cognition::{ForgottenMemories, MAX_MEMORIES, Memory, MemoryFilter};
use schemars::JsonSchema;
use serde::Deserialize;

use super::reply::{ApiResult, ErrorReply};
use super::scope::{Access, Owner, Reader};
use super::{ApiState, Path, Query};

/// The memories to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MemoryList {
    #[serde(default)]
    agent: AgentName,
    /// Words to search for, best match first. Default: all, the newest first.
    #[serde(default)]
    search: Option<String>,
    /// Only memories with this source.
    #[serde(default)]
    source: Option<String>,
    /// At most so many, at most 10,000. Default 100.
    #[serde(default = "default_limit")]
    limit: usize,
}

fn default_limit() -> usize {
    100
}

/// The agent whose memory it is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MemoryQuery {
    #[serde(default)]
    agent: AgentName,
}

/// The memories to delete.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MemorySource {
    #[serde(default)]
    agent: AgentName,
    /// All memories with this source.
    source: String,
}

pub(super) async fn list(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Query(MemoryList { agent, search, source, limit }): Query<MemoryList>,
) -> ApiResult<Vec<Memory>> {
    check(&access, &agent)?;
    let filter = MemoryFilter { search, source, limit: limit.min(MAX_MEMORIES) };
    Ok(Json(api.host.cognition.memories(&agent, filter).await?))
}

pub(super) async fn show(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path(id): Path<String>,
    Query(MemoryQuery { agent }): Query<MemoryQuery>,
) -> ApiResult<Memory> {
    check(&access, &agent)?;
    Ok(Json(api.host.cognition.memory(&agent, &id)?))
}

pub(super) async fn forget(
    _: Owner,
    State(api): State<ApiState>,
    Path(id): Path<String>,
    Query(MemoryQuery { agent }): Query<MemoryQuery>,
) -> ApiResult<Vec<Memory>> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.cognition.forget_memories(&agent, &ForgottenMemories::One(id)).await?))
}

pub(super) async fn forget_source(
    _: Owner,
    State(api): State<ApiState>,
    Query(MemorySource { agent, source }): Query<MemorySource>,
) -> ApiResult<Vec<Memory>> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.cognition.forget_memories(&agent, &ForgottenMemories::OfSource(source)).await?))
}

fn check(access: &Access, agent: &AgentName) -> Result<(), ErrorReply> {
    access.check_agent(agent)?;
    if access.sees_owner() {
        return Ok(());
    }
    let refusal =
        Refusal::new(RefusalCode::Forbidden, "memories of the owner's conversations are not shown to an API token");
    Err(refusal.with_remedy("the owner reads them with `motor memory list`").into())
}

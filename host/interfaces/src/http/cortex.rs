//! The cortex of an agent: `/v1/cortex` (SPEC CX-6 to CX-10). Only the owner reflects at will, and switches it.

use std::convert::Infallible;

use agent::{
    ApproveReflector, CortexEvent, CortexStatus, ReflectReply, ReflectRequest, ReflectorSummary, RevokeReflector,
};
use axum::Json;
use axum::extract::State;
use axum::response::sse::Event;
use base::{AgentName, Refusal, RefusalCode};
use cortex::{Belief, Commitment, CortexSignal, Directive, ReflectionRecord};
use futures_util::{Stream, StreamExt as _, stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events::{EventStream, event};
use super::reply::{ApiResult, ErrorReply};
use super::scope::{Owner, Reader};
use super::{ApiState, Body, Query};

/// Cycles in one answer.
const MAX_LISTED_CYCLES: usize = 1_000;

/// The agent whose cortex it is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CortexQuery {
    #[serde(default)]
    agent: AgentName,
}

/// The cycles to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CycleRange {
    #[serde(default)]
    agent: AgentName,
    /// At most so many. Default 50.
    #[serde(default = "default_limit")]
    limit: usize,
}

fn default_limit() -> usize {
    50
}

/// The owner's decision whether an agent is reflected on.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CortexSwitch {
    /// The agent whose cortex it is.
    #[serde(default)]
    pub agent: AgentName,
    /// Whether it reflects. Off lasts until it is switched on again.
    pub enabled: bool,
}

/// The owner's decision about an open commitment.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CloseCommitment {
    /// The agent whose commitment it is.
    #[serde(default)]
    pub agent: AgentName,
    /// The key of the commitment.
    #[schemars(length(max = 64))]
    pub key: String,
    /// Whether it was kept; otherwise it is dropped.
    pub kept: bool,
}

/// The owner's decision to remove a directive.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoveDirective {
    /// The agent that it advises.
    #[serde(default)]
    pub agent: AgentName,
    /// The key of the directive.
    #[schemars(length(max = 64))]
    pub key: String,
}

pub(super) async fn status(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Query(whose): Query<CortexQuery>,
) -> ApiResult<CortexStatus> {
    access.check_agent(&whose.agent)?;
    Ok(Json(api.host.reflections.status(&whose.agent).await?))
}

pub(super) async fn beliefs(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Query(whose): Query<CortexQuery>,
) -> ApiResult<Vec<Belief>> {
    access.check_agent(&whose.agent)?;
    Ok(Json(api.host.reflections.beliefs(&whose.agent).await?))
}

pub(super) async fn history(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Query(CycleRange { agent, limit }): Query<CycleRange>,
) -> ApiResult<Vec<ReflectionRecord>> {
    access.check_agent(&agent)?;
    Ok(Json(api.host.reflections.history(&agent, limit.min(MAX_LISTED_CYCLES))?))
}

/// The events of cortexes from now on. A client that reads too slowly misses events, so its stream ends.
pub(super) async fn events(
    Reader(access): Reader,
    State(api): State<ApiState>,
) -> Result<EventStream<CortexEvent, impl Stream<Item = Result<Event, Infallible>> + Send>, ErrorReply> {
    let followed = stream::unfold((api.host.reflections.events(), access), |(mut events, access)| async move {
        loop {
            let heard = events.recv().await.ok()?;
            if access.sees(&heard.agent) {
                return Some((Ok(event(None, &heard)), (events, access)));
            }
        }
    });
    Ok(EventStream::new(followed.take_until(api.closing.cancelled_owned())))
}

pub(super) async fn commitments(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Query(whose): Query<CortexQuery>,
) -> ApiResult<Vec<Commitment>> {
    access.check_agent(&whose.agent)?;
    Ok(Json(api.host.reflections.commitments(&whose.agent)?))
}

pub(super) async fn close_commitment(
    _: Owner,
    State(api): State<ApiState>,
    Body(CloseCommitment { agent, key, kept }): Body<CloseCommitment>,
) -> ApiResult<Vec<Commitment>> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.reflections.close_commitment(&agent, key, kept).await?))
}

pub(super) async fn directives(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Query(whose): Query<CortexQuery>,
) -> ApiResult<Vec<Directive>> {
    access.check_agent(&whose.agent)?;
    Ok(Json(api.host.reflections.directives(&whose.agent).await?))
}

pub(super) async fn remove_directive(
    _: Owner,
    State(api): State<ApiState>,
    Body(RemoveDirective { agent, key }): Body<RemoveDirective>,
) -> ApiResult<Vec<Directive>> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.reflections.remove_directive(&agent, key).await?))
}

pub(super) async fn signals(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Query(CycleRange { agent, limit }): Query<CycleRange>,
) -> ApiResult<Vec<CortexSignal>> {
    access.check_agent(&agent)?;
    Ok(Json(api.host.reflections.signals(&agent, limit)?))
}

pub(super) async fn reflect(
    _: Owner,
    State(api): State<ApiState>,
    Body(request): Body<ReflectRequest>,
) -> ApiResult<ReflectReply> {
    let _attachment = api.attached.attach();
    tokio::select! {
        biased;
        reply = api.host.reflections.reflect(request) => Ok(Json(reply?)),
        () = api.closing.cancelled() => {
            let refusal = Refusal::new(RefusalCode::TryLater, "the host stops during the reflection");
            Err(ErrorReply::from(refusal.with_remedy("`motor cortex history` shows whether it was applied")))
        }
    }
}

pub(super) async fn switch(
    _: Owner,
    State(api): State<ApiState>,
    Body(CortexSwitch { agent, enabled }): Body<CortexSwitch>,
) -> ApiResult<CortexStatus> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.reflections.switch(&agent, enabled).await?))
}

pub(super) async fn reflectors(_: Reader, State(api): State<ApiState>) -> ApiResult<Vec<ReflectorSummary>> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.reflections.reflectors().await?))
}

pub(super) async fn approve_reflector(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Body(request): Body<ApproveReflector>,
) -> ApiResult<ReflectorSummary> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.reflections.approve_reflector(request, consent).await?))
}

pub(super) async fn revoke_reflector(
    _: Owner,
    State(api): State<ApiState>,
    Body(RevokeReflector { name }): Body<RevokeReflector>,
) -> ApiResult<Vec<ReflectorSummary>> {
    let _attachment = api.attached.attach();
    api.host.reflections.revoke_reflector(&name).await?;
    Ok(Json(api.host.reflections.reflectors().await?))
}

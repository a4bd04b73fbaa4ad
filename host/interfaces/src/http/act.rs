//! Acting: `POST /v1/tasks`, `POST /v1/explanations`, `POST /v1/executions`.

use agent::{ActReply, ActRequest, ExecuteReply, ExecuteRequest, Explanation};
use axum::Json;
use axum::extract::State;
use consent::ConsentError;

use super::idempotency::IdempotencyKey;
use super::reply::ApiResult;
use super::scope::Actor;
use super::{ApiState, Body};

pub(super) async fn act(
    actor: Actor,
    State(api): State<ApiState>,
    key: IdempotencyKey,
    Body(mut request): Body<ActRequest>,
) -> ApiResult<ActReply> {
    let _attachment = api.attached.attach();
    actor.check(&request)?;
    request.key = key.or(request.key)?;
    if request.plan.is_some() {
        let consent = actor.consent()?.ok_or(ConsentError::Missing)?;
        return Ok(Json(api.host.runs.act_on_plan(request, consent).await?));
    }
    Ok(Json(api.host.runs.act(request, actor.caller).await?))
}

/// Explains the run that `POST /v1/tasks` would start with the same body.
pub(super) async fn explain(
    actor: Actor,
    State(api): State<ApiState>,
    Body(request): Body<ActRequest>,
) -> ApiResult<Explanation> {
    let _attachment = api.attached.attach();
    actor.check(&request)?;
    Ok(Json(api.host.runs.explain(&request, actor.caller).await?))
}

pub(super) async fn execute(
    actor: Actor,
    State(api): State<ApiState>,
    Body(request): Body<ExecuteRequest>,
) -> ApiResult<ExecuteReply> {
    let _attachment = api.attached.attach();
    actor.access.check_agent(&request.agent)?;
    Ok(Json(api.host.programs.execute(request, actor.caller).await?))
}

//! Words of people to runs: `/v1/tasks/{id}/answer`, `/approval`, `/messages`, `/retries`.

use agent::{ApproveTask, RespondRequest, RetryTask, TellRequest};
use axum::Json;
use axum::extract::State;
use base::RunId;
use consent::ConsentError;
use motor::{CommandReply, RetryReply, TellReply};

use super::idempotency::IdempotencyKey;
use super::reply::ApiResult;
use super::scope::{Actor, Owner};
use super::{ApiState, Body, Path};

pub(super) async fn respond(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Path(run): Path<RunId>,
    key: IdempotencyKey,
    Body(mut request): Body<RespondRequest>,
) -> ApiResult<CommandReply> {
    let _attachment = api.attached.attach();
    request.key = key.or(request.key)?;
    Ok(Json(api.host.runs.respond(&run, request, consent).await?))
}

pub(super) async fn approve(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Path(run): Path<RunId>,
    key: IdempotencyKey,
    Body(mut request): Body<ApproveTask>,
) -> ApiResult<CommandReply> {
    let _attachment = api.attached.attach();
    request.key = key.or(request.key)?;
    Ok(Json(api.host.runs.approve(&run, request, consent).await?))
}

pub(super) async fn tell(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Path(run): Path<RunId>,
    key: IdempotencyKey,
    Body(mut request): Body<TellRequest>,
) -> ApiResult<TellReply> {
    let _attachment = api.attached.attach();
    request.key = key.or(request.key)?;
    Ok(Json(api.host.runs.tell(&run, request, consent).await?))
}

/// A retry with the same grants needs no owner; more grants need the owner's word. A claim to be the owner is always
/// checked.
pub(super) async fn retry(
    actor: Actor,
    State(api): State<ApiState>,
    Path(run): Path<RunId>,
    key: IdempotencyKey,
    Body(mut request): Body<RetryTask>,
) -> ApiResult<RetryReply> {
    let _attachment = api.attached.attach();
    request.key = key.or(request.key)?;
    let run = actor.access.run(&api, run)?;
    let consent = actor.consent()?;
    if consent.is_none() && request.widens() {
        return Err(ConsentError::Missing.into());
    }
    Ok(Json(api.host.runs.retry(&run, request, consent).await?))
}

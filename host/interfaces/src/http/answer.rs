//! Answers of people to runs: `/v1/tasks/{id}/respond`, `/approve`, `/retry`.

use agent::{ApproveTask, RespondRequest, RetryTask};
use axum::Json;
use axum::extract::{Path, State};
use motor::{CommandReply, RetryReply};

use super::reply::{ApiResult, run_id};
use super::{ApiState, Body, ClaimHeaders};

pub(super) async fn respond(
    State(door): State<ApiState>,
    Path(id): Path<String>,
    claimed: ClaimHeaders,
    Body(request): Body<RespondRequest>,
) -> ApiResult<CommandReply> {
    let _attachment = door.attached.attach();
    let run = run_id(&id)?;
    let consent = door.host.consent.admit(claimed.into()).await?;
    Ok(Json(door.host.runs.respond(&run, request, consent).await?))
}

pub(super) async fn approve(
    State(door): State<ApiState>,
    Path(id): Path<String>,
    claimed: ClaimHeaders,
    Body(request): Body<ApproveTask>,
) -> ApiResult<CommandReply> {
    let _attachment = door.attached.attach();
    let run = run_id(&id)?;
    let consent = door.host.consent.admit(claimed.into()).await?;
    Ok(Json(door.host.runs.approve(&run, request, consent).await?))
}

/// A retry with the same grants needs no owner; more grants need the owner's word. A claim to be the owner is always
/// checked.
pub(super) async fn retry(
    State(door): State<ApiState>,
    Path(id): Path<String>,
    claimed: ClaimHeaders,
    Body(request): Body<RetryTask>,
) -> ApiResult<RetryReply> {
    let _attachment = door.attached.attach();
    let run = run_id(&id)?;
    let consent = if request.widens() || claimed.is_given() {
        Some(door.host.consent.admit(claimed.into()).await?)
    } else {
        None
    };
    Ok(Json(door.host.runs.retry(&run, request, consent).await?))
}

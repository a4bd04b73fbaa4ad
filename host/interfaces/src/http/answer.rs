//! Answers of people to runs: `/v1/tasks/{id}/respond`, `/approve`, `/retry`.

use agent::{ApproveRequest, RespondRequest, RetryTask};
use axum::Json;
use axum::extract::{Path, State};
use motor::{Moved, Retried};

use super::reply::{Reply, run_id};
use super::{Body, Claimed, Door};

pub(super) async fn respond(
    State(door): State<Door>,
    Path(id): Path<String>,
    claimed: Claimed,
    Body(request): Body<RespondRequest>,
) -> Reply<Moved> {
    let _attachment = door.attached.attach();
    let run = run_id(&id)?;
    let consent = door.host.consent(claimed.into()).await?;
    Ok(Json(door.host.respond(&run, request, consent).await?))
}

pub(super) async fn approve(
    State(door): State<Door>,
    Path(id): Path<String>,
    claimed: Claimed,
    Body(request): Body<ApproveRequest>,
) -> Reply<Moved> {
    let _attachment = door.attached.attach();
    let run = run_id(&id)?;
    let consent = door.host.consent(claimed.into()).await?;
    Ok(Json(door.host.approve(&run, request, consent).await?))
}

/// A retry with the same grants needs no owner; more grants need the owner's word. A claim to be the owner is always
/// checked.
pub(super) async fn retry(
    State(door): State<Door>,
    Path(id): Path<String>,
    claimed: Claimed,
    Body(request): Body<RetryTask>,
) -> Reply<Retried> {
    let _attachment = door.attached.attach();
    let run = run_id(&id)?;
    let consent =
        if request.widens() || claimed.is_given() { Some(door.host.consent(claimed.into()).await?) } else { None };
    Ok(Json(door.host.retry(&run, request, consent).await?))
}

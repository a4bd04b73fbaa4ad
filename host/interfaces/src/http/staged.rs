//! Staged writes of runs: `/v1/tasks/{id}/staged`. Sending and discarding take the owner's token.

use agent::{DiscardStaged, SendStaged, StagedTask, StagedWrite};
use axum::Json;
use axum::extract::State;
use base::RunId;

use super::reply::ApiResult;
use super::scope::{Owner, Reader};
use super::{ApiState, Body, Path};

pub(super) async fn show(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path(id): Path<RunId>,
) -> ApiResult<StagedTask> {
    Ok(Json(api.host.runs.staged(&access.run(&api, id)?)?))
}

/// No idempotency key: a write is sent at most once, however often the request comes.
pub(super) async fn send(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Path(id): Path<RunId>,
    Body(request): Body<SendStaged>,
) -> ApiResult<Vec<StagedWrite>> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.runs.send_staged(&id, request, consent).await?))
}

pub(super) async fn discard(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Path(id): Path<RunId>,
    Body(request): Body<DiscardStaged>,
) -> ApiResult<StagedTask> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.runs.discard_staged(&id, &request, consent).await?))
}

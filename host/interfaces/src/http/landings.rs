//! Changes of runs in the owner's directories, and landing them: `/v1/tasks/{id}/changes`, `/landings`. Everybody who may
//! see a run may see its changes; a change of the directories takes the owner's token.

use agent::{LandReply, LandRequest, LandingPlan, LandingSummary, RunChanges};
use axum::Json;
use axum::extract::State;
use base::RunId;

use super::reply::ApiResult;
use super::scope::{Local, Owner, Reader};
use super::{ApiState, Body, Path};

pub(super) async fn changes(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path(run): Path<RunId>,
) -> ApiResult<RunChanges> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.runs.changes(&access.run(&api, run)?).await?))
}

pub(super) async fn list(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path(run): Path<RunId>,
) -> ApiResult<Vec<LandingSummary>> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.runs.landings(&access.run(&api, run)?).await?))
}

pub(super) async fn plan(
    _: Local,
    State(api): State<ApiState>,
    Path(run): Path<RunId>,
    Body(request): Body<LandRequest>,
) -> ApiResult<LandingPlan> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.runs.plan_landing(&run, request).await?))
}

pub(super) async fn land(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Path(run): Path<RunId>,
    Body(request): Body<LandRequest>,
) -> ApiResult<LandReply> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.runs.land(&run, request, consent).await?))
}

//! Acting: `POST /v1/act`, `POST /v1/explain`, `POST /v1/execute`.

use agent::{ActReply, ActRequest, ExecuteReply, ExecuteRequest, Explanation};
use axum::Json;
use axum::extract::State;

use super::claim::CallerHeader;
use super::reply::ApiResult;
use super::{ApiState, Body};

pub(super) async fn act(
    State(door): State<ApiState>,
    CallerHeader(caller): CallerHeader,
    Body(request): Body<ActRequest>,
) -> ApiResult<ActReply> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.runs.act(request, caller).await?))
}

/// Explains the run that `POST /v1/act` would start with the same body.
pub(super) async fn explain(
    State(door): State<ApiState>,
    CallerHeader(caller): CallerHeader,
    Body(request): Body<ActRequest>,
) -> ApiResult<Explanation> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.runs.explain(&request, caller).await?))
}

pub(super) async fn execute(
    State(door): State<ApiState>,
    CallerHeader(caller): CallerHeader,
    Body(request): Body<ExecuteRequest>,
) -> ApiResult<ExecuteReply> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.programs.execute(request, caller).await?))
}

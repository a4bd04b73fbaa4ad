//! Plans: `POST /v1/plans`, `POST /v1/plans/checks`. Only for programs of the owner's user: a draft costs tokens, and its
//! place is before a question to the owner. The run itself is started with `POST /v1/tasks` and the owner's token.

use agent::{ActRequest, TaskPlan};
use axum::Json;
use axum::extract::State;

use super::reply::ApiResult;
use super::scope::Local;
use super::{ApiState, Body};

/// Lets a model draft the access for a task, within the grants of the request.
pub(super) async fn draft(
    local: Local,
    State(api): State<ApiState>,
    Body(request): Body<ActRequest>,
) -> ApiResult<TaskPlan> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.runs.draft(request, local.caller).await?))
}

/// Checks a plan that the owner wrote or changed.
pub(super) async fn check(
    local: Local,
    State(api): State<ApiState>,
    Body(request): Body<ActRequest>,
) -> ApiResult<TaskPlan> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.runs.check_plan(request, local.caller).await?))
}

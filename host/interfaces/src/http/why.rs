//! Where something of a run came from: `/v1/tasks/{id}/why`.

use agent::api::why::{WhyQuery, WhyReply};
use axum::Json;
use axum::extract::State;
use base::RunId;

use super::reply::ApiResult;
use super::scope::Reader;
use super::{ApiState, Path, Query};

pub(super) async fn show(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path(id): Path<RunId>,
    Query(query): Query<WhyQuery>,
) -> ApiResult<WhyReply> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.runs.why(&access.run(&api, id)?, query).await?))
}

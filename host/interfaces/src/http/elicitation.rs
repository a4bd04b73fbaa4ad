//! Questions of runs for the MCP client that requested them: `/v1/tasks/{id}/elicitation`.
//!
//! No request with an API token reaches these routes from a port: only the MCP server of this process asks for such a
//! client, and it sends an answer only to a question that it put.

use agent::{Elicitation, ElicitedAnswer};
use axum::Json;
use axum::extract::State;
use base::RunId;
use motor::CommandReply;

use super::reply::ApiResult;
use super::scope::Asked;
use super::{ApiState, Body, Path};

pub(super) async fn show(asked: Asked, State(api): State<ApiState>, Path(id): Path<RunId>) -> ApiResult<Elicitation> {
    let run = asked.access.run(&api, id)?;
    Ok(Json(api.host.elicitation(&run, &asked.client)?))
}

pub(super) async fn answer(
    asked: Asked,
    State(api): State<ApiState>,
    Path(id): Path<RunId>,
    Body(answer): Body<ElicitedAnswer>,
) -> ApiResult<CommandReply> {
    let _attachment = api.attached.attach();
    let run = asked.access.run(&api, id)?;
    Ok(Json(api.host.answer_elicited(&run, answer, &asked.client).await?))
}

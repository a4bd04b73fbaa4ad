//! Acting: `POST /v1/act`, `POST /v1/explain`, `POST /v1/execute`.

use agent::{ActReply, ActRequest, ExecuteReply, ExecuteRequest, Explanation};
use axum::Json;
use axum::extract::State;

use super::claim::By;
use super::reply::Reply;
use super::{Body, Door};

pub(super) async fn act(State(door): State<Door>, By(caller): By, Body(request): Body<ActRequest>) -> Reply<ActReply> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.act(request, caller).await?))
}

/// Explains the run that `POST /v1/act` would start with the same body.
pub(super) async fn explain(
    State(door): State<Door>,
    By(caller): By,
    Body(request): Body<ActRequest>,
) -> Reply<Explanation> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.explain(&request, caller).await?))
}

pub(super) async fn execute(
    State(door): State<Door>,
    By(caller): By,
    Body(request): Body<ExecuteRequest>,
) -> Reply<ExecuteReply> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.execute(request, caller).await?))
}

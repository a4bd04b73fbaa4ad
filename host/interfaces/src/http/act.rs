//! Acting: `POST /v1/act`, `POST /v1/execute`.

use agent::{ActReply, ActRequest, ExecuteReply, ExecuteRequest};
use axum::Json;
use axum::extract::State;

use super::reply::Reply;
use super::{Body, Door};

pub(super) async fn act(State(door): State<Door>, Body(request): Body<ActRequest>) -> Reply<ActReply> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.act(request).await?))
}

pub(super) async fn execute(State(door): State<Door>, Body(request): Body<ExecuteRequest>) -> Reply<ExecuteReply> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.execute(request).await?))
}

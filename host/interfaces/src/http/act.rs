//! Acting: `POST /v1/act`, `POST /v1/execute`.

use agent::{ActReply, ActRequest, ExecuteReply, ExecuteRequest, Mode};
use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::reply::Reply;
use super::{Body, Door};

/// An agentic act answers with its run, a oneshot with its value.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Acted {
    Run(ActReply),
    Value(ExecuteReply),
}

pub(super) async fn act(State(door): State<Door>, Body(request): Body<ActRequest>) -> Reply<Acted> {
    let _attachment = door.attached.attach();
    Ok(Json(match request.mode {
        Mode::Agentic => Acted::Run(door.host.act(request).await?),
        Mode::Oneshot => Acted::Value(door.host.act_once(request).await?),
    }))
}

pub(super) async fn execute(State(door): State<Door>, Body(request): Body<ExecuteRequest>) -> Reply<ExecuteReply> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.execute(request).await?))
}

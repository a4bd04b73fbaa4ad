//! Acting: `POST /v1/act`, `POST /v1/execute`.

use agent::{ActReply, ActRequest, ExecuteReply, ExecuteRequest, Explanation, Mode};
use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::reply::Reply;
use super::{Body, Door};

/// An agentic act answers with its run, a oneshot with its value, and an explained one with what it could touch.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Acted {
    Run(ActReply),
    Value(ExecuteReply),
    Explanation(Box<Explanation>),
}

pub(super) async fn act(State(door): State<Door>, Body(request): Body<ActRequest>) -> Reply<Acted> {
    let _attachment = door.attached.attach();
    if request.explain {
        return Ok(Json(Acted::Explanation(Box::new(door.host.explain(&request).await?))));
    }
    Ok(Json(match request.mode {
        Mode::Agentic => Acted::Run(door.host.act(request).await?),
        Mode::Oneshot => Acted::Value(door.host.act_once(request).await?),
    }))
}

pub(super) async fn execute(State(door): State<Door>, Body(request): Body<ExecuteRequest>) -> Reply<ExecuteReply> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.execute(request).await?))
}

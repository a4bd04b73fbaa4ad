//! What the owner keeps and decides: `/v1/credentials`, `/v1/network`.

use agent::{Decision, SetCredential};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use base::{CredentialName, Refusal, RefusalCode};
use serde::{Deserialize, Serialize};
use vault::CredentialInfo;

use super::reply::Reply;
use super::{Body, Door};

/// That a credential is kept.
#[derive(Debug, Serialize)]
pub(super) struct Kept {
    warnings: Vec<String>,
}

/// Keeps a credential. What is wrong with a body is not said in its own words: they may be the secret.
pub(super) async fn set_credential(State(door): State<Door>, body: Bytes) -> Reply<Kept> {
    let _attachment = door.attached.attach();
    let credential: SetCredential = serde_json::from_slice(&body).map_err(|_| {
        let reason = "the body is not a credential: an object with `name`, `value` and `domains`";
        Refusal::new(RefusalCode::InvalidRequest, reason)
    })?;
    Ok(Json(Kept { warnings: door.host.set_credential(credential).await? }))
}

pub(super) async fn credentials(State(door): State<Door>) -> Reply<Vec<CredentialInfo>> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.credentials().await?))
}

/// Which credential.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    name: CredentialName,
    #[serde(default)]
    skill: Option<String>,
}

/// That a credential is gone.
#[derive(Debug, Serialize)]
pub(super) struct Gone {
    deleted: bool,
}

pub(super) async fn delete_credential(State(door): State<Door>, Body(which): Body<Which>) -> Reply<Gone> {
    let _attachment = door.attached.attach();
    door.host.delete_credential(&which.name, which.skill.as_deref()).await?;
    Ok(Json(Gone { deleted: true }))
}

pub(super) async fn decide(State(door): State<Door>, Body(decision): Body<Decision>) -> Reply<Decision> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.decide(decision).await?))
}

pub(super) async fn forget(State(door): State<Door>, Body(decision): Body<Decision>) -> Reply<Decision> {
    let _attachment = door.attached.attach();
    door.host.forget(decision.clone()).await?;
    Ok(Json(decision))
}

pub(super) async fn decisions(State(door): State<Door>) -> Reply<Vec<Decision>> {
    Ok(Json(door.host.decisions()?))
}

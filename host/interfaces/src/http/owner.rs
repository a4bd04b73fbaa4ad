//! The owner's secrets and decisions: `/v1/credentials`, `/v1/network`, `/v1/owner`. Every change takes the owner's token.

use agent::{Decision, PendingDecision, SetCredential};
use axum::Json;
use axum::extract::State;
use base::{CredentialName, Refusal, RefusalCode};
use consent::{OwnerStatus, OwnerToken, Replacement, TokenFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vault::CredentialInfo;
use zeroize::Zeroizing;

use super::reply::{ApiResult, SecretBody};
use super::scope::{Local, Owner, OwnerClaim, Reader};
use super::{ApiState, Body, Path, Query};

/// That a credential is kept.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CredentialStored {
    warnings: Vec<String>,
}

pub(super) async fn set_credential(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    SecretBody(credential): SecretBody<SetCredential>,
) -> ApiResult<CredentialStored> {
    let _attachment = api.attached.attach();
    Ok(Json(CredentialStored { warnings: api.host.credentials.set(credential, consent).await? }))
}

pub(super) async fn credentials(_: Reader, State(api): State<ApiState>) -> ApiResult<Vec<CredentialInfo>> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.credentials.list().await?))
}

/// The owner of the credential to delete.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CredentialSelector {
    /// The only skill that it is kept for. Default: it is shared.
    #[serde(default)]
    skill: Option<String>,
}

/// That a credential is gone.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CredentialDeleted {
    deleted: bool,
}

pub(super) async fn delete_credential(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Path(name): Path<CredentialName>,
    Query(which): Query<CredentialSelector>,
) -> ApiResult<CredentialDeleted> {
    let _attachment = api.attached.attach();
    api.host.credentials.delete(&name, which.skill.as_deref(), consent).await?;
    Ok(Json(CredentialDeleted { deleted: true }))
}

pub(super) async fn accept_credential(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Body(decision): Body<PendingDecision>,
) -> ApiResult<CredentialInfo> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.credentials.accept(decision, consent).await?))
}

pub(super) async fn reject_credential(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Body(decision): Body<PendingDecision>,
) -> ApiResult<CredentialInfo> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.credentials.reject(decision, consent).await?))
}

pub(super) async fn decide(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Body(decision): Body<Decision>,
) -> ApiResult<Decision> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.domains.decide(decision, consent).await?))
}

pub(super) async fn forget(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Body(decision): Body<Decision>,
) -> ApiResult<Decision> {
    let _attachment = api.attached.attach();
    api.host.domains.forget(decision.clone(), consent).await?;
    Ok(Json(decision))
}

pub(super) async fn decisions(_: Local, State(api): State<ApiState>) -> ApiResult<Vec<Decision>> {
    Ok(Json(api.host.domains.list()?))
}

pub(super) async fn owner(_: Local, State(api): State<ApiState>) -> Json<OwnerStatus> {
    Json(api.host.consent.status())
}

/// Another token for the owner. As the body of a credential, it is never quoted.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// The token, which proves that the file is good.
    pub token: String,
    /// The new content of `config/owner.token`: the token, or the token sealed.
    pub file: String,
}

pub(super) async fn replace_token(
    OwnerClaim(claim): OwnerClaim,
    State(api): State<ApiState>,
    SecretBody(new): SecretBody<NewToken>,
) -> ApiResult<OwnerStatus> {
    let _attachment = api.attached.attach();
    let (token, file) = (Zeroizing::new(new.token), Zeroizing::new(new.file));
    let parsed = OwnerToken::parse(&token).zip(TokenFile::parse(&file).ok());
    let new = parsed.map(|(token, file)| Replacement { token, file }).ok_or_else(|| {
        let reason = "the body is not a new token: an object with `token` and `file`";
        Refusal::new(RefusalCode::InvalidRequest, reason)
    })?;
    Ok(Json(api.host.consent.replace(claim, new).await?))
}

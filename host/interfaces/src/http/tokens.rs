//! API tokens: `/v1/tokens`. Only the owner makes and revokes them.

use axum::Json;
use axum::extract::State;
use base::TokenName;
use consent::{ApiToken, NewApiToken};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reply::ApiResult;
use super::scope::{Local, Owner};
use super::{ApiState, Body, Path};

/// A token that was made.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct CreatedToken {
    /// Its text, which is shown this once.
    pub token: String,
    /// The public facts of the token.
    #[serde(flatten)]
    pub facts: ApiToken,
}

pub(super) async fn list(_: Local, State(api): State<ApiState>) -> Json<Vec<ApiToken>> {
    Json(api.host.tokens.list())
}

pub(super) async fn create(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Body(new): Body<NewApiToken>,
) -> ApiResult<CreatedToken> {
    let _attachment = api.attached.attach();
    let (token, facts) = api.host.tokens.create(new, consent).await?;
    Ok(Json(CreatedToken { token: token.expose().clone(), facts }))
}

pub(super) async fn revoke(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Path(name): Path<TokenName>,
) -> ApiResult<ApiToken> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.tokens.revoke(&name, consent).await?))
}

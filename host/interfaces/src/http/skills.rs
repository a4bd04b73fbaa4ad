//! Skills: `/v1/skills`. Any client of the socket may look; giving or taking away trust needs the owner's word.

use agent::api::skills::{
    AddRequest, ApprovalQuestion, ApproveRequest, DiffRequest, FetchRequest, RejectRequest, ReviewRequest,
    RollbackRequest, ShowSkillRequest, SkillDiff, SkillFetch, SkillReviewReply, SkillRollback, SkillText,
    SkillVerification, SkillVersion, UpdateRequest, VerifySkills, WhichSkill,
};
use axum::Json;
use axum::extract::State;
use base::AgentName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skills::{SkillPlace, SkillSummary};

use super::reply::ApiResult;
use super::scope::{Local, Owner, Reader};
use super::{ApiState, Body, Query};

pub(super) async fn list(_: Reader, State(api): State<ApiState>) -> ApiResult<Vec<SkillSummary>> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.skills.list().await?))
}

/// The agent whose energy an advisory run costs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReviewQuery {
    #[serde(default)]
    agent: AgentName,
}

pub(super) async fn review(
    local: Local,
    State(api): State<ApiState>,
    Query(whose): Query<ReviewQuery>,
    Body(request): Body<ReviewRequest>,
) -> ApiResult<SkillReviewReply> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.skills.review(request, &whose.agent, local.caller).await?))
}

/// The text of a file, of skills that are not approved, too. It changes nothing.
pub(super) async fn show(
    _: Local,
    State(api): State<ApiState>,
    Body(request): Body<ShowSkillRequest>,
) -> ApiResult<SkillText> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.skills.show(request).await?))
}

/// The powers that approving would grant. It comes before the owner's decision, so it needs no token.
pub(super) async fn question(
    _: Local,
    State(api): State<ApiState>,
    Body(request): Body<ApproveRequest>,
) -> ApiResult<ApprovalQuestion> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.skills.question(request).await?))
}

pub(super) async fn approve(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Body(request): Body<ApproveRequest>,
) -> ApiResult<SkillSummary> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.skills.approve(request, consent).await?))
}

pub(super) async fn reject(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Body(request): Body<RejectRequest>,
) -> ApiResult<SkillSummary> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.skills.reject(request, consent).await?))
}

pub(super) async fn update(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Body(request): Body<UpdateRequest>,
) -> ApiResult<SkillSummary> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.skills.update(request, consent).await?))
}

/// That a skill is gone.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SkillDeleted {
    place: SkillPlace,
}

pub(super) async fn delete(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Body(which): Body<WhichSkill>,
) -> ApiResult<SkillDeleted> {
    let _attachment = api.attached.attach();
    Ok(Json(SkillDeleted { place: api.host.skills.delete(which, consent).await? }))
}

pub(super) async fn versions(
    _: Reader,
    State(api): State<ApiState>,
    Query(which): Query<WhichSkill>,
) -> ApiResult<Vec<SkillVersion>> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.skills.versions(&which.skill).await?))
}

pub(super) async fn diff(
    _: Local,
    State(api): State<ApiState>,
    Body(request): Body<DiffRequest>,
) -> ApiResult<SkillDiff> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.skills.diff(request).await?))
}

pub(super) async fn rollback(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Body(request): Body<RollbackRequest>,
) -> ApiResult<SkillRollback> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.skills.rollback(request, consent).await?))
}

pub(super) async fn verify(
    _: Local,
    State(api): State<ApiState>,
    Body(which): Body<VerifySkills>,
) -> ApiResult<Vec<SkillVerification>> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.skills.verify(which).await?))
}

/// Comparing with a local source takes no owner's word; fetching from a URL and replacing files do.
pub(super) async fn fetch(
    local: Local,
    State(api): State<ApiState>,
    Body(request): Body<FetchRequest>,
) -> ApiResult<SkillFetch> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.skills.fetch(request, local.consent()?).await?))
}

/// Any client of the socket may add a local skill, which is not trusted by that; fetching takes the owner's word. A
/// claim to be the owner is always checked.
pub(super) async fn add(
    local: Local,
    State(api): State<ApiState>,
    Body(request): Body<AddRequest>,
) -> ApiResult<SkillSummary> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.skills.add(request, local.consent()?).await?))
}

//! Skills: `/v1/skills`. Any client of the socket may look; giving or taking away trust needs the owner's word.

use agent::api::skills::{
    AddRequest, ApprovalQuestion, ApproveRequest, DiffRequest, RejectRequest, ReviewRequest, RollbackRequest,
    SkillDiff, SkillReviewReply, SkillVerification, SkillVersion, UpdateRequest, VerifySkills, WhichSkill,
};
use axum::Json;
use axum::extract::State;
use base::AgentName;
use serde::{Deserialize, Serialize};
use skills::{SkillPlace, SkillSummary};

use super::claim::CallerHeader;
use super::reply::ApiResult;
use super::{ApiState, Body, ClaimHeaders, Query};

pub(super) async fn list(State(door): State<ApiState>) -> ApiResult<Vec<SkillSummary>> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.skills.list().await?))
}

/// The agent whose energy an advisory run costs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReviewQuery {
    #[serde(default)]
    agent: AgentName,
}

pub(super) async fn review(
    State(door): State<ApiState>,
    CallerHeader(caller): CallerHeader,
    Query(whose): Query<ReviewQuery>,
    Body(request): Body<ReviewRequest>,
) -> ApiResult<SkillReviewReply> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.skills.review(request, &whose.agent, caller).await?))
}

/// The powers that approving would grant. It comes before the owner's decision, so it needs no token.
pub(super) async fn question(
    State(door): State<ApiState>,
    Body(request): Body<ApproveRequest>,
) -> ApiResult<ApprovalQuestion> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.skills.question(request).await?))
}

pub(super) async fn approve(
    State(door): State<ApiState>,
    claimed: ClaimHeaders,
    Body(request): Body<ApproveRequest>,
) -> ApiResult<SkillSummary> {
    let _attachment = door.attached.attach();
    let consent = door.host.consent.admit(claimed.into()).await?;
    Ok(Json(door.host.skills.approve(request, consent).await?))
}

pub(super) async fn reject(
    State(door): State<ApiState>,
    claimed: ClaimHeaders,
    Body(request): Body<RejectRequest>,
) -> ApiResult<SkillSummary> {
    let _attachment = door.attached.attach();
    let consent = door.host.consent.admit(claimed.into()).await?;
    Ok(Json(door.host.skills.reject(request, consent).await?))
}

pub(super) async fn update(
    State(door): State<ApiState>,
    claimed: ClaimHeaders,
    Body(request): Body<UpdateRequest>,
) -> ApiResult<SkillSummary> {
    let _attachment = door.attached.attach();
    let consent = door.host.consent.admit(claimed.into()).await?;
    Ok(Json(door.host.skills.update(request, consent).await?))
}

/// That a skill is gone.
#[derive(Debug, Serialize)]
pub(super) struct SkillDeleted {
    place: SkillPlace,
}

pub(super) async fn delete(
    State(door): State<ApiState>,
    claimed: ClaimHeaders,
    Body(which): Body<WhichSkill>,
) -> ApiResult<SkillDeleted> {
    let _attachment = door.attached.attach();
    let consent = door.host.consent.admit(claimed.into()).await?;
    Ok(Json(SkillDeleted { place: door.host.skills.delete(which, consent).await? }))
}

pub(super) async fn versions(
    State(door): State<ApiState>,
    Query(which): Query<WhichSkill>,
) -> ApiResult<Vec<SkillVersion>> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.skills.versions(&which.skill).await?))
}

pub(super) async fn diff(State(door): State<ApiState>, Body(request): Body<DiffRequest>) -> ApiResult<SkillDiff> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.skills.diff(request).await?))
}

pub(super) async fn rollback(
    State(door): State<ApiState>,
    claimed: ClaimHeaders,
    Body(request): Body<RollbackRequest>,
) -> ApiResult<SkillSummary> {
    let _attachment = door.attached.attach();
    let consent = door.host.consent.admit(claimed.into()).await?;
    Ok(Json(door.host.skills.rollback(request, consent).await?))
}

pub(super) async fn verify(
    State(door): State<ApiState>,
    Body(which): Body<VerifySkills>,
) -> ApiResult<Vec<SkillVerification>> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.skills.verify(which).await?))
}

/// Any client of the socket may add a local skill, which is not trusted by that; fetching takes the owner's word. A
/// claim to be the owner is always checked.
pub(super) async fn add(
    State(door): State<ApiState>,
    claimed: ClaimHeaders,
    Body(request): Body<AddRequest>,
) -> ApiResult<SkillSummary> {
    let _attachment = door.attached.attach();
    let consent = if claimed.is_given() { Some(door.host.consent.admit(claimed.into()).await?) } else { None };
    Ok(Json(door.host.skills.add(request, consent).await?))
}

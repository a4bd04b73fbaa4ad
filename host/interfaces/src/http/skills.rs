//! Skills: `/v1/skills`. Any client of the socket may look; giving or taking away trust needs the owner's word.

use agent::api::skills::{
    AddRequest, ApprovalQuestion, ApproveRequest, DiffRequest, RejectRequest, ReviewRequest, RollbackRequest,
    SkillDiff, SkillReviewReply, SkillVerification, SkillVersion, UpdateRequest, VerifySkills, WhichSkill,
};
use axum::Json;
use axum::extract::State;
use base::AgentName;
use serde::{Deserialize, Serialize};
use skills::{Place, SkillSummary};

use super::claim::By;
use super::reply::Reply;
use super::{Body, Claimed, Door, Query};

pub(super) async fn list(State(door): State<Door>) -> Reply<Vec<SkillSummary>> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.skills().await?))
}

/// The agent whose energy an advisory run costs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Whose {
    #[serde(default)]
    agent: AgentName,
}

pub(super) async fn review(
    State(door): State<Door>,
    By(caller): By,
    Query(whose): Query<Whose>,
    Body(request): Body<ReviewRequest>,
) -> Reply<SkillReviewReply> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.review_skill(request, &whose.agent, caller).await?))
}

/// The powers that approving would grant. It comes before the owner's decision, so it needs no token.
pub(super) async fn question(State(door): State<Door>, Body(request): Body<ApproveRequest>) -> Reply<ApprovalQuestion> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.approval_question(request).await?))
}

pub(super) async fn approve(
    State(door): State<Door>,
    claimed: Claimed,
    Body(request): Body<ApproveRequest>,
) -> Reply<SkillSummary> {
    let _attachment = door.attached.attach();
    let consent = door.host.consent(claimed.into()).await?;
    Ok(Json(door.host.approve_skill(request, consent).await?))
}

pub(super) async fn reject(
    State(door): State<Door>,
    claimed: Claimed,
    Body(request): Body<RejectRequest>,
) -> Reply<SkillSummary> {
    let _attachment = door.attached.attach();
    let consent = door.host.consent(claimed.into()).await?;
    Ok(Json(door.host.reject_skill(request, consent).await?))
}

pub(super) async fn update(
    State(door): State<Door>,
    claimed: Claimed,
    Body(request): Body<UpdateRequest>,
) -> Reply<SkillSummary> {
    let _attachment = door.attached.attach();
    let consent = door.host.consent(claimed.into()).await?;
    Ok(Json(door.host.update_skill(request, consent).await?))
}

/// That a skill is gone.
#[derive(Debug, Serialize)]
pub(super) struct Gone {
    place: Place,
}

pub(super) async fn delete(State(door): State<Door>, claimed: Claimed, Body(which): Body<WhichSkill>) -> Reply<Gone> {
    let _attachment = door.attached.attach();
    let consent = door.host.consent(claimed.into()).await?;
    Ok(Json(Gone { place: door.host.delete_skill(which, consent).await? }))
}

pub(super) async fn versions(State(door): State<Door>, Query(which): Query<WhichSkill>) -> Reply<Vec<SkillVersion>> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.skill_versions(&which.skill).await?))
}

pub(super) async fn diff(State(door): State<Door>, Body(request): Body<DiffRequest>) -> Reply<SkillDiff> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.diff_skill(request).await?))
}

pub(super) async fn rollback(
    State(door): State<Door>,
    claimed: Claimed,
    Body(request): Body<RollbackRequest>,
) -> Reply<SkillSummary> {
    let _attachment = door.attached.attach();
    let consent = door.host.consent(claimed.into()).await?;
    Ok(Json(door.host.rollback_skill(request, consent).await?))
}

pub(super) async fn verify(State(door): State<Door>, Body(which): Body<VerifySkills>) -> Reply<Vec<SkillVerification>> {
    let _attachment = door.attached.attach();
    Ok(Json(door.host.verify_skills(which).await?))
}

/// Any client of the socket may add a local skill, which is not trusted by that; fetching takes the owner's word. A
/// claim to be the owner is always checked.
pub(super) async fn add(
    State(door): State<Door>,
    claimed: Claimed,
    Body(request): Body<AddRequest>,
) -> Reply<SkillSummary> {
    let _attachment = door.attached.attach();
    let consent = if claimed.is_given() { Some(door.host.consent(claimed.into()).await?) } else { None };
    Ok(Json(door.host.add_skill(request, consent).await?))
}

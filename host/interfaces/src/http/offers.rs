//! The offers of approved skills to other programs: `/v1/skills/tools`, `/v1/skills/calls`, `/v1/skills/resources`,
//! `/v1/skills/events`.

use std::convert::Infallible;

use agent::api::offers::{CallSkillTool, OfferedSkill, OfferedTool, SkillToolReply};
use axum::Json;
use axum::extract::State;
use axum::response::sse::Event;
use base::ContentHash;
use futures_util::{Stream, StreamExt as _, stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events::{EventStream, event};
use super::reply::{ApiResult, ErrorReply};
use super::scope::{Actor, Reader};
use super::tasks::SavedFile;
use super::{ApiState, Body, Path};

pub(super) async fn tools(_: Reader, State(api): State<ApiState>) -> ApiResult<Vec<OfferedTool>> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.skills.tools().await?))
}

pub(super) async fn call(
    actor: Actor,
    State(api): State<ApiState>,
    Body(mut request): Body<CallSkillTool>,
) -> ApiResult<SkillToolReply> {
    let _attachment = api.attached.attach();
    let own = actor.access.agent().cloned().unwrap_or_default();
    actor.access.check_agent(request.agent.get_or_insert(own))?;
    Ok(Json(api.host.skills.call(request, actor.caller).await?))
}

pub(super) async fn resources(_: Reader, State(api): State<ApiState>) -> ApiResult<Vec<OfferedSkill>> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.skills.resources().await?))
}

/// The bytes of one file, which no browser is to show or run.
pub(super) async fn resource(
    _: Reader,
    State(api): State<ApiState>,
    Path((skill, path)): Path<(String, String)>,
) -> Result<SavedFile, ErrorReply> {
    let _attachment = api.attached.attach();
    Ok(SavedFile(api.host.skills.resource(&skill, &path).await?.to_vec()))
}

/// The approved skills at one moment.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SkillsChanged {
    /// A hash over their names and contents.
    pub(crate) digest: ContentHash,
}

/// The approved skills, at once and whenever others are approved.
pub(super) async fn events(
    _: Reader,
    State(api): State<ApiState>,
) -> Result<EventStream<SkillsChanged, impl Stream<Item = Result<Event, Infallible>> + Send>, ErrorReply> {
    let changes = stream::unfold(api.host.skills.follow(), |mut follower| async move {
        let digest = follower.next().await?;
        Some((Ok(event(None, &SkillsChanged { digest })), follower))
    });
    Ok(EventStream::new(changes.take_until(api.closing.cancelled_owned())))
}

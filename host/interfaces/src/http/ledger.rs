//! Peers of agents: `/v1/ledger` (SPEC LED-1 to LED-4). Only the owner notes, assesses and forgets.

use axum::Json;
use axum::extract::State;
use base::{AgentName, Refusal};
use ledger::{
    Assessment, AssessmentSource, ChannelName, Direction, ForgottenPeer, MAX_LISTED_PEERS, NewAssessment,
    NewInteraction, PeerId, PeerReport, PeerSummary, TrustChange,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reply::ApiResult;
use super::scope::{Owner, Reader};
use super::{ApiState, Body, Path, Query};

/// The peers to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PeerRange {
    #[serde(default)]
    agent: AgentName,
    /// Those after this peer. Default: from the first.
    #[serde(default)]
    after: Option<PeerId>,
    /// At most so many. Default 100.
    #[serde(default = "default_limit")]
    limit: usize,
}

fn default_limit() -> usize {
    100
}

/// The agent whose ledger it is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LedgerQuery {
    #[serde(default)]
    agent: AgentName,
}

/// An interaction outside of the host, noted by the owner.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewNote {
    /// The agent whose ledger it is.
    #[serde(default)]
    pub agent: AgentName,
    /// Its direction, seen from the agent.
    pub direction: Direction,
    /// The channel. Default: `note`.
    #[serde(default = "ChannelName::note")]
    pub channel: ChannelName,
    /// A short summary, of which 280 characters are kept.
    pub summary: String,
}

/// A judgement of the owner.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewJudgement {
    /// The agent whose ledger it is.
    #[serde(default)]
    pub agent: AgentName,
    /// From -10 to 10.
    #[serde(deserialize_with = "base::whole::signed")]
    #[schemars(range(min = -10, max = 10))]
    pub trust: i64,
    /// The reasons, at most 1,000 characters.
    #[schemars(length(min = 1, max = 1_000))]
    pub rationale: String,
}

pub(super) async fn list(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Query(range): Query<PeerRange>,
) -> ApiResult<Vec<PeerSummary>> {
    let PeerRange { agent, after, limit } = range;
    access.check_agent(&agent)?;
    Ok(Json(api.host.ledger.list(&agent, after.as_ref(), limit).map_err(Refusal::from)?))
}

pub(super) async fn show(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path(peer): Path<PeerId>,
    Query(whose): Query<LedgerQuery>,
) -> ApiResult<PeerReport> {
    access.check_agent(&whose.agent)?;
    Ok(Json(api.host.ledger.report(&whose.agent, &peer)?))
}

pub(super) async fn forget(
    _: Owner,
    State(api): State<ApiState>,
    Path(peer): Path<PeerId>,
    Query(whose): Query<LedgerQuery>,
) -> ApiResult<ForgottenPeer> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.forget_peer(&whose.agent, &peer).await?))
}

pub(super) async fn note(
    _: Owner,
    State(api): State<ApiState>,
    Path(peer): Path<PeerId>,
    Body(NewNote { agent, direction, channel, summary }): Body<NewNote>,
) -> ApiResult<PeerReport> {
    let _attachment = api.attached.attach();
    api.host.reflections.record(&agent, &peer, vec![NewInteraction { direction, channel, summary }]).await?;
    Ok(Json(api.host.ledger.report(&agent, &peer)?))
}

pub(super) async fn assess(
    _: Owner,
    State(api): State<ApiState>,
    Path(peer): Path<PeerId>,
    Body(NewJudgement { agent, trust, rationale }): Body<NewJudgement>,
) -> ApiResult<Assessment> {
    let _attachment = api.attached.attach();
    let (trust, source) = (TrustChange::Set(trust), AssessmentSource::Owner);
    let assessment = NewAssessment { peer, trust, rationale, source };
    Ok(Json(api.host.reflections.assess_peer(&agent, assessment).await?))
}

pub(super) async fn forgotten(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Query(whose): Query<LedgerQuery>,
) -> ApiResult<Vec<ForgottenPeer>> {
    access.check_agent(&whose.agent)?;
    Ok(Json(api.host.ledger.forgotten(&whose.agent, MAX_LISTED_PEERS).map_err(Refusal::from)?))
}

//! The host itself: `/healthz`, `/readyz`, `/v1/host` and the routes below it, `/v1/energy`, `/v1/spend`.

use agent::doctor::{Finding, HomeVerification};
use agent::{AgentSpend, ChangedSetting, EnergyReport, HostStatus, ModelAnswer};
use axum::Json;
use axum::extract::State;
use base::{AgentName, Refusal, RefusalCode, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reply::{ApiResult, ErrorReply};
use super::scope::{Anyone, Local, Reader};
use super::{ApiState, Body, Lifetime, Query};

/// The agent to report the energy of.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EnergyQuery {
    #[serde(default)]
    agent: AgentName,
}

pub(super) async fn energy(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Query(whose): Query<EnergyQuery>,
) -> ApiResult<EnergyReport> {
    access.check_agent(&whose.agent)?;
    Ok(Json(api.host.energy.report(&whose.agent)?))
}

/// The spending to show.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SpendQuery {
    /// Days, today included: 1 to 400. Default 30.
    days: Option<u32>,
    /// Only this agent's. Default: of all that the caller may see.
    agent: Option<AgentName>,
}

pub(super) async fn spend(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Query(SpendQuery { days, agent }): Query<SpendQuery>,
) -> ApiResult<Vec<AgentSpend>> {
    if let Some(agent) = &agent {
        access.check_agent(agent)?;
    }
    let agent = agent.or_else(|| access.agent().cloned());
    Ok(Json(api.host.runs.spend(agent.as_ref(), days.unwrap_or(30))?))
}

/// A host's status report.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The facts about the host.
    #[serde(flatten)]
    pub host: HostStatus,
    /// It stays until it is told to end; otherwise it lasts as long as the command that opened it.
    pub stays: bool,
    /// The id of the newest signal; 0 before the first.
    pub latest_signal: u64,
}

pub(super) async fn status(_: Local, State(api): State<ApiState>) -> Json<Status> {
    let stays = api.lifetime == Lifetime::Stays;
    Json(Status { host: api.host.status(), stays, latest_signal: api.host.signals.latest() })
}

/// The address of the owner's page.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct PageAddress {
    /// An address such as `http://127.0.0.1:7777`; absent if the host listens on no port of the loopback interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

pub(super) async fn page(_: Reader, State(api): State<ApiState>) -> Json<PageAddress> {
    Json(PageAddress { address: api.page.get().cloned() })
}

/// That the process is alive.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct HealthReply {
    ok: bool,
}

/// Answers for as long as the process does.
pub(super) async fn healthy(_: Anyone) -> Json<HealthReply> {
    Json(HealthReply { ok: true })
}

/// Answers while the host takes work: its state accepts commits, and it is not ending.
pub(super) async fn ready(_: Anyone, State(api): State<ApiState>) -> ApiResult<HealthReply> {
    if api.closing.is_cancelled() || api.host.suspension().is_some() {
        return Err(ErrorReply::from(Refusal::new(RefusalCode::TryLater, "the host takes no more work: it ends")));
    }
    Ok(Json(HealthReply { ok: true }))
}

/// The findings about the state that this host has open.
pub(super) async fn doctor(_: Local, State(api): State<ApiState>) -> ApiResult<Vec<Finding>> {
    Ok(Json(api.host.examine().await?))
}

/// The finding about the answer of the model that does the work.
pub(super) async fn model_answer(_: Local, State(api): State<ApiState>) -> Json<Finding> {
    Json(api.host.ask_model_once().await)
}

/// Every byte of the home's artifacts and skills.
pub(super) async fn verify(_: Local, State(api): State<ApiState>) -> ApiResult<HomeVerification> {
    Ok(Json(api.host.verify_home().await?))
}

/// Runs that go on.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ResumeReply {
    /// Those that an earlier host had left.
    pub resumed: Vec<RunId>,
    /// All that go on now.
    pub running: Vec<RunId>,
}

/// Takes up the runs that an earlier host left. A host that stays did so at its start.
pub(super) async fn resume(_: Local, State(api): State<ApiState>) -> ApiResult<ResumeReply> {
    let resumed = api.host.resume().await?;
    Ok(Json(ResumeReply { resumed, running: api.host.status().running }))
}

/// Reads the configuration again. Anybody who may use the socket may ask for that: the file decides.
pub(super) async fn reload(_: Local, State(api): State<ApiState>) -> ApiResult<Vec<ChangedSetting>> {
    Ok(Json(api.host.settings.reload().await?))
}

/// The model to ask.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskModelRequest {
    /// `provider/model`. Default: the one that runs use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Asks a model for one word, as a test of address and key.
pub(super) async fn ask_model(
    _: Local,
    State(api): State<ApiState>,
    Body(request): Body<AskModelRequest>,
) -> ApiResult<ModelAnswer> {
    Ok(Json(api.host.settings.ask_model(request.model).await?))
}

/// That the host ends.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ShutdownReply {
    ending: bool,
}

pub(super) async fn shutdown(_: Local, State(api): State<ApiState>) -> ApiResult<ShutdownReply> {
    if api.lifetime == Lifetime::Command {
        let reason = "this host lasts as long as the command that opened it, and ends with it";
        return Err(ErrorReply::from(Refusal::new(RefusalCode::IllegalState, reason)));
    }
    api.shutdown.cancel();
    Ok(Json(ShutdownReply { ending: true }))
}

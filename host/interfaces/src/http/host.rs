//! The host itself: `/v1/energy`, `/v1/status`, `/v1/doctor`, `/v1/resume`, `/v1/shutdown`.

use agent::doctor::Finding;
use agent::{EnergyReport, HostStatus};
use axum::Json;
use axum::extract::State;
use base::{AgentName, Refusal, RefusalCode, RunId};
use serde::{Deserialize, Serialize};

use super::reply::{ApiResult, ErrorReply};
use super::{ApiState, Lifetime, Query};

/// The agent to report the energy of.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EnergyQuery {
    #[serde(default)]
    agent: AgentName,
}

pub(super) async fn energy(State(door): State<ApiState>, Query(whose): Query<EnergyQuery>) -> ApiResult<EnergyReport> {
    Ok(Json(door.host.energy.report(&whose.agent)?))
}

/// A host's status report.
#[derive(Debug, Clone, Serialize, Deserialize)]
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

pub(super) async fn status(State(door): State<ApiState>) -> Json<Status> {
    let stays = door.lifetime == Lifetime::Stays;
    Json(Status { host: door.host.status(), stays, latest_signal: door.host.signals.latest() })
}

/// The findings about the state that this host has open.
pub(super) async fn doctor(State(door): State<ApiState>) -> ApiResult<Vec<Finding>> {
    let host = door.host.clone();
    let examined = tokio::task::spawn_blocking(move || host.examine()).await;
    examined.map(Json).map_err(|_| ErrorReply(Refusal::new(RefusalCode::TryLater, "the host is shutting down")))
}

/// Runs that go on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResumeReply {
    /// Those that an earlier host had left.
    pub resumed: Vec<RunId>,
    /// All that go on now.
    pub running: Vec<RunId>,
}

/// Takes up the runs that an earlier host left. A host that stays did so at its start.
pub(super) async fn resume(State(door): State<ApiState>) -> ApiResult<ResumeReply> {
    let resumed = door.host.resume().await?;
    Ok(Json(ResumeReply { resumed, running: door.host.status().running }))
}

/// That the host ends.
#[derive(Debug, Serialize)]
pub(super) struct ShutdownReply {
    ending: bool,
}

pub(super) async fn shutdown(State(door): State<ApiState>) -> ApiResult<ShutdownReply> {
    if door.lifetime == Lifetime::Command {
        let reason = "this host lasts as long as the command that opened it, and ends with it";
        return Err(ErrorReply(Refusal::new(RefusalCode::IllegalState, reason)));
    }
    door.shutdown.cancel();
    Ok(Json(ShutdownReply { ending: true }))
}

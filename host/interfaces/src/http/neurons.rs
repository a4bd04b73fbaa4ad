//! The neurons of an agent: `/v1/neurons` (SPEC NEU-1). Only the owner decides about them. Their data comes from the agent's own work, so no
//! API token reads it.

use agent::{ApproveNeuron, NamedNeuron, NeuronDetail, NeuronList, ProposeNeuron, SwitchNeurons};
use axum::Json;
use axum::extract::State;
use base::{AgentName, Refusal, RefusalCode};
use neurons::{Neuron, NeuronName, NeuronSignal};
use schemars::JsonSchema;
use serde::Deserialize;

use super::reply::{ApiResult, ErrorReply};
use super::scope::{Access, Owner, Reader};
use super::{ApiState, Body, Path, Query};

/// The agent whose neuron it is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NeuronQuery {
    #[serde(default)]
    agent: AgentName,
}

/// The emitted signals to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EmittedQuery {
    #[serde(default)]
    agent: AgentName,
    /// Only those of this neuron.
    #[serde(default)]
    neuron: Option<NeuronName>,
    /// At most so many, at most 1,000. Default 100.
    #[serde(default = "default_limit")]
    limit: usize,
}

fn default_limit() -> usize {
    100
}

pub(super) async fn list(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Query(NeuronQuery { agent }): Query<NeuronQuery>,
) -> ApiResult<NeuronList> {
    check(&access, &agent)?;
    Ok(Json(api.host.neurons.list(&agent).await))
}

pub(super) async fn show(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path(name): Path<NeuronName>,
    Query(NeuronQuery { agent }): Query<NeuronQuery>,
) -> ApiResult<NeuronDetail> {
    check(&access, &agent)?;
    Ok(Json(api.host.neurons.show(&agent, &name).await?))
}

pub(super) async fn emitted(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Query(EmittedQuery { agent, neuron, limit }): Query<EmittedQuery>,
) -> ApiResult<Vec<NeuronSignal>> {
    check(&access, &agent)?;
    Ok(Json(api.host.neurons.signals(&agent, neuron, limit).await?))
}

pub(super) async fn propose(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Body(request): Body<ProposeNeuron>,
) -> ApiResult<Neuron> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.neurons.propose(request, consent).await?))
}

pub(super) async fn approve(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Body(request): Body<ApproveNeuron>,
) -> ApiResult<Neuron> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.neurons.approve(request, consent).await?))
}

pub(super) async fn reject(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Body(NamedNeuron { agent, name }): Body<NamedNeuron>,
) -> ApiResult<Neuron> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.neurons.reject(agent, name, consent).await?))
}

pub(super) async fn switch(
    Owner(consent): Owner,
    State(api): State<ApiState>,
    Body(SwitchNeurons { agent, name, on }): Body<SwitchNeurons>,
) -> ApiResult<NeuronList> {
    let _attachment = api.attached.attach();
    match name {
        Some(name) => {
            api.host.neurons.switch(agent.clone(), name, on, consent).await?;
        }
        None => {
            api.host.neurons.switch_all(on, consent).await?;
        }
    }
    Ok(Json(api.host.neurons.list(&agent).await))
}

pub(super) async fn forget(
    _: Owner,
    State(api): State<ApiState>,
    Path(name): Path<NeuronName>,
    Query(NeuronQuery { agent }): Query<NeuronQuery>,
) -> ApiResult<NeuronList> {
    let _attachment = api.attached.attach();
    api.host.neurons.forget(agent.clone(), name).await?;
    Ok(Json(api.host.neurons.list(&agent).await))
}

fn check(access: &Access, agent: &AgentName) -> Result<(), ErrorReply> {
    access.check_agent(agent)?;
    if access.sees_owner() {
        return Ok(());
    }
    let refusal = Refusal::new(RefusalCode::Forbidden, "neurons are not shown to an API token");
    Err(refusal.with_remedy("the owner reads them with `motor neuron list`").into())
}

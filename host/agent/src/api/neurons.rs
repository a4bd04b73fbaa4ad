//! The neurons of an agent, for callers.

use base::{AgentName, ContentHash};
use neurons::{Neuron, NeuronEvent, NeuronName, NeuronSwitches};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The neurons of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NeuronList {
    /// The switches and places of the home.
    pub switches: NeuronSwitches,
    /// The neurons, by name.
    pub neurons: Vec<Neuron>,
}

/// A neuron with its history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NeuronDetail {
    /// The neuron with its code.
    pub neuron: Neuron,
    /// Its changes, oldest first.
    pub events: Vec<NeuronEvent>,
}

/// The owner's decision to let a neuron be tried.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApproveNeuron {
    /// The agent of the neuron.
    #[serde(default)]
    pub agent: AgentName,
    /// The name of the neuron.
    pub name: NeuronName,
    /// Hash of the version that was shown.
    pub hash: ContentHash,
}

/// A decision about a neuron by its name.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NamedNeuron {
    /// The agent of the neuron.
    #[serde(default)]
    pub agent: AgentName,
    /// The name of the neuron.
    pub name: NeuronName,
}

/// The owner's switch for one neuron or for all.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SwitchNeurons {
    /// The agent of the named neuron.
    #[serde(default)]
    pub agent: AgentName,
    /// The name of the neuron. Absent: all neurons of the home.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<NeuronName>,
    /// Whether it, or all of them, may tick.
    pub on: bool,
}

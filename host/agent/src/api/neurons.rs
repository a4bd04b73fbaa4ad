//! The neurons of an agent, for callers.

use std::collections::BTreeSet;

use base::{AgentName, ContentHash};
use neurons::{InputKind, Neuron, NeuronEvent, NeuronName, NeuronSwitches, OutputKind, Scenario};
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
    /// The neuron with its program.
    pub neuron: Neuron,
    /// Its changes, oldest first.
    pub events: Vec<NeuronEvent>,
}

/// A neuron from a file of the owner.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProposeNeuron {
    /// The agent whose signals it reads.
    #[serde(default)]
    pub agent: AgentName,
    /// The name of the neuron.
    pub name: NeuronName,
    /// Its purpose, in one line of at most 300 characters.
    pub purpose: String,
    /// Its program, in one of two forms.
    pub program: ProposedProgram,
    /// The kinds of signals that it reads, at most 8.
    pub inputs: BTreeSet<InputKind>,
    /// The kinds of signals that it emits, at most 8.
    pub outputs: BTreeSet<OutputKind>,
    /// Signals with the kinds that it must emit for them, at most 20.
    pub scenarios: Vec<Scenario>,
    /// Energy of one tick at most, in millionths of a full level: 100 to 20,000. Absent: 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_micros: Option<u64>,
}

/// The program of a proposed neuron.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ProposedProgram {
    /// The body of a JavaScript function that sees `signal` and returns a list of `{kind, data}`; at most 16 KiB.
    Source(String),
    /// A component of the world `neuron`, in base64; at most 2 MiB before it.
    Component(String),
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

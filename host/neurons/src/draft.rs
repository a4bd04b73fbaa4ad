//! The proposal of a neuron, and its scenarios.

use std::collections::BTreeSet;

use base::{AgentName, ContentHash, Refusal, RefusalCode, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::{InputKind, NeuronName, OutputKind};
use crate::program::NeuronInput;

/// Scenarios of one neuron.
pub const MAX_SCENARIOS: usize = 20;
/// Bytes of a neuron's source.
const MAX_SOURCE_BYTES: usize = 16 << 10;
/// Characters of its purpose.
const MAX_PURPOSE: usize = 300;
/// Kinds of signals that it reads, and that it emits.
const MAX_KINDS: usize = 8;
/// Sources of untrusted content that are kept by name.
const MAX_SOURCES: usize = 64;
/// Energy of a tick in millionths of a full level: the least, and the most, which is the price of a model call.
const ENERGY: (u64, u64) = (100, 20_000);

/// A proposal: everything that the owner approves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NeuronDraft {
    /// The agent whose signals it reads.
    pub agent: AgentName,
    /// The name that the owner knows it by.
    pub name: NeuronName,
    /// Its purpose for the owner, in one line.
    pub purpose: String,
    /// The body of a JavaScript function that sees `signal` and returns a list of `{kind, data}`, or nothing.
    pub source: String,
    /// The kinds of signals that make it tick.
    pub inputs: BTreeSet<InputKind>,
    /// The kinds of signals that it emits.
    pub outputs: BTreeSet<OutputKind>,
    /// Energy of one tick at most, in millionths of a full level.
    pub energy_micros: u64,
    /// Signals with the kinds that it must emit for them.
    pub scenarios: Vec<Scenario>,
    /// Where its code comes from.
    pub origin: NeuronOrigin,
}

/// The origin of a neuron's code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NeuronOrigin {
    /// The run that was named.
    pub run: RunId,
    /// Completed runs in which the same code succeeded.
    pub successes: u64,
    /// Untrusted sources that the runs and the conversation had read: they taint every signal of the neuron.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
}

impl NeuronDraft {
    /// Checks sizes and numbers. Scenarios are the quarantine's matter.
    ///
    /// # Errors
    /// `invalid_request` with the first that is wrong.
    pub fn check(&self) -> Result<(), Refusal> {
        let wrong = |reason: String| Err(Refusal::new(RefusalCode::InvalidRequest, reason));
        if self.source.trim().is_empty() || self.source.len() > MAX_SOURCE_BYTES {
            return wrong(format!("the code of a neuron has 1 to {MAX_SOURCE_BYTES} bytes"));
        }
        if self.purpose.trim().is_empty() || self.purpose.chars().count() > MAX_PURPOSE {
            return wrong(format!("the purpose of a neuron has 1 to {MAX_PURPOSE} characters"));
        }
        if [self.inputs.len(), self.outputs.len()].iter().any(|kinds| !(1..=MAX_KINDS).contains(kinds)) {
            return wrong(format!("a neuron declares 1 to {MAX_KINDS} inputs and 1 to {MAX_KINDS} outputs"));
        }
        if let Some(kind) = self.outputs.iter().find(|kind| self.inputs.contains(&InputKind::Emitted((*kind).clone())))
        {
            return wrong(format!("a neuron does not read signals of a kind that it emits: `{}`", kind.as_str()));
        }
        if !(ENERGY.0..=ENERGY.1).contains(&self.energy_micros) {
            return wrong(format!("the energy of a tick is {} to {} millionths of a full level", ENERGY.0, ENERGY.1));
        }
        if self.scenarios.len() > MAX_SCENARIOS {
            return wrong(format!("a quarantine has at most {MAX_SCENARIOS} scenarios"));
        }
        if self.origin.sources.len() > MAX_SOURCES {
            return wrong(format!("the code comes from more than {MAX_SOURCES} untrusted sources"));
        }
        Ok(())
    }

    /// The hash of the version: code, signals and energy. The scenarios are evidence and not part of it.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        let version = (&self.agent, &self.name, &self.source, &self.inputs, &self.outputs, self.energy_micros);
        // Texts and numbers serialise; an empty text would match no stored hash.
        ContentHash::of(&serde_json::to_vec(&version).unwrap_or_default())
    }
}

/// A simulated signal, with the kinds that a neuron must emit for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The signal that is simulated.
    pub signal: NeuronInput,
    /// The kinds that it must emit; empty: it must stay silent.
    #[serde(default)]
    pub emits: BTreeSet<OutputKind>,
}

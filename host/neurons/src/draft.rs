//! The proposal of a neuron, its program, and its scenarios.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::{AgentName, ContentHash, Refusal, RefusalCode, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::fault::{Fault, FaultCode};
use crate::names::{InputKind, NeuronName, OutputKind};
use crate::program::NeuronInput;
use crate::tick::TickCode;

/// Scenarios of one neuron.
pub const MAX_SCENARIOS: usize = 20;
/// Bytes of the data of a scenario's signal: the end of a run has up to 1,000 characters of text.
const MAX_SCENARIO_BYTES: usize = 8 << 10;
/// Bytes of a neuron's source.
pub const MAX_SOURCE_BYTES: usize = 16 << 10;
/// Bytes of a neuron's component: as base64 it fits into one request and one record.
pub const MAX_COMPONENT_BYTES: u64 = 2 << 20;
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
    /// Its program: a field `source` with code, or a field `component`.
    #[serde(flatten)]
    pub program: NeuronProgram,
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

/// The program of a neuron.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NeuronProgram {
    /// The body of a JavaScript function that sees `signal` and returns a list of `{kind, data}`, or nothing.
    Source(String),
    /// A component of the world `neuron`. Its bytes are stored beside the neuron.
    Component(NeuronComponentRef),
}

/// A component by its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NeuronComponentRef {
    /// Hash of its bytes.
    pub hash: ContentHash,
    /// Size of the component in bytes.
    pub size_bytes: u64,
}

impl NeuronComponentRef {
    /// The reference to these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self { hash: ContentHash::of(bytes), size_bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX) }
    }
}

impl NeuronProgram {
    /// The code of a tick. `stored` are the bytes beside the neuron.
    ///
    /// # Errors
    /// `invalid_component` if those are not the bytes of the version.
    pub(crate) fn with(&self, signal: &NeuronInput, stored: Option<Arc<[u8]>>) -> Result<TickCode, Fault> {
        match self {
            Self::Source(source) => Ok(TickCode::Script(signal.program(source))),
            Self::Component(component) => {
                let wrong = |reason: &str| Fault::new(FaultCode::InvalidComponent, reason);
                let bytes = stored.ok_or_else(|| wrong("the bytes of its component are missing"))?;
                if NeuronComponentRef::of(&bytes) != *component {
                    return Err(wrong("the bytes of its component have changed"));
                }
                Ok(TickCode::Component { hash: component.hash, bytes, signal: signal.clone() })
            }
        }
    }
}

/// The origin of a neuron's program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NeuronOrigin {
    /// The run that was named, or the latest with the code. Absent: only turns of conversations executed it, or the owner handed it over
    /// as a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Completed runs and turns of conversations in which the same code succeeded; 0 for a file of the owner.
    pub successes: u64,
    /// Untrusted sources that the runs and the conversation had read: they taint every signal of the neuron.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
}

impl NeuronOrigin {
    /// Whether the owner handed the program over as a file, which has no successes behind it.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.run.is_none() && self.successes == 0
    }
}

impl NeuronDraft {
    /// Checks sizes and numbers. Scenarios are the quarantine's matter.
    ///
    /// # Errors
    /// `invalid_request` with the first that is wrong.
    pub fn check(&self) -> Result<(), Refusal> {
        let wrong = |reason: String| Err(Refusal::new(RefusalCode::InvalidRequest, reason));
        match &self.program {
            NeuronProgram::Source(source) if source.trim().is_empty() || source.len() > MAX_SOURCE_BYTES => {
                return wrong(format!("the code of a neuron has 1 to {MAX_SOURCE_BYTES} bytes"));
            }
            NeuronProgram::Component(component) if !(1..=MAX_COMPONENT_BYTES).contains(&component.size_bytes) => {
                return wrong(format!("the component of a neuron has 1 to {MAX_COMPONENT_BYTES} bytes"));
            }
            _ => {}
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
        let is_large = |scenario: &Scenario| scenario.signal.data.to_string().len() > MAX_SCENARIO_BYTES;
        if self.scenarios.iter().any(is_large) {
            return wrong(format!("the signal of a scenario has at most {MAX_SCENARIO_BYTES} bytes of data"));
        }
        if self.origin.sources.len() > MAX_SOURCES {
            return wrong(format!("the code comes from more than {MAX_SOURCES} untrusted sources"));
        }
        Ok(())
    }

    /// The hash of the version: program, signals and energy. The scenarios are evidence and not part of it.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        let program: Value = match &self.program {
            NeuronProgram::Source(source) => json!(source),
            // An object, which no code is.
            NeuronProgram::Component(component) => json!({ "component": component.hash }),
        };
        let version = (&self.agent, &self.name, program, &self.inputs, &self.outputs, self.energy_micros);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A draft as it is stored, with this program and this origin.
    fn stored(program: &Value, origin: &Value) -> NeuronDraft {
        let mut draft = json!({
            "agent": "main", "name": "bitcoin", "purpose": "notes prices", "inputs": ["run.completed"],
            "outputs": ["price.seen"], "energyMicros": 1_000, "scenarios": [], "origin": origin,
        });
        let fields = draft.as_object_mut().unwrap();
        fields.extend(program.as_object().unwrap().clone());
        serde_json::from_value(draft).unwrap()
    }

    #[test]
    fn a_draft_of_an_earlier_host_is_read_with_the_same_hash() {
        let draft = stored(&json!({ "source": "return []" }), &json!({ "run": "run_1", "successes": 8 }));
        assert_eq!(draft.program, NeuronProgram::Source("return []".to_owned()));
        let version = json!(["main", "bitcoin", "return []", ["run.completed"], ["price.seen"], 1_000]);
        assert_eq!(draft.hash(), ContentHash::of(version.to_string().as_bytes()));
        assert_eq!(serde_json::to_value(&draft).unwrap()["source"], "return []");
    }

    #[test]
    fn the_hash_covers_the_bytes_of_a_component_and_no_code_has_the_same() {
        let origin = json!({ "successes": 0 });
        let of = |bytes: &[u8]| stored(&json!({ "component": NeuronComponentRef::of(bytes) }), &origin);
        let draft = of(b"a");
        assert_eq!(
            (draft.program.clone(), &draft.origin.run),
            (NeuronProgram::Component(NeuronComponentRef::of(b"a")), &None)
        );
        assert_ne!(draft.hash(), of(b"b").hash());
        let text = json!({ "component": ContentHash::of(b"a") }).to_string();
        assert_ne!(draft.hash(), stored(&json!({ "source": text }), &origin).hash());
        assert_eq!(serde_json::from_value::<NeuronDraft>(serde_json::to_value(&draft).unwrap()).unwrap(), draft);
    }

    #[test]
    fn only_the_bytes_of_the_version_become_a_tick() {
        let program = NeuronProgram::Component(NeuronComponentRef::of(b"a"));
        let signal = NeuronInput { kind: InputKind::RunCompleted, data: Value::Null };
        let code = |stored: Option<&[u8]>| program.with(&signal, stored.map(Arc::from)).map_err(|fault| fault.code);
        assert!(matches!(code(Some(b"a")), Ok(TickCode::Component { .. })));
        for stored in [None, Some(&b"b"[..]), Some(&b""[..])] {
            assert_eq!(code(stored), Err(FaultCode::InvalidComponent), "{stored:?}");
        }
    }

    #[test]
    fn a_program_has_a_size() {
        let check = |program: &Value| stored(program, &json!({ "successes": 0 })).check().is_ok();
        let sized = |size: u64| json!({ "component": { "hash": ContentHash::of(b"a"), "sizeBytes": size } });
        assert!(check(&sized(MAX_COMPONENT_BYTES)) && !check(&sized(MAX_COMPONENT_BYTES + 1)) && !check(&sized(0)));
        let code = |bytes: usize| json!({ "source": "x".repeat(bytes) });
        assert!(check(&code(MAX_SOURCE_BYTES)) && !check(&code(MAX_SOURCE_BYTES + 1)) && !check(&code(0)));
    }
}

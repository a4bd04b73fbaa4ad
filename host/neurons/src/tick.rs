//! One tick: the port of the engine, and the signals that are emitted.

use std::sync::Arc;

use async_trait::async_trait;
use base::{AgentName, ContentHash, Refusal, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::Batch;

use crate::draft::NeuronDraft;
use crate::fault::{Fault, FaultCode};
use crate::names::{NeuronName, OutputKind};
use crate::program::{EmittedSignal, NeuronInput, emitted_as_text, emitted_by};

/// The host of neurons: engines without imports, and the energy of agents.
#[async_trait]
pub trait NeuronHost: Send + Sync {
    /// The name of the first construct in a source that the static guard for code refuses.
    fn blocked(&self, source: &str) -> Option<&'static str>;

    /// Executes a program in a fresh instance.
    ///
    /// # Errors
    /// If the host itself fails; an error of the program is a [`TickEnd`].
    async fn execute(&self, program: TickProgram) -> Result<TickReport, Refusal>;

    /// Whether the agent has the energy for ticks that spend this much, in millionths of a full level.
    ///
    /// # Errors
    /// If it has not, or the store fails.
    fn check_energy(&self, agent: &AgentName, energy_micros: u64) -> Result<(), Refusal>;

    /// Puts the drain of this energy, in millionths of a full level, into the batch of the tick.
    ///
    /// # Errors
    /// If the store fails.
    async fn drain(&self, batch: &mut Batch, agent: &AgentName, energy_micros: u64) -> Result<(), Refusal>;
}

/// A program to execute.
#[derive(Debug, Clone, PartialEq)]
pub struct TickProgram {
    /// The code, with its signal.
    pub code: TickCode,
    /// Energy that it may spend, in millionths of a full level.
    pub energy_micros: u64,
    /// Seed of its random numbers.
    pub seed: u64,
    /// The time on its clock.
    pub now: Timestamp,
}

/// The code of a tick, with its signal.
#[derive(Debug, Clone, PartialEq)]
pub enum TickCode {
    /// JavaScript that begins with its signal.
    Script(String),
    /// A component of the world `neuron`.
    Component {
        /// Hash of the bytes, which was checked.
        hash: ContentHash,
        /// The bytes of the component.
        bytes: Arc<[u8]>,
        /// The signal that it reads.
        signal: NeuronInput,
    },
}

/// The result of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TickReport {
    /// The end of the program.
    pub end: TickEnd,
    /// Energy that it spent, in millionths of a full level, rounded up.
    pub energy_micros: u64,
}

/// The end of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TickEnd {
    /// Code returned this JSON.
    Returned(String),
    /// A component returned these signals: for each its kind, and its data as JSON text.
    Emitted(Vec<(String, String)>),
    /// Its result is too large and was cut.
    TooLarge,
    /// It failed, with the code and the reason.
    Failed(FaultCode, String),
}

/// A signal that a neuron emitted. It asks for nothing and wakes no conversation: the owner, programs, and the agent in a
/// turn that began for another reason read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NeuronSignal {
    /// Rises with each signal of the neurons of a home, from 1.
    pub id: u64,
    /// The agent of the neuron.
    pub agent: AgentName,
    /// The neuron that emitted it.
    pub neuron: NeuronName,
    /// The version of the neuron.
    pub version: ContentHash,
    /// The sender of the signal: `neuron:NAME`.
    pub source: String,
    /// One of the kinds that the neuron declares.
    pub kind: OutputKind,
    /// The content, which may repeat text from the web.
    pub data: Value,
    /// When it became durable.
    pub at: Timestamp,
    /// The signal of a run that the neuron read, or that began the chain of neurons.
    pub cause: u64,
    /// The signal of another neuron that it read. Absent: it read the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reacts_to: Option<u64>,
    /// The sources that taint a reader: the neuron itself, and the untrusted sources of its code and of the signal that it read.
    pub sources: Vec<String>,
}

/// The circumstances of one tick.
pub(crate) struct Tick<'a> {
    /// The signal that is read.
    pub signal: &'a NeuronInput,
    /// Seed of the random numbers.
    pub seed: u64,
    /// The time on the clock.
    pub now: Timestamp,
}

/// Executes the program of a neuron, and reads the signals in its result; with the energy that it spent. `component` are the bytes that
/// are stored beside the neuron.
pub(crate) async fn run(
    host: &dyn NeuronHost,
    draft: &NeuronDraft,
    component: Option<Arc<[u8]>>,
    Tick { signal, seed, now }: Tick<'_>,
) -> Result<(Result<Vec<EmittedSignal>, Fault>, u64), Refusal> {
    let budget = draft.energy_micros;
    let code = match draft.program.with(signal, component) {
        Ok(code) => code,
        Err(fault) => return Ok((Err(fault), 0)),
    };
    let TickReport { end, energy_micros } =
        host.execute(TickProgram { code, energy_micros: budget, seed, now }).await?;
    let ended = match end {
        // An engine that checks its fuel late does not make it free.
        _ if energy_micros > budget => {
            Err(Fault::new(FaultCode::OverBudget, format!("it spent more than {budget} millionths of energy")))
        }
        TickEnd::Returned(json) => emitted_by(&json, &draft.outputs),
        TickEnd::Emitted(signals) => emitted_as_text(signals, &draft.outputs),
        TickEnd::TooLarge => Err(Fault::new(FaultCode::InvalidOutput, "its result is too large")),
        TickEnd::Failed(code, reason) => Err(Fault::new(code, base::text::Foreign(&reason).visible(250))),
    };
    Ok((ended, energy_micros))
}

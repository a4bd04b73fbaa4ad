//! A proposal from a file of the owner, which has no completed runs behind it. The owner's word opens this door; the quarantine, the
//! approval and the trial are those of any other neuron.

use std::sync::Arc;

use base::{Refusal, RefusalCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use consent::Consent;
use neurons::{Neuron, NeuronComponentRef, NeuronDraft, NeuronOrigin, NeuronProgram};

use super::Neurons;
use crate::api::neurons::{ProposeNeuron, ProposedProgram};

/// Energy of a tick if the proposal names none, in millionths of a full level.
pub(crate) const ENERGY_MICROS: u64 = 1_000;

impl Neurons {
    /// Proposes a program of the owner, and puts it through its quarantine.
    ///
    /// # Errors
    /// `invalid_request` if the proposal is wrong, `invalid_component` if its component is not a neuron or imports anything, `illegal_state`
    /// if neurons are off or the name is taken, `forbidden` if the owner has refused or stopped this version; or if the host or the store
    /// fails.
    pub async fn propose(&self, request: ProposeNeuron, _: Consent) -> Result<Neuron, Refusal> {
        let ProposeNeuron { agent, name, purpose, program, inputs, outputs, scenarios, energy_micros } = request;
        let (program, component) = match program {
            ProposedProgram::Source(source) => (NeuronProgram::Source(source), None),
            ProposedProgram::Component(text) => {
                let bytes = STANDARD
                    .decode(text)
                    .map_err(|_| Refusal::new(RefusalCode::InvalidRequest, "the component is not base64"))?;
                (NeuronProgram::Component(NeuronComponentRef::of(&bytes)), Some(bytes))
            }
        };
        let draft = NeuronDraft {
            agent,
            name,
            purpose,
            program,
            inputs,
            outputs,
            energy_micros: energy_micros.unwrap_or(ENERGY_MICROS),
            scenarios,
            origin: NeuronOrigin { run: None, successes: 0, sources: Vec::new() },
        };
        // Its size first: hostile bytes are read no further.
        draft.check()?;
        if let Some(bytes) = &component {
            self.0.host.check(bytes).await?;
        }
        submit(self, draft, component.map(Arc::from)).await
    }
}

/// Proposes a neuron and puts it through its quarantine, in a task of its own: a caller that goes away does not end it in the middle.
pub(super) async fn submit(
    neurons: &Neurons,
    draft: NeuronDraft,
    component: Option<Arc<[u8]>>,
) -> Result<Neuron, Refusal> {
    let neurons = neurons.clone();
    let proposing = tokio::spawn(async move {
        let book = &neurons.0.book;
        let proposed = book.propose(draft, component.as_deref()).await?;
        book.quarantine(&proposed.draft.agent, &proposed.draft.name, &neurons.0.host).await
    });
    proposing.await.unwrap_or_else(|error| Err(store::broke_off(&error)))
}

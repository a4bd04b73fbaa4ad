//! Neurons: code that succeeded the same way again and again, or a file of the owner, which now reacts to signals without a model
//! (SPEC NEU-1).
//!
//! A neuron is a program, in JavaScript or as a component, with the signals that it reads and emits and its energy for one tick. It is
//! proposed, passes a quarantine, is approved by the owner, is tried, and only then is active; [`NeuronStatus::transition`] admits no
//! other way.
//!
//! Architecture invariant: this crate knows no engine, no run and no conversation. It sees isolated engines as a
//! [`NeuronHost`], and the end of a run as a [`signals::Signal`]. A neuron reads no request for consent and no question of a run, and
//! its signals are records of their own, so none of them can be taken for the signal of a run. Each change and the signals of a
//! tick are one batch: a crash leaves all of it or nothing.

mod book;
mod change;
mod config;
mod draft;
mod fault;
mod names;
mod neuron;
mod program;
mod quarantine;
mod tick;

pub use book::{NeuronBook, NeuronSwitches};
pub use change::{IllegalChange, NeuronChange, NeuronEvent, NeuronStatus};
pub use config::{InvalidConfig, NeuronsConfig};
pub use draft::{
    MAX_COMPONENT_BYTES, MAX_SCENARIOS, MAX_SOURCE_BYTES, NeuronComponentRef, NeuronDraft, NeuronOrigin, NeuronProgram,
    Scenario,
};
pub use fault::{Fault, FaultCode};
pub use names::{InputKind, InvalidNeuronName, InvalidOutputKind, NeuronName, OutputKind};
pub use neuron::{Meter, Neuron, Trial};
pub use program::{EmittedSignal, MAX_DATA_BYTES, NeuronInput, emitted_as_text, emitted_by, split_sample};
pub use tick::{NeuronHost, NeuronSignal, TickCode, TickEnd, TickProgram, TickReport};

#[cfg(test)]
mod tests;

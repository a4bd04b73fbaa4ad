//! The cortex (SPEC CX-1 to CX-9): a second loop that looks back at the acts of an agent, judges its peers, and steers the agent by
//! beliefs.
//!
//! Architecture invariant: a reflector builds the prompt and reads the reply, and a model answers; neither is trusted, and neither
//! can exceed the limits here. With any proposal, a peer's trust moves by at most `max_trust_delta` in a cycle, only peers that
//! were shown are judged, beliefs are bounded in number, length and time, and a reply that breaks the form changes nothing. The
//! cortex never sees a conversation: it is given counts, and the summaries of the ledger. `info_score` is the ledger's alone.
//!
//! A cycle is one batch: assessments, beliefs and the record of the cycle are all there after a crash, or none. Observing appends to
//! counters in memory; activity that no cycle has looked at is lost with the process, and the ledger still has it. A cycle that
//! fails leaves the beliefs as they were, and its peers for the next one. Nothing here can fail or delay the main loop.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests"))]

mod activity;
mod belief;
mod config;
mod cortex;
mod cycle;
mod name;
mod record;
mod reflector;
mod state;
mod summary;
#[cfg(test)]
mod tests;
mod trigger;
mod weigh;

pub use activity::{Activity, Observation};
pub use belief::Belief;
pub use config::{CortexConfig, InvalidConfig, TriggerConfig};
pub use cortex::{Cortex, CortexParts};
pub use cycle::{AfterAssess, AfterReflect, ReflectOutcome};
pub use name::{InvalidReflectorName, ReflectorName};
pub use record::{AssessedPeer, CycleOutcome, ReflectionRecord, SkipCode, TokenUse};
pub use reflector::{
    ModelReply, Prompt, Proposals, ProposedAssessment, ProposedBelief, ReflectionModel, Reflector, ReflectorError,
};
pub use summary::{BeliefBrief, CycleSummaries, InteractionBrief, PeerBrief};
pub use trigger::Trigger;

//! The cortex (SPEC CX-1 to CX-10): a second loop that looks back at the acts of an agent, judges its peers, and steers the agent by
//! beliefs.
//!
//! Architecture invariant: a reflector builds the prompt and reads the reply, and a model answers; neither is trusted, and neither
//! can exceed the limits here. With any proposal, a peer's trust moves by at most `max_trust_delta` in a cycle, only peers that
//! were shown are judged, beliefs are bounded in number, length and time, and a reply that breaks the form changes nothing.
//! Commitments and directives are bounded in the same way, and neither acts: they are shown and told ([`Cortex::news`]). The
//! cortex never sees a conversation: it is given counts, and the summaries of the ledger. `info_score` is the ledger's alone.
//!
//! A cycle is one batch: assessments, beliefs and the record of the cycle are all there after a crash, or none. Observing appends to
//! counters in memory; activity that no cycle has looked at is lost with the process, and the ledger still has it. A cycle that
//! fails leaves the beliefs as they were, and its peers for the next one. Nothing here can fail or delay the main loop.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests"))]

mod activity;
mod advice;
mod belief;
mod commitment;
mod commitments;
mod config;
mod cortex;
mod counsel;
mod cycle;
mod directive;
mod guidance;
mod injected;
mod name;
mod news;
mod notice;
mod record;
mod reflector;
mod state;
mod summary;
#[cfg(test)]
mod tests;
mod triage;
mod trigger;
mod weigh;

pub use activity::{Activity, Observation};
pub use belief::Belief;
pub use commitment::{Commitment, CommitmentStatus, Promiser};
pub use config::{ConsultMode, CortexConfig, InvalidConfig, TriggerConfig};
pub use cortex::{Cortex, CortexParts, ForgettingGuard};
pub use counsel::{ConsultationFacts, Verdict};
pub use cycle::{AfterAssess, AfterReflect, ReflectOutcome};
pub use directive::Directive;
pub use injected::Injected;
pub use name::{InvalidReflectorName, ReflectorName};
pub use news::CortexNews;
pub use notice::{CortexNotice, CortexSignal};
pub use record::{
    AssessedPeer, CycleOutcome, GuidanceRecord, ReflectionRecord, SkipCode, SoulDrift, TokenUse, UsedReflector,
};
pub use reflector::{
    ModelReply, Prompt, Proposals, ProposedAssessment, ProposedBelief, ProposedCommitment, ProposedDirective,
    ProposedGuidance, ReflectionModel, Reflector, ReflectorError,
};
pub use summary::{BeliefBrief, CommitmentBrief, CycleSummaries, InteractionBrief, PeerBrief};
pub use trigger::Trigger;

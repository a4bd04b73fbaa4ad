//! Cognition (SPEC COG-1 to COG-3): messages in, a model with the `core_*` tools, signals in, replies out.
//!
//! Architecture invariant: cognition knows no run loop, no provider and no surface; it acts through [`Hands`], thinks through
//! [`Minds`] and is watched through [`Observer`]. A message is the owner's only with a `Consent` from the gate; that authority
//! stays in memory, ends with its turn, and is the only way to answer a run. The host reads the yes to a request for consent from the
//! owner's own text: with any model and any text of a run, no consent is given that the owner did not write.
//!
//! Everything is an entry of a conversation before it counts: a message before it is acknowledged, a reply of the model before it is
//! executed, a call's outcome before the next step, a reply to the other side in the same batch as the step that made it. A
//! crash at any write loses no accepted message and says nothing twice; the port of channels says how replies leave. The ledger of peers
//! gets each message and each reply in that same batch, so it counts them exactly.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests"))]

mod channel;
mod cognition;
mod compact;
mod conversation;
mod dispatch;
mod extent;
mod forget;
mod idle;
mod memory;
mod note;
mod perform;
mod ports;
mod programs;
mod prompt;
mod read;
mod record;
mod reply;
mod sources;
#[cfg(test)]
mod tests;
mod tools;
mod turn;
mod window;
mod word;
mod worker;

pub use channel::{Channel, Inbound, Outbound};
pub use cognition::{
    AcceptedMessage, Cognition, CognitionParts, MAX_MESSAGE_BYTES, MAX_MESSAGE_ID, NewMessage, Sender,
};
pub use compact::RollingSummary;
pub use forget::{ForgottenBy, ForgottenConversation, MAX_LISTED_FORGOTTEN};
pub use idle::IdleConversation;
pub use memory::{ForgottenMemories, MAX_MEMORIES, MAX_MEMORY, MAX_SEARCH, Memory, MemoryFilter};
pub use note::HostNote;
pub use ports::{
    Charged, Consolidation, Delegation, Hands, Minds, Observed, Observer, PeerAnswer, ProgramOutcome, PromptSection,
    RunAnswer, RunDecision, RunView, SensedSignals, SkillView,
};
pub use programs::{ExecutedProgram, LearnableProgram};
pub use prompt::MAX_SECTION;
pub use read::{ChatFollower, ConversationFilter, MAX_LISTED_CONVERSATIONS};
pub use record::{AskedBy, ChatEvent, ChatEventBody, ConversationKey, ConversationSummary, Speaker};
pub use turn::TriggerKind;

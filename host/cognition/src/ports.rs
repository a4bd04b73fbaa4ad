//! The ports of cognition: hands that act, models that answer, observers that see. Cognition knows no run loop, no provider and no
//! surface; `agent` implements these ports over them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base::{AgentName, Refusal, RunId};
use consent::Consent;
use ledger::{PeerId, PeerReport, PeerSummary};
use llm::{Model, Usage};
use store::Batch;

use crate::programs::{ExecutedProgram, LearnableProgram};
use crate::record::{AskedBy, ConversationKey};
use crate::turn::TriggerKind;

/// A task that cognition delegates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delegation {
    /// The agent that delegates.
    pub agent: AgentName,
    /// The task in plain language.
    pub task: String,
    /// Names of the tools granted: exactly these.
    pub tools: Vec<String>,
    /// Patterns of the domains granted.
    pub domains: Vec<String>,
    /// A skill to work by.
    pub skill: Option<String>,
    /// Whether irreversible and outward actions wait for the owner's consent.
    pub approval_required: bool,
    /// Idempotency key: the same command is given once.
    pub key: String,
    /// Sources of the untrusted content that the conversation has taken in: the run begins tainted by them (SPEC TAINT-1).
    pub sources: Vec<String>,
}

/// A proposal to make code of runs, or of programs of `core_execute`, a neuron. The host parses and checks all of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Consolidation {
    /// The agent that proposes.
    pub agent: AgentName,
    /// A completed run with the code.
    pub run: Option<RunId>,
    /// The code itself with a sample, in place of a run.
    pub code: Option<String>,
    /// The programs of the agent's conversations that can become neurons.
    pub programs: Vec<ExecutedProgram>,
    /// The name of the neuron.
    pub name: String,
    /// Its purpose for the owner, in one line.
    pub purpose: String,
    /// The kinds of signals that it reads.
    pub inputs: Vec<String>,
    /// The kinds of signals that it emits.
    pub outputs: Vec<String>,
    /// Energy of a tick in millionths of a full level. `None`: the host's default.
    pub energy_micros: Option<u64>,
    /// Simulated signals with the kinds that it must emit for them, beside those that runs recorded.
    pub scenarios: Vec<serde_json::Value>,
    /// Sources of the web content that the conversation has taken in.
    pub sources: Vec<String>,
}

/// The outcome of a program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProgramOutcome {
    /// A JSON object for the model: value, console output, error.
    pub report: serde_json::Value,
    /// Present if it succeeded and can become a neuron.
    pub learnable: Option<LearnableProgram>,
}

/// Signals of neurons, for the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SensedSignals {
    /// One object for each signal, the newest first. Their texts may come from the web.
    pub report: Vec<serde_json::Value>,
    /// Their sources, the neurons among them: they taint the conversation (SPEC TAINT-1).
    pub sources: Vec<String>,
}

/// A skill, for the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SkillView {
    /// A JSON object with texts of the skill's author.
    pub report: serde_json::Value,
    /// Sources of its text: `skill:NAME`, unless the owner approved these bytes. They taint the conversation (SPEC TAINT-1).
    pub sources: Vec<String>,
}

/// A run as cognition sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunView {
    /// The agent that the run belongs to.
    pub agent: AgentName,
    /// The status of the run.
    pub status: String,
    /// Whether the run is over.
    pub is_over: bool,
    /// The question or request that it waits for.
    pub waiting: Option<AskedBy>,
    /// A JSON object for the model: counts, summary, error. Its texts may come from the web.
    pub report: serde_json::Value,
    /// Where the run has read web content from: they taint the conversation that gets the report (SPEC TAINT-1).
    pub sources: Vec<String>,
}

/// The answer to a run's question.
#[derive(Debug)]
pub struct RunAnswer {
    /// The id of the question, `ask_…`.
    pub question: String,
    /// The text of the answer.
    pub text: String,
    /// Idempotency key: the same command is given once.
    pub key: String,
    /// The owner's message, which gives the authority.
    pub consent: Consent,
}

/// The owner's decision about a run's request for consent.
#[derive(Debug)]
pub struct RunDecision {
    /// The id of the request, `apr_…`.
    pub approval: String,
    /// The actions that were shown.
    pub actions: Vec<base::ContentHash>,
    /// Whether they are allowed, once.
    pub grant: bool,
    /// Idempotency key: the same command is given once.
    pub key: String,
    /// The owner's message.
    pub consent: Consent,
}

/// Acts by runs, and through the capabilities of the host. Every command to a run takes an idempotency key: after a crash the same
/// command may be given again.
#[async_trait]
pub trait Hands: Send + Sync {
    /// Starts a run; it is durable when this returns.
    async fn act(&self, delegation: Delegation) -> Result<RunId, Refusal>;
    /// The run as it is now.
    async fn view(&self, run: &RunId) -> Result<RunView, Refusal>;
    /// Answers a run's question.
    async fn respond(&self, run: &RunId, answer: RunAnswer) -> Result<(), Refusal>;
    /// Decides about a run's request for consent.
    async fn decide(&self, run: &RunId, decision: RunDecision) -> Result<(), Refusal>;
    /// Stops a run that is not over.
    async fn cancel(&self, run: &RunId) -> Result<(), Refusal>;
    /// Tries a failed run again, with the same access.
    async fn retry(&self, run: &RunId, guidance: Option<String>, key: String) -> Result<(), Refusal>;
    /// The idempotency key that the run was started with, if it exists and has one.
    async fn key_of(&self, run: &RunId) -> Result<Option<String>, Refusal>;
    /// Proposes a neuron, and returns the outcome of its quarantine for the model. The same proposal is made once.
    async fn consolidate(&self, consolidation: Consolidation) -> Result<serde_json::Value, Refusal>;
    /// The latest signals of an agent's neurons.
    async fn sensed(&self, agent: &AgentName, limit: usize) -> Result<SensedSignals, Refusal>;
    /// Executes JavaScript in the isolated sandbox, under the default limits. A failure of the program is an outcome.
    async fn execute(&self, agent: &AgentName, code: String) -> Result<ProgramOutcome, Refusal>;
    /// The skills of the home with their status, for the model.
    async fn skills(&self) -> Result<serde_json::Value, Refusal>;
    /// The text of a file of a skill; `None`: of its manifest.
    async fn show_skill(&self, skill: String, file: Option<String>) -> Result<SkillView, Refusal>;
    /// The facts of a skill's security review.
    async fn review_skill(&self, agent: &AgentName, skill: String) -> Result<SkillView, Refusal>;
    /// The names and domains of the credentials that runs can be granted, for the model; never their values.
    async fn credentials(&self) -> Result<serde_json::Value, Refusal>;
    /// The peers of an agent in the order of their ids, those after `after`.
    async fn peers(&self, agent: &AgentName, after: Option<PeerId>, limit: usize) -> Result<Vec<PeerSummary>, Refusal>;
    /// A peer with its latest entries.
    async fn peer(&self, agent: &AgentName, peer: PeerId) -> Result<PeerReport, Refusal>;
    /// Whether the agent's model may assess peers now (SPEC LED-4): only while its cortex is off.
    async fn offers_assess_peer(&self, agent: &AgentName) -> bool;
}

/// Something that costs the agent of a conversation.
#[derive(Debug, Clone, Copy)]
pub enum Charged<'a> {
    /// A message to the agent.
    Message,
    /// A reply of a model.
    Reply {
        /// The id of the conversation, whose replies are charged one at a time.
        conversation: &'a str,
        /// The tokens and the cost of the reply.
        usage: &'a Usage,
    },
}

/// An answer to a peer that is not sent yet.
#[derive(Debug, Clone, Copy)]
pub struct PeerAnswer<'a> {
    /// The latest texts of both sides before it, oldest first, each after `peer: ` or `agent: `; at most 12.
    pub earlier: &'a [String],
    /// The message that it answers.
    pub message: &'a str,
    /// The text of the answer.
    pub text: &'a str,
}

/// Connects to models by role, and pays for them.
#[async_trait]
pub trait Minds: Send + Sync {
    /// The model for a turn with this trigger, if the agent has the energy for it. The owner is only warned (SPEC EN-3).
    async fn model(&self, agent: &AgentName, trigger: TriggerKind) -> Result<Arc<dyn Model>, Refusal>;
    /// Puts the price of a message or a reply, in energy and in money, into the batch that stores it.
    async fn charge(&self, batch: &mut Batch, agent: &AgentName, charged: Charged<'_>) -> Result<(), Refusal>;
    /// The time of the consultation that an answer to a peer waits for (SPEC CX-10); `None` if it needs none. Decided by a rule.
    fn consultation(&self, conversation: &ConversationKey, answer: PeerAnswer<'_>) -> Option<Duration> {
        let _ = (conversation, answer);
        None
    }
    /// Whether an answer to a peer may be sent. It costs a model call.
    async fn consult(&self, conversation: &ConversationKey, answer: PeerAnswer<'_>) -> Result<bool, Refusal> {
        let _ = (conversation, answer);
        Ok(true)
    }
    /// The text with placeholders in place of the values of credentials (SPEC VAULT-3).
    async fn clean(&self, text: String) -> Result<String, Refusal>;
}

/// Something that happened in a conversation, for observers.
#[derive(Debug, Clone, Copy)]
pub enum Observed<'a> {
    /// A message was accepted.
    Message {
        /// The text of the message.
        text: &'a str,
        /// Whether it is of a peer that the ledger did not know before.
        is_new_peer: bool,
    },
    /// A reply is durable in the outbox.
    Sent(&'a str),
    /// The model replied, and its reply is durable.
    ModelReplied {
        /// Tokens of the prompt.
        input_tokens: u64,
        /// Tokens of the reply.
        output_tokens: u64,
    },
    /// A tool call has its outcome.
    ToolReturned {
        /// Name of the tool.
        name: &'a str,
        /// Whether the call succeeded.
        is_ok: bool,
    },
}

/// A section of the system prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptSection {
    /// The text of the section.
    pub text: String,
    /// Sources of the foreign text in it, such as `peer:mai`. They taint the conversation with the first reply of a model that saw them,
    /// as those of a run's report do (SPEC TAINT-1).
    pub sources: Vec<String>,
}

/// Receives the events of conversations (SPEC COG-2) once they are durable, and adds sections to the system prompt. An observer gets nothing that it
/// could change, must not block, and its panics stay with it.
pub trait Observer: Send + Sync {
    /// Notes something that happened.
    fn observe(&self, conversation: &ConversationKey, observed: Observed<'_>);

    /// A section for the end of the system prompt, such as beliefs, or the trajectory of the peer.
    fn section(&self, conversation: &ConversationKey) -> Option<PromptSection> {
        let _ = conversation;
        None
    }
}

//! The ports of a cycle: a reflector that builds the prompt and reads the reply, and a model that answers it.
//!
//! Neither is trusted. A reflector is a component that imports nothing but a log; a proposal may hold any number and any text.

use async_trait::async_trait;
use base::Refusal;

use crate::commitment::Promiser;
use crate::{CycleSummaries, SkipCode, UsedReflector};

/// Tokens of a reflector's system prompt (SPEC CX-3).
pub(crate) const MAX_SYSTEM_TOKENS: u64 = 500;

/// Builds prompts and reads replies (SPEC CX-3, CX-4).
#[async_trait]
pub trait Reflector: Send + Sync {
    /// Its name, and the hash of its component once it was used.
    fn used(&self) -> UsedReflector;

    /// The prompt for these summaries.
    ///
    /// # Errors
    /// If it cannot be built: the cycle is skipped.
    async fn prompt(&self, summaries: &CycleSummaries) -> Result<Prompt, ReflectorError>;

    /// The proposals in a reply of the model.
    ///
    /// # Errors
    /// If the reply has none that can be read: the cycle is skipped.
    async fn proposals(&self, reply: &str) -> Result<Proposals, ReflectorError>;
}

/// Asks the model of the reflections, in a context of its own.
#[async_trait]
pub trait ReflectionModel: Send + Sync {
    /// The reply to a prompt.
    ///
    /// # Errors
    /// If the model cannot be reached, or its reply is not complete: the cycle is skipped.
    async fn ask(&self, prompt: Prompt) -> Result<ModelReply, Refusal>;
}

/// A prompt of a reflection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The role and the form of the reply; under 500 tokens.
    pub system: String,
    /// The facts of the cycle.
    pub user: String,
}

impl Prompt {
    /// The estimated tokens of the role.
    ///
    /// # Errors
    /// If they are more than 500: the cycle is skipped.
    pub fn system_tokens(&self) -> Result<u64, ReflectorError> {
        let tokens = estimated_tokens(&self.system);
        if tokens > MAX_SYSTEM_TOKENS {
            let reason = format!("the reflector's system prompt has {tokens} tokens, at most {MAX_SYSTEM_TOKENS}");
            return Err(ReflectorError::new(SkipCode::PromptInvalid, reason));
        }
        Ok(tokens)
    }
}

/// An upper estimate for text in Latin script: a token is four bytes.
pub(crate) fn estimated_tokens(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX).div_ceil(4)
}

/// The reply of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelReply {
    /// The text of the reply.
    pub text: String,
    /// Tokens of the prompt, as the provider counted them.
    pub input_tokens: Option<u64>,
    /// Tokens of the reply, as the provider counted them.
    pub output_tokens: Option<u64>,
}

/// The proposals of a reflection, unchecked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Proposals {
    /// Judgements of peers that were shown.
    pub assessments: Vec<ProposedAssessment>,
    /// Beliefs to form, reaffirm or revise.
    pub beliefs: Vec<ProposedBelief>,
    /// One paragraph for the history.
    pub summary: String,
    /// Commitments, directives and drift; empty if the reflector reads none.
    pub guidance: ProposedGuidance,
}

/// The further proposals of a reflection (SPEC CX-10), unchecked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProposedGuidance {
    /// Promises that were made.
    pub commitments: Vec<ProposedCommitment>,
    /// The keys of commitments that ended, each with whether it was kept.
    pub closings: Vec<(String, bool)>,
    /// Advice to the main loop.
    pub directives: Vec<ProposedDirective>,
    /// How the agent drifts from its soul.
    pub drift: Vec<String>,
}

/// A promise as it is proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedCommitment {
    /// The key that names it.
    pub key: String,
    /// The promise as text.
    pub text: String,
    /// The side that promised.
    pub by: Promiser,
    /// The id of a peer that was shown.
    pub peer: String,
    /// Minutes from the time of the cycle; negative if the time is over.
    pub due_in_minutes: i64,
}

/// Advice as it is proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedDirective {
    /// The key that names it.
    pub key: String,
    /// The advice for the prompt.
    pub text: String,
    /// The peer that it is about, if it is about one.
    pub peer: Option<String>,
}

/// A judgement as it is proposed.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposedAssessment {
    /// The id of a peer that was shown.
    pub peer: String,
    /// Any number, also infinite or none.
    pub trust: f64,
    /// The reasons for it.
    pub rationale: String,
}

/// A belief as it is proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedBelief {
    /// The key that names it.
    pub key: String,
    /// The value for the prompt.
    pub value: String,
    /// The reasons for it.
    pub rationale: String,
    /// The peer that it is about, if it is about one.
    pub peer: Option<String>,
}

/// Why a reflector has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ReflectorError {
    /// The code of the cycle that is skipped for it.
    pub code: SkipCode,
    /// The reason for a person.
    pub reason: String,
}

impl ReflectorError {
    /// An error with this code and reason.
    #[must_use]
    pub fn new(code: SkipCode, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }
}

//! The port to a language model.

use std::time::Duration;

use crate::price::MicroUsd;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Message, ProviderState, RequestedCall, ToolSpec};

/// One request to a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The system prompt to send.
    pub system: String,
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// The tools the model may call.
    pub tools: Vec<ToolSpec>,
    /// The host's words about this request alone, sent behind the conversation: endpoints cache a request that begins as an earlier
    /// request began, so that nothing which changes from step to step stands before it. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// JSON Schema that the text of the reply must match, for endpoints that can constrain output. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<serde_json::Value>,
    /// The model's number of turns, if `messages` do not hold them all. Not sent. Default: the number of turns in
    /// `messages`.
    #[serde(skip)]
    pub turn: Option<usize>,
}

impl ChatRequest {
    /// The model's number of turns in this conversation: its messages, sent or not. The next reply is turn `turn()`,
    /// counted from zero. Recorded and scripted models choose by it, so a resumed run gets the right reply.
    #[must_use]
    pub fn turn(&self) -> usize {
        let held = || self.messages.iter().filter(|message| matches!(message, Message::Assistant { .. })).count();
        self.turn.unwrap_or_else(held)
    }
}

/// A reply of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatReply {
    /// The text; empty if it only called tools.
    pub text: String,
    /// The calls it asks for, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<RequestedCall>,
    /// Reasoning that the provider returned separately from the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Tokens and cost of the call.
    #[serde(default)]
    pub usage: Usage,
    /// Why the model stopped writing.
    pub finish: FinishReason,
    /// The provider's own words about the end of the reply: its name for the reason, or the text of a refusal. At most
    /// [`ChatReply::MAX_DETAIL`] characters. Absent after an ordinary end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_detail: Option<String>,
    /// Goes back to the provider with this reply, in [`Message::Assistant`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ProviderState>,
    /// `provider/model` that answered (a fallback may have).
    pub model: String,
    /// Number of retries before this reply.
    #[serde(default)]
    pub retries: u32,
    /// Notices about the call for the owner, one sentence each; not shown to the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

impl ChatReply {
    /// The most characters of [`ChatReply::finish_detail`].
    pub const MAX_DETAIL: usize = 500;
}

/// Tokens and cost of one model call, as the provider reported them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Number of tokens in the prompt.
    pub input_tokens: u64,
    /// Those of them that the provider had in its cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_input_tokens: u64,
    /// Those of them that the provider put into its cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Number of tokens in the reply.
    pub output_tokens: u64,
    /// US dollars, if the provider or the configuration gives a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// The cost of the call; `None`: unknown, which is not zero.
    #[must_use]
    pub fn cost(&self) -> Option<MicroUsd> {
        self.cost_usd.and_then(MicroUsd::from_usd)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Why a model stopped writing. Only for [`FinishReason::is_complete`] reasons is the reply complete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model finished its reply.
    #[default]
    Stop,
    /// It waits for tool results.
    ToolCalls,
    /// It ran into its limit of output tokens: `length`, `max_tokens`, `MAX_TOKENS`.
    Length,
    /// The provider asks for the same conversation again, this reply included: `pause_turn`.
    Paused,
    /// A filter of the provider cut the reply: `content_filter`, `SAFETY`, `RECITATION`, `BLOCKLIST`.
    Filtered,
    /// The model refused to answer: `refusal`.
    Refused,
    /// The conversation fills the model's context window: `model_context_window_exceeded`.
    ContextFull,
    /// The reply has content and its stream ended cleanly, but no reason was given. Some servers never give one.
    Missing,
    /// A reason unknown here; [`ChatReply::finish_detail`] has its name.
    Other,
}

impl FinishReason {
    /// Whether the model ended the reply itself, as far as the provider says.
    #[must_use]
    pub fn is_complete(self) -> bool {
        matches!(self, Self::Stop | Self::ToolCalls | Self::Missing)
    }
}

/// A piece of a reply while it streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// More text of the reply.
    Text(String),
    /// More reasoning of the reply.
    Reasoning(String),
    /// The call is being tried again: the text streamed so far is void.
    Restart {
        /// The reason, in one sentence.
        reason: String,
        /// The wait before the next try.
        wait: Duration,
    },
}

/// A callable language model.
#[async_trait::async_trait]
pub trait Model: Send + Sync {
    /// The model's name as `provider/model`.
    fn name(&self) -> &str;

    /// Asks once and waits for the whole reply. `on_delta` sees the reply as it streams. Dropping the future abandons
    /// the request.
    ///
    /// # Errors
    /// A [`ModelError`], after all retries of the implementation.
    async fn chat(
        &self,
        request: &ChatRequest,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatReply, ModelError>;
}

/// The failure of a model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("model `{model}`: {message}")]
pub struct ModelError {
    /// `provider/model` that was asked.
    pub model: String,
    /// The kind of failure.
    pub kind: ModelErrorKind,
    /// One sentence for people; never holds a key.
    pub message: String,
    /// How long the provider asked to wait, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// Kinds of failed model calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// The key is missing or was refused (401, 403).
    Auth,
    /// Too many requests (429).
    RateLimited,
    /// The endpoint cannot be reached, reset the connection, or answered 5xx.
    Unavailable,
    /// The request deadline passed.
    Timeout,
    /// The endpoint refused the request as wrong (other 4xx).
    Rejected,
    /// The reply could not be understood.
    Malformed,
    /// A replay has no turn left, or the turn does not belong to this request.
    ReplayExhausted,
}

impl ModelErrorKind {
    /// Whether trying the same request again may work.
    #[must_use]
    pub fn is_transient(self) -> bool {
        matches!(self, Self::RateLimited | Self::Unavailable | Self::Timeout | Self::Malformed)
    }

    /// Whether another model may answer instead: if the failure concerns the endpoint or its key, not the request.
    #[must_use]
    pub fn another_model_may_answer(self) -> bool {
        self.is_transient() || self == Self::Auth
    }
}

//! Messages and tools as the loops see them. Providers convert at their boundary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ChatReply;

/// One message of a conversation. The system prompt is not a message: it belongs to the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// A message from the task-giver.
    User {
        /// Text of the message.
        text: String,
    },
    /// A reply of the model, with the tools it called.
    Assistant {
        /// The text; may be empty if it only called tools.
        text: String,
        /// The calls, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<RequestedCall>,
        /// [`crate::ChatReply::state`] of the reply.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<ProviderState>,
    },
    /// The result of one call. Every call of an assistant message has exactly one, before the next model call.
    Tool {
        /// The call it answers.
        call_id: String,
        /// Name of the called tool.
        name: String,
        /// The result shown to the model.
        content: String,
    },
}

impl From<ChatReply> for Message {
    fn from(reply: ChatReply) -> Self {
        Self::Assistant { text: reply.text, tool_calls: reply.tool_calls, state: reply.state }
    }
}

/// Reasoning of a reply in its provider's own form: signed thinking blocks, thought signatures, encrypted reasoning.
/// Providers refuse the results of tool calls if the state of the reply that asked for them is missing or altered, so
/// only the provider's own adapter reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderState {
    /// `provider/model` that made it. No other model may see it: signatures are valid for their maker only.
    model: String,
    value: Value,
}

impl ProviderState {
    /// The most bytes of one reply's state, as JSON. A reply of 64 Ki tokens of reasoning is about this long.
    pub const MAX_BYTES: usize = 256 << 10;

    /// The state that `model` made, unless it has more than [`Self::MAX_BYTES`].
    #[must_use]
    pub fn new(model: &str, value: Value) -> Option<Self> {
        let state = Self { model: model.to_owned(), value };
        (state.bytes() <= Self::MAX_BYTES).then_some(state)
    }

    /// The value, if `model` made it.
    #[must_use]
    pub fn made_by(&self, model: &str) -> Option<&Value> {
        (self.model == model).then_some(&self.value)
    }

    /// Its size as JSON, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.value.to_string().len()
    }
}

/// A call the model asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestedCall {
    /// The model's id for the call, unique within the conversation.
    pub id: String,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// The arguments, as JSON or malformed text.
    pub arguments: Arguments,
}

/// The arguments of a call: models do not always write valid JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// Valid JSON (not necessarily fitting the schema).
    Json(Value),
    /// Text that is not JSON, kept so that the error can be explained to the model.
    Malformed(String),
}

/// A tool's description for a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name of the tool.
    pub name: String,
    /// When to use it, and its result.
    pub description: String,
    /// JSON Schema of the arguments; an object.
    pub parameters: Value,
}

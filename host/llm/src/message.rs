//! Messages and tools as the loops see them. Providers convert at their boundary.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ChatReply;

/// One message of a conversation. The system prompt is not a message: it belongs to the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// What the task-giver says.
    User {
        /// The text.
        text: String,
    },
    /// What the model said, with the tools it called.
    Assistant {
        /// The text; may be empty when it only called tools.
        text: String,
        /// The calls, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
        /// [`crate::ChatReply::state`] of the reply.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<ProviderState>,
    },
    /// The result of one call. Every call of an assistant message has exactly one, before the next model call.
    Tool {
        /// The call it answers.
        call_id: String,
        /// The tool's name.
        name: String,
        /// What the model sees.
        content: String,
    },
}

impl From<ChatReply> for Message {
    fn from(reply: ChatReply) -> Self {
        Self::Assistant { text: reply.text, tool_calls: reply.tool_calls, state: reply.state }
    }
}

/// Reasoning of a reply in the form its provider made it: signed thinking blocks, thought signatures, encrypted reasoning.
/// Providers refuse the results of tool calls when the state of the reply that asked for them is missing or altered, so it
/// is opaque to everything but the provider's own adapter.
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

    /// Its size as JSON.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.value.to_string().len()
    }
}

/// A call the model asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's id for the call, unique within the conversation.
    pub id: String,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// The arguments.
    pub arguments: Arguments,
}

/// The arguments of a call: models do not always write JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// Valid JSON (not necessarily fitting the schema).
    Json(Value),
    /// Text that is not JSON, kept so that the model can be told.
    Malformed(String),
}

/// A tool as a model is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// When to use it, what comes back.
    pub description: String,
    /// JSON Schema of the arguments; an object.
    pub parameters: Value,
}

//! Messages and tools as the loops see them. Providers convert at their boundary.

use serde::{Deserialize, Serialize};
use serde_json::Value;

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

//! The file format of recorded turns: JSON Lines, read by [`crate::Replay`], written by [`crate::Recorder`] or by hand.
//!
//! ```json
//! {"format":"motor-replay","version":1}
//! {"reply":{"text":"looking","tool_calls":[{"name":"list","arguments":{"path":"."}}]}}
//! {"reply":{"text":"done"}}
//! ```
//!
//! A line answers one model call. Optional in a line: `conversation` (the conversation it belongs to), `turn` (its
//! number there, from zero; default: one more than the line before), `request_hash`. Optional in a reply: `text`,
//! `tool_calls`, `reasoning`, `usage`, `finish`, `finish_detail`, `state` (opaque, of the provider), `model`; in a call
//! `id`, and `arguments_text` in place of `arguments` for output that is not JSON. Optional in the header: `pace_ms`, a
//! wait before each reply.
//!
//! The file is untrusted: it is bounded, unknown keys are errors, and every error names its line.

use base::ContentHash;
use base::text::cut;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Arguments, ChatReply, ChatRequest, FinishReason, Message, ProviderState, RequestedCall, Usage};

/// The newest version of the format this host reads and writes.
pub const VERSION: u32 = 1;

/// The largest file that is read, in bytes: a long run is a few megabytes.
pub const MAX_BYTES: u64 = 64 << 20;

/// First line of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    format: RecordingFormat,
    version: u32,
    /// Milliseconds before each reply. Default 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pace_ms: u64,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Default for Header {
    fn default() -> Self {
        Self { format: RecordingFormat::MotorReplay, version: VERSION, pace_ms: 0 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RecordingFormat {
    MotorReplay,
}

/// One recorded turn of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedTurn {
    /// [`conversation_key`] of the request it answered. Absent in files written by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Its number in its conversation, from zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<usize>,
    /// [`request_hash`] of the request it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_hash: Option<ContentHash>,
    /// The recorded reply of the model.
    pub reply: RecordedReply,
}

/// A reply as written in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedReply {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<RecordedCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(default)]
    usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finish: Option<FinishReason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finish_detail: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<ProviderState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedCall {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arguments: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arguments_text: Option<String>,
}

impl RecordedReply {
    /// The reply as the loops see it. `turn` numbers the calls without an id, `model` is the default for the answering
    /// model.
    #[must_use]
    pub fn into_reply(self, turn: usize, model: &str) -> ChatReply {
        let tool_calls: Vec<_> = self
            .tool_calls
            .into_iter()
            .enumerate()
            .map(|(index, call)| RequestedCall {
                id: call.id.unwrap_or_else(|| format!("call_{turn}_{index}")),
                name: call.name,
                arguments: match call.arguments_text {
                    Some(text) => Arguments::Malformed(text),
                    None => Arguments::Json(call.arguments.unwrap_or_else(|| Value::Object(serde_json::Map::new()))),
                },
            })
            .collect();
        let finish = if tool_calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
        ChatReply {
            text: self.text,
            tool_calls,
            reasoning: self.reasoning,
            usage: self.usage,
            finish: self.finish.unwrap_or(finish),
            finish_detail: self.finish_detail,
            state: self.state,
            model: self.model.unwrap_or_else(|| model.to_owned()),
            retries: 0,
            notices: Vec::new(),
        }
    }
}

impl From<&ChatReply> for RecordedReply {
    fn from(reply: &ChatReply) -> Self {
        let call = |call: &RequestedCall| {
            let (arguments, arguments_text) = match &call.arguments {
                Arguments::Json(value) => (Some(value.clone()), None),
                Arguments::Malformed(text) => (None, Some(text.clone())),
            };
            RecordedCall { id: Some(call.id.clone()), name: call.name.clone(), arguments, arguments_text }
        };
        Self {
            text: reply.text.clone(),
            tool_calls: reply.tool_calls.iter().map(call).collect(),
            reasoning: reply.reasoning.clone(),
            usage: reply.usage,
            finish: Some(reply.finish),
            finish_detail: reply.finish_detail.clone(),
            state: reply.state.clone(),
            model: Some(reply.model.clone()),
        }
    }
}

/// Why a file is not a recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRecording {
    /// The first line is not a header.
    #[error("not a recording: its first line must be `{{\"format\":\"motor-replay\",\"version\":{VERSION}}}`")]
    NoHeader,
    /// The file has a newer version.
    #[error("the recording has version {version}, this host reads up to {VERSION}: use a newer host or record again")]
    Newer {
        /// The version of the file.
        version: u64,
    },
    /// A line is not a turn.
    #[error("line {line} of the recording is not a turn: {problem}")]
    Corrupt {
        /// Number of the line, from 1.
        line: usize,
        /// The problem of the line.
        problem: String,
    },
    /// Larger than [`MAX_BYTES`] allows.
    #[error("the recording is larger than {} MiB", MAX_BYTES >> 20)]
    TooLarge,
}

/// Reads a recording. Every turn comes back with its `turn` set.
///
/// # Errors
/// [`InvalidRecording`] gives the reason.
pub fn parse(bytes: &[u8]) -> Result<(Header, Vec<RecordedTurn>), InvalidRecording> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(InvalidRecording::TooLarge);
    }
    let mut lines = bytes.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.trim_ascii().is_empty());
    let first = lines.next().map(|(_, line)| line).unwrap_or_default();
    let value: Value = serde_json::from_slice(first).map_err(|_| InvalidRecording::NoHeader)?;
    // The version comes before the rest of the header: a newer one may have keys and forms unknown here.
    if let Some(version) = value.get("version").and_then(Value::as_u64).filter(|version| *version > VERSION.into()) {
        return Err(InvalidRecording::Newer { version });
    }
    let header: Header = serde_json::from_value(value).map_err(|_| InvalidRecording::NoHeader)?;
    let mut turns: Vec<RecordedTurn> = Vec::new();
    for (index, line) in lines {
        let corrupt = |problem: String| InvalidRecording::Corrupt { line: index + 1, problem: cut(&problem, 200) };
        let mut turn: RecordedTurn = serde_json::from_slice(line).map_err(|error| corrupt(error.to_string()))?;
        if turn.reply.tool_calls.iter().any(|call| call.arguments.is_some() && call.arguments_text.is_some()) {
            return Err(corrupt("a call has either `arguments` or `arguments_text`".to_owned()));
        }
        if turn.turn.is_none() {
            let before = turns.iter().rev().find(|other| other.conversation == turn.conversation);
            turn.turn = Some(before.and_then(|other| other.turn).map_or(0, |number| number.saturating_add(1)));
        }
        turns.push(turn);
    }
    Ok((header, turns))
}

/// Distinguishes conversations of one recording: attempts of a run begin with another system prompt, and a summary has
/// a conversation of its own. The same conversation has the same key at every turn.
#[must_use]
pub fn conversation_key(request: &ChatRequest) -> String {
    let first = match request.messages.first() {
        Some(Message::User { text } | Message::Assistant { text, .. }) => text.as_str(),
        Some(Message::Tool { content, .. }) => content.as_str(),
        None => "",
    };
    ContentHash::of(format!("{}\0{first}", request.system).as_bytes()).short()
}

/// The hash of a request, for recordings: it shows whether a replayed request equals the recorded one.
#[must_use]
pub fn request_hash(request: &ChatRequest) -> ContentHash {
    // A request is plain data with string keys: it always serialises.
    ContentHash::of(&serde_json::to_vec(request).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"format":"motor-replay","version":1}"#;

    fn refuse(text: &str, part: &str) {
        let error = parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }

    #[test]
    fn a_file_written_by_hand_is_enough() {
        let text = format!(
            "{HEADER}\n\n{}\n{}\n",
            r#"{"reply":{"text":"looking","tool_calls":[{"name":"list","arguments":{"path":"."}},{"name":"x"}]}}"#,
            r#"{"reply":{"text":"done"}}"#
        );
        let (_, turns) = parse(text.as_bytes()).unwrap();
        assert_eq!(turns.iter().map(|turn| turn.turn).collect::<Vec<_>>(), [Some(0), Some(1)]);
        let reply = turns[0].reply.clone().into_reply(0, "replay/x");
        assert_eq!(reply.finish, FinishReason::ToolCalls);
        assert_eq!(reply.tool_calls[0].id, "call_0_0");
        assert_eq!(reply.tool_calls[0].arguments, Arguments::Json(serde_json::json!({"path": "."})));
        assert_eq!(reply.tool_calls[1].arguments, Arguments::Json(serde_json::json!({})));
        assert_eq!(turns[1].reply.clone().into_reply(1, "replay/x").finish, FinishReason::Stop);
    }

    #[test]
    fn a_reply_survives_the_file() {
        let reply = ChatReply {
            text: "a\nb".to_owned(),
            tool_calls: vec![
                RequestedCall {
                    id: "c1".into(),
                    name: "x".into(),
                    arguments: Arguments::Json(serde_json::json!({"json": 1})),
                },
                RequestedCall { id: "c2".into(), name: "y".into(), arguments: Arguments::Malformed("{".into()) },
            ],
            reasoning: Some("hm".to_owned()),
            usage: Usage { input_tokens: 3, output_tokens: 4, cost_usd: Some(0.5), ..Usage::default() },
            finish: FinishReason::Length,
            finish_detail: Some("max_tokens".to_owned()),
            state: ProviderState::new("openai/x", serde_json::json!({"reasoning_content": "hm"})),
            model: "openai/x".to_owned(),
            retries: 0,
            notices: Vec::new(),
        };
        let turn = RecordedTurn { conversation: None, turn: Some(4), request_hash: None, reply: (&reply).into() };
        let text = format!("{HEADER}\n{}\n", serde_json::to_string(&turn).unwrap());
        let (_, turns) = parse(text.as_bytes()).unwrap();
        assert_eq!(turns[0].reply.clone().into_reply(4, "other"), reply);
    }

    #[test]
    fn what_is_not_a_recording_says_where() {
        refuse("", "not a recording");
        refuse("hello", "not a recording");
        refuse("\u{0}\u{0}", "not a recording");
        refuse(r#"{"format":"other","version":1}"#, "not a recording");
        refuse(r#"{"format":"motor-replay","version":2,"new":true}"#, "version 2");
        refuse(&format!("{HEADER}\n{{\"reply\":{{}}}}\n{{\"rep"), "line 3");
        refuse(&format!("{HEADER}\n{{\"reply\":{{\"txt\":\"x\"}}}}"), "unknown field `txt`");
        refuse(
            &format!(
                "{HEADER}\n{{\"reply\":{{\"tool_calls\":[{{\"name\":\"a\",\"arguments\":1,\"arguments_text\":\"\"}}]}}}}"
            ),
            "either",
        );
        refuse(&format!("{HEADER}\n{}", "[".repeat(100_000)), "line 2");
    }
}

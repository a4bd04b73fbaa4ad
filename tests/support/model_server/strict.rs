//! Requests judged as the real endpoints judge them: the history has to hold every earlier reply with its reasoning state
//! unchanged, each call has exactly its result, roles come in order. A request that is wrong gets the endpoint's 400.
//!
//! Earlier replies are put together here from the recorded answers, by code that shares nothing with the client's.

use serde::Deserialize;
use serde_json::{Value, json};

use super::Recorded;
use super::exchange::{Answer, Check};

/// The checks an endpoint makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strictness {
    /// Chat completions: calls and results match.
    OpenAi,
    /// And the text of `reasoning_content` in each reply.
    DeepSeek,
    /// And the list of `reasoning_details` in each reply.
    OpenRouter,
    /// And the signature in `extra_content` of each signed call.
    GeminiOpenAi,
    /// Anthropic: the thinking blocks of each reply, in their places.
    Anthropic,
    /// Gemini: the signature of each signed call.
    Gemini,
}

/// Why a request is refused.
type Refused = Result<(), String>;

/// The check for requests of a conversation whose replies were `answers`.
#[must_use]
pub fn check(strictness: Strictness, answers: Vec<Answer>) -> Check {
    let replies: Vec<Vec<Value>> = answers.iter().map(Answer::payloads).collect();
    Box::new(move |request| {
        let judged = match strictness {
            Strictness::Anthropic => anthropic(request, &replies),
            Strictness::Gemini => gemini(request, &replies),
            _ => chat(request, &replies, strictness),
        };
        judged.map_err(|message| {
            let kind = "invalid_request_error";
            (400, json!({"type": "error", "error": {"type": kind, "code": 400, "message": message}}))
        })
    })
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn require(holds: bool, message: impl FnOnce() -> String) -> Refused {
    if holds { Ok(()) } else { Err(message()) }
}

fn chat(request: &Recorded, replies: &[Vec<Value>], strictness: Strictness) -> Refused {
    let messages = list(&request.body, "/messages");
    require(text(messages.first().unwrap_or(&Value::Null), "/role") == "system", || "no system message".to_owned())?;
    let mut open: Vec<&str> = Vec::new();
    let mut replies = replies.iter();
    for (index, message) in messages.iter().enumerate() {
        let role = text(message, "/role");
        if role == "tool" {
            let id = text(message, "/tool_call_id");
            let position = open.iter().position(|open| *open == id);
            let position = position.ok_or_else(|| {
                format!("messages with role 'tool' must be a response to a preceding message with 'tool_calls' ({id})")
            })?;
            open.remove(position);
            continue;
        }
        require(open.is_empty(), || {
            format!("An assistant message with 'tool_calls' must be followed by tool messages. Missing: {open:?}")
        })?;
        if role != "assistant" {
            continue;
        }
        for call in list(message, "/tool_calls") {
            let arguments: Value = serde_json::from_str(text(call, "/function/arguments")).unwrap_or_default();
            require(arguments.is_object(), || format!("messages[{index}]: arguments are not an object"))?;
            open.push(text(call, "/id"));
        }
        let Some(reply) = replies.next() else { return Err("more assistant messages than replies".to_owned()) };
        let pieces = |field: &str| -> Vec<Value> {
            let delta = reply.iter().flat_map(|chunk| list(chunk, &format!("/choices/0/delta/{field}")));
            delta.cloned().collect()
        };
        let ids: Vec<_> = pieces("tool_calls").iter().map(|call| text(call, "/id").to_owned()).collect();
        let ids: Vec<_> = ids.iter().filter(|id| !id.is_empty()).collect();
        require(ids.iter().all(|id| open.contains(&id.as_str())), || format!("messages[{index}]: calls are missing"))?;
        match strictness {
            Strictness::DeepSeek => {
                let reasoning = reply.iter().map(|chunk| text(chunk, "/choices/0/delta/reasoning_content"));
                require(message["reasoning_content"] == reasoning.collect::<String>(), || {
                    format!("Missing `reasoning_content` field in the assistant message at message index {index}")
                })?;
            }
            Strictness::OpenRouter => {
                let (made, sent) =
                    (details(&pieces("reasoning_details")), details(list(message, "/reasoning_details")));
                require(made == sent, || format!("messages.{index}: reasoning blocks cannot be modified"))?;
            }
            Strictness::GeminiOpenAi => {
                let calls = pieces("tool_calls");
                let signature = |call: &Value| text(call, "/extra_content/google/thought_signature").to_owned();
                let made: Vec<_> = calls.iter().map(signature).collect();
                let sent: Vec<_> = list(message, "/tool_calls").iter().map(signature).collect();
                require(made == sent, || {
                    "Function call is missing a thought_signature in functionCall parts.".to_owned()
                })?;
            }
            _ => {}
        }
    }
    require(open.is_empty(), || format!("tool results are missing: {open:?}"))
}

/// Details in a form in which pieces and wholes are equal: each block's index, text, signature and data.
fn details(pieces: &[Value]) -> Vec<(String, String, String, String)> {
    let mut blocks: Vec<(String, String, String, String)> = Vec::new();
    for piece in pieces {
        let key = format!("{} {} {}", piece["index"], piece["type"], piece["id"]);
        let said = [text(piece, "/text"), text(piece, "/summary")].concat();
        if blocks.last().is_none_or(|last| last.0 != key || !last.2.is_empty()) {
            blocks.push((key, String::new(), String::new(), String::new()));
        }
        if let Some(last) = blocks.last_mut() {
            last.1.push_str(&said);
            last.2.push_str(text(piece, "/signature"));
            last.3.push_str(text(piece, "/data"));
        }
    }
    blocks
}

fn anthropic(request: &Recorded, replies: &[Vec<Value>]) -> Refused {
    require(request.headers.contains_key("anthropic-version"), || "anthropic-version: header is required".to_owned())?;
    require(request.body["max_tokens"].is_u64(), || "max_tokens: Field required".to_owned())?;
    let messages = list(&request.body, "/messages");
    let mut open: Vec<&str> = Vec::new();
    let mut replies = replies.iter();
    for (index, message) in messages.iter().enumerate() {
        let role = if index % 2 == 0 { "user" } else { "assistant" };
        require(text(message, "/role") == role, || format!("messages: roles must alternate, at {index}"))?;
        let content = list(message, "/content");
        require(!content.is_empty(), || format!("messages.{index}: all messages must have non-empty content"))?;
        let of = |kind: &'static str| content.iter().filter(move |block| block["type"] == kind);
        require(of("text").all(|block| !text(block, "/text").trim().is_empty()), || {
            format!("messages.{index}: text content blocks must contain non-whitespace text")
        })?;
        if role == "user" {
            let results: Vec<_> = of("tool_result").map(|block| text(block, "/tool_use_id")).collect();
            require(results == open, || {
                format!(
                    "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {open:?}"
                )
            })?;
            let first_other = content.iter().position(|block| block["type"] != "tool_result");
            require(first_other.is_none_or(|other| other >= results.len()), || {
                format!("messages.{index}: tool_result blocks must come first")
            })?;
            open.clear();
            continue;
        }
        open = of("tool_use").map(|block| text(block, "/id")).collect();
        let Some(reply) = replies.next() else { return Err("more assistant messages than replies".to_owned()) };
        let made = blocks(reply);
        require(made.len() == content.len(), || format!("messages.{index}: {} blocks were made", made.len()))?;
        for (position, (made, sent)) in made.iter().zip(content).enumerate() {
            let kind = text(made, "/type");
            let same = match kind {
                "tool_use" => made["id"] == sent["id"] && made["name"] == sent["name"] && sent["input"].is_object(),
                _ => made == sent,
            };
            require(same, || {
                format!(
                    "messages.{index}.content.{position}: `{kind}` blocks in the latest assistant message cannot be \
                     modified. These blocks must remain as they were in the original response."
                )
            })?;
        }
    }
    require(open.is_empty(), || format!("`tool_result` blocks are missing: {open:?}"))
}

/// The blocks of a recorded reply.
fn blocks(events: &[Value]) -> Vec<Value> {
    let starts = events.iter().filter(|event| event["type"] == "content_block_start");
    let mut blocks = Vec::new();
    for start in starts {
        let mut block = start["content_block"].clone();
        let deltas =
            events.iter().filter(|event| event["type"] == "content_block_delta" && event["index"] == start["index"]);
        for delta in deltas {
            for field in ["text", "thinking", "signature"] {
                if let Some(more) = delta["delta"][field].as_str() {
                    block[field] = format!("{}{more}", block[field].as_str().unwrap_or_default()).into();
                }
            }
        }
        blocks.push(block);
    }
    blocks
}

fn gemini(request: &Recorded, replies: &[Vec<Value>]) -> Refused {
    let contents = list(&request.body, "/contents");
    let mut open: Vec<&str> = Vec::new();
    let mut replies = replies.iter();
    for (index, content) in contents.iter().enumerate() {
        let parts = list(content, "/parts");
        if content["role"] == "user" {
            let answered: Vec<_> = parts.iter().map(|part| text(part, "/functionResponse/name")).collect();
            let answered: Vec<_> = answered.into_iter().filter(|name| !name.is_empty()).collect();
            require(answered == open, || {
                "Please ensure that the number of function response parts is equal to the number of function call parts \
                 of the function call turn."
                    .to_owned()
            })?;
            open.clear();
            continue;
        }
        require(content["role"] == "model" && index > 0, || "Please use a valid role: user, model.".to_owned())?;
        let call = |part: &&Value| part.get("functionCall").is_some();
        open = parts.iter().filter(call).map(|part| text(part, "/functionCall/name")).collect();
        let Some(reply) = replies.next() else { return Err("more model turns than replies".to_owned()) };
        let made = reply.iter().flat_map(|chunk| list(chunk, "/candidates/0/content/parts"));
        let made: Vec<_> = made.filter(call).map(|part| text(part, "/thoughtSignature")).collect();
        let sent: Vec<_> = parts.iter().filter(call).map(|part| text(part, "/thoughtSignature")).collect();
        require(made == sent, || {
            format!(
                "Function call is missing a thought_signature in functionCall parts, or it was altered: content {index}, \
                 made {made:?}, sent {sent:?}"
            )
        })?;
    }
    require(open.is_empty(), || {
        "Please ensure that function call turn is followed by a function response turn.".to_owned()
    })
}

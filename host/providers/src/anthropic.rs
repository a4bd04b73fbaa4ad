//! Anthropic's messages API: requests out, streams of content blocks in.
//!
//! A thinking model signs its thinking, and the API refuses the results of a tool call without the blocks that came
//! before it, unchanged and in their places.

use llm::{ChatReply, ChatRequest, Message, ModelRef, RequestedCall};
use serde_json::{Value, json};

use crate::draft::{OnDelta, arguments_object};
use crate::failure::ProviderFailure;
use crate::http::{Manner, ProviderClient};
use crate::receive::receive;
use crate::retry::Attempt;
use crate::settings::{ModelLimits, Writing};

mod blocks;
mod schema;

use blocks::Blocks;

pub(crate) const MANNER: Manner = Manner { key_header: "x-api-key", headers: &[("anthropic-version", "2023-06-01")] };

/// A model behind a messages endpoint.
pub(crate) struct Anthropic {
    connection: ProviderClient,
    limits: ModelLimits,
}

impl Anthropic {
    pub(crate) fn new(connection: ProviderClient, limits: ModelLimits) -> Self {
        Self { connection, limits }
    }
}

#[async_trait::async_trait]
impl Attempt for Anthropic {
    async fn attempt(&self, request: &ChatRequest, on_delta: OnDelta<'_>) -> Result<ChatReply, ProviderFailure> {
        let body = body(request, &self.connection.origin.model, self.connection.writing);
        let reply = self.connection.post("/messages", &MANNER, &body, &self.limits).await?;
        let blocks = Blocks::new(reply.origin.clone());
        receive(reply, blocks, on_delta).await
    }
}

fn body(request: &ChatRequest, reference: &ModelRef, writing: Writing) -> Value {
    let most = max_tokens(&reference.model);
    let most = writing.output_tokens.map_or(most, |tokens| tokens.min(most));
    let mut body = json!({
        "model": reference.model,
        "max_tokens": most,
        "stream": true,
        "messages": cached(messages(&request.messages, reference), request.note.as_deref()),
    });
    let mut set = |key: &str, value: Value| {
        if let Some(map) = body.as_object_mut() {
            map.insert(key.to_owned(), value);
        }
    };
    if !request.system.is_empty() {
        set("system", json!([{"type": "text", "text": request.system, "cache_control": {"type": "ephemeral"}}]));
    }
    if !request.tools.is_empty() {
        let tool = |tool: &llm::ToolSpec| json!({"name": tool.name, "description": tool.description, "input_schema": tool.shown().parameters});
        set("tools", request.tools.iter().map(tool).collect());
    }
    if let Some(schema) = &request.response_schema {
        set("output_config", json!({"format": {"type": "json_schema", "schema": schema::accepted(schema)}}));
    }
    // Thoughts count as output, and need at least 1,024 tokens of it.
    let thoughts = writing.reasoning.map(|effort| effort.tokens().min(most / 2)).filter(|tokens| *tokens >= 1_024);
    match (thoughts, writing.temperature) {
        // A model that thinks refuses any temperature but its own.
        (Some(tokens), _) => set("thinking", json!({"type": "enabled", "budget_tokens": tokens})),
        (None, Some(temperature)) => set("temperature", temperature.min(1.0).into()),
        (None, None) => {}
    }
    body
}

/// The API has no default for how much a model may write, and refuses more than the model can.
fn max_tokens(model: &str) -> u32 {
    let is = |parts: &[&str]| parts.iter().any(|part| model.contains(part));
    match () {
        () if is(&["claude-3-7"]) => 64_000,
        () if is(&["claude-3-5"]) => 8_192,
        () if is(&["claude-3-"]) => 4_096,
        () if is(&["opus-4-0", "opus-4-1", "opus-4-2025"]) => 32_000,
        () => 64_000,
    }
}

/// The conversation. Neighbours of one role become one message: results of one reply are refused apart.
fn messages(messages: &[Message], reference: &ModelRef) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, content) = match message {
            Message::User { text } => ("user", vec![text_block(text)]),
            Message::Tool { call_id, content, .. } => {
                ("user", vec![json!({"type": "tool_result", "tool_use_id": call_id, "content": content})])
            }
            Message::Assistant { text, tool_calls, state } => {
                let state = state.as_ref().and_then(|state| state.made_by(&reference.to_string()));
                ("assistant", assistant(text, tool_calls, state))
            }
        };
        match turns.last_mut() {
            Some((last, blocks)) if *last == role => blocks.extend(content),
            _ => turns.push((role, content)),
        }
    }
    turns.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

/// Asks the API to keep all up to the end of the conversation, which the next request begins with; then the note. The API
/// caches nothing unasked, and refuses the mark at thinking, which only ends a message of the model.
fn cached(mut turns: Vec<Value>, note: Option<&str>) -> Vec<Value> {
    let last = turns.last_mut().filter(|turn| turn.get("role").is_some_and(|role| role == "user"));
    if let Some(content) = last.and_then(|turn| turn.get_mut("content")?.as_array_mut()) {
        if let Some(block) = content.last_mut().and_then(Value::as_object_mut) {
            block.insert("cache_control".to_owned(), json!({"type": "ephemeral"}));
        }
        content.extend(note.map(text_block));
    }
    turns
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A reply as it was. `state` is its blocks in order, with gaps for the calls, which the conversation holds.
fn assistant(text: &str, calls: &[RequestedCall], state: Option<&Value>) -> Vec<Value> {
    let use_block = |call: &RequestedCall| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_object(&call.arguments)});
    let state = state.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let is = |block: &Value, kind: &str| block.get("type").is_some_and(|found| found == kind);
    let said: String = state.iter().filter_map(|block| block.get("text")?.as_str()).collect();
    if !state.is_empty() && said == text && state.iter().filter(|block| is(block, "tool_use")).count() == calls.len() {
        let mut calls = calls.iter();
        let block = |block: &Value| match is(block, "tool_use") {
            true => calls.next().map(use_block),
            false => Some(block.clone()),
        };
        return state.iter().filter_map(block).collect();
    }
    // The reply was changed since: its thinking goes first, as it does in every reply.
    let thinking = state.iter().filter(|block| is(block, "thinking") || is(block, "redacted_thinking")).cloned();
    // Empty text is refused.
    let text = Some(text).filter(|text| !text.trim().is_empty()).map(text_block);
    thinking.chain(text).chain(calls.iter().map(use_block)).collect()
}

#[cfg(test)]
mod tests {
    use llm::{Arguments, ProviderState};

    use super::*;

    fn call(id: &str) -> RequestedCall {
        RequestedCall { id: id.into(), name: "read".into(), arguments: Arguments::Json(json!({})) }
    }

    #[test]
    fn neighbours_of_one_role_are_one_message() {
        let reference: ModelRef = "anthropic/x".parse().unwrap();
        let result = |id: &str| Message::Tool { call_id: id.into(), name: "read".into(), content: "c".into() };
        let sent = messages(
            &[
                Message::User { text: "task".into() },
                Message::Assistant { text: " ".into(), tool_calls: vec![call("a"), call("b")], state: None },
                result("a"),
                result("b"),
                Message::User { text: "[host] go on".into() },
            ],
            &reference,
        );
        let outline: Vec<_> = sent
            .iter()
            .map(|message| (message["role"].as_str().unwrap(), message["content"].as_array().unwrap().len()))
            .collect();
        assert_eq!(outline, [("user", 1), ("assistant", 2), ("user", 3)]);
    }

    #[test]
    fn all_before_the_note_is_cached() {
        let reference: ModelRef = "anthropic/x".parse().unwrap();
        let sent = |messages: Vec<Message>, note: Option<&str>| {
            let request =
                ChatRequest { system: "s".into(), messages, note: note.map(Into::into), ..ChatRequest::default() };
            body(&request, &reference, Writing::default())
        };
        let marked = |block: &Value| block.get("cache_control").is_some();
        let task = || Message::User { text: "task".into() };
        let reply = Message::Assistant { text: "half".into(), tool_calls: Vec::new(), state: None };
        let with = sent(vec![task()], Some("one is left"));
        assert!(marked(&with["system"][0]) && marked(&with["messages"][0]["content"][0]), "{with}");
        assert_eq!(with["messages"][0]["content"][1], json!({"type": "text", "text": "one is left"}));
        let without = sent(vec![task()], None);
        assert_eq!(without["messages"][0]["content"][0], with["messages"][0]["content"][0], "one prefix for both");
        // The reply that goes on is not marked: it may end with thinking.
        let paused = sent(vec![task(), reply], Some("one is left"));
        assert!(!marked(&paused["messages"][1]["content"][0]), "{paused}");
        assert_eq!(paused["messages"].as_array().map(Vec::len), Some(2), "{paused}");
    }

    #[test]
    fn blocks_go_back_in_their_places_and_to_their_maker() {
        let thought = |text: &str| json!({"type": "thinking", "thinking": text, "signature": "s"});
        let blocks = json!([thought("a"), {"type": "text", "text": "hi"}, thought("b"), {"type": "tool_use"}]);
        let sent = |text: &str, calls: Vec<RequestedCall>, maker: &str| {
            let state = ProviderState::new(maker, blocks.clone());
            let reply = Message::Assistant { text: text.into(), tool_calls: calls, state };
            let sent = messages(&[reply], &"anthropic/x".parse().unwrap());
            let kind = |block: &Value| block["type"].as_str().unwrap().to_owned();
            sent[0]["content"].as_array().unwrap().iter().map(kind).collect::<Vec<_>>()
        };
        assert_eq!(sent("hi", vec![call("a")], "anthropic/x"), ["thinking", "text", "thinking", "tool_use"]);
        assert_eq!(sent("other", vec![call("a")], "anthropic/x"), ["thinking", "thinking", "text", "tool_use"]);
        assert_eq!(sent("hi", vec![call("a")], "anthropic/y"), ["text", "tool_use"]);
    }
}

//! Reasoning state in chat completions: every provider has its own field for it, in the reply and in the next request.
//!
//! | field | of | form |
//! | --- | --- | --- |
//! | `reasoning_details` | OpenRouter | a list, streamed in pieces |
//! | `thinking_blocks` | LiteLLM | a list, streamed in pieces |
//! | `reasoning_content`, `reasoning` | DeepSeek, xAI, Groq, vLLM, llama.cpp, Ollama | text |
//! | `extra_content`, `provider_specific_fields` | Gemini, LiteLLM | an object of a call, or of the message |
//!
//! A reply's fields go back as they came, to the model that made them.

use llm::{Message, ModelRef, ProviderState};
use serde_json::{Map, Value, json};

use super::set;

/// Lists that are streamed in pieces.
const LISTS: [&str; 2] = ["reasoning_details", "thinking_blocks"];

/// Texts that are streamed in pieces; a reply has at most one of them, or they say the same.
pub(super) const TEXTS: [&str; 2] = ["reasoning_content", "reasoning"];

/// Objects of a call or a message.
const OBJECTS: [&str; 2] = ["extra_content", "provider_specific_fields"];

/// Makes Gemini accept a call that it did not sign: another model made it, or it was shortened.
const UNSIGNED: &str = "skip_thought_signature_validator";

/// The state of a reply while it comes in.
#[derive(Debug, Default)]
pub(super) struct ReplyState {
    lists: [Vec<Value>; 2],
    texts: [String; 2],
    message: Map<String, Value>,
    /// By position of the call.
    calls: Vec<Map<String, Value>>,
}

impl ReplyState {
    /// Takes a delta or message.
    pub(super) fn take(&mut self, delta: &Value) {
        for (name, list) in LISTS.into_iter().zip(&mut self.lists) {
            for piece in delta.get(name).and_then(Value::as_array).into_iter().flatten() {
                join(list, piece);
            }
        }
        for (name, text) in TEXTS.into_iter().zip(&mut self.texts) {
            text.push_str(delta.get(name).and_then(Value::as_str).unwrap_or_default());
        }
        keep_objects(&mut self.message, delta);
    }

    /// Takes a piece of the call at `position`.
    pub(super) fn take_call(&mut self, position: usize, piece: &Value) {
        if self.calls.len() <= position {
            self.calls.resize_with(position + 1, Map::new);
        }
        if let Some(call) = self.calls.get_mut(position) {
            keep_objects(call, piece);
        }
    }

    /// The state that goes back with the reply, if any.
    pub(super) fn into_value(self) -> Option<Value> {
        let mut state = self.message;
        for (name, list) in LISTS.into_iter().zip(self.lists).filter(|(_, list)| !list.is_empty()) {
            state.insert(name.to_owned(), list.into());
        }
        // A list holds the text too.
        if !LISTS.iter().any(|name| state.contains_key(*name))
            && let Some((name, text)) = TEXTS.into_iter().zip(self.texts).find(|(_, text)| !text.is_empty())
        {
            state.insert(name.to_owned(), text.into());
        }
        if self.calls.iter().any(|call| !call.is_empty()) {
            state.insert("tool_calls".to_owned(), json!(self.calls));
        }
        (!state.is_empty()).then_some(Value::Object(state))
    }
}

fn keep_objects(kept: &mut Map<String, Value>, from: &Value) {
    for name in OBJECTS {
        if let Some(object) = from.get(name).filter(|object| object.as_object().is_some_and(|map| !map.is_empty())) {
            kept.insert(name.to_owned(), object.clone());
        }
    }
}

/// Adds a piece to a list: to its last entry if that is of the same kind and is text, which comes in pieces.
fn join(list: &mut Vec<Value>, piece: &Value) {
    const PIECEWISE: [&str; 3] = ["text", "summary", "thinking"];
    let same = |name: &str, last: &Value| last.get(name) == piece.get(name);
    let Some(new) = piece.as_object() else { return };
    let is_text = PIECEWISE.iter().any(|name| new.contains_key(*name)) || new.contains_key("signature");
    let last = list.last_mut().filter(|last| is_text && same("type", last) && same("index", last));
    // A signature ends a block: the next piece begins another.
    let last = last.filter(|last| !last.get("signature").is_some_and(Value::is_string)).and_then(Value::as_object_mut);
    let Some(last) = last else {
        list.push(piece.clone());
        return;
    };
    for (name, value) in new.iter().filter(|(_, value)| !value.is_null()) {
        match (last.get_mut(name), value) {
            (Some(Value::String(text)), Value::String(more)) if PIECEWISE.contains(&name.as_str()) => {
                text.push_str(more)
            }
            _ => {
                last.insert(name.clone(), value.clone());
            }
        }
    }
}

/// The messages in the form of the API, each with the state that `reference` made of it.
pub(super) fn messages(
    messages: &[Message],
    reference: &ModelRef,
    convert: fn(&Message) -> Value,
) -> impl Iterator<Item = Value> {
    let name = reference.to_string();
    let state_of = move |message: &Message| match message {
        Message::Assistant { state: Some(state), .. } => state.made_by(&name).cloned(),
        _ => None,
    };
    let thinks = |message: &Message| state_of(message).is_some_and(|state| state.get("reasoning_content").is_some());
    let must_think = messages.iter().any(thinks);
    let must_sign = reference.model.contains("gemini-3");
    messages.iter().map(move |message| {
        let mut value = convert(message);
        if matches!(message, Message::Assistant { .. }) {
            put_back(&mut value, state_of(message).unwrap_or_default());
            if must_think && value.get("reasoning_content").is_none() {
                // DeepSeek refuses a conversation in which one message has it and another does not.
                set(&mut value, "reasoning_content", "".into());
            }
            if must_sign
                && let Some(call) =
                    value.pointer_mut("/tool_calls/0").filter(|call| call.get("extra_content").is_none())
            {
                set(call, "extra_content", json!({"google": {"thought_signature": UNSIGNED}}));
            }
        }
        value
    })
}

fn put_back(message: &mut Value, state: Value) {
    let Value::Object(state) = state else { return };
    for (name, value) in state {
        if name != "tool_calls" {
            set(message, &name, value);
            continue;
        }
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
        let (Some(calls), Value::Array(states)) = (calls, value) else { continue };
        // With another number of calls the positions mean nothing.
        if calls.len() == states.len() {
            for (call, state) in calls.iter_mut().zip(states) {
                put_back(call, state);
            }
        }
    }
}

/// The state of a reply of `reference`.
pub(super) fn state(reference: &ModelRef, state: ReplyState) -> Option<ProviderState> {
    ProviderState::new(&reference.to_string(), state.into_value()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(deltas: Value, expected: Value) {
        let mut state = ReplyState::default();
        deltas.as_array().unwrap().iter().for_each(|delta| state.take(delta));
        assert_eq!(state.into_value().unwrap_or_default(), expected, "{deltas}");
    }

    #[test]
    fn pieces_become_what_was_cut_up() {
        check(json!([{"content": "a"}, {"reasoning_details": []}, {"extra_content": {}}]), Value::Null);
        check(json!([{"reasoning_content": "a"}, {"reasoning_content": "b"}]), json!({"reasoning_content": "ab"}));
        let detail = |text: &str| json!({"type": "reasoning.text", "text": text, "index": 0, "format": "x"});
        check(
            json!([
                {"reasoning": "a", "reasoning_details": [detail("a")]},
                {"reasoning": "b", "reasoning_details": [detail("b")]},
                {"reasoning_details": [{"type": "reasoning.text", "signature": "s", "index": 0}]},
                {"reasoning_details": [{"type": "reasoning.encrypted", "data": "d", "index": 1}]},
                {"reasoning_details": [{"type": "reasoning.encrypted", "data": "e", "index": 1}]},
            ]),
            json!({"reasoning_details": [
                {"type": "reasoning.text", "text": "ab", "signature": "s", "index": 0, "format": "x"},
                {"type": "reasoning.encrypted", "data": "d", "index": 1},
                {"type": "reasoning.encrypted", "data": "e", "index": 1},
            ]}),
        );
        let block = |text: &str, signature: Value| json!({"thinking_blocks": [{"type": "thinking", "thinking": text, "signature": signature}]});
        check(
            json!([block("a", Value::Null), block("b", "s".into()), block("c", "t".into())]),
            json!({"thinking_blocks": [
                {"type": "thinking", "thinking": "ab", "signature": "s"},
                {"type": "thinking", "thinking": "c", "signature": "t"},
            ]}),
        );
    }

    #[test]
    fn the_state_goes_to_its_maker_only() {
        let reference: ModelRef = "compatible/x".parse().unwrap();
        let reply = |maker: &str| Message::Assistant {
            text: "hi".into(),
            tool_calls: Vec::new(),
            state: ProviderState::new(maker, json!({"reasoning_content": "hm"})),
        };
        let sent = |makers: &[&str]| {
            let replies: Vec<_> = makers.iter().map(|maker| reply(maker)).collect();
            messages(&replies, &reference, super::super::message)
                .map(|message| message.get("reasoning_content").cloned().unwrap_or_default())
                .collect::<Vec<_>>()
        };
        assert_eq!(sent(&["compatible/x", "openai/x"]), [json!("hm"), json!("")]);
        assert_eq!(sent(&["openai/x"]), [Value::Null]);
    }
}

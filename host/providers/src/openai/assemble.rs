//! Puts the chunks of a streamed reply together.
//!
//! Endpoints differ: indexes may be missing, have gaps or begin at one; arguments may come as an object; a name may come
//! again with each piece. None of that may turn one call into two or none. The number of calls is bounded.

use llm::{Arguments, ChatReply, Delta, FinishReason, ModelErrorKind, ToolCall, Usage};
use serde_json::Value;

use crate::failure::Failure;
use crate::retry::arguments;

/// More calls than this in one reply are a fault of the endpoint or an attack.
const MAX_CALLS: usize = 128;

/// A reply as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    text: String,
    reasoning: String,
    calls: Vec<Call>,
    usage: Usage,
    finish: Option<FinishReason>,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Assembly {
    /// Takes the next chunk.
    pub(super) fn take(&mut self, chunk: Value, on_delta: &mut (dyn FnMut(Delta) + Send)) -> Result<(), Failure> {
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(Failure::from_stream(error));
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            let count = |key| usage.get(key).and_then(Value::as_u64).unwrap_or_default();
            self.usage = Usage {
                input_tokens: count("prompt_tokens"),
                output_tokens: count("completion_tokens"),
                cost_usd: usage.get("cost").and_then(Value::as_f64),
            };
        }
        let Some(choice) = chunk.pointer("/choices/0") else { return Ok(()) };
        if let Some(delta) = choice.get("delta") {
            let text = |key| delta.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
            if let Some(reasoning) = text("reasoning_content").or_else(|| text("reasoning")) {
                self.reasoning.push_str(reasoning);
                on_delta(Delta::Reasoning(reasoning.to_owned()));
            }
            if let Some(text) = text("content") {
                self.text.push_str(text);
                on_delta(Delta::Text(text.to_owned()));
            }
            for piece in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
                self.take_call(piece)?;
            }
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = Some(match reason {
                "stop" => FinishReason::Stop,
                "tool_calls" | "function_call" => FinishReason::ToolCalls,
                "length" => FinishReason::Length,
                _ => FinishReason::Other,
            });
        }
        Ok(())
    }

    fn take_call(&mut self, piece: &Value) -> Result<(), Failure> {
        let index = piece.get("index").and_then(Value::as_u64);
        let id = piece.get("id").and_then(Value::as_str).unwrap_or_default();
        let function = piece.get("function");
        let name = function.and_then(|function| function.get("name")).and_then(Value::as_str).unwrap_or_default();
        let position = match (index, id.is_empty()) {
            (Some(_), _) => self.calls.iter().position(|call| call.index == index),
            (None, false) => self.calls.iter().position(|call| call.id == id),
            // Neither: a name begins a call, anything else goes on with the last.
            (None, true) if name.is_empty() => self.calls.len().checked_sub(1),
            (None, true) => None,
        };
        let position = match position {
            Some(position) => position,
            None if self.calls.len() >= MAX_CALLS => {
                let message = format!("the reply has more than {MAX_CALLS} tool calls");
                return Err(Failure::new(ModelErrorKind::Malformed, message));
            }
            None => {
                self.calls.push(Call { index, ..Call::default() });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(position) else { return Ok(()) };
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if call.name.is_empty() {
            name.clone_into(&mut call.name);
        }
        match function.and_then(|function| function.get("arguments")) {
            Some(Value::String(text)) => call.arguments.push_str(text),
            Some(object @ Value::Object(_)) => call.arguments = object.to_string(),
            _ => {}
        }
        Ok(())
    }

    /// Whether the model said that it is done.
    pub(super) fn is_complete(&self) -> bool {
        self.finish.is_some()
    }

    /// The body came whole, whatever it says about its end.
    pub(super) fn end(&mut self) {
        self.finish.get_or_insert(FinishReason::Stop);
    }

    /// The whole reply.
    pub(super) fn finish(self) -> Result<ChatReply, Failure> {
        let Some(finish) = self.finish else {
            // What came may be half a sentence or half a call: it is not acted upon.
            let message = "the stream ended before the reply was complete";
            return Err(Failure::new(ModelErrorKind::Unavailable, message));
        };
        let call = |call: Call| ToolCall { id: call.id, name: call.name, arguments: arguments(&call.arguments) };
        let mut tool_calls: Vec<_> = self.calls.into_iter().map(call).collect();
        if finish == FinishReason::Length
            && let Some(last) = tool_calls.last_mut()
            && last.arguments == Arguments::Json(Value::Object(serde_json::Map::new()))
        {
            // Cut off before its first argument: not a call without arguments.
            last.arguments = Arguments::Malformed(String::new());
        }
        Ok(ChatReply {
            text: self.text,
            tool_calls,
            reasoning: (!self.reasoning.is_empty()).then_some(self.reasoning),
            usage: self.usage,
            finish,
            ..ChatReply::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Calls as `id name arguments`.
    fn check(pieces: Value, expected: &[(&str, &str, Value)]) {
        let mut assembly = Assembly::default();
        for piece in pieces.as_array().unwrap() {
            let chunk = json!({"choices": [{"delta": {"tool_calls": [piece]}}]});
            assembly.take(chunk, &mut |_| {}).unwrap();
        }
        assembly.end();
        let calls = assembly.finish().unwrap().tool_calls;
        let found: Vec<_> = calls
            .iter()
            .map(|call| match &call.arguments {
                Arguments::Json(value) => (call.id.as_str(), call.name.as_str(), value.clone()),
                Arguments::Malformed(text) => (call.id.as_str(), call.name.as_str(), json!(format!("! {text}"))),
            })
            .collect();
        assert_eq!(found, expected, "{pieces}");
    }

    #[test]
    fn calls_are_put_together_however_they_are_counted() {
        let head = |index: u64, id: &str| json!({"index": index, "id": id, "function": {"name": "f", "arguments": ""}});
        let tail = |index: u64, text: &str| json!({"index": index, "function": {"arguments": text}});
        check(
            json!([head(0, "a"), tail(0, "{\"x\""), head(1, "b"), tail(0, ":1}"), tail(1, "{}")]),
            &[("a", "f", json!({"x": 1})), ("b", "f", json!({}))],
        );
        check(json!([head(1, "a"), tail(1, "{\"x\":1}")]), &[("a", "f", json!({"x": 1}))]);
        check(json!([head(u64::MAX, "a"), tail(u64::MAX, "{}")]), &[("a", "f", json!({}))]);
        check(
            json!([{"id": "a", "function": {"name": "f", "arguments": "{\"x\":"}}, {"function": {"arguments": "1}"}},
                   {"id": "b", "function": {"name": "g", "arguments": {"y": 2}}}]),
            &[("a", "f", json!({"x": 1})), ("b", "g", json!({"y": 2}))],
        );
        check(json!([head(0, "a"), tail(0, "{\"x\":")]), &[("a", "f", json!("! {\"x\":"))]);
        check(json!([{"index": 0}, 7, null, {"index": "0", "function": "f"}]), &[("", "", json!({}))]);
    }

    #[test]
    fn too_many_calls_are_refused() {
        let many: Vec<_> = (0..1_000).map(|index| json!({"index": index, "function": {"name": "f"}})).collect();
        let chunk = json!({"choices": [{"delta": {"tool_calls": many}}]});
        assert!(Assembly::default().take(chunk, &mut |_| {}).is_err());
    }

    #[test]
    fn a_reply_that_is_cut_off_is_not_acted_upon() {
        let mut assembly = Assembly::default();
        assembly.take(json!({"choices": [{"delta": {"content": "half"}}]}), &mut |_| {}).unwrap();
        assert_eq!(assembly.finish().unwrap_err().kind, ModelErrorKind::Unavailable);
    }

    #[test]
    fn an_error_within_a_stream_is_one() {
        let chunk = json!({"error": {"code": 429, "message": "slow"}});
        let failure = Assembly::default().take(chunk, &mut |_| {}).unwrap_err();
        assert_eq!((failure.kind, failure.again), (ModelErrorKind::RateLimited, true));
    }
}

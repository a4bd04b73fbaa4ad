//! Puts the chunks of a streamed reply together.
//!
//! Endpoints differ: indexes may be missing, have gaps, begin at one or be the same for all; arguments may come as an
//! object; a name may come again with each piece; content may be text or a list of parts. None of that may turn one call
//! into two or none.

use llm::{ChatReply, FinishReason, ModelErrorKind, Usage};
use serde_json::Value;

use super::state::{self, ReplyState, TEXTS};
use crate::draft::{Draft, DraftCall, OnDelta, count};
use crate::failure::{ProviderFailure, said};
use crate::receive::{Assembly, ReplyEnd};
use crate::remedy::RequestOrigin;

/// A reply as far as it has come.
pub(super) struct Chunks {
    draft: Draft,
    state: ReplyState,
    refusal: String,
    origin: RequestOrigin,
}

impl Chunks {
    pub(super) fn new(origin: RequestOrigin) -> Self {
        Self { draft: Draft::default(), state: ReplyState::default(), refusal: String::new(), origin }
    }

    fn take_delta(&mut self, delta: &Value, on_delta: OnDelta<'_>) -> Result<(), ProviderFailure> {
        self.state.take(delta);
        let text = |key: &&str| delta.get(*key).and_then(Value::as_str).filter(|text| !text.is_empty());
        if let Some(reasoning) = TEXTS.iter().find_map(text) {
            self.draft.reasoning(reasoning, on_delta);
        }
        match delta.get("content") {
            Some(Value::String(text)) => self.draft.text(text, on_delta),
            Some(Value::Array(parts)) => parts.iter().for_each(|part| self.take_part(part, on_delta)),
            _ => {}
        }
        self.refusal.push_str(delta.get("refusal").and_then(Value::as_str).unwrap_or_default());
        for piece in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.take_call(piece, piece.get("function"))?;
        }
        match delta.get("function_call") {
            Some(function @ Value::Object(_)) => self.take_call(&Value::Null, Some(function)),
            _ => Ok(()),
        }
    }

    /// A part of content, as Mistral sends it: `{"type": "text", …}`, `{"type": "thinking", "thinking": […]}`.
    fn take_part(&mut self, part: &Value, on_delta: OnDelta<'_>) {
        let text = |part: &Value| part.as_str().or_else(|| part.get("text")?.as_str()).map(str::to_owned);
        match part.get("thinking") {
            Some(Value::Array(parts)) => {
                parts.iter().filter_map(text).for_each(|text| self.draft.reasoning(&text, on_delta));
            }
            Some(Value::String(thought)) => self.draft.reasoning(thought, on_delta),
            _ => self.draft.text(&text(part).unwrap_or_default(), on_delta),
        }
    }

    fn take_call(&mut self, piece: &Value, function: Option<&Value>) -> Result<(), ProviderFailure> {
        let index = piece.get("index").and_then(Value::as_u64);
        let id = piece.get("id").and_then(Value::as_str).unwrap_or_default();
        let name = function.and_then(|function| function.get("name")).and_then(Value::as_str).unwrap_or_default();
        let arguments = match function.and_then(|function| function.get("arguments")) {
            Some(Value::String(text)) => text.clone(),
            None | Some(Value::Null) => String::new(),
            Some(value) => value.to_string(),
        };
        let calls = &self.draft.calls;
        let position = match (index, id.is_empty()) {
            (Some(_), _) => calls.iter().rposition(|call| call.index == index),
            (None, false) => calls.iter().rposition(|call| call.id == id),
            // Neither: a name begins a call, anything else goes on with the last.
            (None, true) if name.is_empty() => calls.len().checked_sub(1),
            (None, true) => None,
        };
        // The same index does not make it the same call: Ollama and Gemini count every call as the first.
        let position = position.filter(|position| {
            calls.get(*position).is_some_and(|call| {
                let same_id = !id.is_empty() && call.id == id;
                let other_id = !id.is_empty() && !call.id.is_empty() && !same_id;
                let begins = arguments.trim_start().starts_with('{');
                name.is_empty() || same_id || !(other_id || begins && is_whole(&call.arguments))
            })
        });
        let position = match position {
            Some(position) => position,
            None => self.draft.call(DraftCall { index, ..DraftCall::default() })?,
        };
        self.state.take_call(position, piece);
        let Some(call) = self.draft.calls.get_mut(position) else { return Ok(()) };
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if call.name.is_empty() {
            name.clone_into(&mut call.name);
        }
        if function.and_then(|function| function.get("arguments")).is_some_and(Value::is_object) {
            call.arguments.clear();
        }
        call.arguments.push_str(&arguments);
        Ok(())
    }
}

/// The most bytes of arguments that are looked at for whether they are whole: it is asked for each piece that names its
/// tool again, and a hostile endpoint sends many.
const MAX_LOOKED_AT: usize = 16 << 10;

/// Whether the arguments of a call are an object, so that another one begins another call.
fn is_whole(arguments: &str) -> bool {
    arguments.len() <= MAX_LOOKED_AT
        && arguments.trim_end().ends_with('}')
        && serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object())
}

impl Assembly for Chunks {
    fn take(&mut self, chunk: &Value, on_delta: OnDelta<'_>) -> Result<(), ProviderFailure> {
        let choice = chunk.pointer("/choices/0");
        let error = [chunk.get("error"), choice.and_then(|choice| choice.get("error"))];
        if let Some(error) = error.into_iter().flatten().find(|error| !error.is_null()) {
            return Err(ProviderFailure::from_body(error, &self.origin));
        }
        if chunk.get("object").is_some_and(|object| object == "error") {
            return Err(ProviderFailure::from_body(chunk, &self.origin));
        }
        // In the last chunk, in each, within the choice (Moonshot) or in an extension (Groq).
        let usage = [chunk.get("usage"), choice.and_then(|choice| choice.get("usage")), chunk.pointer("/x_groq/usage")];
        if let Some(usage) = usage.into_iter().flatten().find(|usage| usage.is_object()) {
            let details = usage.get("prompt_tokens_details").or_else(|| usage.get("input_tokens_details"));
            let detail = |name: &str| details.map_or(0, |details| count(details, &[name]));
            self.draft.usage = Usage {
                // Beside the details: DeepSeek, Moonshot.
                cached_input_tokens: match detail("cached_tokens") {
                    0 => count(usage, &["prompt_cache_hit_tokens", "cached_tokens"]),
                    cached => cached,
                },
                cache_write_tokens: detail("cache_write_tokens"),
                input_tokens: count(usage, &["prompt_tokens", "input_tokens"]),
                output_tokens: count(usage, &["completion_tokens", "output_tokens"]),
                cost_usd: usage.get("cost").and_then(Value::as_f64),
            };
        }
        let Some(choice) = choice else {
            // A chunk that only counts or keeps alive has an empty list; a body without any is not a reply.
            return match chunk.get("choices").or_else(|| chunk.get("usage")).or_else(|| chunk.get("id")) {
                Some(_) => Ok(()),
                None => {
                    let message = format!("the endpoint answered without a message: {}", said(&chunk.to_string()));
                    Err(ProviderFailure::new(ModelErrorKind::Malformed, message))
                }
            };
        };
        // A whole message is one large delta.
        if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")).filter(|delta| delta.is_object()) {
            self.take_delta(delta, on_delta)?;
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str).filter(|reason| !reason.is_empty()) {
            self.draft.finished(reason, choice.get("native_finish_reason").and_then(Value::as_str))?;
        }
        if let Some(filters) = choice.get("content_filter_results").and_then(Value::as_object) {
            let filtered = filters.iter().filter(|(_, result)| result.get("filtered") == Some(&Value::Bool(true)));
            for (category, result) in filtered {
                let severity = result.get("severity").and_then(Value::as_str).unwrap_or("filtered");
                self.draft.words = format!("{category} ({severity})");
            }
        }
        Ok(())
    }

    fn is_finished(&self) -> bool {
        self.draft.is_finished()
    }

    fn finish(mut self, end: ReplyEnd) -> Result<ChatReply, ProviderFailure> {
        if !self.draft.is_finished() && self.refusal.is_empty() && !self.draft.has_whole_content(end) {
            return Err(ProviderFailure::cut_short());
        }
        if !self.refusal.trim().is_empty() {
            self.draft.ended_by(FinishReason::Refused, "refusal");
            self.draft.words = self.refusal;
        }
        let unnamed = if end == ReplyEnd::Marked { FinishReason::Stop } else { FinishReason::Missing };
        let state = state::state(&self.origin.model, self.state);
        Ok(self.draft.into_reply(unnamed, state))
    }
}

#[cfg(test)]
mod tests {
    use llm::Arguments;
    use serde_json::json;

    use super::*;
    use crate::billed;

    fn chunks() -> Chunks {
        Chunks::new(RequestOrigin { model: "openai/x".parse().unwrap(), key_variable: "K", url_variable: "U" })
    }

    /// Calls as `id name arguments`.
    fn check(pieces: Value, expected: &[(&str, &str, Value)]) {
        let mut chunks = chunks();
        for piece in pieces.as_array().unwrap() {
            let chunk = json!({"choices": [{"delta": {"tool_calls": [piece]}}]});
            chunks.take(&chunk, &mut |_| {}).unwrap();
        }
        let calls = chunks.finish(ReplyEnd::Marked).unwrap().tool_calls;
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
    fn cached_tokens_cost_the_price_of_cached_ones() {
        let text = json!({"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]});
        for usage in [
            // OpenAI, the Responses shape of some gateways, DeepSeek, Moonshot.
            json!({"prompt_tokens": 2_006, "completion_tokens": 300, "total_tokens": 2_306,
                   "prompt_tokens_details": {"cached_tokens": 1_920, "audio_tokens": 0}}),
            json!({"input_tokens": 2_006, "output_tokens": 300, "input_tokens_details": {"cached_tokens": 1_920}}),
            json!({"prompt_tokens": 2_006, "completion_tokens": 300, "prompt_cache_hit_tokens": 1_920, "prompt_cache_miss_tokens": 86}),
            json!({"prompt_tokens": 2_006, "completion_tokens": 300, "cached_tokens": 1_920}),
        ] {
            let last = json!({"choices": [], "usage": usage});
            // 86 at 2, 1,920 at 0.20, 300 at 10.
            billed::check(chunks(), &[text.clone(), last], ([2_006, 1_920, 0, 300], 172 + 384 + 3_000));
        }
        let plain = json!({"choices": [], "usage": {"prompt_tokens": 2_006, "completion_tokens": 300, "prompt_tokens_details": null}});
        billed::check(chunks(), &[text, plain], ([2_006, 0, 0, 300], 4_012 + 3_000));
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
    fn two_calls_at_one_index_are_two() {
        let whole = |id: &str, text: &str| json!({"index": 0, "id": id, "function": {"name": "f", "arguments": text}});
        let two = [("a", "f", json!({"x": 1})), ("b", "f", json!({"x": 2}))];
        check(json!([whole("a", "{\"x\":1}"), whole("b", "{\"x\":2}")]), &two);
        // Gemini's door for OpenAI clients gives no ids either.
        let unnamed = [("", "f", json!({"x": 1})), ("", "f", json!({"x": 2}))];
        check(json!([whole("", "{\"x\":1}"), whole("", "{\"x\":2}")]), &unnamed);
        // The same call, its name and id repeated with each piece.
        check(json!([whole("a", "{\"x\""), whole("a", ":1}")]), &[("a", "f", json!({"x": 1}))]);
        check(json!([whole("a", "{\"x\":1}"), whole("a", "")]), &[("a", "f", json!({"x": 1}))]);
    }

    #[test]
    fn too_many_calls_are_refused() {
        let many: Vec<_> = (0..1_000).map(|index| json!({"index": index, "function": {"name": "f"}})).collect();
        let chunk = json!({"choices": [{"delta": {"tool_calls": many}}]});
        assert!(chunks().take(&chunk, &mut |_| {}).is_err());
    }

    #[test]
    fn what_is_left_of_a_broken_reply_is_not_acted_upon() {
        let take = |delta: Value, end| {
            let mut chunks = chunks();
            chunks.take(&json!({"choices": [{"delta": delta}]}), &mut |_| {}).unwrap();
            chunks.finish(end).map(|reply| reply.finish).map_err(|failure| failure.kind)
        };
        let call =
            |text: &str| json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": text}}]});
        let cut = Err(ModelErrorKind::Unavailable);
        assert_eq!(take(json!({"content": "all"}), ReplyEnd::Closed), Ok(FinishReason::Missing));
        assert_eq!(take(json!({"content": "all"}), ReplyEnd::Marked), Ok(FinishReason::Stop));
        assert_eq!(take(json!({"content": ""}), ReplyEnd::Marked), cut);
        assert_eq!(take(call("{\"x\":"), ReplyEnd::Closed), cut);
        assert_eq!(take(call(""), ReplyEnd::Closed), cut);
        assert_eq!(take(call("{}"), ReplyEnd::Closed), Ok(FinishReason::Missing));
        assert_eq!(take(call(""), ReplyEnd::Marked), Ok(FinishReason::Stop));
    }

    #[test]
    fn an_error_within_a_stream_is_one() {
        let chunk = json!({"error": {"code": 429, "message": "slow"}});
        let failure = chunks().take(&chunk, &mut |_| {}).unwrap_err();
        assert_eq!((failure.kind, failure.again), (ModelErrorKind::RateLimited, true));
    }
}

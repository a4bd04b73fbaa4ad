//! Puts the content blocks of a streamed reply together.
//!
//! Each block has an index and is begun, continued and ended by events of its own. Blocks that are unknown here are kept
//! as they came: the next request has to show them again.

use llm::{ChatReply, FinishReason, ModelErrorKind, ProviderState, Usage};
use serde_json::{Value, json};

use crate::draft::{Draft, DraftCall, OnDelta, count};
use crate::failure::{ProviderFailure, said};
use crate::receive::{Assembly, ReplyEnd};
use crate::remedy::RequestOrigin;

/// More blocks than this in one reply are a fault of the endpoint or an attack.
const MAX_BLOCKS: usize = 1_024;

/// A reply as far as it has come.
pub(super) struct Blocks {
    draft: Draft,
    blocks: Vec<Block>,
    over: bool,
    origin: RequestOrigin,
}

struct Block {
    index: Option<u64>,
    /// As it goes back. A call is `{"type": "tool_use"}`: the conversation holds it.
    value: Value,
    /// The position of the call.
    call: Option<usize>,
}

impl Blocks {
    pub(super) fn new(origin: RequestOrigin) -> Self {
        Self { draft: Draft::default(), blocks: Vec::new(), over: false, origin }
    }

    /// `message_start`, or a whole message.
    fn message(&mut self, message: &Value, on_delta: OnDelta<'_>) -> Result<(), ProviderFailure> {
        if let Some(usage) = message.get("usage") {
            self.usage(usage);
        }
        for block in message.get("content").and_then(Value::as_array).into_iter().flatten() {
            self.start(None, block, on_delta)?;
        }
        self.stop_reason(message)
    }

    /// A later count replaces an earlier one; zero and absent ones do not. `input_tokens` of the wire leaves out the tokens that
    /// were read from the cache or written to it, so each is kept by itself.
    fn usage(&mut self, usage: &Value) {
        let later = |name: &str, old: u64| match count(usage, &[name]) {
            0 => old,
            new => new,
        };
        let old = self.draft.usage;
        let old_uncached =
            old.input_tokens.saturating_sub(old.cached_input_tokens).saturating_sub(old.cache_write_tokens);
        let read = later("cache_read_input_tokens", old.cached_input_tokens);
        let written = later("cache_creation_input_tokens", old.cache_write_tokens);
        self.draft.usage = Usage {
            input_tokens: later("input_tokens", old_uncached).saturating_add(read).saturating_add(written),
            output_tokens: later("output_tokens", old.output_tokens),
            cached_input_tokens: read,
            cache_write_tokens: written,
            cost_usd: None,
        };
    }

    fn stop_reason(&mut self, from: &Value) -> Result<(), ProviderFailure> {
        let Some(reason) = from.get("stop_reason").and_then(Value::as_str) else { return Ok(()) };
        self.draft.finished(reason, None)?;
        let details = from.get("stop_details").unwrap_or(&Value::Null);
        let words = ["category", "explanation"].map(|key| details.get(key).and_then(Value::as_str).unwrap_or_default());
        self.draft.words = words.join(" ").trim().to_owned();
        Ok(())
    }

    fn start(&mut self, index: Option<u64>, block: &Value, on_delta: OnDelta<'_>) -> Result<(), ProviderFailure> {
        if self.blocks.len() >= MAX_BLOCKS {
            let message = format!("the reply has more than {MAX_BLOCKS} content blocks");
            return Err(ProviderFailure::new(ModelErrorKind::Malformed, message));
        }
        let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        let mut call = None;
        let mut value = block.clone();
        match text("type") {
            "text" => self.draft.text(text("text"), on_delta),
            "thinking" => self.draft.reasoning(text("thinking"), on_delta),
            "tool_use" => {
                let input = block.get("input").filter(|input| input.as_object().is_some_and(|map| !map.is_empty()));
                call = Some(self.draft.call(DraftCall {
                    index,
                    id: text("id").to_owned(),
                    name: text("name").to_owned(),
                    arguments: input.map(Value::to_string).unwrap_or_default(),
                })?);
                value = json!({"type": "tool_use"});
            }
            _ => {}
        }
        self.blocks.push(Block { index, value, call });
        Ok(())
    }

    fn delta(&mut self, index: Option<u64>, delta: &Value, on_delta: OnDelta<'_>) {
        let Some(block) = self.blocks.iter_mut().rev().find(|block| block.index == index) else { return };
        let text = |key: &str| delta.get(key).and_then(Value::as_str).unwrap_or_default();
        let mut append = |key: &str, more: &str| {
            let Some(map) = block.value.as_object_mut() else { return };
            match map.get_mut(key) {
                Some(Value::String(text)) => text.push_str(more),
                _ => {
                    map.insert(key.to_owned(), more.into());
                }
            }
        };
        match text("type") {
            "text_delta" => {
                append("text", text("text"));
                self.draft.text(text("text"), on_delta);
            }
            "thinking_delta" => {
                append("thinking", text("thinking"));
                self.draft.reasoning(text("thinking"), on_delta);
            }
            "signature_delta" => append("signature", text("signature")),
            "input_json_delta" => {
                if let Some(call) = block.call.and_then(|call| self.draft.calls.get_mut(call)) {
                    call.arguments.push_str(text("partial_json"));
                }
            }
            _ => {}
        }
    }

    /// The state that goes back with the reply: its blocks, if some of them are more than text and calls.
    fn state(&mut self) -> Option<ProviderState> {
        let kind = |block: &Value| block.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut blocks: Vec<Value> = std::mem::take(&mut self.blocks).into_iter().map(|block| block.value).collect();
        // Thinking that was cut off has no signature, and empty text is refused.
        blocks.retain(|block| match kind(block).as_str() {
            "thinking" => block.get("signature").and_then(Value::as_str).is_some_and(|signature| !signature.is_empty()),
            "text" => block.get("text").and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty()),
            _ => true,
        });
        if blocks.iter().all(|block| matches!(kind(block).as_str(), "text" | "tool_use")) {
            return None;
        }
        ProviderState::new(&self.origin.model.to_string(), blocks.into())
    }
}

impl Assembly for Blocks {
    fn take(&mut self, event: &Value, on_delta: OnDelta<'_>) -> Result<(), ProviderFailure> {
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            return Err(ProviderFailure::from_body(error, &self.origin));
        }
        let index = event.get("index").and_then(Value::as_u64);
        let part = |key: &str| event.get(key).unwrap_or(&Value::Null);
        match event.get("type").and_then(Value::as_str).unwrap_or_default() {
            "message_start" => self.message(part("message"), on_delta),
            "message" => {
                self.over = true;
                self.message(event, on_delta)
            }
            "content_block_start" => self.start(index, part("content_block"), on_delta),
            "content_block_delta" => {
                self.delta(index, part("delta"), on_delta);
                Ok(())
            }
            "message_delta" => {
                self.usage(part("usage"));
                self.stop_reason(part("delta"))
            }
            "message_stop" => {
                self.over = true;
                Ok(())
            }
            // New kinds of events may be added at any time (Anthropic's versioning policy).
            "" => {
                let message = format!("the endpoint answered without a message: {}", said(&event.to_string()));
                Err(ProviderFailure::new(ModelErrorKind::Malformed, message))
            }
            _ => Ok(()),
        }
    }

    fn is_finished(&self) -> bool {
        self.draft.is_finished()
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn finish(mut self, _: ReplyEnd) -> Result<ChatReply, ProviderFailure> {
        // The API always marks the end; without the mark the stream was cut.
        let is_whole = self.draft.is_finished() || self.over && self.draft.has_whole_content(ReplyEnd::Marked);
        if !is_whole {
            return Err(ProviderFailure::cut_short());
        }
        let state = self.state();
        Ok(self.draft.into_reply(FinishReason::Stop, state))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::billed;

    #[test]
    fn tokens_of_the_cache_are_part_of_the_prompt_at_their_own_price() {
        let start = |usage: Value| json!({"type": "message_start", "message": {"type": "message", "content": [], "usage": usage}});
        let block = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hi"}});
        let delta =
            |usage: Value| json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage});
        let begun = json!({"input_tokens": 50, "cache_creation_input_tokens": 400, "cache_read_input_tokens": 1_500, "output_tokens": 1,
                           "cache_creation": {"ephemeral_5m_input_tokens": 400, "ephemeral_1h_input_tokens": 0}});
        // 50 at 2, 1,500 at 0.20, 400 at 2.50, 100 at 10.
        let expected = ([1_950, 1_500, 400, 100], 100 + 300 + 1_000 + 1_000);
        for end in [
            json!({"output_tokens": 100}),
            json!({"input_tokens": 50, "cache_creation_input_tokens": 400, "cache_read_input_tokens": 1_500, "output_tokens": 100}),
            // Without the counts of the cache, which stay as they were.
            json!({"input_tokens": 50, "output_tokens": 100}),
            json!({"input_tokens": 50, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 100}),
        ] {
            let events = [start(begun.clone()), block.clone(), delta(end)];
            billed::check(Blocks::new(billed::origin("anthropic/x")), &events, expected);
        }
        let plain =
            [start(json!({"input_tokens": 50, "output_tokens": 1})), block, delta(json!({"output_tokens": 100}))];
        billed::check(Blocks::new(billed::origin("anthropic/x")), &plain, ([50, 0, 0, 100], 100 + 1_000));
    }
}

//! Puts the candidates of a streamed reply together. Calls come whole, text and thoughts in pieces.

use llm::{ChatReply, FinishReason, ModelErrorKind, ProviderState, Usage};
use serde_json::{Map, Value, json};

use crate::draft::{Draft, DraftCall, OnDelta, count};
use crate::failure::{ProviderFailure, said};
use crate::receive::{Assembly, ReplyEnd};
use crate::remedy::RequestOrigin;

/// A reply as far as it has come.
pub(super) struct Candidates {
    draft: Draft,
    /// Signatures of calls, by position.
    calls: Map<String, Value>,
    /// The signature of the text.
    text: Option<Value>,
    origin: RequestOrigin,
}

impl Candidates {
    pub(super) fn new(origin: RequestOrigin) -> Self {
        Self { draft: Draft::default(), calls: Map::new(), text: None, origin }
    }

    fn part(&mut self, part: &Value, on_delta: OnDelta<'_>) -> Result<(), ProviderFailure> {
        let signature = part.get("thoughtSignature").filter(|signature| signature.is_string());
        if let Some(call) = part.get("functionCall") {
            let text = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let arguments = call.get("args").filter(|args| !args.is_null()).map(Value::to_string).unwrap_or_default();
            let call = DraftCall { index: None, id: text("id"), name: text("name"), arguments };
            let position = self.draft.call(call)?;
            if let Some(signature) = signature {
                self.calls.insert(position.to_string(), signature.clone());
            }
            return Ok(());
        }
        let text = part.get("text").and_then(Value::as_str).unwrap_or_default();
        if part.get("thought") == Some(&Value::Bool(true)) {
            self.draft.reasoning(text, on_delta);
        } else {
            self.draft.text(text, on_delta);
            // Often on an empty text at the end.
            self.text = signature.cloned().or(self.text.take());
        }
        Ok(())
    }

    /// The categories that a filter objected to.
    fn ratings(&mut self, from: &Value) {
        let ratings = from.get("safetyRatings").and_then(Value::as_array);
        let mut words = Vec::new();
        for rating in ratings.into_iter().flatten() {
            let text = |key: &str| rating.get(key).and_then(Value::as_str).unwrap_or_default();
            let blocked = rating.get("blocked") == Some(&Value::Bool(true));
            if blocked || matches!(text("probability"), "HIGH" | "MEDIUM") {
                words.push(format!("{} ({})", text("category"), text("probability")));
            }
        }
        let message = ["finishMessage", "blockReasonMessage"].iter().find_map(|key| from.get(*key)?.as_str());
        words.extend(message.map(str::to_owned));
        self.draft.words = words.join(", ");
    }
}

impl Assembly for Candidates {
    fn take(&mut self, chunk: &Value, on_delta: OnDelta<'_>) -> Result<(), ProviderFailure> {
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(ProviderFailure::from_body(error, &self.origin));
        }
        if let Some(usage) = chunk.get("usageMetadata") {
            let output = ["candidatesTokenCount", "thoughtsTokenCount"].map(|name| count(usage, &[name]));
            let input = ["promptTokenCount", "toolUsePromptTokenCount"].map(|name| count(usage, &[name]));
            self.draft.usage = Usage {
                input_tokens: input.into_iter().fold(0, u64::saturating_add),
                output_tokens: output.into_iter().fold(0, u64::saturating_add),
                cached_input_tokens: count(usage, &["cachedContentTokenCount"]),
                ..Usage::default()
            };
        }
        // The prompt itself was refused: there is no candidate.
        if let Some(reason) = chunk.pointer("/promptFeedback/blockReason").and_then(Value::as_str) {
            self.draft.ended_by(FinishReason::Filtered, reason);
            self.ratings(chunk.get("promptFeedback").unwrap_or(&Value::Null));
        }
        let Some(candidate) = chunk.pointer("/candidates/0") else {
            let known = ["usageMetadata", "promptFeedback", "candidates", "responseId", "modelVersion"];
            if known.iter().any(|key| chunk.get(*key).is_some()) {
                return Ok(());
            }
            let message = format!("the endpoint answered without a message: {}", said(&chunk.to_string()));
            return Err(ProviderFailure::new(ModelErrorKind::Malformed, message));
        };
        for part in candidate.pointer("/content/parts").and_then(Value::as_array).into_iter().flatten() {
            self.part(part, on_delta)?;
        }
        if let Some(reason) = candidate.get("finishReason").and_then(Value::as_str) {
            self.draft.finished(reason, None)?;
            self.ratings(candidate);
        }
        Ok(())
    }

    fn is_finished(&self) -> bool {
        self.draft.is_finished()
    }

    fn finish(self, _: ReplyEnd) -> Result<ChatReply, ProviderFailure> {
        // The API always gives a reason; without one the stream was cut.
        if !self.draft.is_finished() {
            return Err(ProviderFailure::cut_short());
        }
        let mut state = Map::new();
        if !self.calls.is_empty() {
            state.insert("calls".to_owned(), self.calls.into());
        }
        if let Some(signature) = self.text {
            state.insert("text".to_owned(), signature);
        }
        let state = (!state.is_empty()).then(|| json!(state));
        let state = state.and_then(|state| ProviderState::new(&self.origin.model.to_string(), state));
        Ok(self.draft.into_reply(FinishReason::Stop, state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::billed;

    #[test]
    fn cached_content_is_part_of_the_prompt_at_its_own_price() {
        let reply = |usage: Value| {
            let content = json!({"role": "model", "parts": [{"text": "hi"}]});
            json!({"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage})
        };
        let cached = json!({"promptTokenCount": 2_100, "cachedContentTokenCount": 2_000, "candidatesTokenCount": 60,
                            "thoughtsTokenCount": 40, "totalTokenCount": 2_200});
        // 100 at 2, 2,000 at 0.20, 100 at 10.
        let candidates = || Candidates::new(billed::origin("gemini/x"));
        billed::check(candidates(), &[reply(cached)], ([2_100, 2_000, 0, 100], 200 + 400 + 1_000));
        let plain = json!({"promptTokenCount": 2_100, "candidatesTokenCount": 100});
        billed::check(candidates(), &[reply(plain)], ([2_100, 0, 0, 100], 4_200 + 1_000));
    }
}

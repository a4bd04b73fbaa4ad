//! A model that does anything models do: calls of every kind, half replies, nonsense, silence, failures, taking its time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use base::RunId;
use llm::{
    Arguments, ChatReply, ChatRequest, Delta, FinishReason, Message, Model, ModelError, ModelErrorKind, RequestedCall,
    Usage,
};
use serde_json::{Value, json};
use store::SimulatedDisk;

use super::chance::Chance;
use super::outside::Outside;
use super::tools::NAMES;

pub struct SimulatedModel {
    pub run: RunId,
    pub chance: Arc<Chance>,
    pub disk: Arc<SimulatedDisk>,
    pub outside: Arc<Outside>,
}

#[async_trait::async_trait]
impl Model for SimulatedModel {
    fn name(&self) -> &str {
        "test/simulated"
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatReply, ModelError> {
        if let Err(what) = paired(&request.messages) {
            self.outside.broken(format!("run {} shows its model {what}", self.run));
        }
        tokio::time::sleep(self.chance.span(Duration::from_secs(60))).await;
        if self.disk.is_crashed() {
            return std::future::pending().await;
        }
        let mut reply = ChatReply {
            usage: Usage { input_tokens: 10, output_tokens: 2, ..Usage::default() },
            model: self.name().into(),
            ..ChatReply::default()
        };
        if self.chance.percent(70)
            && let Some(calls) = self.consented(&request.messages)
        {
            reply.tool_calls = calls;
            return Ok(reply);
        }
        // A run comes to its end sooner or later.
        let done = 6 + 3 * request.turn() as u64;
        match self.chance.below(100) {
            n if n < done => reply.text = format!("done {}", self.chance.below(1_000)),
            n if n < done + 2 => {}
            91..=96 => self.ends(&mut reply),
            97 => reply.text = r#"{"name": "look", "arguments": {"text": "in words"}}"#.into(),
            98 => return Err(self.failure()),
            99 => return std::future::pending().await,
            n => {
                reply.text = if n % 2 == 0 { String::new() } else { "let me see".into() };
                let calls = if self.chance.percent(70) { 1 } else { 2 + self.chance.below(3) };
                reply.tool_calls = (0..calls).map(|_| self.call()).collect();
            }
        }
        if !reply.text.is_empty() {
            on_delta(Delta::Text(reply.text.clone()));
        }
        Ok(reply)
    }
}

impl SimulatedModel {
    /// A reply that the model did not end itself, with or without half a call.
    fn ends(&self, reply: &mut ChatReply) {
        use FinishReason::{ContextFull, Filtered, Length, Missing, Other, Paused, Refused};
        let reasons = [Length, Length, Length, Paused, Paused, Missing, Filtered, Refused, ContextFull, Other];
        reply.finish = *self.chance.pick(&reasons);
        reply.finish_detail = (!reply.finish.is_complete()).then(|| "in its own words".into());
        if self.chance.percent(70) {
            reply.text = format!("half {} ", self.chance.below(1_000));
        }
        if self.chance.percent(30) {
            reply.tool_calls = (0..=self.chance.below(2)).map(|_| self.call()).collect();
        }
    }

    fn call(&self) -> RequestedCall {
        // Ids that are unique, and ids that are not.
        let id = if self.chance.percent(90) { format!("c{:x}", self.chance.number()) } else { "call_0".into() };
        let (name, arguments) = match self.chance.below(100) {
            0..8 => ("ask_user", self.question()),
            8..13 => ("request_approval", self.wish()),
            13..15 => ("nothing", json!({})),
            15..17 => {
                return RequestedCall {
                    id,
                    name: "look".into(),
                    arguments: Arguments::Malformed("{\"text\": ".into()),
                };
            }
            17..27 => match self.earlier() {
                Some((tool, arguments)) => {
                    return RequestedCall { id, name: tool, arguments: Arguments::Json(arguments) };
                }
                None => ("look", json!({})),
            },
            _ => (*self.chance.pick(&NAMES), self.arguments()),
        };
        RequestedCall { id, name: name.into(), arguments: Arguments::Json(arguments) }
    }

    fn arguments(&self) -> Value {
        let place = *self.chance.pick(&["a", "b"]);
        json!({ "text": format!("{:x}", self.chance.number()), "place": place })
    }

    fn question(&self) -> Value {
        match self.chance.below(10) {
            0 => json!({ "question": "" }),
            1..5 => json!({ "question": "which?", "choices": ["a", "b"] }),
            _ => json!({ "question": "what then?" }),
        }
    }

    fn wish(&self) -> Value {
        match self.chance.below(4) {
            0 => json!({ "action": "look around", "domains": ["a.example"] }),
            _ => json!({ "action": format!("do {:x}", self.chance.number()), "reason": "it is needed" }),
        }
    }

    /// Something that the run has done before.
    fn earlier(&self) -> Option<(String, Value)> {
        let known = self.outside.known();
        let mine: Vec<_> = known.deliveries.iter().filter(|delivery| delivery.run == self.run).collect();
        let again = *mine.get(self.chance.below(mine.len().max(1) as u64) as usize)?;
        Some((again.tool.clone(), again.arguments.clone()))
    }

    /// The calls that it was told to make again.
    fn consented(&self, messages: &[Message]) -> Option<Vec<RequestedCall>> {
        let said = matches!(messages.last(), Some(Message::User { text }) if text.contains("make the same call again"));
        let calls = messages.iter().rev().filter(|_| said).find_map(|message| match message {
            Message::Assistant { tool_calls, .. } => Some(tool_calls.clone()),
            _ => None,
        })?;
        Some(
            calls
                .into_iter()
                .map(|call| RequestedCall { id: format!("c{:x}", self.chance.number()), ..call })
                .collect(),
        )
    }

    fn failure(&self) -> ModelError {
        let kinds = [ModelErrorKind::Unavailable, ModelErrorKind::RateLimited, ModelErrorKind::Malformed];
        let kind = *self.chance.pick(&kinds);
        ModelError { model: self.name().into(), kind, message: "not today".into(), retry_after_ms: None }
    }
}

/// Every call has its result before anything else is said.
fn paired(messages: &[Message]) -> Result<(), String> {
    let mut open = VecDeque::new();
    for message in messages {
        match message {
            Message::Tool { call_id, .. } => {
                if open.pop_front() != Some(call_id) {
                    return Err(format!("a result of `{call_id}` where it does not belong"));
                }
            }
            _ if !open.is_empty() => return Err(format!("no result of {open:?}")),
            Message::Assistant { tool_calls, .. } => open.extend(tool_calls.iter().map(|call| &call.id)),
            Message::User { .. } => {}
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("no result of {open:?} at the end")) }
}

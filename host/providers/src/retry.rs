//! Tries again what may work in a moment (SPEC LLM-1): exponential backoff with jitter, no sooner than the endpoint asks,
//! never past the deadline of the whole call.
//!
//! It survives an endpoint that is overloaded, restarts, resets connections or never answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use llm::{Arguments, ChatReply, ChatRequest, Delta, FinishReason, Message, Model, ModelError, ModelErrorKind};

use crate::failure::{Failure, Redactor};
use crate::settings::{Price, Retries};

/// One request to an endpoint.
#[async_trait::async_trait]
pub(crate) trait Attempt: Send + Sync {
    async fn attempt(
        &self,
        request: &ChatRequest,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatReply, Failure>;
}

/// An endpoint's model.
pub(crate) struct Retrying {
    pub name: String,
    pub attempt: Arc<dyn Attempt>,
    pub retries: Retries,
    pub deadline: Duration,
    pub redactor: Redactor,
    pub price: Option<Price>,
}

#[async_trait::async_trait]
impl Model for Retrying {
    fn name(&self) -> &str {
        &self.name
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatReply, ModelError> {
        let started = Instant::now();
        let left = || self.deadline.saturating_sub(started.elapsed());
        let mut waits = ExponentialBuilder::default()
            .with_min_delay(self.retries.first)
            .with_max_delay(self.retries.longest)
            .with_max_times(self.retries.max)
            .with_jitter()
            .build();
        self.log("request", request);
        let mut retries = 0;
        loop {
            let mut failure = match tokio::time::timeout(left(), self.attempt.attempt(request, on_delta)).await {
                Ok(Ok(mut reply)) => {
                    reply.retries = retries;
                    self.finish(request, &mut reply);
                    self.log("reply", &reply);
                    tracing::info!(
                        model = self.name,
                        retries,
                        input_tokens = reply.usage.input_tokens,
                        output_tokens = reply.usage.output_tokens,
                        cost_usd = reply.usage.cost_usd,
                        elapsed_ms = started.elapsed().as_millis(),
                        "model answered"
                    );
                    return Ok(reply);
                }
                Ok(Err(failure)) => failure,
                Err(_) => {
                    let message = format!("no reply within the deadline of {} s", self.deadline.as_secs_f32());
                    Failure::new(ModelErrorKind::Timeout, message).for_good()
                }
            };
            failure.message = self.redactor.clean(failure.message);
            let wait =
                waits.next().filter(|_| failure.again).map(|wait| wait.max(failure.retry_after.unwrap_or_default()));
            tracing::info!(model = self.name, kind = ?failure.kind, retries, ?wait, "{}", failure.message);
            match wait {
                // Waiting past the deadline gains nothing: the caller learns at once how long it would have to wait.
                Some(wait) if wait < left() => {
                    on_delta(Delta::Restart { reason: failure.message, wait });
                    tokio::time::sleep(wait).await;
                    retries += 1;
                }
                _ => return Err(self.error(failure, retries)),
            }
        }
    }
}

impl Retrying {
    fn error(&self, failure: Failure, retries: u32) -> ModelError {
        let tried = match retries {
            0 => String::new(),
            1 => " (tried again once)".to_owned(),
            _ => format!(" (tried again {retries} times)"),
        };
        ModelError {
            model: self.name.clone(),
            kind: failure.kind,
            message: format!("{}{tried}", failure.message),
            retry_after_ms: failure.retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        }
    }

    /// What holds for every provider: names, prices, and ids that are unique within the conversation, because results
    /// are matched to calls by them and some endpoints count from zero in each reply.
    fn finish(&self, request: &ChatRequest, reply: &mut ChatReply) {
        reply.model.clone_from(&self.name);
        if reply.usage.cost_usd.is_none() {
            reply.usage.cost_usd = self.price.map(|price| price.cost(reply.usage));
        }
        if !reply.tool_calls.is_empty() && reply.finish == FinishReason::Stop {
            reply.finish = FinishReason::ToolCalls;
        }
        let mut taken: std::collections::HashSet<String> = request
            .messages
            .iter()
            .filter_map(|message| match message {
                Message::Assistant { tool_calls, .. } => Some(tool_calls.iter().map(|call| call.id.clone())),
                _ => None,
            })
            .flatten()
            .collect();
        let turn = request.turn();
        for (index, call) in reply.tool_calls.iter_mut().enumerate() {
            if call.id.is_empty() || taken.contains(&call.id) {
                call.id = format!("call_{turn}_{index}");
            }
            while !taken.insert(call.id.clone()) {
                call.id.push('x');
            }
        }
    }

    /// Prompts and completions go to the debug level only, with keys struck out (SPEC LLM-4).
    fn log(&self, what: &str, payload: &impl serde::Serialize) {
        if tracing::enabled!(tracing::Level::DEBUG) {
            let json = serde_json::to_string(payload).unwrap_or_default();
            tracing::debug!(model = self.name, what, payload = self.redactor.clean(json));
        }
    }
}

/// The arguments of a call as an endpoint wrote them. None at all means no arguments.
pub(crate) fn arguments(text: &str) -> Arguments {
    if text.trim().is_empty() {
        return Arguments::Json(serde_json::Value::Object(serde_json::Map::new()));
    }
    match serde_json::from_str(text) {
        Ok(value) => Arguments::Json(value),
        Err(_) => Arguments::Malformed(text.to_owned()),
    }
}

/// Arguments as an endpoint gets them back in the history: an object in every case, since several refuse the whole
/// conversation when one call in it is not.
pub(crate) fn arguments_object(arguments: &Arguments) -> serde_json::Value {
    match arguments {
        Arguments::Json(value) if value.is_object() => value.clone(),
        Arguments::Json(value) => serde_json::json!({"value": value}),
        Arguments::Malformed(text) => serde_json::json!({"not_json": text}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_json_is_kept() {
        assert_eq!(arguments(" "), Arguments::Json(serde_json::json!({})));
        assert_eq!(arguments("{\"a\":1}"), Arguments::Json(serde_json::json!({"a": 1})));
        assert_eq!(arguments("{\"a\":"), Arguments::Malformed("{\"a\":".to_owned()));
    }
}

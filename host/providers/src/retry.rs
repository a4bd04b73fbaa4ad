//! Retries requests that may succeed in a moment (SPEC LLM-1): exponential backoff with jitter, no sooner than the endpoint asks,
//! never past the deadline of the whole call.
//!
//! It survives an endpoint that is overloaded, restarts, resets connections or never answers.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use llm::{
    ChatReply, ChatRequest, Delta, FinishReason, Message, MicroUsd, Model, ModelError, ModelErrorKind, ModelPrice,
    ToolSpec,
};
use tokio::time::Instant;

use crate::draft::OnDelta;
use crate::failure::{ProviderFailure, Redactor};
use crate::settings::{Redact, RetryPolicy};

/// One request to an endpoint.
#[async_trait::async_trait]
pub(crate) trait Attempt: Send + Sync {
    async fn attempt(&self, request: &ChatRequest, on_delta: OnDelta<'_>) -> Result<ChatReply, ProviderFailure>;
}

/// An endpoint's model.
pub(crate) struct Retrying {
    pub name: String,
    pub attempt: Arc<dyn Attempt>,
    pub retries: RetryPolicy,
    pub deadline: Duration,
    pub redactor: Redactor,
    pub redact: Redact,
    pub price: Option<ModelPrice>,
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
                    let deadline = self.deadline.as_secs_f32();
                    let message = format!(
                        "no reply within the deadline of {deadline} s; a slow model needs a larger \
                         `models.deadline_seconds`"
                    );
                    ProviderFailure::new(ModelErrorKind::Timeout, message).for_good()
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
    fn error(&self, failure: ProviderFailure, retries: u32) -> ModelError {
        let tried = match retries {
            0 => String::new(),
            1 => " (tried again once)".to_owned(),
            _ => format!(" (tried again {retries} times)"),
        };
        let later = failure.retry_after.filter(|wait| !wait.is_zero());
        let later = later.map(|wait| format!("; try again in {}", span(wait))).unwrap_or_default();
        ModelError {
            model: self.name.clone(),
            kind: failure.kind,
            message: format!("{}{tried}{later}", failure.message),
            retry_after_ms: failure.retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        }
    }

    /// Completes the reply of every provider: names, prices, and ids that are unique within the conversation, because results
    /// are matched to calls by them and some endpoints count from zero in each reply.
    fn finish(&self, request: &ChatRequest, reply: &mut ChatReply) {
        reply.model.clone_from(&self.name);
        reply.finish_detail = reply.finish_detail.take().map(|detail| self.redactor.clean(detail));
        // State is sent back as it came or not at all: nothing can be struck out of it.
        let shows_key =
            |state: &llm::ProviderState| serde_json::to_string(state).is_ok_and(|json| self.redactor.finds(&json));
        reply.state = reply.state.take().filter(|state| !shows_key(state));
        for call in &mut reply.tool_calls {
            if let Some(name) = known_name(&call.name, &request.tools) {
                name.clone_into(&mut call.name);
            }
        }
        if reply.usage.cost_usd.is_none() {
            reply.usage.cost_usd = self.price.and_then(|price| price.cost(&reply.usage)).map(MicroUsd::usd);
        }
        if !reply.tool_calls.is_empty() && matches!(reply.finish, FinishReason::Stop | FinishReason::Missing) {
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
            tracing::debug!(model = self.name, what, payload = self.redact.apply(self.redactor.clean(json)));
        }
    }
}

/// The tool that a call means by a name with something around it: `functions.read`, `default_api:read`, `read:0`,
/// `read<|channel|>json`. `None`: the name is right, or cannot be told.
fn known_name<'a>(name: &str, tools: &'a [ToolSpec]) -> Option<&'a str> {
    let is_tool = |name: &str| tools.iter().find(|tool| tool.name == name).map(|tool| tool.name.as_str());
    if is_tool(name).is_some() {
        return None;
    }
    let bare = name.split("<|").next().unwrap_or(name).trim();
    let bare = bare.trim_end_matches(|c: char| c.is_ascii_digit()).strip_suffix(':').unwrap_or(bare);
    // Only prefixes that models are known to write: of `remote.read` it cannot be told whether `read` is meant.
    let prefixes = ["functions", "function", "default_api", "tools", "tool"];
    let after = |prefix: &str| bare.strip_prefix(prefix)?.strip_prefix(['.', ':', '/']);
    prefixes.into_iter().find_map(after).and_then(is_tool).or_else(|| is_tool(bare))
}

/// A wait for people: `45 s`, `12 min`, `1 h`, `2 h 5 min`.
fn span(wait: Duration) -> String {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let minutes = seconds.div_ceil(60);
    match (minutes / 60, minutes % 60) {
        _ if seconds < 60 => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_something_around_it_is_known() {
        let tool = |name: &str| ToolSpec { name: name.into(), description: String::new(), parameters: ().into() };
        let tools = [tool("read"), tool("functions.list"), tool("tool-3")];
        for (name, expected) in [
            ("read", None),
            ("functions.read", Some("read")),
            ("default_api:read", Some("read")),
            ("functions.read:0", Some("read")),
            ("read<|channel|>commentary", Some("read")),
            (" read ", Some("read")),
            ("functions.list", None),
            ("tool-3", None),
            ("remote.read", None),
            ("readx", None),
            ("", None),
        ] {
            assert_eq!(known_name(name, &tools), expected, "{name:?}");
        }
    }

    #[test]
    fn waits_are_told_in_words() {
        for (seconds, expected) in
            [(0.2, "1 s"), (59.0, "59 s"), (61.0, "2 min"), (3600.0, "1 h"), (7_500.0, "2 h 5 min")]
        {
            assert_eq!(span(Duration::from_secs_f64(seconds)), expected);
        }
    }
}

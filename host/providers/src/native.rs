//! Anthropic and Gemini in their own dialects, through `genai`.
//!
//! `genai` reads the stream; it does not bound a single event, so a hostile endpoint is bounded by the deadline and by what
//! its events add up to. Nothing it says of an error is shown before it is cut and cleaned.

use futures_util::StreamExt as _;
use genai::adapter::AdapterKind;
use genai::chat::{
    ChatMessage, ChatOptions, ChatResponseFormat, ChatStreamEvent, JsonSpec, MessageContent, StopReason, StreamEnd,
    Tool, ToolResponse,
};
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, ModelIden, ServiceTarget};
use llm::{
    Arguments, ChatReply, ChatRequest, Delta, FinishReason, Message, ModelErrorKind, ModelRef, Provider, ToolCall,
    Usage,
};
use serde_json::Value;

use crate::failure::Failure;
use crate::http::{Connection, retry_after};
use crate::retry::{Attempt, arguments, arguments_object};
use crate::settings::Limits;

/// A model that `genai` speaks to.
pub(crate) struct Native {
    client: Client,
    target: ServiceTarget,
    key_variable: &'static str,
    limits: Limits,
}

impl Native {
    pub(crate) fn new(reference: &ModelRef, connection: Connection, limits: Limits) -> Result<Self, String> {
        let kind = match reference.provider {
            Provider::Anthropic => AdapterKind::Anthropic,
            Provider::Gemini => AdapterKind::Gemini,
            other => return Err(format!("`{other}` has no dialect of its own here")),
        };
        let client = Client::builder()
            .with_reqwest(connection.client)
            .build()
            .map_err(|_| "cannot make a client for the provider".to_owned())?;
        // A gateway at an address of the owner's may ask for no key; the dialects always send one.
        let key = connection.key.map(|key| key.expose().clone()).unwrap_or_else(|| "none".to_owned());
        let target = ServiceTarget {
            endpoint: Endpoint::from_owned(format!("{}/", connection.base)),
            auth: AuthData::from_single(key),
            model: ModelIden::new(kind, reference.model.clone()),
        };
        Ok(Self { client, target, key_variable: connection.key_variable, limits })
    }

    fn options(&self, request: &ChatRequest) -> ChatOptions {
        let options = ChatOptions::default()
            .with_capture_usage(true)
            .with_capture_content(true)
            .with_capture_reasoning_content(true)
            .with_capture_tool_calls(true)
            .with_stream_header_timeout(self.limits.idle)
            .with_stream_read_timeout(self.limits.idle);
        match &request.response_schema {
            Some(schema) => {
                options.with_response_format(ChatResponseFormat::JsonSpec(JsonSpec::new("reply", schema.clone())))
            }
            None => options,
        }
    }

    fn failure(&self, error: &genai::Error) -> Failure {
        match error {
            genai::Error::WebStream { error: cause, .. } => {
                if let Some(inner) = cause.downcast_ref::<genai::Error>() {
                    return self.failure(inner);
                }
                if cause.downcast_ref::<genai::webc::StreamTimeout>().is_some() {
                    let message = format!("the endpoint was silent for {} s", self.limits.idle.as_secs_f32());
                    return Failure::new(ModelErrorKind::Timeout, message);
                }
                let timed_out = cause.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_timeout);
                let connect = cause.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_connect);
                match (timed_out, connect) {
                    (true, _) => Failure::new(ModelErrorKind::Timeout, "the endpoint took too long"),
                    (_, true) => Failure::new(
                        ModelErrorKind::Unavailable,
                        "cannot connect; check the base URL and that the endpoint runs",
                    ),
                    _ => Failure::new(ModelErrorKind::Unavailable, "the connection broke"),
                }
            }
            genai::Error::HttpError { status, body, headers, .. } => {
                let wait = retry_after(headers, std::time::SystemTime::now());
                Failure::from_status(status.as_u16(), wait, body, self.key_variable)
            }
            genai::Error::ChatResponse { body, .. } => Failure::from_stream(body.get("error").unwrap_or(body)),
            genai::Error::StreamParse { .. } => {
                Failure::new(ModelErrorKind::Malformed, "the endpoint sent an event that is not JSON")
            }
            genai::Error::WebModelCall { webc_error: genai::webc::Error::Reqwest(_), .. } => {
                Failure::new(ModelErrorKind::Rejected, "the request cannot be made: check the base URL and the key")
            }
            _ => Failure::new(ModelErrorKind::Malformed, "the endpoint sent something that is not a reply"),
        }
    }
}

#[async_trait::async_trait]
impl Attempt for Native {
    async fn attempt(
        &self,
        request: &ChatRequest,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatReply, Failure> {
        let options = self.options(request);
        let response = self
            .client
            .exec_chat_stream(self.target.clone(), convert(request), Some(&options))
            .await
            .map_err(|error| self.failure(&error))?;
        let mut stream = response.stream;
        let mut received = 0usize;
        while let Some(event) = stream.next().await {
            let size = match event.map_err(|error| self.failure(&error))? {
                ChatStreamEvent::Chunk(chunk) => {
                    let size = chunk.content.len();
                    on_delta(Delta::Text(chunk.content));
                    size
                }
                ChatStreamEvent::ReasoningChunk(chunk) => {
                    let size = chunk.content.len();
                    on_delta(Delta::Reasoning(chunk.content));
                    size
                }
                // Each piece repeats what came of the call before: only the calls are counted here.
                ChatStreamEvent::ToolCallChunk(chunk) => {
                    let size = chunk.tool_call.size();
                    if size > self.limits.response_bytes {
                        received = self.limits.response_bytes;
                    }
                    1
                }
                ChatStreamEvent::End(end) => return reply(end),
                _ => 1,
            };
            received = received.saturating_add(size);
            if received > self.limits.response_bytes {
                let message = "the reply is larger than the limit on model replies";
                return Err(Failure::new(ModelErrorKind::Malformed, message).for_good());
            }
        }
        Err(Failure::new(ModelErrorKind::Unavailable, "the stream ended before the reply was complete"))
    }
}

fn reply(end: StreamEnd) -> Result<ChatReply, Failure> {
    let finish = match end.captured_stop_reason {
        Some(StopReason::Completed(_) | StopReason::StopSequence(_)) => FinishReason::Stop,
        Some(StopReason::ToolCall(_)) => FinishReason::ToolCalls,
        Some(StopReason::MaxTokens(_)) => FinishReason::Length,
        Some(_) => FinishReason::Other,
        None => {
            let message = "the stream ended before the reply was complete";
            return Err(Failure::new(ModelErrorKind::Unavailable, message));
        }
    };
    let usage = end.captured_usage.unwrap_or_default();
    let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or_default();
    let content = end.captured_content.unwrap_or_default();
    let calls = content.tool_calls().into_iter().map(|call| ToolCall {
        id: call.call_id.clone(),
        name: call.fn_name.clone(),
        // A string is what did not parse.
        arguments: match &call.fn_arguments {
            Value::String(text) => match arguments(text) {
                Arguments::Json(Value::String(_)) => Arguments::Malformed(text.clone()),
                other => other,
            },
            Value::Null => arguments(""),
            value => Arguments::Json(value.clone()),
        },
    });
    Ok(ChatReply {
        text: content.texts().concat(),
        tool_calls: calls.collect(),
        reasoning: end.captured_reasoning_content.filter(|text| !text.is_empty()),
        usage: Usage {
            input_tokens: count(usage.prompt_tokens),
            output_tokens: count(usage.completion_tokens),
            cost_usd: None,
        },
        finish,
        ..ChatReply::default()
    })
}

fn convert(request: &ChatRequest) -> genai::chat::ChatRequest {
    let mut messages: Vec<ChatMessage> = Vec::new();
    let mut results: Vec<ToolResponse> = Vec::new();
    for message in &request.messages {
        if let Message::Tool { call_id, name, content } = message {
            results.push(ToolResponse::new(call_id.clone(), content.clone()).with_fn_name(name.clone()));
            continue;
        }
        flush(&mut results, &mut messages);
        messages.push(match message {
            Message::Assistant { text, tool_calls, .. } => {
                let mut content =
                    if text.is_empty() { MessageContent::default() } else { MessageContent::from_text(text.clone()) };
                let calls = tool_calls.iter().map(|call| genai::chat::ToolCall {
                    call_id: call.id.clone(),
                    fn_name: call.name.clone(),
                    fn_arguments: arguments_object(&call.arguments),
                    thought_signatures: None,
                });
                content.extend(MessageContent::from_tool_calls(calls.collect()));
                ChatMessage::assistant(content)
            }
            Message::User { text } => ChatMessage::user(text.clone()),
            Message::Tool { content, .. } => ChatMessage::user(content.clone()),
        });
    }
    flush(&mut results, &mut messages);
    let mut converted = genai::chat::ChatRequest::new(messages);
    if !request.system.is_empty() {
        converted = converted.with_system(request.system.clone());
    }
    if !request.tools.is_empty() {
        converted = converted.with_tools(request.tools.iter().map(|tool| {
            Tool::new(tool.name.clone()).with_description(tool.description.clone()).with_schema(tool.parameters.clone())
        }));
    }
    converted
}

/// The results of one assistant message go back in one message: Anthropic refuses them apart.
fn flush(results: &mut Vec<ToolResponse>, messages: &mut Vec<ChatMessage>) {
    if !results.is_empty() {
        messages.push(ChatMessage::tool(MessageContent::from_tool_responses(std::mem::take(results))));
    }
}

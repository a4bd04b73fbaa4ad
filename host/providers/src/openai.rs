//! The chat completions API of OpenAI and of everything compatible with it: requests out, streams of chunks in.

use llm::{ChatReply, ChatRequest, Message, ModelRef, Provider};
use serde_json::{Value, json};

use crate::draft::{OnDelta, arguments_object};
use crate::failure::ProviderFailure;
use crate::http::{Manner, ProviderClient};
use crate::receive::receive;
use crate::retry::Attempt;
use crate::settings::{ModelLimits, Writing};

mod assemble;
mod state;

use assemble::Chunks;

pub(crate) const MANNER: Manner = Manner { key_header: "authorization", headers: &[] };

/// A model behind a chat completions endpoint.
pub(crate) struct OpenAi {
    connection: ProviderClient,
    limits: ModelLimits,
}

impl OpenAi {
    pub(crate) fn new(connection: ProviderClient, limits: ModelLimits) -> Self {
        Self { connection, limits }
    }
}

#[async_trait::async_trait]
impl Attempt for OpenAi {
    async fn attempt(&self, request: &ChatRequest, on_delta: OnDelta<'_>) -> Result<ChatReply, ProviderFailure> {
        let body = body(request, &self.connection.origin.model, self.connection.writing);
        let reply = self.connection.post("/chat/completions", &MANNER, &body, &self.limits).await?;
        let chunks = Chunks::new(reply.origin.clone());
        receive(reply, chunks, on_delta).await
    }
}

fn body(request: &ChatRequest, reference: &ModelRef, writing: Writing) -> Value {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    messages.extend(state::messages(&request.messages, reference, message));
    messages.extend(request.note.as_ref().map(|note| json!({"role": "user", "content": note})));
    let mut body = json!({
        "model": reference.model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if !request.tools.is_empty() {
        let tools: Vec<_> =
            request.tools.iter().map(|tool| json!({"type": "function", "function": tool.shown()})).collect();
        set(&mut body, "tools", tools.into());
    }
    if let Some(schema) = &request.response_schema {
        let format = json!({"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}});
        set(&mut body, "response_format", format);
    }
    if reference.provider == Provider::OpenRouter {
        // Makes it report the cost of the call.
        set(&mut body, "usage", json!({"include": true}));
    }
    if let Some(tokens) = writing.output_tokens {
        // OpenAI's models that reason refuse the older name, and other servers know no other.
        let name = if reference.provider == Provider::OpenAi { "max_completion_tokens" } else { "max_tokens" };
        set(&mut body, name, tokens.into());
    }
    if let Some(temperature) = writing.temperature {
        set(&mut body, "temperature", temperature.into());
    }
    if let Some(effort) = writing.reasoning {
        set(&mut body, "reasoning_effort", effort.as_str().into());
    }
    body
}

/// Sets a key of an object.
fn set(body: &mut Value, key: &str, value: Value) {
    if let Some(map) = body.as_object_mut() {
        map.insert(key.to_owned(), value);
    }
}

/// A message without its state.
fn message(message: &Message) -> Value {
    match message {
        Message::User { text } => json!({"role": "user", "content": text}),
        Message::Assistant { text, tool_calls, .. } if tool_calls.is_empty() => {
            json!({"role": "assistant", "content": text})
        }
        Message::Assistant { text, tool_calls, .. } => {
            let content = if text.is_empty() { Value::Null } else { text.as_str().into() };
            let calls: Vec<_> = tool_calls
                .iter()
                .map(|call| {
                    let arguments = arguments_object(&call.arguments).to_string();
                    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
                })
                .collect();
            json!({"role": "assistant", "content": content, "tool_calls": calls})
        }
        Message::Tool { call_id, content, .. } => {
            json!({"role": "tool", "tool_call_id": call_id, "content": content})
        }
    }
}

#[cfg(test)]
mod tests {
    use llm::{Arguments, RequestedCall, ToolSpec};

    use super::*;
    use crate::settings::Effort;

    #[test]
    fn a_request_has_the_form_of_the_api() {
        let call = RequestedCall { id: "c".into(), name: "read".into(), arguments: Arguments::Malformed("{".into()) };
        let request = ChatRequest {
            system: "be brief".into(),
            messages: vec![
                Message::User { text: "hi".into() },
                Message::Assistant { text: String::new(), tool_calls: vec![call], state: None },
                Message::Tool { call_id: "c".into(), name: "read".into(), content: "bad".into() },
            ],
            tools: vec![ToolSpec {
                name: "read".into(),
                description: "d".into(),
                parameters: json!({"type": "object"}),
            }],
            note: None,
            response_schema: Some(json!({"type": "object"})),
            turn: None,
        };
        let body = body(&request, &"openrouter/a/b".parse().unwrap(), Writing::default());
        assert_eq!(body["model"], "a/b");
        assert_eq!(body["usage"]["include"], true);
        assert_eq!(body["messages"][0]["role"], "system");
        assert_eq!(body["messages"][2]["content"], Value::Null);
        let arguments = body["messages"][2]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(arguments).unwrap(), json!({"not_json": "{"}));
        assert_eq!(body["messages"][3]["tool_call_id"], "c");
        assert_eq!(body["tools"][0]["function"]["parameters"]["type"], "object");
        assert_eq!(body["response_format"]["json_schema"]["schema"]["type"], "object");
        for key in ["max_tokens", "max_completion_tokens", "temperature", "reasoning_effort"] {
            assert_eq!(body.get(key), None, "{key}");
        }
    }

    #[test]
    fn the_settings_of_writing_have_the_names_of_the_server() {
        let writing = Writing { output_tokens: Some(9), temperature: Some(0.5), reasoning: Some(Effort::High) };
        for (model, tokens) in [("openai/m", "max_completion_tokens"), ("compatible/m", "max_tokens")] {
            let body = body(&ChatRequest::default(), &model.parse().unwrap(), writing);
            assert_eq!((&body[tokens], &body["temperature"]), (&json!(9), &json!(0.5)), "{model}");
            assert_eq!(body["reasoning_effort"], "high", "{model}");
        }
    }
}

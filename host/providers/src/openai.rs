//! The chat completions API of OpenAI and of everything compatible with it: requests out, streams of chunks in.
//!
//! An endpoint that ignores `stream` and answers in one piece is understood too.

use std::ops::ControlFlow;

use llm::{Arguments, ChatReply, ChatRequest, Delta, Message, ModelErrorKind, ModelRef, Provider};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::http::{Connection, Reply};
use crate::retry::{Attempt, arguments_object};
use crate::settings::Limits;
use crate::sse::Decoder;

mod assemble;

use assemble::Assembly;

/// A model behind a chat completions endpoint.
pub(crate) struct OpenAi {
    reference: ModelRef,
    connection: Connection,
    limits: Limits,
}

impl OpenAi {
    pub(crate) fn new(reference: ModelRef, connection: Connection, limits: Limits) -> Self {
        Self { reference, connection, limits }
    }
}

#[async_trait::async_trait]
impl Attempt for OpenAi {
    async fn attempt(
        &self,
        request: &ChatRequest,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatReply, Failure> {
        let body = body(request, &self.reference);
        let reply = self.connection.post("/chat/completions", &body, &self.limits).await?;
        if reply.is_event_stream() { stream(reply, on_delta).await } else { whole(reply, on_delta).await }
    }
}

async fn stream(mut reply: Reply, on_delta: &mut (dyn FnMut(Delta) + Send)) -> Result<ChatReply, Failure> {
    let mut assembly = Assembly::default();
    let mut decoder = Decoder::default();
    let mut take = |data: &str| -> Result<(), ControlFlow<(), Failure>> {
        if data.trim() == "[DONE]" {
            return Err(ControlFlow::Break(()));
        }
        let chunk: Value = serde_json::from_str(data).map_err(|_| {
            ControlFlow::Continue(Failure::new(
                ModelErrorKind::Malformed,
                "the endpoint sent an event that is not JSON",
            ))
        })?;
        assembly.take(chunk, on_delta).map_err(ControlFlow::Continue)
    };
    let stopped = loop {
        match reply.next().await {
            Ok(Some(bytes)) => {
                if let Err(stop) = decoder.push(&bytes, &mut take) {
                    break Err(stop);
                }
            }
            Ok(None) => break decoder.end(&mut take),
            Err(failure) => break Err(ControlFlow::Continue(failure)),
        }
    };
    match stopped {
        Ok(()) | Err(ControlFlow::Break(())) => assembly.finish(),
        // The reply itself had ended: what broke was only the tail that counts tokens.
        Err(ControlFlow::Continue(_)) if assembly.is_complete() => assembly.finish(),
        Err(ControlFlow::Continue(failure)) => Err(failure),
    }
}

async fn whole(mut reply: Reply, on_delta: &mut (dyn FnMut(Delta) + Send)) -> Result<ChatReply, Failure> {
    let mut bytes = Vec::new();
    while let Some(more) = reply.next().await? {
        bytes.extend_from_slice(&more);
    }
    let malformed = |what: &str| Failure::new(ModelErrorKind::Malformed, format!("the endpoint answered {what}"));
    let mut chunk: Value = serde_json::from_slice(&bytes).map_err(|_| malformed("something that is not JSON"))?;
    let has_error = chunk.get("error").is_some_and(|error| !error.is_null());
    // A whole message is one large delta.
    let choice = chunk.pointer_mut("/choices/0").and_then(Value::as_object_mut);
    match choice.and_then(|choice| Some((choice.remove("message")?, choice))) {
        Some((message, choice)) => {
            choice.insert("delta".to_owned(), message);
        }
        None if !has_error => return Err(malformed("without a message")),
        None => {}
    }
    let mut assembly = Assembly::default();
    assembly.take(chunk, on_delta)?;
    assembly.end();
    assembly.finish()
}

fn body(request: &ChatRequest, reference: &ModelRef) -> Value {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    messages.extend(request.messages.iter().map(message));
    let mut body = json!({
        "model": reference.model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if !request.tools.is_empty() {
        let tools: Vec<_> = request.tools.iter().map(|tool| json!({"type": "function", "function": tool})).collect();
        set(&mut body, "tools", tools.into());
    }
    if let Some(schema) = &request.response_schema {
        let format = json!({"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}});
        set(&mut body, "response_format", format);
    }
    if reference.provider == Provider::OpenRouter {
        // Makes it report what the call cost.
        set(&mut body, "usage", json!({"include": true}));
    }
    body
}

fn set(body: &mut Value, key: &str, value: Value) {
    if let Some(map) = body.as_object_mut() {
        map.insert(key.to_owned(), value);
    }
}

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
                    let arguments = match &call.arguments {
                        Arguments::Json(value) if value.is_object() => value.to_string(),
                        other => arguments_object(other).to_string(),
                    };
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
    use llm::{ToolCall, ToolSpec};

    use super::*;

    #[test]
    fn a_request_has_the_form_of_the_api() {
        let call = ToolCall { id: "c".into(), name: "read".into(), arguments: Arguments::Malformed("{".into()) };
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
            response_schema: Some(json!({"type": "object"})),
            turn: None,
        };
        let body = body(&request, &"openrouter/a/b".parse().unwrap());
        assert_eq!(body["model"], "a/b");
        assert_eq!(body["usage"]["include"], true);
        assert_eq!(body["messages"][0]["role"], "system");
        assert_eq!(body["messages"][2]["content"], Value::Null);
        let arguments = body["messages"][2]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(arguments).unwrap(), json!({"not_json": "{"}));
        assert_eq!(body["messages"][3]["tool_call_id"], "c");
        assert_eq!(body["tools"][0]["function"]["parameters"]["type"], "object");
        assert_eq!(body["response_format"]["json_schema"]["schema"]["type"], "object");
    }
}

//! Gemini's own API: requests out, streams of candidates in.
//!
//! Gemini signs its thoughts and refuses the result of a call that comes back without the signature it was made with.

use std::collections::BTreeMap;

use llm::{ChatReply, ChatRequest, Message, ModelRef, RequestedCall};
use serde_json::{Value, json};

use crate::draft::{OnDelta, arguments_object};
use crate::failure::ProviderFailure;
use crate::http::{Manner, ProviderClient};
use crate::receive::receive;
use crate::retry::Attempt;
use crate::settings::{Effort, ModelLimits, Writing};

mod candidates;

use candidates::Candidates;

pub(crate) const MANNER: Manner = Manner { key_header: "x-goog-api-key", headers: &[] };

/// Makes Gemini accept a call that it did not sign: another model made it, or it was shortened.
const UNSIGNED: &str = "skip_thought_signature_validator";

/// A model behind `streamGenerateContent`.
pub(crate) struct Gemini {
    connection: ProviderClient,
    limits: ModelLimits,
}

impl Gemini {
    pub(crate) fn new(connection: ProviderClient, limits: ModelLimits) -> Self {
        Self { connection, limits }
    }
}

#[async_trait::async_trait]
impl Attempt for Gemini {
    async fn attempt(&self, request: &ChatRequest, on_delta: OnDelta<'_>) -> Result<ChatReply, ProviderFailure> {
        let reference = &self.connection.origin.model;
        let body = body(request, reference, self.connection.writing);
        let path = format!("/models/{}:streamGenerateContent?alt=sse", reference.model);
        let reply = self.connection.post(&path, &MANNER, &body, &self.limits).await?;
        let candidates = Candidates::new(reply.origin.clone());
        receive(reply, candidates, on_delta).await
    }
}

/// Whether the model thinks. One that does not refuses to be asked for its thoughts.
fn thinks(model: &str) -> bool {
    ["gemini-2.5", "gemini-3"].iter().any(|family| model.contains(family))
}

fn body(request: &ChatRequest, reference: &ModelRef, writing: Writing) -> Value {
    let mut config = json!({});
    let mut contents = contents(&request.messages, reference);
    contents.extend(request.note.as_ref().map(|note| json!({"role": "user", "parts": [{"text": note}]})));
    let mut body = json!({"contents": contents});
    let set = |value: &mut Value, key: &str, new: Value| {
        if let Some(map) = value.as_object_mut() {
            map.insert(key.to_owned(), new);
        }
    };
    if !request.system.is_empty() {
        set(&mut body, "systemInstruction", json!({"parts": [{"text": request.system}]}));
    }
    if !request.tools.is_empty() {
        let declaration = |tool: &llm::ToolSpec| json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.shown().parameters});
        let declarations: Vec<_> = request.tools.iter().map(declaration).collect();
        set(&mut body, "tools", json!([{"functionDeclarations": declarations}]));
    }
    if thinks(&reference.model) {
        let mut thinking = json!({"includeThoughts": true});
        match writing.reasoning {
            None => {}
            // The newer family takes a level, and the older one tokens.
            Some(effort) if reference.model.contains("gemini-3") => {
                let level = if effort == Effort::Low { "low" } else { "high" };
                set(&mut thinking, "thinkingLevel", level.into());
            }
            Some(effort) => set(&mut thinking, "thinkingBudget", effort.tokens().into()),
        }
        set(&mut config, "thinkingConfig", thinking);
    }
    if let Some(tokens) = writing.output_tokens {
        set(&mut config, "maxOutputTokens", tokens.into());
    }
    if let Some(temperature) = writing.temperature {
        set(&mut config, "temperature", temperature.into());
    }
    if let Some(schema) = &request.response_schema {
        set(&mut config, "responseMimeType", "application/json".into());
        set(&mut config, "responseJsonSchema", schema.clone());
    }
    if config.as_object().is_some_and(|map| !map.is_empty()) {
        set(&mut body, "generationConfig", config);
    }
    body
}

/// The conversation. The results of one reply go back in one turn, right after it.
fn contents(messages: &[Message], reference: &ModelRef) -> Vec<Value> {
    let name = reference.to_string();
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        match message {
            Message::User { text } => turns.push(("user", vec![json!({"text": text})])),
            Message::Tool { call_id, name, content } => {
                let response = json!({"id": call_id, "name": name, "response": {"output": content}});
                let part = json!({"functionResponse": response});
                match turns.last_mut() {
                    Some(("user", parts)) if parts.iter().all(|part| part.get("functionResponse").is_some()) => {
                        parts.push(part);
                    }
                    _ => turns.push(("user", vec![part])),
                }
            }
            Message::Assistant { text, tool_calls, state } => {
                let state = state.as_ref().and_then(|state| state.made_by(&name));
                turns.push(("model", model_parts(text, tool_calls, state, reference)));
            }
        }
    }
    turns.into_iter().map(|(role, parts)| json!({"role": role, "parts": parts})).collect()
}

/// A reply with its signatures: `{"calls": {POSITION: SIGNATURE}, "text": SIGNATURE}`.
fn model_parts(text: &str, calls: &[RequestedCall], state: Option<&Value>, reference: &ModelRef) -> Vec<Value> {
    let signed: BTreeMap<String, String> =
        state.and_then(|state| serde_json::from_value(state.get("calls")?.clone()).ok()).unwrap_or_default();
    let text_signature = state.and_then(|state| state.get("text"));
    let mut parts = Vec::new();
    if !text.is_empty() || calls.is_empty() {
        let mut part = json!({"text": text});
        if let (Some(signature), Some(map)) = (text_signature, part.as_object_mut()) {
            map.insert("thoughtSignature".to_owned(), signature.clone());
        }
        parts.push(part);
    }
    for (position, call) in calls.iter().enumerate() {
        let function = json!({"id": call.id, "name": call.name, "args": arguments_object(&call.arguments)});
        let mut part = json!({"functionCall": function});
        // Of parallel calls only the first is signed.
        let unsigned = || (position == 0 && reference.model.contains("gemini-3")).then(|| UNSIGNED.to_owned());
        let signature =
            signed.get(&position.to_string()).cloned().or_else(|| signed.is_empty().then(unsigned).flatten());
        if let (Some(signature), Some(map)) = (signature, part.as_object_mut()) {
            map.insert("thoughtSignature".to_owned(), signature.into());
        }
        parts.push(part);
    }
    parts
}

#[cfg(test)]
mod tests {
    use llm::{Arguments, ProviderState};

    use super::*;

    #[test]
    fn signatures_go_back_to_their_maker_in_their_places() {
        let call =
            |id: &str| RequestedCall { id: id.into(), name: "read".into(), arguments: Arguments::Json(json!({})) };
        let sent = |model: &str, maker: &str| {
            let state = ProviderState::new(maker, json!({"calls": {"0": "s"}, "text": "t"}));
            let reply = Message::Assistant { text: "hi".into(), tool_calls: vec![call("a"), call("b")], state };
            let sent = contents(&[reply], &model.parse().unwrap());
            let signature = |part: &Value| part["thoughtSignature"].as_str().unwrap_or_default().to_owned();
            sent[0]["parts"].as_array().unwrap().iter().map(signature).collect::<Vec<_>>()
        };
        assert_eq!(sent("gemini/gemini-3-pro", "gemini/gemini-3-pro"), ["t", "s", ""]);
        assert_eq!(sent("gemini/gemini-3-pro", "gemini/gemini-3-flash"), ["", UNSIGNED, ""]);
        assert_eq!(sent("gemini/gemini-2.5-pro", "openai/x"), ["", "", ""]);
    }
}

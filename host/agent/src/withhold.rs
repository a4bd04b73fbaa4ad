//! A model without access to secrets: the values of credentials in its messages and in its replies become placeholders
//! (SPEC VAULT-3), and the run's owner is told.
//!
//! Tools and the network are scrubbed where they end. This covers the rest: text from people in tasks and answers, and
//! values that a model works out itself, for example from an encoding unknown to the scrubber.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::CredentialName;
use llm::{Arguments, ChatReply, ChatRequest, Delta, Message, Model, ModelError, RequestedCall};
use serde_json::Value;
use vault::{ScrubStream, Scrubber};

/// A model behind a scrubber.
pub(crate) struct Withholding {
    model: Arc<dyn Model>,
    scrubber: Arc<Scrubber>,
}

impl Withholding {
    /// The model itself if there is nothing to withhold.
    pub fn wrap(model: Arc<dyn Model>, scrubber: Option<Arc<Scrubber>>) -> Arc<dyn Model> {
        match scrubber.filter(|scrubber| !scrubber.is_empty()) {
            Some(scrubber) => Self::always(model, scrubber),
            None => model,
        }
    }

    /// Withholds the values that the scrubber knows, and those that it learns later.
    pub fn always(model: Arc<dyn Model>, scrubber: Arc<Scrubber>) -> Arc<dyn Model> {
        Arc::new(Self { model, scrubber })
    }
}

#[async_trait::async_trait]
impl Model for Withholding {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatReply, ModelError> {
        let mut sent = SecretSearch::new(&self.scrubber);
        let clean = sent.request(request.clone());
        let mut live = LiveScrubber::new(&self.scrubber);
        let replied = {
            let mut pass = |delta| live.pass(delta).into_iter().for_each(&mut *on_delta);
            self.model.chat(&clean, &mut pass).await
        };
        live.finish().into_iter().for_each(on_delta);
        let mut said = SecretSearch::new(&self.scrubber);
        match replied {
            Ok(reply) => {
                let mut reply = said.reply(reply);
                reply.notices.extend(sent.notices("what was to be sent to the model"));
                reply.notices.extend(said.notices("a reply of the model"));
                Ok(reply)
            }
            Err(error) => Err(ModelError { message: said.text(error.message), ..error }),
        }
    }
}

/// Replaces secrets, and remembers the names of their credentials.
struct SecretSearch<'a> {
    scrubber: &'a Scrubber,
    found: BTreeSet<CredentialName>,
}

impl<'a> SecretSearch<'a> {
    fn new(scrubber: &'a Scrubber) -> Self {
        Self { scrubber, found: BTreeSet::new() }
    }

    fn notices(self, place: &'static str) -> impl Iterator<Item = String> {
        let notice = move |name| {
            format!("the value of the credential `{name}` stood in {place} and was replaced by its placeholder")
        };
        self.found.into_iter().map(notice)
    }

    fn holds(&mut self, text: &str) -> bool {
        let secrets = self.scrubber.secrets_in(text.as_bytes());
        self.found.extend(secrets.iter().map(|secret| secret.name.clone()));
        !secrets.is_empty()
    }

    fn text(&mut self, text: String) -> String {
        if self.holds(&text) { self.scrubber.text(text) } else { text }
    }

    fn value(&mut self, value: Value) -> Value {
        if self.holds(&value.to_string()) { self.scrubber.json(value) } else { value }
    }

    fn request(&mut self, request: ChatRequest) -> ChatRequest {
        // Every field is listed, so that a new one is decided about here.
        let ChatRequest { system, messages, tools, note, response_schema, turn } = request;
        let messages = messages.into_iter().map(|message| self.message(message)).collect();
        let note = note.map(|note| self.text(note));
        ChatRequest { system: self.text(system), messages, tools, note, response_schema, turn }
    }

    fn message(&mut self, message: Message) -> Message {
        match message {
            Message::User { text } => Message::User { text: self.text(text) },
            Message::Tool { call_id, name, content } => Message::Tool { call_id, name, content: self.text(content) },
            Message::Assistant { text, tool_calls, state } => {
                let (text, tool_calls) = (self.text(text), self.calls(tool_calls));
                Message::Assistant { text, tool_calls, state: state.filter(|state| !self.holds(&state_text(state))) }
            }
        }
    }

    fn calls(&mut self, calls: Vec<RequestedCall>) -> Vec<RequestedCall> {
        let call = |call: RequestedCall| RequestedCall {
            id: self.text(call.id),
            name: self.text(call.name),
            arguments: match call.arguments {
                Arguments::Json(value) => Arguments::Json(self.value(value)),
                Arguments::Malformed(text) => Arguments::Malformed(self.text(text)),
            },
        };
        calls.into_iter().map(call).collect()
    }

    fn reply(&mut self, reply: ChatReply) -> ChatReply {
        let ChatReply { usage, finish, retries, .. } = reply;
        ChatReply {
            text: self.text(reply.text),
            tool_calls: self.calls(reply.tool_calls),
            reasoning: reply.reasoning.map(|text| self.text(text)),
            finish_detail: reply.finish_detail.map(|text| self.text(text)),
            // Signed by the provider: a scrubbed state would be useless.
            state: reply.state.filter(|state| !self.holds(&state_text(state))),
            model: self.text(reply.model),
            notices: reply.notices.into_iter().map(|text| self.text(text)).collect(),
            usage,
            finish,
            retries,
        }
    }
}

fn state_text(state: &llm::ProviderState) -> String {
    serde_json::to_string(state).unwrap_or_default()
}

/// Scrubs a reply while it streams.
struct LiveScrubber<'a> {
    scrubber: &'a Arc<Scrubber>,
    text: ScrubStream,
    reasoning: ScrubStream,
}

impl<'a> LiveScrubber<'a> {
    fn new(scrubber: &'a Arc<Scrubber>) -> Self {
        Self { scrubber, text: scrubber.stream(), reasoning: scrubber.stream() }
    }

    fn pass(&mut self, delta: Delta) -> Option<Delta> {
        let lossy = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let delta = match delta {
            Delta::Text(text) => Delta::Text(lossy(self.text.push(text.as_bytes()))),
            Delta::Reasoning(text) => Delta::Reasoning(lossy(self.reasoning.push(text.as_bytes()))),
            Delta::Restart { reason, wait } => {
                *self = Self::new(self.scrubber);
                Delta::Restart { reason: self.scrubber.text(reason), wait }
            }
        };
        (!matches!(&delta, Delta::Text(text) | Delta::Reasoning(text) if text.is_empty())).then_some(delta)
    }

    fn finish(self) -> impl IntoIterator<Item = Delta> {
        let lossy = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let rest = [Delta::Reasoning(lossy(self.reasoning.finish())), Delta::Text(lossy(self.text.finish()))];
        rest.into_iter().filter(|delta| !matches!(delta, Delta::Text(text) | Delta::Reasoning(text) if text.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use base::Secret;
    use serde_json::json;

    use super::*;

    const SECRET: &str = "s3cr3t-canary/7f0e";

    /// Echoes its input in text, in a call, in its reasoning, and in pieces.
    struct Echo;

    #[async_trait::async_trait]
    impl Model for Echo {
        fn name(&self) -> &str {
            "test/echo"
        }

        async fn chat(
            &self,
            request: &ChatRequest,
            on_delta: &mut (dyn FnMut(Delta) + Send),
        ) -> Result<ChatReply, ModelError> {
            let told = serde_json::to_string(request).unwrap();
            assert!(!told.contains("canary") && !told.contains("115,51,99"), "{told}");
            SECRET.chars().for_each(|piece| on_delta(Delta::Text(piece.into())));
            on_delta(Delta::Text(" done".into()));
            let bytes: Vec<u8> = SECRET.into();
            let arguments = [json!({ "a": SECRET, "b": [1, true] }), json!({ "a": bytes })];
            let call = |value| RequestedCall { id: "c".into(), name: "x".into(), arguments: Arguments::Json(value) };
            Ok(ChatReply {
                text: format!("it is {SECRET}"),
                tool_calls: arguments.map(call).into(),
                reasoning: Some(SECRET.into()),
                state: llm::ProviderState::new("test/echo", json!({ "thought": SECRET })),
                ..ChatReply::default()
            })
        }
    }

    fn scrubber(secrets: &[(&str, &str)]) -> Arc<Scrubber> {
        let named =
            |(name, value): &(&str, &str)| (CredentialName::parse(name).unwrap(), Secret::new((*value).to_owned()));
        Arc::new(Scrubber::new(secrets.iter().map(named).collect()))
    }

    #[tokio::test]
    async fn a_model_is_told_no_secret_and_says_none() {
        let model = Withholding::wrap(Arc::new(Echo), Some(scrubber(&[("key", SECRET)])));
        let bytes: Vec<u8> = SECRET.into();
        let arguments = Arguments::Json(json!({ "a": bytes }));
        let request = ChatRequest {
            system: SECRET.into(),
            messages: vec![
                Message::User { text: format!("use {SECRET}") },
                Message::Assistant {
                    text: SECRET.into(),
                    tool_calls: vec![RequestedCall { id: "c".into(), name: "x".into(), arguments }],
                    state: None,
                },
                Message::Tool { call_id: "c".into(), name: "x".into(), content: SECRET.into() },
            ],
            ..ChatRequest::default()
        };
        let mut live = String::new();
        let mut hear = |delta| {
            if let Delta::Text(text) = delta {
                live.push_str(&text)
            }
        };
        let reply = model.chat(&request, &mut hear).await.unwrap();
        assert_eq!(live, "<credential:key> done");
        assert_eq!(reply.text, "it is <credential:key>");
        let whole = serde_json::to_string(&reply).unwrap();
        assert!(!whole.contains("canary") && !whole.contains("115,51,99") && reply.state.is_none(), "{whole}");
        assert_eq!(reply.tool_calls[0].arguments, Arguments::Json(json!({ "a": "<credential:key>", "b": [1, true] })));
        assert_eq!(reply.notices.len(), 2, "{:?}", reply.notices);
        assert!(reply.notices.iter().all(|notice| notice.contains("`key`")), "{:?}", reply.notices);
    }

    /// Replies with text that is not a secret.
    struct Plain;

    #[async_trait::async_trait]
    impl Model for Plain {
        fn name(&self) -> &str {
            "test/plain"
        }

        async fn chat(
            &self,
            request: &ChatRequest,
            _: &mut (dyn FnMut(Delta) + Send),
        ) -> Result<ChatReply, ModelError> {
            Ok(ChatReply { text: request.system.clone(), ..ChatReply::default() })
        }
    }

    #[tokio::test]
    async fn what_is_no_secret_passes_unchanged() {
        let text = "s3cr3t-canary/7f0 and <credential:key>, \u{e9}\\u0073 [115, 51]";
        let request = ChatRequest { system: text.into(), ..ChatRequest::default() };
        for secrets in [&[][..], &[("key", SECRET)]] {
            let model = Withholding::wrap(Arc::new(Plain), Some(scrubber(secrets)));
            let reply = model.chat(&request, &mut |_| ()).await.unwrap();
            assert_eq!((reply.text.as_str(), reply.notices), (text, Vec::new()));
        }
    }
}

//! Takes the values of saved credentials out of a model's replies before anything stores them (SPEC VAULT-4).
//!
//! It stands between a model and all that remembers: recordings, the journal, the trace. It survives a model that was
//! told by a page to save a value under another name, for another domain, over a credential, or a thousand times: the
//! value is taken out in any case, and kept only if the run's skill declares its name.

use std::sync::Arc;

use base::{CredentialName, Refusal, RefusalCode, RunId, Secret};
use llm::{Arguments, ChatReply, ChatRequest, Delta, Model, ModelError, RequestedCall};
use serde_json::{Map, Value, json};
use toolbox::{NOT_KEPT, SAVE_CREDENTIAL};
use vault::{NewPending, Scrubber, Vault};

/// Bytes of a reason that the model is told.
const MAX_REASON: usize = 600;

/// The credentials that a run may save.
#[derive(Clone)]
pub(crate) struct SaveScope {
    pub vault: Vault,
    pub run: RunId,
    /// The approved skill of the run.
    pub skill: String,
    /// The names that the skill's policy declares.
    pub names: Vec<CredentialName>,
    /// The domains of the policy.
    pub domains: Vec<String>,
}

/// A model whose replies hold no values of credentials to save.
pub(crate) struct Keeper {
    pub model: Arc<dyn Model>,
    pub scrubber: Arc<Scrubber>,
    /// `None`: the run may save none. Values are taken out all the same.
    pub scope: Option<SaveScope>,
}

#[async_trait::async_trait]
impl Model for Keeper {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatReply, ModelError> {
        // A value may stand in the text before the call that says it is one: such a run shows no text until then.
        let mut quiet = |delta| match delta {
            Delta::Text(_) | Delta::Reasoning(_) if self.scope.is_some() => {}
            delta => on_delta(delta),
        };
        let mut reply = self.model.chat(request, &mut quiet).await?;
        let is_whole = reply.finish.is_complete();
        let mut took = false;
        for call in reply.tool_calls.iter_mut().filter(|call| is_save(&call.name)) {
            self.take(call, is_whole).await;
            took = true;
        }
        if reply.tool_calls.is_empty() && is_written_call(&reply.text) {
            reply.text.clear();
            reply.notices.push(format!(
                "a call of `{SAVE_CREDENTIAL}` that the model wrote as text was withheld: it may hold a secret"
            ));
            took = true;
        }
        if took {
            // Copies of the arguments, which only the provider can read or change.
            reply.state = None;
        }
        Ok(reply)
    }
}

impl Keeper {
    /// Replaces the value of a call by its placeholder, or by the reason for which it is not kept.
    async fn take(&self, call: &mut RequestedCall, is_whole: bool) {
        let arguments = std::mem::replace(&mut call.arguments, Arguments::Json(Value::Null));
        let mut fields = match arguments {
            Arguments::Json(Value::Object(fields)) if is_whole => fields,
            _ => Map::new(),
        };
        let text = |value: Option<Value>| match value {
            Some(Value::String(text)) => Some(Secret::new(text)),
            _ => None,
        };
        let name = text(fields.remove("name")).and_then(|name| CredentialName::parse(name.expose()).ok());
        let value = text(fields.remove("value"));
        let domain = text(fields.remove("domain"));
        let is_exact = fields.is_empty();
        let kept = match (&name, value) {
            _ if !is_exact => Err(invalid("it has the parameters `name`, `value` and `domain` only")),
            (Some(name), Some(value)) => self.keep(name, value, domain.as_ref()).await.map(|()| name.placeholder()),
            _ => Err(invalid("`name` is the name of a credential, and `value` its value as text")),
        };
        let shown = match kept {
            Ok(placeholder) => placeholder,
            Err(refusal) => {
                let remedy = refusal.remedy.map(|remedy| format!("; {remedy}")).unwrap_or_default();
                let code = serde_json::to_value(refusal.code).ok();
                let code = code.as_ref().and_then(Value::as_str).unwrap_or_default();
                let reason = format!("{code}: {}{remedy}", refusal.reason);
                format!("{NOT_KEPT}{}>", base::text::cut(&reason, MAX_REASON))
            }
        };
        let name = name.map_or_else(|| "-".to_owned(), |name| name.to_string());
        call.arguments = Arguments::Json(json!({ "name": name, "value": shown }));
    }

    async fn keep(
        &self,
        name: &CredentialName,
        value: Secret<String>,
        domain: Option<&Secret<String>>,
    ) -> Result<(), Refusal> {
        let Some(SaveScope { vault, run, skill, names, domains }) = &self.scope else {
            let reason = "this run may save no credentials";
            return Err(Refusal::new(RefusalCode::Forbidden, reason).with_remedy(
                "only a run by an approved skill, whose policy grants the tool and declares the name, may",
            ));
        };
        if !names.contains(name) {
            let declared: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            let reason = format!("the policy of the skill `{skill}` declares no credential `{name}`");
            return Err(Refusal::new(RefusalCode::Forbidden, reason)
                .with_remedy(format!("it declares {}", declared.join(", "))));
        }
        // The model sees this once the value is known: the tool tells whether it is kept.
        if *value.expose() == name.placeholder() {
            return Ok(());
        }
        let domains = match domain.map(|domain| domain.expose().trim()) {
            None => domains.clone(),
            Some(one) => match domains.iter().find(|allowed| allowed.eq_ignore_ascii_case(one)) {
                Some(allowed) => vec![allowed.clone()],
                None => {
                    let reason = format!("the policy of the skill `{skill}` does not have that domain");
                    return Err(Refusal::new(RefusalCode::Forbidden, reason)
                        .with_remedy(format!("leave `domain` out, or take one of {}", domains.join(", "))));
                }
            },
        };
        let (skill, run) = (skill.clone(), run.clone());
        let new = NewPending { name: name.clone(), skill, value: value.clone(), domains, run };
        vault.save(new).await?;
        self.scrubber.learn(name, &value);
        Ok(())
    }
}

fn invalid(reason: &str) -> Refusal {
    Refusal::new(RefusalCode::InvalidRequest, reason)
}

/// Whether a model means the tool: names are matched loosely later.
fn is_save(name: &str) -> bool {
    let plain = |text: &str| text.to_ascii_lowercase().replace(|letter: char| !letter.is_ascii_alphanumeric(), "");
    plain(name).contains(&plain(SAVE_CREDENTIAL))
}

/// Whether a text holds a call of the tool that the loop might read out of it.
fn is_written_call(text: &str) -> bool {
    let marks = ["{", "save_credential(", "<param", "<arg", "<function", "<invoke", "<tool"];
    is_save(text) && text.contains("value") && marks.iter().any(|mark| text.contains(mark))
}

#[cfg(test)]
mod tests {
    use llm::{FinishReason, ProviderState};

    use super::*;

    const VALUE: &str = "sk-live-0123456789";

    /// The model whose replies are taken.
    struct Says(ChatReply);

    #[async_trait::async_trait]
    impl Model for Says {
        fn name(&self) -> &str {
            "test/says"
        }

        async fn chat(&self, _: &ChatRequest, _: &mut (dyn FnMut(Delta) + Send)) -> Result<ChatReply, ModelError> {
            Ok(self.0.clone())
        }
    }

    async fn kept(reply: ChatReply) -> ChatReply {
        let keeper = Keeper { model: Arc::new(Says(reply)), scrubber: Arc::default(), scope: None };
        keeper.chat(&ChatRequest::default(), &mut |_| ()).await.unwrap()
    }

    fn calling(name: &str, arguments: Arguments) -> ChatReply {
        ChatReply {
            tool_calls: vec![RequestedCall { id: "c".into(), name: name.into(), arguments }],
            finish: FinishReason::ToolCalls,
            state: ProviderState::new("test/says", json!({ "call": VALUE })),
            ..ChatReply::default()
        }
    }

    #[tokio::test]
    async fn a_value_is_taken_out_of_a_call_in_whatever_form_it_comes() {
        let fit = json!({ "name": "key", "value": VALUE });
        for (name, arguments) in [
            ("save_credential", Arguments::Json(fit.clone())),
            ("functions.Save-Credential", Arguments::Json(fit.clone())),
            ("saveCredential", Arguments::Json(json!([VALUE]))),
            ("save_credential", Arguments::Json(json!({ "name": VALUE.repeat(9), "value": [VALUE], "more": VALUE }))),
            ("save_credential", Arguments::Malformed(format!("{{\"value\": \"{VALUE}"))),
        ] {
            let reply = kept(calling(name, arguments)).await;
            let whole = serde_json::to_string(&reply).unwrap();
            assert!(!whole.contains(VALUE) && whole.contains(NOT_KEPT), "{name}: {whole}");
        }
        let written = format!("<tool_call>{{\"name\": \"save_credential\", \"arguments\": {fit}}}</tool_call>");
        let reply = kept(ChatReply { text: written, ..ChatReply::default() }).await;
        assert_eq!((reply.text.as_str(), reply.notices.len()), ("", 1));
    }

    #[tokio::test]
    async fn other_calls_and_words_about_the_tool_pass_unchanged() {
        let call = calling("write", Arguments::Json(json!({ "path": "a", "content": VALUE })));
        assert_eq!(kept(call.clone()).await, call);
        let words = ChatReply { text: "I saved the value with `save_credential`.".into(), ..ChatReply::default() };
        assert_eq!(kept(words.clone()).await, words);
    }
}

//! A chain of models: if one fails with an error that another could mend, the next is asked.
//!
//! It survives an endpoint that is down, out of quota or refuses its key. It does not hide an invalid request: that
//! would fail everywhere.

use std::sync::Arc;
use std::time::Duration;

use base::text::cut;

use crate::{ChatReply, ChatRequest, Delta, Model, ModelError};

/// Models asked in order until one answers.
pub struct Fallback {
    name: String,
    models: Vec<Arc<dyn Model>>,
}

impl Fallback {
    /// Asks `first`, then each of `others`.
    #[must_use]
    pub fn new(first: Arc<dyn Model>, others: Vec<Arc<dyn Model>>) -> Self {
        let name = first.name().to_owned();
        let models = std::iter::once(first).chain(others).collect();
        Self { name, models }
    }
}

#[async_trait::async_trait]
impl Model for Fallback {
    fn name(&self) -> &str {
        &self.name
    }

    /// [`ChatReply::model`] names the one that answered; each model that failed before it counts as a retry. If all
    /// fail, the error is the first model's, because the owner chose that one, and its message names the others'.
    async fn chat(
        &self,
        request: &ChatRequest,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatReply, ModelError> {
        let mut first_error: Option<ModelError> = None;
        for (index, model) in self.models.iter().enumerate() {
            let error = match model.chat(request, on_delta).await {
                Ok(mut reply) => {
                    reply.retries = reply.retries.saturating_add(u32::try_from(index).unwrap_or(u32::MAX));
                    return Ok(reply);
                }
                Err(error) => error,
            };
            let give_up = !error.kind.another_model_may_answer();
            let reason = error.to_string();
            first_error = Some(match first_error {
                None => error,
                Some(mut first) => {
                    first.message = cut(&format!("{}; then {reason}", first.message), 1_000);
                    first
                }
            });
            match self.models.get(index + 1) {
                Some(next) if !give_up => {
                    tracing::warn!(from = model.name(), to = next.name(), kind = ?error_kind(&first_error), "model failed, asking another");
                    let reason = format!("{reason}; asking `{}`", next.name());
                    on_delta(Delta::Restart { reason, wait: Duration::ZERO });
                }
                _ => break,
            }
        }
        Err(first_error.unwrap_or_else(|| ModelError {
            model: self.name.clone(),
            kind: crate::ModelErrorKind::Unavailable,
            message: "no model was asked".to_owned(),
            retry_after_ms: None,
        }))
    }
}

fn error_kind(error: &Option<ModelError>) -> Option<crate::ModelErrorKind> {
    error.as_ref().map(|error| error.kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelErrorKind;

    struct Fixed(&'static str, Result<&'static str, ModelErrorKind>);

    #[async_trait::async_trait]
    impl Model for Fixed {
        fn name(&self) -> &str {
            self.0
        }
        async fn chat(
            &self,
            _: &ChatRequest,
            on_delta: &mut (dyn FnMut(Delta) + Send),
        ) -> Result<ChatReply, ModelError> {
            let kind = match self.1 {
                Ok(text) => {
                    on_delta(Delta::Text(text.to_owned()));
                    return Ok(ChatReply {
                        text: text.to_owned(),
                        model: self.0.to_owned(),
                        retries: 1,
                        ..ChatReply::default()
                    });
                }
                Err(kind) => kind,
            };
            Err(ModelError { model: self.0.to_owned(), kind, message: "no".to_owned(), retry_after_ms: Some(7) })
        }
    }

    async fn ask(models: Vec<Fixed>) -> (Result<ChatReply, ModelError>, Vec<Delta>) {
        let mut models = models.into_iter().map(|model| Arc::new(model) as Arc<dyn Model>);
        let fallback = Fallback::new(models.next().unwrap(), models.collect());
        let mut deltas = Vec::new();
        let reply = fallback.chat(&ChatRequest::default(), &mut |delta| deltas.push(delta)).await;
        (reply, deltas)
    }

    #[tokio::test]
    async fn another_answers_when_one_is_out_of_order() {
        for kind in [
            ModelErrorKind::Unavailable,
            ModelErrorKind::RateLimited,
            ModelErrorKind::Timeout,
            ModelErrorKind::Auth,
            ModelErrorKind::Malformed,
        ] {
            let (reply, deltas) = ask(vec![Fixed("a/x", Err(kind)), Fixed("b/y", Ok("hi"))]).await;
            let reply = reply.unwrap();
            assert_eq!((reply.model.as_str(), reply.retries), ("b/y", 2), "{kind:?}");
            assert!(matches!(deltas.first(), Some(Delta::Restart { reason, .. }) if reason.contains("`b/y`")));
        }
    }

    #[tokio::test]
    async fn a_wrong_request_is_not_asked_again() {
        let (reply, _) = ask(vec![Fixed("a/x", Err(ModelErrorKind::Rejected)), Fixed("b/y", Ok("hi"))]).await;
        assert_eq!(reply.unwrap_err().kind, ModelErrorKind::Rejected);
    }

    #[tokio::test]
    async fn when_all_fail_the_first_error_names_the_others() {
        let (reply, _) =
            ask(vec![Fixed("a/x", Err(ModelErrorKind::Auth)), Fixed("b/y", Err(ModelErrorKind::Timeout))]).await;
        let error = reply.unwrap_err();
        assert_eq!((error.kind, error.model.as_str()), (ModelErrorKind::Auth, "a/x"));
        assert!(error.message.contains("b/y"), "{error}");
    }
}

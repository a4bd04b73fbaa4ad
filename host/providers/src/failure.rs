//! One failed attempt, and how its words are made fit to be shown.
//!
//! What an endpoint says is untrusted and may repeat what it was sent: keys are struck out, control characters dropped,
//! the length bounded.

use std::time::Duration;

use base::Secret;
use llm::ModelErrorKind;

/// At most this much of an endpoint's words goes into a message, in characters.
const MAX_WORDS: usize = 500;

/// An attempt that gave no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub kind: ModelErrorKind,
    pub message: String,
    pub retry_after: Option<Duration>,
    /// Whether the same request may work in a moment.
    pub again: bool,
}

impl Failure {
    pub(crate) fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, again: kind.is_transient() }
    }

    pub(crate) fn for_good(mut self) -> Self {
        self.again = false;
        self
    }

    /// What a status other than success means. `words` is the start of the body.
    pub(crate) fn from_status(status: u16, retry_after: Option<Duration>, words: &str, key_variable: &str) -> Self {
        let said = said(words);
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        let mut failure = match status {
            401 | 403 => Self::new(
                ModelErrorKind::Auth,
                format!("the endpoint refused the key ({status}); check `{key_variable}`{said}"),
            ),
            402 => {
                Self::new(ModelErrorKind::RateLimited, format!("the account has no credit left (402){said}")).for_good()
            }
            429 if words.contains("insufficient_quota") => {
                Self::new(ModelErrorKind::RateLimited, format!("the account's quota is used up (429){said}")).for_good()
            }
            429 => Self::new(ModelErrorKind::RateLimited, format!("too many requests (429){said}")),
            408 => Self::new(ModelErrorKind::Timeout, format!("the endpoint gave up waiting (408){said}")),
            404 => Self::new(
                ModelErrorKind::Rejected,
                format!("not found (404); check the model's name and the base URL{said}"),
            ),
            300..=399 => Self::new(
                ModelErrorKind::Rejected,
                format!("the endpoint redirects ({status}), which is not followed; set the base URL to where it leads"),
            ),
            425 | 500..=599 => Self::new(ModelErrorKind::Unavailable, format!("the endpoint failed ({status}){said}")),
            _ => Self::new(ModelErrorKind::Rejected, format!("the endpoint refused the request ({status}){said}")),
        };
        failure.retry_after = retry_after;
        failure
    }

    /// An error that came within a stream, as `{"message": …, "code"|"type": …}`.
    pub(crate) fn from_stream(error: &serde_json::Value) -> Self {
        let field = |name: &str| error.get(name).map(|value| value.as_str().map_or(value.to_string(), str::to_owned));
        let code = field("code").or_else(|| field("type")).unwrap_or_default();
        let words = field("message").unwrap_or_else(|| error.to_string());
        let kind = match code.as_str() {
            "401" | "403" | "authentication_error" | "permission_error" | "invalid_api_key" => ModelErrorKind::Auth,
            "429" | "rate_limit_error" | "rate_limit_exceeded" => ModelErrorKind::RateLimited,
            "408" | "timeout_error" => ModelErrorKind::Timeout,
            "400" | "404" | "413" | "422" | "invalid_request_error" | "context_length_exceeded" => {
                ModelErrorKind::Rejected
            }
            _ => ModelErrorKind::Unavailable,
        };
        Self::new(kind, format!("the endpoint failed while replying: {}", said(&words)))
    }
}

/// The endpoint's words: the message within a JSON error, else the text itself, on one line and cut.
pub(crate) fn said(words: &str) -> String {
    let message = serde_json::from_str::<serde_json::Value>(words).ok().and_then(|value| {
        let error = value.get("error").unwrap_or(&value);
        let message = error.get("message").or_else(|| value.get("message")).unwrap_or(error);
        message.as_str().map(str::to_owned)
    });
    let text = message.as_deref().unwrap_or(words);
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut short: String = plain.clone().take(MAX_WORDS).collect();
    if plain.count() > MAX_WORDS {
        short.push('…');
    }
    short.trim().to_owned()
}

/// Strikes keys out of text.
#[derive(Debug, Clone)]
pub(crate) struct Redactor(Option<Secret<String>>);

impl Redactor {
    pub(crate) fn new(key: Option<Secret<String>>) -> Self {
        Self(key)
    }

    pub(crate) fn clean(&self, text: String) -> String {
        // A key of a few characters, as local servers have, is no secret, and striking it out would garble the text.
        match self.0.as_ref().map(Secret::expose).filter(|key| key.len() >= 6) {
            Some(key) if text.contains(key.as_str()) => text.replace(key.as_str(), "[secret]"),
            _ => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_what_to_do() {
        for (status, body, kind, again, part) in [
            (401, r#"{"error":{"message":"bad key"}}"#, ModelErrorKind::Auth, false, "check `K`: bad key"),
            (403, "", ModelErrorKind::Auth, false, "`K`"),
            (429, "slow down", ModelErrorKind::RateLimited, true, "429"),
            (429, r#"{"error":{"code":"insufficient_quota"}}"#, ModelErrorKind::RateLimited, false, "quota"),
            (402, "", ModelErrorKind::RateLimited, false, "credit"),
            (503, "<html>", ModelErrorKind::Unavailable, true, "503"),
            (529, "", ModelErrorKind::Unavailable, true, "529"),
            (404, r#"{"error":"no such model"}"#, ModelErrorKind::Rejected, false, "no such model"),
            (400, "", ModelErrorKind::Rejected, false, "400"),
            (302, "http://elsewhere", ModelErrorKind::Rejected, false, "redirects"),
        ] {
            let failure = Failure::from_status(status, None, body, "K");
            assert_eq!((failure.kind, failure.again), (kind, again), "{status}");
            assert!(failure.message.contains(part), "{}", failure.message);
        }
    }

    #[test]
    fn words_of_an_endpoint_are_bounded() {
        let failure = Failure::from_status(500, None, &"ä\u{1b}[31m\n".repeat(10_000), "K");
        assert!(failure.message.chars().count() < 600);
        assert!(!failure.message.contains(char::is_control));
    }

    #[test]
    fn a_key_is_struck_out() {
        let redactor = Redactor::new(Some(Secret::new("sk-canary".to_owned())));
        assert_eq!(redactor.clean("bad key sk-canary!".to_owned()), "bad key [secret]!");
        assert_eq!(redactor.clean("other".to_owned()), "other");
    }
}

//! One failed attempt, and how its words are made fit to be shown.
//!
//! An endpoint's words are untrusted and may repeat the request: keys are struck out, control characters dropped,
//! the length bounded.

use std::time::Duration;

use base::Secret;
use base::text::Foreign;
use llm::ModelErrorKind;
use serde_json::{Value, json};

use crate::remedy::{RequestOrigin, remedy};

/// At most this much of an endpoint's words goes into a message, in characters.
const MAX_WORDS: usize = 500;

/// An attempt that gave no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProviderFailure {
    pub kind: ModelErrorKind,
    pub message: String,
    pub retry_after: Option<Duration>,
    /// Whether the same request may work in a moment.
    pub again: bool,
}

impl ProviderFailure {
    pub(crate) fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, again: kind.is_transient() }
    }

    pub(crate) fn for_good(mut self) -> Self {
        self.again = false;
        self
    }

    /// A reply that ended before it was complete: it may hold half a sentence or half a call.
    pub(crate) fn cut_short() -> Self {
        Self::new(ModelErrorKind::Unavailable, "the stream ended before the reply was complete")
    }

    /// The failure that a status other than success means. `words` is the start of the body.
    pub(crate) fn from_status(status: u16, retry_after: Option<Duration>, words: &str, origin: &RequestOrigin) -> Self {
        let said = said(words);
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        let found = |part: &str| words.contains(part);
        let mut failure = match status {
            403 if found("moderation") => Self::new(
                ModelErrorKind::Rejected,
                format!("the endpoint's moderation refused the request (403){said}"),
            ),
            400 if found("API_KEY_INVALID") || found("API key not valid") || found("Incorrect API key") => {
                origin.key_refused(status, &said)
            }
            401 | 403 => origin.key_refused(status, &said),
            402 => {
                Self::new(ModelErrorKind::RateLimited, format!("the account has no credit left (402){said}")).for_good()
            }
            429 if found("insufficient_quota") => {
                Self::new(ModelErrorKind::RateLimited, format!("the account's quota is used up (429){said}")).for_good()
            }
            429 => Self::new(ModelErrorKind::RateLimited, format!("too many requests (429){said}")),
            408 => Self::new(ModelErrorKind::Timeout, format!("the endpoint gave up waiting (408){said}")),
            // The model wrote a call that its server could not read: the next try may be better.
            400 if found("tool_use_failed") => {
                Self::new(ModelErrorKind::Malformed, format!("the model wrote an unreadable tool call (400){said}"))
            }
            404 => Self::new(ModelErrorKind::Rejected, format!("not found (404){said}")),
            300..=399 => Self::new(
                ModelErrorKind::Rejected,
                format!("the endpoint redirects ({status}), which is not followed; set the base URL to where it leads"),
            ),
            425 | 498 | 500..=599 => {
                Self::new(ModelErrorKind::Unavailable, format!("the endpoint failed ({status}){said}"))
            }
            _ => Self::new(ModelErrorKind::Rejected, format!("the endpoint refused the request ({status}){said}")),
        };
        failure.retry_after = retry_after.or_else(|| retry_delay(words));
        failure.advised(status, words, origin)
    }

    /// An error that came in place of a reply, or within its stream: `{"message": …, "code"|"status"|"type": …}`, or text.
    pub(crate) fn from_body(error: &Value, origin: &RequestOrigin) -> Self {
        let names = ["code", "status", "type"].map(|name| error.get(name).and_then(status_of));
        let status = names.into_iter().flatten().next().unwrap_or(500);
        let words = json!({ "error": error }).to_string();
        let advised = Self::from_status(status, None, &words, origin);
        let message = format!("the endpoint failed while replying: {}", said(&words));
        Self { message, ..advised }.advised(status, &words, origin)
    }

    /// Adds the setting that helps, if one does. The same request would then fail again, unless the model's text
    /// caused the failure.
    fn advised(mut self, status: u16, words: &str, origin: &RequestOrigin) -> Self {
        let may_help =
            matches!(self.kind, ModelErrorKind::Rejected | ModelErrorKind::Unavailable | ModelErrorKind::Malformed);
        let Some(remedy) = remedy(status, words, origin).filter(|_| may_help && !(300..400).contains(&status)) else {
            return self;
        };
        if remedy.permanent && self.kind != ModelErrorKind::Malformed {
            self.kind = ModelErrorKind::Rejected;
            self.again = false;
        }
        self.message = format!("{}; {}", self.message, remedy.text);
        self
    }
}

/// The HTTP status that a code, status or type in an error stands for.
fn status_of(name: &Value) -> Option<u16> {
    let name = match name {
        Value::Number(number) => {
            return number.as_u64().and_then(|code| code.try_into().ok()).filter(|code| *code >= 400);
        }
        Value::String(name) => name.as_str(),
        _ => return None,
    };
    match name {
        "authentication_error" | "invalid_api_key" | "permission_error" | "UNAUTHENTICATED" | "PERMISSION_DENIED" => {
            Some(401)
        }
        "insufficient_quota" | "rate_limit_error" | "rate_limit_exceeded" | "RESOURCE_EXHAUSTED" => Some(429),
        "timeout_error" | "DEADLINE_EXCEEDED" => Some(408),
        "invalid_request_error"
        | "context_length_exceeded"
        | "request_too_large"
        | "not_found_error"
        | "exceed_context_size_error"
        | "tool_use_failed"
        | "INVALID_ARGUMENT"
        | "FAILED_PRECONDITION"
        | "NOT_FOUND" => Some(400),
        "overloaded_error" | "api_error" | "server_error" | "UNAVAILABLE" | "INTERNAL" => Some(500),
        other => other.parse().ok().filter(|code| *code >= 400),
    }
}

/// No endpoint means a longer wait; a larger number is a mistake or an attack on arithmetic.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(86_400);

/// A wait in seconds, with or without a fraction.
pub(crate) fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    Duration::try_from_secs_f64(seconds.clamp(0.0, MAX_WAIT.as_secs_f64())).ok()
}

/// Google's `RetryInfo` in the details of an error: `"retryDelay": "34.07s"`.
fn retry_delay(words: &str) -> Option<Duration> {
    let body: Value = serde_json::from_str(words).ok()?;
    let error = body.get("error").or_else(|| body.pointer("/0/error"))?;
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay"))?.as_str()?;
    seconds(delay.strip_suffix('s')?)
}

/// The endpoint's words: the message within a JSON error, else the text itself, on one line and cut.
pub(crate) fn said(words: &str) -> String {
    let body: Option<Value> = serde_json::from_str(words).ok();
    let message = body.as_ref().and_then(message).or_else(|| body.as_ref()?.as_str());
    Foreign(message.unwrap_or(words)).line(MAX_WORDS).trim().to_owned()
}

fn message(body: &Value) -> Option<&str> {
    let body = if let Value::Array(list) = body { list.first()? } else { body };
    let error = body.get("error").unwrap_or(body);
    // OpenRouter says `Provider returned error`, and the provider's words beside it.
    let raw = error.pointer("/metadata/raw").and_then(Value::as_str).filter(|raw| !raw.is_empty());
    raw.or_else(|| error.as_str())
        .or_else(|| error.get("message")?.as_str())
        .or_else(|| body.get("message")?.as_str())
        .or_else(|| body.get("detail")?.as_str())
        .or_else(|| body.pointer("/detail/0/msg")?.as_str())
        .or_else(|| body.pointer("/errors/0/message")?.as_str())
}
/// The shortest key, and the shortest beginning of one, that is struck out.
const MIN_KEY: usize = 6;

/// Strikes keys out of text.
#[derive(Debug, Clone)]
pub(crate) struct Redactor(Option<Secret<String>>);

impl Redactor {
    pub(crate) fn new(key: Option<Secret<String>>) -> Self {
        Self(key)
    }

    /// Whether the key stands in `text`.
    pub(crate) fn finds(&self, text: &str) -> bool {
        self.key().is_some_and(|key| text.contains(key))
    }

    fn key(&self) -> Option<&str> {
        // A key of a few characters, as local servers have, is no secret, and striking it out would garble the text.
        self.0.as_ref().map(|key| key.expose().as_str()).filter(|key| key.len() >= MIN_KEY)
    }

    pub(crate) fn clean(&self, text: String) -> String {
        let Some(key) = self.key() else { return text };
        let text = text.replace(key, "[secret]");
        // The endpoint's words may have been cut within the key.
        let Some((before, after)) = text.split_once('…') else { return text };
        let starts = (MIN_KEY..key.len()).rev().filter_map(|length| key.get(..length));
        match starts.filter_map(|start| before.strip_suffix(start)).next() {
            Some(before) => format!("{before}[secret]…{after}"),
            None => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin() -> RequestOrigin {
        RequestOrigin { model: "openai/x".parse().unwrap(), key_variable: "K", url_variable: "U" }
    }

    #[test]
    fn the_delay_in_an_error_is_read() {
        let error = r#"{"error":{"code":429,"details":[{"@type":"QuotaFailure"},{"retryDelay":"34.5s"}]}}"#;
        let failure = ProviderFailure::from_status(429, None, error, &origin());
        assert_eq!(failure.retry_after, Some(Duration::from_millis(34_500)));
        let header = Some(Duration::from_secs(1));
        assert_eq!(ProviderFailure::from_status(429, header, error, &origin()).retry_after, header);
    }

    #[test]
    fn the_words_are_found_wherever_they_stand() {
        for (body, expected) in [
            (r#"{"error":{"message":"a"}}"#, "a"),
            (r#"[{"error":{"message":"a"}}]"#, "a"),
            (r#"{"error":"a"}"#, "a"),
            (r#"{"detail":"a"}"#, "a"),
            (r#"{"detail":[{"msg":"a"}]}"#, "a"),
            (r#"{"error":{"message":"Provider returned error","metadata":{"raw":"a"}}}"#, "a"),
            (r#""a""#, "a"),
            ("a", "a"),
        ] {
            assert_eq!(said(body), expected, "{body}");
        }
    }

    #[test]
    fn a_key_that_is_cut_is_struck_out_too() {
        let redactor = Redactor::new(Some(Secret::new("sk-0123456789".to_owned())));
        for (text, expected) in [
            ("key sk-0123456789 is bad", "key [secret] is bad"),
            ("key sk-01234…; check it", "key [secret]…; check it"),
            ("key sk-0…; check it", "key sk-0…; check it"),
            ("a long text…", "a long text…"),
        ] {
            assert_eq!(redactor.clean(text.to_owned()), expected);
        }
    }

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
            (403, r#"{"error":{"message":"requires moderation"}}"#, ModelErrorKind::Rejected, false, "moderation"),
            (400, r#"{"error":{"message":"API key not valid."}}"#, ModelErrorKind::Auth, false, "`K`"),
            (400, r#"{"error":{"code":"tool_use_failed"}}"#, ModelErrorKind::Malformed, true, "tool call"),
            (400, "", ModelErrorKind::Rejected, false, "400"),
            (302, "http://elsewhere", ModelErrorKind::Rejected, false, "redirects"),
        ] {
            let failure = ProviderFailure::from_status(status, None, body, &origin());
            assert_eq!((failure.kind, failure.again), (kind, again), "{status}");
            assert!(failure.message.contains(part), "{}", failure.message);
        }
    }

    #[test]
    fn words_of_an_endpoint_are_bounded() {
        let failure = ProviderFailure::from_status(500, None, &"ä\u{1b}[31m\n".repeat(10_000), &origin());
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

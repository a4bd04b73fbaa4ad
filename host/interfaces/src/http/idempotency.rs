//! The idempotency key of a request: the header `Idempotency-Key`, or `key` in the body. They are the same.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use base::{Refusal, RefusalCode};
use serde_json::json;

use super::ApiState;
use super::openapi::{Argument, Operation};
use super::reply::ErrorReply;

/// The header of the IETF draft `draft-ietf-httpapi-idempotency-key-header`.
const NAME: &str = "idempotency-key";

/// The key in the header, if there is one.
#[derive(Debug)]
pub(super) struct IdempotencyKey(Option<String>);

impl IdempotencyKey {
    /// The key of a request that may also have one in its body.
    ///
    /// # Errors
    /// If they differ.
    pub(super) fn or(self, in_body: Option<String>) -> Result<Option<String>, ErrorReply> {
        match (self.0, in_body) {
            (Some(header), Some(body)) if header != body => {
                Err(refused("the header `Idempotency-Key` and `key` in the body differ"))
            }
            (header, body) => Ok(header.or(body)),
        }
    }
}

impl FromRequestParts<ApiState> for IdempotencyKey {
    type Rejection = ErrorReply;

    async fn from_request_parts(parts: &mut Parts, _: &ApiState) -> Result<Self, ErrorReply> {
        key(&parts.headers).map(Self)
    }
}

impl Argument for IdempotencyKey {
    fn describe(operation: &mut Operation<'_>) {
        let about = "The same request with the same key is done once. `key` in the body is the same";
        operation.header("Idempotency-Key", about, &json!({ "type": "string", "pattern": r"^[!#-\[\]-~]{1,200}$" }));
    }
}

fn key(headers: &HeaderMap) -> Result<Option<String>, ErrorReply> {
    let mut values = headers.get_all(NAME).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            read(value).map(Some).ok_or_else(|| refused("`Idempotency-Key` is not a text without spaces"))
        }
        _ => Err(refused("there are several `Idempotency-Key`")),
    }
}

/// The draft writes the key as a string in quotes (RFC 8941); most clients send it bare.
fn read(value: &HeaderValue) -> Option<String> {
    let text = value.to_str().ok()?;
    let key = match text.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"')?,
        None => text,
    };
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    (!key.is_empty() && key.bytes().all(is_plain)).then(|| key.to_owned())
}

fn refused(reason: &str) -> ErrorReply {
    let refusal = Refusal::new(RefusalCode::InvalidRequest, reason);
    refusal.with_remedy("send one key of 1 to 200 characters, in the header or in the body").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_from_the_header_or_the_body() {
        let headers = |values: &[&str]| {
            let pairs = values.iter().map(|value| (NAME.parse().unwrap(), value.parse().unwrap()));
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                let name: axum::http::HeaderName = name;
                headers.append(name, value);
            }
            headers
        };
        for (values, expected) in [
            (&[][..], Some(None)),
            (&["k-1"], Some(Some("k-1"))),
            (&["\"k-1\""], Some(Some("k-1"))),
            (&[""], None),
            (&["\""], None),
            (&["\"\""], None),
            (&["a b"], None),
            (&["\"a"], None),
            (&["a\"b"], None),
            (&["\"a\\\"b\""], None),
            (&["a", "a"], None),
        ] {
            let read = key(&headers(values)).ok();
            assert_eq!(read, expected.map(|key| key.map(str::to_owned)), "{values:?}");
        }
        let keys = |header: Option<&str>, body: Option<&str>| {
            IdempotencyKey(header.map(str::to_owned)).or(body.map(str::to_owned)).ok()
        };
        let same = Some(Some("a".to_owned()));
        assert_eq!(keys(Some("a"), Some("a")), same);
        assert_eq!((keys(Some("a"), None), keys(None, Some("a"))), (same.clone(), same));
        assert_eq!((keys(None, None), keys(Some("a"), Some("b"))), (Some(None), None));
    }
}

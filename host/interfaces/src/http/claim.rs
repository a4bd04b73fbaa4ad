//! The claim that a request is the owner's word: `Authorization: Bearer TOKEN` and `Motor-Door: terminal|token`.
//!
//! The headers are only a claim: the gate decides. A header that is missing, repeated or has an unknown value is not a
//! claim that could be let through. The door is the client's word; whether a person was asked is as trustworthy as the
//! client that holds the token, and it is recorded as claimed.

use axum::http::{HeaderMap, header};
use base::{Door, Secret};
use consent::Claim;

/// The header that names the door.
pub const DOOR: &str = "motor-door";

/// The claim of a request with these headers.
pub(super) fn claim(headers: &HeaderMap) -> Claim {
    let door = match only(headers, DOOR) {
        HeaderValues::Absent | HeaderValues::Value("token") => Door::Token,
        HeaderValues::Value("terminal") => Door::Terminal,
        // No other door exists on this socket; unknown values are untrusted.
        HeaderValues::Value(_) | HeaderValues::Unclear => Door::Model,
    };
    let token = match only(headers, header::AUTHORIZATION.as_str()) {
        HeaderValues::Value(value) => bearer(value),
        HeaderValues::Absent | HeaderValues::Unclear => None,
    };
    Claim { door, token: token.map(|token| Secret::new(token.to_owned())) }
}

/// The value of a header that may be there once.
#[derive(Debug, PartialEq, Eq)]
enum HeaderValues<'a> {
    Absent,
    Value(&'a str),
    /// It is repeated, or is not text.
    Unclear,
}

fn only<'a>(headers: &'a HeaderMap, name: &str) -> HeaderValues<'a> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => HeaderValues::Absent,
        (Some(value), None) => value.to_str().map_or(HeaderValues::Unclear, |text| HeaderValues::Value(text.trim())),
        _ => HeaderValues::Unclear,
    }
}

/// The token of `Bearer TOKEN`; the word knows no case (RFC 9110, section 11.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim_start_matches(' ');
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &[(&'static str, &str)], door: Door, token: Option<&str>) {
        let lines = lines.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name: axum::http::HeaderName = name;
            let value: axum::http::HeaderValue = value;
            headers.append(name, value);
        }
        let claim = claim(&headers);
        assert_eq!(
            (claim.door, claim.token.as_ref().map(|token| token.expose().as_str())),
            (door, token),
            "{headers:?}"
        );
    }

    #[test]
    fn claims_are_read_and_nothing_is_guessed() {
        let token = ("authorization", "Bearer t");
        check(&[token], Door::Token, Some("t"));
        check(&[token, ("motor-door", "token")], Door::Token, Some("t"));
        check(&[token, ("motor-door", "terminal")], Door::Terminal, Some("t"));
        check(&[("authorization", "bearer  t")], Door::Token, Some("t"));
        check(&[], Door::Token, None);
        // These are not claims.
        for door in ["model", "web", "message", "elicitation", "Terminal", "", "terminal, token"] {
            check(&[token, ("motor-door", door)], Door::Model, Some("t"));
        }
        check(&[token, ("motor-door", "terminal"), ("motor-door", "terminal")], Door::Model, Some("t"));
        for value in ["t", "Basic t", "Bearer", "Bearer ", "Bearer\tt", ""] {
            check(&[("authorization", value)], Door::Token, None);
        }
        check(&[token, token], Door::Token, None);
    }
}

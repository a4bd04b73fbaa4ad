//! The headers of a request and of a response: whose they are, and which do not pass.
//!
//! The frame of a message belongs to the gate alone. A guest cannot set the host, the length, the connection's options or an
//! upgrade, so it cannot make one request look like two (SPEC NET-1). Encoded responses are not asked for: a secret inside one
//! would not be found.

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use vault::Scrubber;

use crate::target::Target;
use crate::{BlockReason, Rule};

/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 100;
const MAX_BYTES: usize = 64 << 10;

/// Headers of one connection and not of the message (RFC 9110, section 7.6.1), and those by which a message is framed.
const OF_THE_CONNECTION: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];
/// Headers by which servers take a request for one of another method.
const METHOD_OVERRIDES: [&str; 3] = ["x-http-method-override", "x-method-override", "x-http-method"];

/// Size of a request's headers in bytes.
pub(crate) fn weight(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}

/// Whether a method and its headers may be sent at all.
pub(crate) fn check(method: &Method, headers: &HeaderMap, target: &Target) -> Result<(), BlockReason> {
    let blocked = |rule, reason: String, remedy: &str| {
        Err(BlockReason { rule, asked: target.authority(), reason, remedy: remedy.to_owned() })
    };
    if [Method::CONNECT, Method::TRACE].iter().any(|refused| refused.as_str().eq_ignore_ascii_case(method.as_str())) {
        return blocked(Rule::Method, format!("the method `{method}` is not sent"), "use `GET` or `POST`");
    }
    if headers.contains_key(header::UPGRADE) {
        return blocked(
            Rule::Header,
            "a request cannot ask for an upgrade".to_owned(),
            "leave out the header `upgrade`",
        );
    }
    if headers.len() > MAX_HEADERS {
        return blocked(Rule::Header, format!("the request has more than {MAX_HEADERS} headers"), "send fewer headers");
    }
    if weight(headers) > MAX_BYTES {
        return blocked(Rule::Header, format!("the headers are larger than {MAX_BYTES} bytes"), "send smaller headers");
    }
    Ok(())
}

/// A guest's headers without those that are the gate's.
pub(crate) fn of_guest(mut headers: HeaderMap) -> HeaderMap {
    remove_of_connection(&mut headers);
    for name in [header::HOST, header::CONTENT_LENGTH, header::EXPECT, header::ACCEPT_ENCODING] {
        headers.remove(name);
    }
    headers
}

/// Removes the headers that ask for a part of a response: of a secret cut in two neither half would be found.
pub(crate) fn remove_ranges(headers: &mut HeaderMap) {
    headers.remove(header::RANGE);
    headers.remove(header::IF_RANGE);
}

/// Adds the gate's own headers. The length is set where the body is framed.
pub(crate) fn add_of_gate(headers: &mut HeaderMap, target: &Target) -> Result<(), http::Error> {
    headers.insert(header::HOST, HeaderValue::try_from(target.authority())?);
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    Ok(())
}

/// Whether a request with this method and these headers would be a read, before it is sent. An invalid
/// request is not taken for harmless.
pub fn reads<'a>(method: &str, headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> bool {
    let Ok(method) = Method::from_bytes(method.as_bytes()) else { return false };
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) else { return false };
        map.append(name, value);
    }
    is_read(&method, &map)
}

/// Whether a request only asks. Servers may be told by a header to take it for another.
pub(crate) fn is_read(method: &Method, headers: &HeaderMap) -> bool {
    is_reading(method.as_str()) && overrides(headers).all(|method| is_reading(&method))
}

/// Whether a method only asks. In capitals: servers may read other spellings as they like.
pub(crate) fn is_reading(method: &str) -> bool {
    ["GET", "HEAD", "OPTIONS"].contains(&method)
}

/// The methods that the headers ask a server to take the request for, in capitals.
pub(crate) fn overrides(headers: &HeaderMap) -> impl Iterator<Item = String> {
    // Behind CGI and its kin an underscore is a hyphen.
    let is_override = |name: &HeaderName| METHOD_OVERRIDES.contains(&name.as_str().replace('_', "-").as_str());
    let values = headers.iter().filter(move |(name, _)| is_override(name)).map(|(_, value)| value);
    values.map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_ascii_uppercase())
}

/// A response's headers without those of the connection, and without secrets. One that is no header any more is dropped.
pub(crate) fn of_response(mut headers: HeaderMap, scrubber: &Scrubber) -> HeaderMap {
    remove_of_connection(&mut headers);
    if scrubber.is_empty() {
        return headers;
    }
    let mut scrubbed = HeaderMap::with_capacity(headers.len());
    for (name, value) in &headers {
        if scrubber.text(name.as_str().to_owned()) != name.as_str() {
            continue;
        }
        if let Ok(value) = HeaderValue::from_maybe_shared(bytes::Bytes::from(scrubber.bytes(value.as_bytes().to_vec())))
        {
            scrubbed.append(name.clone(), value);
        }
    }
    scrubbed
}

fn remove_of_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&OF_THE_CONNECTION) {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::{CredentialName, Secret};

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn target() -> Target {
        Target::parse("https://example.com:8443/").unwrap()
    }

    #[test]
    fn the_frame_is_the_gates() {
        let guests = headers(&[
            ("host", "evil.example"),
            ("connection", "close, X-Hop"),
            ("x-hop", "1"),
            ("content-length", "5"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("proxy-authorization", "x"),
            ("expect", "100-continue"),
            ("accept-encoding", "gzip"),
            ("cookie", "kept"),
            ("x-kept", "yes"),
        ]);
        let mut sent = of_guest(guests);
        assert_eq!(sent, headers(&[("cookie", "kept"), ("x-kept", "yes")]));
        add_of_gate(&mut sent, &target()).unwrap();
        assert_eq!(sent["host"], "example.com:8443");
        assert_eq!(sent["accept-encoding"], "identity");
    }

    #[test]
    fn tunnels_and_floods_are_refused() {
        let many: Vec<(&'static str, &str)> = vec![("x-a", "1"); MAX_HEADERS + 1];
        let large = "a".repeat(MAX_BYTES);
        for (method, headers, rule) in [
            ("CONNECT", headers(&[]), Rule::Method),
            ("TRACE", headers(&[]), Rule::Method),
            ("trace", headers(&[]), Rule::Method),
            ("GET", headers(&[("upgrade", "websocket")]), Rule::Header),
            ("GET", headers(&many), Rule::Header),
            ("GET", headers(&[("x-a", &large)]), Rule::Header),
        ] {
            let blocked = check(&method.parse().unwrap(), &headers, &target()).unwrap_err();
            assert_eq!((blocked.rule, blocked.asked.as_str()), (rule, "example.com:8443"), "{method}");
        }
        for method in ["GET", "POST", "PURGE", "PATCH"] {
            assert_eq!(check(&method.parse().unwrap(), &headers(&many[1..]), &target()), Ok(()), "{method}");
        }
    }

    #[test]
    fn writing_in_disguise_is_writing() {
        for (method, pairs, read) in [
            ("GET", &[][..], true),
            ("HEAD", &[], true),
            ("OPTIONS", &[], true),
            ("GET", &[("x-http-method-override", "get")], true),
            ("POST", &[], false),
            ("DELETE", &[], false),
            ("get", &[], false),
            ("QUERY", &[], false),
            ("GET", &[("x-http-method-override", "DELETE")], false),
            ("GET", &[("x-method-override", "get"), ("x-method-override", "put")], false),
        ] {
            assert_eq!(is_read(&method.parse().unwrap(), &headers(pairs)), read, "{method} {pairs:?}");
        }
    }

    #[test]
    fn secrets_in_response_headers_become_placeholders() {
        let name = CredentialName::parse("key").unwrap();
        let scrubber = Arc::new(Scrubber::new(vec![(name, Secret::new("hunter2-hunter2".to_owned()))]));
        let response = headers(&[
            ("x-echo", "a hunter2-hunter2 b"),
            ("x-plain", "kept"),
            ("x-hunter2-hunter2", "1"),
            ("connection", "x"),
        ]);
        let scrubbed = of_response(response, &scrubber);
        assert_eq!(scrubbed, headers(&[("x-echo", "a <credential:key> b"), ("x-plain", "kept")]));
    }
}

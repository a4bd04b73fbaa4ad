//! The check against pages of other origins: which host a request names, and which page sent it (SPEC API-1).
//!
//! A page of any site can make a browser send requests to a port of this machine, under the site's own name if that
//! resolves to it (DNS rebinding). Both show in headers that the page cannot choose: such a request is refused before
//! its token is looked at.

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use base::{Refusal, RefusalCode};

use super::reply::ErrorReply;

/// Names of this machine that no resolver can give to another.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The names under which the host may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostNames {
    /// Those of the loopback interface.
    Loopback,
    /// Any: the owner made the port reachable from other machines, under names that this host does not know.
    Any,
}

pub(super) async fn check(names: HostNames, request: Request, next: Next) -> Response {
    match refused(names, request.headers()) {
        None => next.run(request).await,
        Some(reason) => ErrorReply::from(Refusal::new(RefusalCode::Forbidden, reason)).into_response(),
    }
}

fn refused(names: HostNames, headers: &HeaderMap) -> Option<&'static str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (host, None) = (hosts.next(), hosts.next()) else { return Some("the request names several hosts") };
    let host = host.and_then(|host| host.to_str().ok()).and_then(|host| host.parse::<Authority>().ok());
    let Some(host) = host else { return Some("the request names no valid host") };
    if names == HostNames::Loopback && !LOOPBACK.iter().any(|name| host.host().eq_ignore_ascii_case(name)) {
        return Some("the request names a host that is not this machine");
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) => None,
        (Some(origin), None) if is_same(origin.as_bytes(), &host) => None,
        _ => Some("the request comes from a page of another origin"),
    }
}

/// Whether an origin is `http` or `https` at this very host and port.
fn is_same(origin: &[u8], host: &Authority) -> bool {
    let origin = std::str::from_utf8(origin).ok();
    let authority = origin.and_then(|text| text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")));
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: HostNames, lines: &[(&'static str, &str)], expected: Option<&str>) {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        assert_eq!(refused(names, &headers), expected, "{lines:?}");
    }

    #[test]
    fn a_rebound_name_and_a_foreign_page_are_refused_and_this_machine_is_not() {
        use HostNames::{Any, Loopback};
        for host in ["localhost", "127.0.0.1:7777", "[::1]:7777", "LOCALHOST:80"] {
            check(Loopback, &[("host", host)], None);
            check(Loopback, &[("host", host), ("origin", &format!("http://{host}"))], None);
        }
        let foreign = Some("the request names a host that is not this machine");
        for host in
            ["evil.example", "evil.example:7777", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1"]
        {
            check(Loopback, &[("host", host)], foreign);
            check(Any, &[("host", host)], None);
        }
        let page = Some("the request comes from a page of another origin");
        for origin in
            ["http://evil.example", "null", "http://localhost:7778", "http://localhost", "file://localhost:7777"]
        {
            check(Loopback, &[("host", "localhost:7777"), ("origin", origin)], page);
            check(Any, &[("host", "localhost:7777"), ("origin", origin)], page);
        }
        let two = ("origin", "http://localhost:7777");
        check(Loopback, &[("host", "localhost:7777"), two, two], page);
        check(Loopback, &[], Some("the request names no valid host"));
        check(Loopback, &[("host", "")], Some("the request names no valid host"));
        check(Loopback, &[("host", "localhost"), ("host", "evil.example")], Some("the request names several hosts"));
    }
}

//! Following redirects, as WHATWG Fetch section 4.4 says, and stricter with data that belongs to one origin only.
//!
//! The server that answers is hostile: it names the next URL, and wants data meant for another. So nothing that
//! is a credential, or stands for one, goes to another origin (SPEC NET-2), in no part of a request.

use percent_encoding::percent_decode;
use url::Url;

use super::{FailureKind, HttpError, Request, Response, accept, cut, parse};

/// Headers that are a credential by their name.
const CREDENTIAL_HEADERS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// The text before a credential's name in its placeholder.
const PLACEHOLDER: &[u8] = b"<credential:";

/// Sends a request by `send` and follows at most `most` redirects.
///
/// # Errors
/// As [`send_following`](super::send_following).
pub fn follow(
    mut request: Request,
    most: usize,
    mut send: impl FnMut(&Request) -> Result<Response, HttpError>,
) -> Result<Response, HttpError> {
    for _ in 0..=most {
        let response = send(&request)?;
        let Some(location) = location(&response) else { return Ok(response) };
        redirect(&mut request, response.status, location)?;
    }
    Err(HttpError::failed(FailureKind::Protocol, format!("too many redirects: at most {most} are followed")))
}

/// Where a response redirects to.
fn location(response: &Response) -> Option<&str> {
    matches!(response.status, 301 | 302 | 303 | 307 | 308).then(|| response.header("location")).flatten()
}

/// Makes a request into the one that a redirect asks for.
fn redirect(request: &mut Request, status: u16, location: &str) -> Result<(), HttpError> {
    let from = parse(&request.url)?;
    let mut to = target(&from, location)?;
    if to.fragment().is_none() {
        to.set_fragment(from.fragment());
    }
    let is_post = request.method.eq_ignore_ascii_case("POST");
    let is_get = ["GET", "HEAD"].iter().any(|method| request.method.eq_ignore_ascii_case(method));
    if (matches!(status, 301 | 302) && is_post) || (status == 303 && !is_get) {
        "GET".clone_into(&mut request.method);
        request.body.clear();
        request.headers.retain(|(name, _)| !name.to_ascii_lowercase().starts_with("content-"));
    }
    if from.origin() != to.origin() {
        request.headers.retain(|(name, value)| {
            let by_name = CREDENTIAL_HEADERS.iter().any(|credential| name.eq_ignore_ascii_case(credential));
            !by_name && !holds_placeholder(value.as_bytes())
        });
        // Without its body it would be another request than the one that was meant; a URL cannot lose a part at all.
        if holds_placeholder(&request.body) || holds_placeholder(to.as_str().as_bytes()) {
            let to = to.host_str().unwrap_or_default();
            let message = format!(
                "the server redirects to `{}`, and the credential in the request does not follow to another origin",
                cut(to)
            );
            return Err(HttpError::failed(FailureKind::Protocol, message));
        }
    }
    request.url = to.into();
    Ok(())
}

fn target(from: &Url, location: &str) -> Result<Url, HttpError> {
    let refused = |why: &dyn std::fmt::Display| {
        let message = format!("the server redirects to `{}`: {why}", cut(location));
        HttpError::failed(FailureKind::Protocol, message)
    };
    let to = from.join(location).map_err(|error| refused(&error))?;
    accept(to).map_err(|error| refused(&error))
}

/// Whether a text holds a placeholder of a credential, percent-encoded or not.
fn holds_placeholder(text: &[u8]) -> bool {
    let decoded: std::borrow::Cow<'_, [u8]> = percent_decode(text).into();
    decoded.windows(PLACEHOLDER.len()).any(|window| window.eq_ignore_ascii_case(PLACEHOLDER))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::http::Body;

    fn response(status: u16, location: &str, url: &str) -> Response {
        let headers = if location.is_empty() { vec![] } else { vec![("location".to_owned(), location.to_owned())] };
        Response { status, headers, body: Body::from(Vec::new()), url: url.to_owned() }
    }

    /// Follows from `request` through one redirect and returns the second request.
    fn second(request: Request, status: u16, location: &str) -> Result<Request, HttpError> {
        let seen = RefCell::new(Vec::new());
        follow(request, 5, |request| {
            seen.borrow_mut().push(request.clone());
            let first = seen.borrow().len() == 1;
            Ok(if first { response(status, location, &request.url) } else { response(200, "", &request.url) })
        })?;
        Ok(seen.take().remove(1))
    }

    fn post(url: &str, body: &str) -> Request {
        let headers = [("Content-Type", "text/plain"), ("Authorization", "Bearer x"), ("X-Key", "<credential:key>")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Request { method: "POST".to_owned(), headers, body: body.into(), ..Request::get(url) }
    }

    #[track_caller]
    fn check(from: &str, location: &str, expected: &str) {
        let shown = match second(Request::get(from), 302, location) {
            Ok(request) => request.url,
            Err(error) => error.to_string(),
        };
        assert!(shown.contains(expected), "{shown}");
    }

    #[test]
    fn locations_are_resolved_or_refused() {
        check("http://a.example/x/y?q=1", "../z", "http://a.example/z");
        check("http://a.example/x", "?q=2", "http://a.example/x?q=2");
        check("http://a.example/x", "//b.example/y", "http://b.example/y");
        check("http://a.example/x#here", "/y", "http://a.example/y#here");
        check("http://a.example/x#here", "/y#there", "http://a.example/y#there");
        check("http://a.example/x", "file:///etc/passwd", "`file` is not supported");
        check("http://a.example/x", "data:text/html,hi", "`data` is not supported");
        check("http://a.example/x", "https://user:pass@b.example/", "user or a password");
        check("http://a.example/x", "http://[::1", "redirects to");
    }

    #[test]
    fn methods_and_bodies_change_as_they_should() {
        for (status, method, expected) in [
            (301, "POST", "GET"),
            (302, "post", "GET"),
            (303, "POST", "GET"),
            (303, "PUT", "GET"),
            (303, "HEAD", "HEAD"),
            (301, "PUT", "PUT"),
            (307, "POST", "POST"),
            (308, "POST", "POST"),
        ] {
            let request = Request { method: method.to_owned(), ..post("http://a.example/", "body") };
            let next = second(request, status, "/next").unwrap();
            assert_eq!(next.method, expected, "{status} {method}");
            let keeps = !expected.eq("GET") && expected != "HEAD" || method == "HEAD";
            assert_eq!(next.body.is_empty(), !keeps, "{status} {method}");
            assert_eq!(next.header("content-type").is_some(), keeps, "{status} {method}");
            assert_eq!(next.header("x-key"), Some("<credential:key>"), "the same origin keeps its credentials");
        }
    }

    #[test]
    fn credentials_do_not_follow_to_another_origin() {
        for other in ["https://a.example/", "http://a.example:81/", "http://b.example/", "//sub.a.example/"] {
            let next = second(post("http://a.example/", "plain"), 307, other).unwrap();
            assert_eq!(next.headers, [("Content-Type".to_owned(), "text/plain".to_owned())], "{other}");
            for body in ["key=<credential:key>", "key=%3Ccredential%3Akey%3E", "<CREDENTIAL:key>"] {
                let refused = second(post("http://a.example/", body), 307, other).unwrap_err().to_string();
                assert!(refused.contains("does not follow to another origin"), "{other}: {refused}");
                // Redirected to a GET, the body stays behind and nothing speaks against it.
                assert!(second(post("http://a.example/", body), 303, other).is_ok());
            }
        }
        let refused = second(Request::get("http://a.example/"), 302, "http://b.example/?k=<credential:key>");
        assert!(refused.unwrap_err().to_string().contains("does not follow"));
        assert!(second(Request::get("http://a.example/"), 302, "/?k=<credential:key>").is_ok());
    }

    #[test]
    fn what_was_left_behind_does_not_come_back() {
        let seen = RefCell::new(Vec::new());
        let answer = follow(post("http://a.example/", ""), 3, |request| {
            seen.borrow_mut().push(request.clone());
            let next = ["http://b.example/", "http://a.example/", ""];
            let next = next[seen.borrow().len() - 1];
            Ok(response(if next.is_empty() { 200 } else { 307 }, next, &request.url))
        });
        assert_eq!(answer.unwrap().url, "http://a.example/");
        assert!(seen.borrow()[2].header("authorization").is_none());
    }

    #[test]
    fn redirects_end() {
        let mut sent = 0;
        let refused = follow(Request::get("http://a.example/"), 10, |request| {
            sent += 1;
            Ok(response(302, "/", &request.url))
        });
        assert_eq!(refused.unwrap_err().to_string(), "too many redirects: at most 10 are followed");
        assert_eq!(sent, 11);
        let answer = follow(Request::get("http://a.example/"), 0, |request| Ok(response(200, "/", &request.url)));
        assert_eq!(answer.unwrap().status, 200, "a location without a redirect is a header");
        let answer = follow(Request::get("http://a.example/"), 0, |request| Ok(response(302, "", &request.url)));
        assert_eq!(answer.unwrap().status, 302, "a redirect to nowhere is an answer");
    }
}

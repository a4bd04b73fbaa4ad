//! Texts and requests that a shape covers, and those that it must not.

use http::HeaderMap;
use proptest::prelude::*;

use super::*;

fn shape(text: &str) -> Shape {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A request `METHOD URL`, with a body and with credentials.
fn unit(request: &str, body: &'static str, credentials: &[&str]) -> Unit {
    let (method, url) = request.split_once(' ').unwrap();
    let mut unit = Unit::new(
        method.parse().unwrap(),
        Target::from_uri(&url.parse().unwrap()).unwrap(),
        HeaderMap::new(),
        body.as_bytes().into(),
    );
    unit.credentials = credentials.iter().map(|name| CredentialName::parse(name).unwrap()).collect();
    unit
}

#[test]
fn shapes_are_normalised() {
    for (text, normalised) in [
        ("*", "*"),
        ("API.example.com.", "api.example.com"),
        ("*.example.com:8443", "*.example.com:8443"),
        ("  POST   api.example.com/transfers ", "POST api.example.com/transfers"),
        ("POST 127.0.0.1:1234/", "POST 127.0.0.1:1234/"),
        ("PUT [2001:DB8::1]:80/items/*", "PUT [2001:db8::1]:80/items/*"),
        ("api.example.com/items/", "api.example.com/items/"),
        ("HEAD api.example.com/a", "GET api.example.com/a"),
        ("OPTIONS api.example.com", "GET api.example.com"),
        ("GET mail.example.com with b+a+b", "GET mail.example.com with a+b"),
        ("GET mail.example.com/inbox with mail-key", "GET mail.example.com/inbox with mail-key"),
        ("GET+BODY api.example.com/_search", "GET+BODY api.example.com/_search"),
        ("PURGE b\u{fc}cher.example/a\u{fc}{b}", "PURGE xn--bcher-kva.example/a%C3%BC%7Bb%7D"),
        ("POST api.example.com/@me/a%2Fb%2f", "POST api.example.com/@me/a%2Fb%2f"),
        ("POST co.uk/a", "POST co.uk/a"),
    ] {
        assert_eq!(shape(text).to_string(), normalised, "{text}");
        assert_eq!(shape(normalised), shape(text), "{text}");
    }
}

#[test]
fn what_is_no_shape_says_what_would_be() {
    for (text, says) in [
        ("", "write `METHOD HOST/PATH`"),
        ("POST", "the host is missing; write `POST example.com`"),
        ("POST api.example.com /a", "write `METHOD HOST/PATH`"),
        ("POST api.example.com to me", "write `METHOD HOST/PATH`"),
        ("post api.example.com/a", "write `POST`"),
        ("api.example.com POST", "write one such as `POST` before the host"),
        ("(POST) api.example.com", "no method"),
        ("POST https://api.example.com/a", "it has a scheme; write `api.example.com/a`"),
        ("POST me@api.example.com/a", "it has a user"),
        ("POST api.example.com/a?b=c", "a query"),
        ("api.example.com/a#b", "a fragment"),
        ("POST api.example.com//a", "an empty segment"),
        ("POST api.example.com/a//", "an empty segment"),
        ("POST api.example.com/a/../b", "a dot segment"),
        ("POST api.example.com/a/.", "a dot segment"),
        ("POST api.example.com/%2E%2e/b", "a dot segment"),
        ("POST api.example.com/..;a=b/c", "a dot segment"),
        ("POST api.example.com/a*", "a whole segment"),
        ("POST api.example.com/**", "a whole segment"),
        ("POST api.example.com/a\\b", "a backslash"),
        ("POST api.example.com/a\u{a0}b", "white space"),
        ("api.*.com/a", "whole first label"),
        ("POST *.com/a", "too wide"),
        ("*.com", "too wide"),
        ("com", "public suffix"),
        ("POST /a", "it is empty"),
        ("GET api.example.com with", "write `METHOD HOST/PATH`"),
        ("GET api.example.com with 1", "not the name of a credential"),
        ("GET api.example.com with a,b", "not the name of a credential"),
        ("POST api.example.com/a with key", "only reads"),
        ("api.example.com with key", "only reads"),
    ] {
        let error = text.parse::<Shape>().expect_err(text);
        assert!(error.message.contains(says), "{text}: {error}");
        assert!(serde_json::from_value::<Shape>(text.into()).is_err());
    }
}

#[test]
fn a_shape_covers_what_it_says_and_no_more() {
    let post = "POST https://api.example.com/items/7";
    for (shape, request, body, credentials, covers) in [
        // A whole host covers everything, and nothing of another.
        ("api.example.com", post, "", &[][..], true),
        ("api.example.com", "GET http://api.example.com/a?b", "", &["key"], true),
        ("api.example.com", "GET https://api.example.com/a", "body", &[], true),
        ("api.example.com", "get https://api.example.com//a/../b", "", &[], true),
        ("*.example.com", post, "", &[], true),
        ("*", post, "", &["key"], true),
        ("api.example.com", "POST https://api.example.com:8443/a", "", &[], false),
        ("api.example.com", "POST https://example.com/a", "", &[], false),
        ("*.example.com", "POST https://example.com/a", "", &[], false),
        // A path without a method is for all methods.
        ("api.example.com/items/7", post, "a", &["key"], true),
        ("api.example.com/items/7", "GET https://api.example.com/items/7?a=b", "", &["key"], true),
        ("api.example.com/items/7", "GET https://api.example.com/items/8", "", &[], false),
        // A write is for its method and path, with any credentials.
        ("POST api.example.com/items/7", post, "a body", &["key"], true),
        ("POST api.example.com", post, "", &[], true),
        ("PUT api.example.com/items/7", post, "", &[], false),
        ("POST api.example.com/items/7", "PUT https://api.example.com/items/7", "", &[], false),
        ("POST api.example.com/items/7", "post https://api.example.com/items/7", "", &[], false),
        ("POST api.example.com/items/7", "POST https://api.example.com/items/7?dry=1", "", &[], true),
        ("POST api.example.com/items/7", "POST https://api.example.com/items/7/", "", &[], false),
        ("POST api.example.com/items/7", "POST https://api.example.com/items", "", &[], false),
        ("POST api.example.com/items/7", "POST https://api.example.com/Items/7", "", &[], false),
        ("POST api.example.com/items/7", "POST https://api.example.com/items%2F7", "", &[], false),
        ("POST api.example.com/items/7", "POST https://api.example.com//items/7", "", &[], false),
        ("POST api.example.com/items/7", "POST https://api.example.com/./items/7", "", &[], false),
        ("POST api.example.com/", "POST https://api.example.com", "", &[], true),
        // No write covers a read, no read a write.
        ("POST api.example.com/items/7", "GET https://api.example.com/items/7", "", &[], false),
        ("GET api.example.com/items/7", post, "", &[], false),
        ("GET api.example.com", post, "", &[], false),
        ("GET api.example.com with key", post, "", &["key"], false),
        ("GET api.example.com/a", "GET https://api.example.com/a", "body", &[], false),
        ("GET api.example.com/a", "GET https://api.example.com/a?_method=DELETE", "", &[], false),
        ("GET api.example.com/a", "get https://api.example.com/a", "", &[], false),
        ("GET+BODY api.example.com/a", "GET https://api.example.com/a", "body", &[], true),
        ("GET+BODY api.example.com/a", "GET https://api.example.com/a", "", &[], false),
        ("GET+BODY api.example.com/a", "GET https://api.example.com/a?_method=DELETE", "body", &[], false),
        ("DELETE api.example.com/a", "GET https://api.example.com/a?_method=DELETE", "", &[], false),
        ("POST api.example.com/a", "POST https://api.example.com/a?_method=DELETE", "", &[], false),
        ("POST+DELETE api.example.com/a", "POST https://api.example.com/a?_method=DELETE", "", &[], true),
        // Reads by their credentials.
        ("GET api.example.com", "GET https://api.example.com/a?b", "", &[], true),
        ("GET api.example.com", "HEAD https://api.example.com/a", "", &[], true),
        ("HEAD api.example.com", "OPTIONS https://api.example.com/a", "", &[], true),
        ("GET api.example.com", "GET https://api.example.com/a", "", &["key"], false),
        ("GET api.example.com with key", "GET https://api.example.com/a", "", &["key"], true),
        ("GET api.example.com with key", "GET https://api.example.com/a", "", &[], true),
        ("GET api.example.com with key+other", "GET https://api.example.com/a", "", &["other"], true),
        ("GET api.example.com with key", "GET https://api.example.com/a", "", &["key", "other"], false),
        ("GET api.example.com/a with key", "GET https://api.example.com/b", "", &["key"], false),
        // A star is one segment, and one that every server takes for one.
        ("POST api.example.com/items/*", post, "", &[], true),
        ("POST api.example.com/*/7", post, "", &[], true),
        ("POST api.example.com/*", post, "", &[], false),
        ("POST api.example.com/items/*", "POST https://api.example.com/items/", "", &[], false),
        ("POST api.example.com/items/*", "POST https://api.example.com/items", "", &[], false),
        ("POST api.example.com/items/*", "POST https://api.example.com/items/7/pay", "", &[], false),
        ("POST api.example.com/items/*", "POST https://api.example.com/items/..", "", &[], false),
        ("POST api.example.com/items/*", "POST https://api.example.com/items/%2e%2E", "", &[], false),
        ("POST api.example.com/items/*", "POST https://api.example.com/items/..;a", "", &[], false),
        ("POST api.example.com/items/*", "POST https://api.example.com/items/a%2fb", "", &[], false),
        ("POST api.example.com/items/*", "POST https://api.example.com/items/a%5Cb", "", &[], false),
        ("POST api.example.com/items/*", "POST https://api.example.com/items/%C3%A9", "", &[], true),
        ("POST api.example.com/*/*/c", "POST https://api.example.com/a//c", "", &[], false),
        // Characters that a guest's library left unencoded read like encoded ones.
        ("POST api.example.com/%7Ba%7D", "POST https://api.example.com/{a}", "", &[], true),
    ] {
        let unit = unit(request, body, credentials);
        assert_eq!(self::shape(shape).covers(&unit), covers, "{shape} | {request} {body} {credentials:?}");
    }
}

#[test]
fn a_shape_lies_within_another_if_it_covers_no_more() {
    for (inner, outer, lies_within) in [
        ("POST api.example.com/a", "POST api.example.com/a", true),
        ("POST api.example.com/a", "POST api.example.com", true),
        ("POST api.example.com/a", "api.example.com", true),
        ("POST api.example.com/a", "api.example.com/a", true),
        ("POST api.example.com/a", "*.example.com", true),
        ("POST api.example.com/items/7", "POST api.example.com/items/*", true),
        ("GET api.example.com/a with key", "GET api.example.com with key+other", true),
        ("GET api.example.com/a with key", "api.example.com", true),
        ("POST api.example.com:8443/a", "POST api.example.com:8443", true),
        ("POST api.example.com", "POST api.example.com/a", false),
        ("api.example.com", "POST api.example.com", false),
        ("PUT api.example.com/a", "POST api.example.com/a", false),
        ("POST api.example.com/items/7/x", "POST api.example.com/items/*", false),
        ("POST api.example.com/items/", "POST api.example.com/items/*", false),
        ("POST api.example.com/items/*", "POST api.example.com/items/7", false),
        ("POST b.example.org/a", "POST api.example.com/a", false),
        ("POST api.example.com:8443/a", "POST api.example.com/a", false),
        ("POST api.example.com/a", "POST api.example.com:443/a", false),
        ("*.example.com", "api.example.com", false),
        ("GET api.example.com with key", "GET api.example.com", false),
    ] {
        let read = |text: &str| text.parse::<Shape>().unwrap();
        assert_eq!(read(inner).is_within(&read(outer)), lies_within, "{inner} within {outer}");
    }
    let is_any = |text: &str| text.parse::<Shape>().unwrap().is_any_path();
    assert!(["a.example.com", "POST a.example.com", "POST a.example.com/*/*"].into_iter().all(is_any));
    assert!(!["POST a.example.com/", "POST a.example.com/v1/*"].into_iter().any(is_any));
}

#[test]
fn what_a_run_computed_with_a_credential_is_keyed() {
    let mut read = unit("GET https://api.example.com/a", "", &[]);
    read.computed_with = ["a", "b"].map(|name| CredentialName::parse(name).unwrap()).into();
    for (shape, covers) in [
        ("GET api.example.com", false),
        ("GET api.example.com with a", false),
        ("GET api.example.com with a+b", true),
        ("api.example.com", true),
    ] {
        assert_eq!(self::shape(shape).covers(&read), covers, "{shape}");
    }
}

#[test]
fn a_port_can_be_pinned() {
    let class = unit("POST https://api.example.com/a", "", &[]).class().unwrap();
    let in_clear = unit("POST http://api.example.com/a", "", &[]);
    assert!(class.covers(&in_clear), "as patterns of domains do");
    let pinned = class.at_port(443);
    assert_eq!(pinned.to_string(), "POST api.example.com:443/a");
    assert!(!pinned.covers(&in_clear) && pinned.covers(&unit("POST https://api.example.com/a", "", &[])));
}

#[test]
fn shapes_tell_how_wide_they_are() {
    for (text, is_whole_host, lets_data_out) in [
        ("api.example.com", true, true),
        ("*", true, true),
        ("api.example.com/a", false, true),
        ("GET api.example.com/a", false, true),
        ("GET api.example.com", false, false),
        ("GET api.example.com with key", false, false),
        ("POST api.example.com/a", false, true),
    ] {
        let shape = shape(text);
        assert_eq!((shape.is_whole_host(), shape.lets_data_out()), (is_whole_host, lets_data_out), "{text}");
        assert_eq!(shape.host().to_string(), if text == "*" { "*" } else { "api.example.com" });
    }
}

proptest! {
    #[test]
    fn a_shape_reads_itself(
        method in "([A-Z]{1,6}(\\+[A-Z]{1,6})? )?",
        host in r"(\*\.)?[a-z][a-z0-9]{0,5}\.example(:[1-9][0-9]{0,3})?",
        path in r"(/([a-zA-Z0-9%.{}~é;=@'-]{1,6}|\*)){0,4}/?",
        with in "( with [a-z]{1,4}(\\+[a-z]{1,4})?)?",
    ) {
        if let Ok(shape) = format!("{method}{host}{path}{with}").parse::<Shape>() {
            prop_assert_eq!(&shape.to_string().parse::<Shape>().unwrap(), &shape);
            let json = serde_json::to_string(&shape).unwrap();
            prop_assert_eq!(serde_json::from_str::<Shape>(&json).unwrap(), shape);
        }
    }

    #[test]
    fn a_class_covers_its_request_and_reads_itself(
        method in "GET|HEAD|OPTIONS|POST|PUT|DELETE|get|X-ODD",
        host in r"[a-z]{1,5}(\.[a-z]{2,5}){0,2}|\[2001:db8::7\]|127\.0\.0\.1",
        port in "(:[1-9][0-9]{0,3})?",
        path in r"(/[a-zA-Z0-9%.{}~;=@'*-]{0,4}){0,4}",
        query in r"(\?(_method|HTTP.method|q)=[a-zA-Z+%]{0,6})?",
        body in "|x",
        keys in proptest::collection::vec("[a-z]{1,4}", 0..3),
    ) {
        let url = format!("https://{host}{port}{path}{query}").parse::<http::Uri>();
        if let Some(target) = url.ok().and_then(|url| Target::from_uri(&url).ok()) {
            let mut unit = Unit::new(method.parse().unwrap(), target, HeaderMap::new(), body.into());
            unit.credentials = keys.iter().map(|key| CredentialName::parse(key).unwrap()).collect();
            for class in [unit.class(), unit.carrying_class()].into_iter().flatten() {
                prop_assert!(class.covers(&unit), "{} {:?}", class, unit);
                prop_assert!(class.clone().at_port(unit.target.port()).covers(&unit));
                prop_assert_eq!(class.to_string().parse::<Shape>().unwrap(), class.clone());
                prop_assert!(!class.is_whole_host());
                // The class of a write is no class of a read.
                let reads = class.to_string().starts_with("GET ");
                prop_assert_eq!(reads, unit.nature() != Nature::Write);
            }
        }
    }
}

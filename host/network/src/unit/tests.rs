//! The parts of a request, its nature, and the class of its question.

use http::HeaderValue;

use super::*;

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let header =
        |(name, value): &(&'static str, &str)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
    let mut map = HeaderMap::new();
    for (name, value) in pairs.iter().map(header) {
        map.append(name, value);
    }
    map
}

fn unit(method: &str, url: &str, pairs: &[(&'static str, &str)], body: &'static str) -> Unit {
    Unit::new(method.parse().unwrap(), Target::parse(url).unwrap(), headers(pairs), body.as_bytes().into())
}

fn names(names: &[&str]) -> BTreeSet<CredentialName> {
    names.iter().map(|name| CredentialName::parse(name).unwrap()).collect()
}

const URL: &str = "https://api.example.com/a/b?c=d";

#[test]
fn one_changed_byte_is_another_request() {
    let key = [("x-key", "value")];
    let base = || unit("POST", URL, &key, "pay 12.50 to Anna");
    let of = |method: &str, url: &str| unit(method, url, &key, "pay 12.50 to Anna");
    let with = |pairs: &[(&'static str, &str)]| unit("POST", URL, pairs, "pay 12.50 to Anna");
    let mut keyed = base();
    keyed.credentials = names(&["token"]);
    let mut keyed_otherwise = base();
    keyed_otherwise.credentials = names(&["tokem"]);
    let others = [
        of("PUT", URL),
        of("POSU", URL),
        of("POST", "http://api.example.com:443/a/b?c=d"),
        of("POST", "https://apj.example.com/a/b?c=d"),
        of("POST", "https://api.example.com:444/a/b?c=d"),
        of("POST", "https://api.example.com/a/c?c=d"),
        of("POST", "https://api.example.com/a/B?c=d"),
        of("POST", "https://api.example.com/a%2Fb?c=d"),
        of("POST", "https://api.example.com/a/b?c=e"),
        of("POST", "https://api.example.com/a/b?"),
        of("POST", "https://api.example.com/a/b"),
        of("POST", "https://api.example.com/a/b/c=d"),
        unit("POST", URL, &key, "pay 12.51 to Anna"),
        unit("POST", URL, &key, "pay 12.50 to Anna "),
        unit("POST", URL, &key, ""),
        with(&[]),
        with(&[("x-key", "valuf")]),
        with(&[("x-kez", "value")]),
        with(&[("x-key", "value"), ("x-key", "value")]),
        with(&[("x-key", "value"), ("x-other", "")]),
        with(&[("x-key", "val"), ("x-key", "ue")]),
        with(&[("x-key", "value"), ("content-type", "application/json")]),
        with(&[("x-key", "value"), ("authorization", "Bearer <credential:token>")]),
        keyed,
        keyed_otherwise,
    ];
    let mut hashes: Vec<ContentHash> = others.iter().map(Unit::hash).chain([base().hash()]).collect();
    assert_eq!(base().hash(), base().hash());
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), others.len() + 1);
}

#[test]
fn what_changes_nothing_is_the_same_request() {
    let base = unit("POST", URL, &[("x-a", "1"), ("x-b", "2")], "body");
    let neutral =
        [("x-b", "2"), ("x-a", "1"), ("accept", "*/*"), ("accept-language", "de"), ("user-agent", "curl/8.5.0")];
    assert_eq!(unit("POST", URL, &neutral, "body").hash(), base.hash());
    assert_eq!(unit("POST", "https://API.example.com.:443/a/b?c=d#e", &neutral, "body").hash(), base.hash());
    let mut computed = base.clone();
    computed.computed_with = names(&["token"]);
    assert_eq!(computed.hash(), base.hash(), "a repeated call may have computed before");
    // A value that no client sends by itself is content, in one header or in many.
    let long = "a".repeat(MAX_NEUTRAL_BYTES + 1);
    assert_ne!(unit("POST", URL, &[("x-a", "1"), ("x-b", "2"), ("user-agent", &long)], "body").hash(), base.hash());
    let (half, mut split) = ("a".repeat(MAX_NEUTRAL_BYTES / 2), base.clone());
    for _ in 0..3 {
        split.headers.append(header::ACCEPT, HeaderValue::from_str(&half).unwrap());
    }
    assert_ne!(split.hash(), base.hash());
}

#[test]
fn parts_do_not_run_into_each_other() {
    let of = |pairs: &[(&'static str, &str)], body| unit("POST", "https://e.example/", pairs, body).hash();
    assert_ne!(of(&[("a", "bc")], ""), of(&[("ab", "c")], ""));
    assert_ne!(of(&[("a", "b")], "c"), of(&[("a", "bc")], ""));
    assert_ne!(of(&[("a", "b"), ("a", "c")], ""), of(&[("a", "b"), ("c", "")], ""));
    let keyed = |credentials: &[&str]| {
        let mut unit = unit("GET", "https://e.example/", &[], "");
        unit.credentials = names(credentials);
        unit.hash()
    };
    assert_ne!(keyed(&["ab", "c"]), keyed(&["a", "bc"]));
}

#[test]
fn nature_and_class_of_what_is_sent() {
    let host = "https://api.example.com";
    let over = |method| [("x-http-method-override", method)];
    let (delete, get) = (over("DELETE"), over("get"));
    for (method, path, pairs, body, nature, class) in [
        ("GET", "/a?q=1", &[][..], "", Nature::Read, Some("GET api.example.com")),
        ("HEAD", "/a//b", &[], "", Nature::Read, Some("GET api.example.com")),
        ("OPTIONS", "/", &[], "", Nature::Read, Some("GET api.example.com")),
        ("GET", "/a", &get, "", Nature::Read, Some("GET api.example.com")),
        ("GET", "/a?_method=head", &[], "", Nature::Read, Some("GET api.example.com")),
        ("GET", "/a?method=DELETE&xmethod=PUT", &[], "", Nature::Read, Some("GET api.example.com")),
        ("POST", "/a?q=1", &[], "x", Nature::Write, Some("POST api.example.com/a")),
        ("POST", "/a", &get, "x", Nature::Write, Some("POST api.example.com/a")),
        ("PURGE", "/", &[], "", Nature::Write, Some("PURGE api.example.com/")),
        ("GET", "/a", &[], "x", Nature::Write, Some("GET+BODY api.example.com/a")),
        ("HEAD", "/a", &delete, "", Nature::Write, Some("GET+DELETE api.example.com/a")),
        ("POST", "/a", &delete, "", Nature::Write, Some("POST+DELETE api.example.com/a")),
        ("DELETE", "/a", &delete, "", Nature::Write, Some("DELETE api.example.com/a")),
        ("GET", "/a?_method=DELETE", &[], "", Nature::Write, Some("GET+DELETE api.example.com/a")),
        ("GET", "/a?b&_METHOD=delete", &[], "", Nature::Write, Some("GET+DELETE api.example.com/a")),
        ("GET", "/a?%5fmethod=%44ELETE", &[], "", Nature::Write, Some("GET+DELETE api.example.com/a")),
        ("GET", "/a?b=c;_method=DELETE", &[], "", Nature::Write, Some("GET+DELETE api.example.com/a")),
        ("GET", "/a?.method=DELETE", &[], "", Nature::Write, Some("GET+DELETE api.example.com/a")),
        ("GET", "/a?_HttpMethod=put", &[], "", Nature::Write, Some("GET+PUT api.example.com/a")),
        ("GET", "/a?http_method=put", &[], "", Nature::Write, Some("GET+PUT api.example.com/a")),
        ("GET", "/a?X-HTTP-Method-Override=put", &[], "", Nature::Write, Some("GET+PUT api.example.com/a")),
        ("GET", "/a?x-method-override=+put+", &[], "", Nature::Write, Some("GET+PUT api.example.com/a")),
        ("GET", "/a?_method=put", &delete, "", Nature::Write, Some("GET+DELETE+PUT api.example.com/a")),
        // A request that servers may read in different ways has no class.
        ("GET", "/a?_method=", &[], "", Nature::Write, None),
        ("GET", "/a?_method=put%2Cdelete", &[], "", Nature::Write, None),
        ("get", "/a", &[], "", Nature::Write, None),
        ("post", "/a", &[], "", Nature::Write, None),
        ("POST", "/a//b", &[], "", Nature::Write, None),
        ("POST", "/a/../b", &[], "", Nature::Write, None),
        ("POST", "/a/%2e%2e/b", &[], "", Nature::Write, None),
        ("POST", "/a/*", &[], "", Nature::Write, None),
    ] {
        let unit = unit(method, &format!("{host}{path}"), pairs, body);
        assert_eq!(unit.nature(), nature, "{method} {path} {pairs:?}");
        assert_eq!(unit.class().map(|class| class.to_string()).as_deref(), class, "{method} {path} {pairs:?}");
    }
}

#[test]
fn reads_are_told_apart_by_their_credentials() {
    let mut read = unit("GET", "http://127.0.0.1:8080/a/b?q=1", &[], "");
    let classes = |unit: &Unit| [unit.class(), unit.carrying_class()].map(|class| class.unwrap().to_string());
    assert_eq!(classes(&read), ["GET 127.0.0.1:8080", "GET 127.0.0.1:8080/a/b"]);
    read.credentials = names(&["b", "a"]);
    assert_eq!(read.nature(), Nature::KeyedRead);
    assert_eq!(classes(&read), ["GET 127.0.0.1:8080 with a+b", "GET 127.0.0.1:8080/a/b with a+b"]);
    (read.credentials, read.computed_with) = (names(&["a"]), names(&["c"]));
    assert_eq!(classes(&read), ["GET 127.0.0.1:8080 with a+c", "GET 127.0.0.1:8080/a/b with a+c"]);
    // A write stays a write, with any content.
    read.method = Method::POST;
    assert_eq!(classes(&read)[0], "POST 127.0.0.1:8080/a/b");
    read.is_showable = false;
    assert_eq!((read.class(), read.carrying_class()), (None, None));
}

#[test]
fn a_form_names_a_method_as_a_query_does() {
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let multipart = [("content-type", "multipart/form-data; boundary=x")];
    let part = "--x\r\nContent-Disposition: form-data; name=\"_method\"\r\n\r\nDELETE\r\n--x--\r\n";
    for (headers, body, class) in [
        (&form[..], "a=1&_method=delete", "POST+DELETE"),
        (&form, "%5Fmethod=PUT", "POST+PUT"),
        (&form, "method=DELETE&b=_method", "POST"),
        (&multipart, part, "POST+OVERRIDE"),
        (&[("content-type", "text/plain")], "_method=DELETE", "POST"),
        (&[("x_http_method_override", "DELETE")], "", "POST+DELETE"),
    ] {
        let class_of = unit("POST", URL, headers, body).class().unwrap().to_string();
        assert_eq!(class_of, format!("{class} api.example.com/a/b"), "{body}");
    }
    let read = unit("GET", URL, &[("x_http_method-override", "DELETE")], "");
    assert_eq!(
        (read.nature(), read.class().unwrap().to_string()),
        (Nature::Write, "GET+DELETE api.example.com/a/b".to_owned())
    );
}

#[test]
fn a_header_carries_nothing_only_if_a_tool_says_it_by_itself() {
    let tools = [("accept", "*/*"), ("user-agent", "curl/8.5.0"), ("x-data", "curl/8.5.0")];
    let left = |pairs: &[(&'static str, &str)]| {
        let unit = unit("GET", URL, pairs, "");
        unit.headers_without(|name| unit.is_of_tool(name))
    };
    assert_eq!(left(&tools), headers(&tools[2..]));
    for said in [
        [("user-agent", "curl/8.5.1")].as_slice(),
        &[("accept-language", "de")],
        &[("idempotency-key", "7f3a9c")],
        &[("user-agent", "curl/8.5.0"), ("user-agent", "7f3a9c")],
    ] {
        assert_eq!(left(said), headers(said));
    }
}

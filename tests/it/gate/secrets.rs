//! Secrets go to the server they are for and nowhere else, and do not come back, however the server sends them (SPEC VAULT-3).

use std::io::Read as _;

use tests::block_on;
use tests::network::encoding::forms_in;
use tests::network::{Encoding, Reply, Site};

use super::{Asked, Request, Way, check, get};

const PLACEHOLDER: &str = "<credential:key>";

/// Values as keys have them: letters, signs that URLs and JSON escape, long ones, few different letters.
fn secrets() -> Vec<String> {
    let long: String = (0..600).map(|number| char::from(b'!' + u8::try_from(number * 7 % 90).unwrap())).collect();
    [
        "sk-canary-5f1c0ffee4b1d9a7",
        "k3y/+=&%?#canary~8d1f \"quoted\" \\back",
        &long,
        "aaaaaaaaaaaaaaaaaaab",
        "0123456789",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// The run has a secret for the site.
fn with(site: &Site, secret: &str) -> Way {
    Way::to_site(site).credential("key", secret, &[site.address().to_string()])
}

/// Checks that nothing the run or its owner can see holds the secret.
#[track_caller]
fn unseen(call: &network::CallNetwork, asked: &Asked, secret: &str, what: &str) {
    let mut seen = format!("{:?} {:?}", call.traces(), call.last_refusal()).into_bytes();
    match asked {
        Asked::Answered(answer) => {
            seen.extend(answer.seen());
            if answer.header("content-encoding").is_some_and(|encoding| encoding.contains("gzip")) {
                let mut plain = Vec::new();
                flate2::read::GzDecoder::new(answer.body.as_slice()).read_to_end(&mut plain).unwrap();
                seen.extend(plain);
            }
        }
        Asked::Failed(error) => seen.extend(format!("{error} {error:?}").into_bytes()),
        Asked::Unwritable => panic!("{what}: {asked:?}"),
    }
    let forms = forms_in(&seen, secret);
    assert!(forms.is_empty(), "{what}: {secret:?} is seen as {forms:?}: {asked:?}");
}

#[test]
fn a_secret_does_not_come_back_in_any_form() {
    block_on(async {
        let site = Site::start().await;
        let header = || "x-key".to_owned();
        let mut replies: Vec<(String, Reply)> = Encoding::ALL
            .into_iter()
            .map(|encoding| (format!("{encoding:?}"), Reply::echo("x-key", encoding)))
            .collect();
        replies.push(("headers and reason".to_owned(), Reply::EchoInHead { header: header() }));
        replies.push(("an error".to_owned(), Reply::EchoInError { header: header() }));
        replies.push(("a redirect".to_owned(), Reply::EchoInLocation { header: header() }));
        for bytes in [1, 2, 3, 7] {
            replies.push((format!("pieces of {bytes}"), Reply::EchoInPieces { header: header(), bytes }));
        }
        for secret in secrets() {
            let call = with(&site, &secret).open();
            for (what, reply) in &replies {
                site.route("/echo", reply.clone());
                let request =
                    Request { url: &site.url("/echo"), headers: &[("x-key", PLACEHOLDER)], ..Request::default() };
                let asked = request.ask(&call).await;
                assert_eq!(site.last_request().header("x-key").as_deref(), Some(secret.as_str()), "{what}");
                unseen(&call, &asked, &secret, what);
                if *what == "Plain" || what.starts_with("pieces") {
                    assert_eq!(asked.answer().text(), PLACEHOLDER, "{what}");
                }
            }
        }
    });
}

#[test]
fn a_secret_is_put_into_bodies_and_urls_and_does_not_come_back_from_them() {
    block_on(async {
        let site = Site::start().await;
        for secret in secrets() {
            let call = with(&site, &secret).open();
            for encoding in Encoding::ALL {
                site.route("/body", Reply::EchoBody(encoding));
                site.route("/url", Reply::EchoTarget(encoding));
                let (body, url) = (format!("a={PLACEHOLDER}&b=1"), site.url("/body"));
                let asked = Request { method: "POST", url: &url, body: &body, ..Request::default() }.ask(&call).await;
                let received = site.last_request();
                assert_eq!(received.text(), format!("a={secret}&b=1"));
                let length = received.header("content-length");
                assert!(length.is_none_or(|length| length == received.body.len().to_string()), "{received:?}");
                unseen(&call, &asked, &secret, "a body");

                let url = site.url("/url?a=1&key=%3Ccredential:key%3E&b=2");
                let asked = get(&call, &url).await;
                let target = site.last_request().target;
                // In a URL it is one value, with any characters in it.
                let value = target.strip_prefix("/url?a=1&key=").and_then(|rest| rest.strip_suffix("&b=2"));
                assert_eq!(decoded(value.unwrap_or_else(|| panic!("{target}"))), secret);
                unseen(&call, &asked, &secret, "a URL");
            }
        }
    });
}

#[test]
fn a_secret_is_written_as_its_place_demands() {
    block_on(async {
        let site = Site::start().await.with("/", Reply::EchoBody(Encoding::Plain));
        let url = site.url("/");
        for secret in secrets() {
            let call = with(&site, &secret).open();
            let json = &[("content-type", "application/json")][..];
            let form = &[("content-type", "application/x-www-form-urlencoded")][..];
            let body = r#"{"key": "<credential:key>", "role": "user"}"#;
            let asked = Request { method: "POST", url: &url, headers: json, body }.ask(&call).await;
            // It cannot end the string that it stands in, and cannot add a field.
            let received: serde_json::Value = serde_json::from_slice(&site.last_request().body).unwrap();
            assert_eq!(received, serde_json::json!({ "key": secret, "role": "user" }));
            unseen(&call, &asked, &secret, "JSON");

            let body = "key=%3Ccredential%3Akey%3E&role=user";
            let asked = Request { method: "POST", url: &url, headers: form, body }.ask(&call).await;
            let received = site.last_request().text();
            let value = received.strip_prefix("key=").and_then(|rest| rest.strip_suffix("&role=user"));
            assert_eq!(decoded(&value.unwrap_or_else(|| panic!("{received}")).replace('+', " ")), secret);
            unseen(&call, &asked, &secret, "a form");

            // `curl -u user:<credential:key>`
            let basic = Encoding::Base64(0).apply(b"user:<credential:key>");
            let basic = format!("Basic {}", String::from_utf8(basic).unwrap());
            site.route("/basic", Reply::echo("authorization", Encoding::Plain));
            let (url, headers) = (site.url("/basic"), &[("authorization", basic.as_str())]);
            let asked = Request { url: &url, headers, ..Request::default() }.ask(&call).await;
            let sent = Encoding::Base64(0).apply(format!("user:{secret}").as_bytes());
            let sent = format!("Basic {}", String::from_utf8(sent).unwrap());
            assert_eq!(site.last_request().header("authorization"), Some(sent));
            unseen(&call, &asked, &secret, "basic credentials");
        }
    });
}

/// The text without its percent-encoding.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first == b'%' {
            bytes.push(u8::from_str_radix(std::str::from_utf8(&after[..2]).unwrap(), 16).unwrap());
            rest = &after[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_secret_goes_only_where_it_was_bound_to() {
    block_on(async {
        let (bound, other) = (Site::start().await, Site::start().await);
        for site in [&bound, &other] {
            site.route("/", Reply::text("ok"));
        }
        let both = [bound.address().to_string(), other.address().to_string()];
        let secret = "sk-canary-5f1c0ffee4b1d9a7";
        let call = Way::to(&both).private(&bound).private(&other).credential("key", secret, &both[..1]).open();
        let nowhere: [&str; 0] = [];
        let unbound = Way::to(&both).private(&bound).private(&other).credential("key", secret, &nowhere).open();
        let (here, there) = (bound.url("/"), other.url("/"));
        let in_url = other.url("/?k=%3Ccredential:key%3E");
        let header = &[("authorization", "Bearer <credential:key>")][..];
        let missing = &[("authorization", "Bearer <credential:missing>")][..];
        for (what, call, url, headers, body, expected) in [
            ("a header to another", &call, &there, header, "", "blocked credential_not_for_domain"),
            ("a URL to another", &call, &in_url, &[][..], "", "blocked credential_not_for_domain"),
            ("a body to another", &call, &there, &[], "a <credential:key> b", "blocked credential_not_for_domain"),
            ("nobody was named", &unbound, &here, header, "", "blocked credential_not_for_domain"),
            ("one that is not there", &call, &here, missing, "", "blocked credential_not_granted"),
        ] {
            let asked = Request { method: "POST", url, headers, body }.ask(call).await;
            check(&asked, expected, what);
            unseen(call, &asked, secret, what);
        }
        assert_eq!((bound.connections(), other.connections()), (0, 0));
        // Never in the place of a host, a method or a header's name: those are not values.
        for url in ["http://<credential:key>/", "http://%3Ccredential:key%3E/", "http://x.<credential:key>.evil.test/"]
        {
            check(&get(&call, url).await, "blocked invalid_url", url);
        }
        let request = Request { url: &here, headers: header, ..Request::default() };
        check(&request.ask(&call).await, "200", "to whom it is bound");
        assert_eq!(bound.last_request().header("authorization"), Some(format!("Bearer {secret}")));
        // A text that only looks like one is text.
        let body = "<credential:1> <credential:> <credential:key <credential key> &lt;credential:key&gt;";
        check(&Request { method: "POST", url: &there, body, ..Request::default() }.ask(&call).await, "200", "text");
        assert_eq!(other.last_request().text(), body);
    });
}

#[test]
fn a_secret_that_would_break_a_header_is_not_put_in() {
    block_on(async {
        let site = Site::start().await.with("/", Reply::text("ok"));
        for secret in ["s3cret-012345\r\nX-Evil: 1", "s3cret-012345\nX-Evil: 1", "s3cret-\0-012345"] {
            let call = with(&site, secret).open();
            let request = Request { url: &site.url("/"), headers: &[("x-key", PLACEHOLDER)], ..Request::default() };
            let asked = request.ask(&call).await;
            check(&asked, "blocked header", "a secret with a line break");
            unseen(&call, &asked, secret, "a secret with a line break");
            assert!(site.requests().is_empty());
        }
        // In a URL it is encoded.
        let call = with(&site, "s3cret-012345\r\nX-Evil: 1").open();
        get(&call, &site.url("/?k=%3Ccredential:key%3E")).await.answer();
        assert_eq!(site.last_request().header("x-evil"), None);
        assert_eq!(decoded(site.last_request().target.strip_prefix("/?k=").unwrap()), "s3cret-012345\r\nX-Evil: 1");
    });
}

#[test]
fn what_is_not_a_secret_comes_back_as_it_was_sent() {
    block_on(async {
        let site = Site::start().await;
        let call = with(&site, "sk-canary-5f1c0ffee4b1d9a7").open();
        // Half of it, nearly it, and bytes that are not text, in pieces and whole.
        let near =
            "sk-canary-5f1c0ffee4b1d9 sk-canary-5f1c0ffee4b1d9ax SK-CANARY sk-sk-sk-canary-5f1c0ffe \u{fffd} Ünï";
        for encoding in Encoding::ALL {
            site.route("/echo", Reply::EchoBody(encoding));
            let request = Request { method: "POST", url: &site.url("/echo"), body: near, ..Request::default() };
            let answer = request.ask(&call).await.answer();
            if encoding == Encoding::Gzip {
                let mut plain = answer.body.clone();
                if answer.header("content-encoding").is_some() {
                    plain.clear();
                    flate2::read::GzDecoder::new(answer.body.as_slice()).read_to_end(&mut plain).unwrap();
                }
                assert_eq!(String::from_utf8(plain).unwrap(), near);
            } else {
                assert_eq!(answer.body, encoding.apply(near.as_bytes()), "{encoding:?}");
            }
        }
        let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", bytes.len());
        site.route("/bytes", Reply::Raw([head.as_bytes(), &bytes].concat()));
        assert_eq!(get(&call, &site.url("/bytes")).await.answer().body, bytes);
    });
}

#[test]
fn a_secret_the_run_was_not_granted_does_not_come_back_either() {
    block_on(async {
        let (site, elsewhere) = (Site::start().await, "api.elsewhere.test");
        let secret = "sk-canary-5f1c0ffee4b1d9a7";
        site.route("/leak", Reply::text(&format!("found: {secret}")));
        let call = Way::to_site(&site).credential("key", secret, &[elsewhere]).open();
        let answer = get(&call, &site.url("/leak")).await.answer();
        assert_eq!(answer.text(), format!("found: {PLACEHOLDER}"));
    });
}

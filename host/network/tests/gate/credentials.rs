//! Secrets go to their servers and to nobody else, and what comes back holds none.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use network::{CallLimits, CallNetwork, GateError, Rule, Timeouts};
use tokio::io::AsyncWriteExt as _;

use crate::dns::Dns;
use crate::server::Server;
use crate::setup::{LIMITS, Setup, blocked, post, request, text};

const SECRET: &str = "hunter2/swordfish+42";

fn call(server: &Server) -> CallNetwork {
    let address = server.address.to_string();
    Setup::default().reaching(server.address).credential("key", SECRET, &address).call()
}

/// Says back everything it was sent, in a header and in the body, cut into small pieces.
async fn echo() -> Server {
    Server::talking(|mut stream, received| async move {
        let key = received.header("authorization").unwrap_or_default().to_owned();
        let text = received.text();
        let head = format!("HTTP/1.1 200 OK\r\nx-echo: {key}\r\ncontent-length: {}\r\n\r\n", text.len());
        stream.write_all(head.as_bytes()).await.unwrap();
        for piece in text.as_bytes().chunks(7) {
            stream.write_all(piece).await.unwrap_or_default();
            stream.flush().await.unwrap_or_default();
            tokio::task::yield_now().await;
        }
    })
    .await
}

#[tokio::test]
async fn a_secret_arrives_and_does_not_come_back() {
    let server = echo().await;
    let call = call(&server);
    let headers = [("authorization", "Bearer <credential:key>"), ("content-type", "application/json")];
    let url = server.url("/a/%3Ccredential%3Akey%3E?k=%3Ccredential%3Akey%3E");
    let body = r#"{"key": "<credential:key>"}"#;
    let response = call.send(request("POST", &url, &headers, body), Timeouts::default()).await.unwrap();
    assert_eq!(response.headers()["x-echo"], "Bearer <credential:key>");
    let text = text(response).await.unwrap();
    assert!(!text.contains("hunter2") && text.contains("<credential:key>"), "{text}");

    let received = &server.requests()[0];
    assert_eq!(received.header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
    assert!(
        received.head.starts_with("POST /a/hunter2%2Fswordfish%2B42?k=hunter2%2Fswordfish%2B42 "),
        "{}",
        received.head
    );
    assert_eq!(received.body, format!(r#"{{"key": "{SECRET}"}}"#).into_bytes());
    assert_eq!(received.header("content-length"), Some(received.body.len().to_string().as_str()));
    let trace = &call.traces()[0];
    assert_eq!(
        (trace.credentials.as_slice(), trace.path.as_str()),
        (&["key".to_owned()][..], "/a/%3Ccredential%3Akey%3E?k")
    );
    assert!(!format!("{:?}", call.traces()).contains("hunter2"));
}

#[tokio::test]
async fn a_secret_does_not_come_back_compressed_or_in_an_error() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(format!("you sent {SECRET}").as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    let answer = [b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n".as_slice(), &packed].concat();
    let server = Server::saying(answer).await;
    let with_key = |url: &str| request("GET", url, &[("x-key", "<credential:key>")], "");
    let response = call(&server).send(with_key(&server.url("/")), Timeouts::default()).await.unwrap();
    assert!(response.headers().get("content-encoding").is_none());
    assert_eq!(text(response).await.unwrap(), "you sent <credential:key>");

    let server = Server::saying(format!("{SECRET}\r\n\r\n")).await;
    let call = call(&server);
    let error = call.send(with_key(&server.url("/")), Timeouts::default()).await.err().unwrap();
    assert!(!format!("{error:?} {error} {:?}", call.traces()).contains("hunter2"), "{error:?}");
}

#[tokio::test]
async fn a_secret_goes_nowhere_else() {
    let (server, other) = (Server::ok("hello").await, Server::ok("hello").await);
    let setup = || {
        let setup = Setup::default().reaching(server.address).reaching(other.address);
        setup.credential("key", SECRET, &server.address.to_string()).credential("wide", SECRET, "*.com")
    };
    let call = setup().call();
    let form = [("content-type", "application/x-www-form-urlencoded")];
    for (url, headers, body, rule) in [
        (other.url("/"), &[("x-key", "<credential:key>")][..], "", Rule::CredentialNotForDomain),
        (other.url("/"), &[], "<credential:key>", Rule::CredentialNotForDomain),
        (other.url("/%3Ccredential:key%3E"), &[], "", Rule::CredentialNotForDomain),
        (other.url("/"), &form, "k=%3Ccredential%3Akey%3E", Rule::CredentialNotForDomain),
        (server.url("/"), &[("x-key", "<credential:wide>")], "", Rule::CredentialNotForDomain),
        (server.url("/"), &[("x-key", "<credential:missing>")], "", Rule::CredentialNotGranted),
        (server.url("/"), &[("x-key", "<credential:key><credential:missing>")], "", Rule::CredentialNotGranted),
        (
            server.url("/"),
            &[("authorization", "Basic bWU6PGNyZWRlbnRpYWw6bWlzc2luZz4=")],
            "",
            Rule::CredentialNotGranted,
        ),
    ] {
        let outcome = call.send(request("POST", &url, headers, body), Timeouts::default()).await;
        assert_eq!(blocked(outcome.map(drop)).rule, rule, "{url} {headers:?} {body}");
    }
    assert_eq!((server.connections(), other.connections()), (0, 0));
    let outcome =
        call.send(request("POST", &server.url("/"), &[("x-key", "<credential:key>")], ""), Timeouts::default()).await;
    assert_eq!(text(outcome.unwrap()).await.unwrap(), "hello");
}

#[tokio::test]
async fn a_secret_does_not_cross_the_internet_in_clear_text() {
    // A public address: the refusal comes before the connection.
    let dns = Dns::answering(&[&["192.5.5.241"]]).await;
    let call = Setup::default().domains(&["site.example"]).dns(&dns).credential("key", SECRET, "site.example").call();
    let request = request("GET", "http://site.example/", &[("x-key", "<credential:key>")], "");
    let refusal = blocked(call.send(request, Timeouts::default()).await.map(drop));
    assert_eq!((refusal.rule, refusal.remedy.as_str()), (Rule::CredentialNotForDomain, "use `https://site.example`"));
    assert_eq!(dns.questions(), 2);
}

#[tokio::test]
async fn a_secret_cannot_be_fetched_in_halves() {
    let whole = Server::ok("whole").await;
    let part = Server::saying("HTTP/1.1 206 Partial Content\r\ncontent-length: 4\r\n\r\nhalf").await;
    for with_key in [true, false] {
        let ask = async |server: &Server| {
            let mut headers = vec![("range", "bytes=0-7"), ("if-range", "\"tag\"")];
            headers.extend(with_key.then_some(("x-key", "<credential:key>")));
            let call = call(server);
            let response = call.send(request("GET", &server.url("/"), &headers, ""), Timeouts::default()).await;
            match response {
                Ok(response) => text(response).await,
                Err(error) => Err(error),
            }
        };
        assert_eq!(ask(&whole).await.unwrap(), "whole");
        for header in ["range", "if-range"] {
            let received = whole.requests().last().unwrap().header(header).is_some();
            assert_eq!(received, !with_key, "{header}");
        }
        let outcome = ask(&part).await;
        if with_key {
            let error = outcome.unwrap_err();
            assert!(matches!(&error, GateError::Protocol { message, .. } if message.contains("206")), "{error:?}");
        } else {
            assert_eq!(outcome.unwrap(), "half");
        }
    }
}

#[tokio::test]
async fn placeholders_do_not_multiply_a_request() {
    let server = Server::ok("hello").await;
    let value: &'static str = "0123456789abcdef".repeat(4000).leak();
    let address = server.address.to_string();
    let call = |request_bytes| {
        let setup = Setup::default().reaching(server.address).credential("key", value, &address);
        setup.run().call(CallLimits { request_bytes, ..LIMITS })
    };
    // Of 64 kB each: 2 MB.
    let body = "<credential:key>\n".repeat(32);
    assert_eq!(post(&call(4 << 20), &server.url("/"), &body).await.unwrap(), "hello");
    let error = post(&call(1 << 20), &server.url("/"), &body).await.unwrap_err();
    assert_eq!(error, GateError::Limit { limit: "request_bytes", value: 1 << 20 });
    let refusal = blocked(post(&call(4 << 20), &server.url("/"), &"<credential:key>\n".repeat(33)).await);
    assert_eq!(refusal.rule, Rule::TooManyPlaceholders);
    assert_eq!(server.requests().len(), 1);
}

//! Secrets go to their own servers only, and responses hold none.

use std::io::Write as _;
use std::sync::{Arc, Mutex};

use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::BodyExt as _;
use network::{CallLimits, CallNetwork, GateError, Rule, RunNetwork, Timeouts};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;

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

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const JSON: (&str, &str) = ("content-type", "application/json");

/// The value in ways that no reader of text sees through by itself.
fn written() -> Vec<(&'static str, Vec<u8>)> {
    let bytes = SECRET.as_bytes();
    let each = |write: fn(&u8) -> String| bytes.iter().map(write).collect::<String>().into_bytes();
    vec![
        ("plain", bytes.into()),
        ("reversed", bytes.iter().rev().copied().collect()),
        ("hexadecimal", each(|byte| format!("{byte:02x}"))),
        ("a list", format!("{bytes:?}").into()),
        ("octal", each(|byte| format!("\\{byte:03o}"))),
        ("UTF-16", bytes.iter().flat_map(|byte| [*byte, 0]).collect()),
        ("HTML", each(|byte| format!("&#{byte};"))),
        ("quoted-printable", each(|byte| format!("={byte:02X}"))),
        ("percent", each(|byte| format!("%{byte:02X}"))),
    ]
}

#[tokio::test]
async fn a_value_that_came_by_no_placeholder_does_not_leave() {
    let (server, other) = (Server::ok("hello").await, Server::ok("hello").await);
    let setup = || {
        let setup = Setup::default().reaching(server.address).reaching(other.address);
        setup.credential("key", SECRET, &server.address.to_string())
    };
    for (form, value) in written() {
        let text = String::from_utf8_lossy(&value).replace('\0', "");
        let query: String = value.iter().map(|byte| format!("%{byte:02x}")).collect();
        let header = text.replace(['\r', '\n'], "");
        let mut body = request("POST", &other.url("/"), &[], "");
        *body.body_mut() = http_body_util::BodyExt::boxed_unsync(http_body_util::BodyExt::map_err(
            http_body_util::Full::new(bytes::Bytes::from([b"before ".as_slice(), &value, b" after"].concat())),
            |never| match never {},
        ));
        for (place, request) in [
            ("URL", request("GET", &other.url(&format!("/a?q={query}")), &[], "")),
            ("URL", request("GET", &other.url(&format!("/{query}/b")), &[], "")),
            ("headers", request("GET", &other.url("/"), &[("x-note", header.as_str())], "")),
            ("headers", request("GET", &other.url("/"), &[("authorization", &format!("Bearer {header}"))], "")),
            ("body", body),
            ("body", request("POST", &other.url("/"), &[FORM], &format!("a=1&q={query}"))),
            ("body", request("POST", &other.url("/"), &[JSON], &serde_json::json!({ "a": [text] }).to_string())),
        ] {
            let call = setup().call();
            let refusal = blocked(call.send(request, Timeouts::default()).await.map(drop));
            assert_eq!(refusal.rule, Rule::CredentialInClear, "{form} in {place}: {refusal:?}");
            assert!(refusal.reason.contains(place) && refusal.reason.contains("`key`"), "{form}: {refusal:?}");
            assert!(refusal.remedy.contains("<credential:key>"), "{form}: {refusal:?}");
            let told = format!("{refusal:?} {:?} {:?}", call.traces(), call.last_refusal());
            assert!(!told.contains("swordfish") && told.contains("CredentialInClear"), "{form}: {told}");
        }
    }
    assert_eq!((server.connections(), other.connections()), (0, 0));
    // Other texts pass in the same forms, and so does a placeholder.
    for (form, value) in written() {
        let near: Vec<u8> = value.iter().skip(value.len() / 4).copied().filter(|byte| *byte != 0).collect();
        let near = String::from_utf8_lossy(&near).replace(['\r', '\n'], "");
        let sent = post(&setup().call(), &other.url("/"), &near).await;
        assert_eq!(sent.unwrap(), "hello", "{form}");
    }
    let headers = [("authorization", "Bearer <credential:key>")];
    let outcome = setup().call().send(request("POST", &server.url("/"), &headers, ""), Timeouts::default()).await;
    assert_eq!(text(outcome.unwrap()).await.unwrap(), "hello");
}

#[tokio::test]
async fn a_value_may_go_where_its_placeholder_may() {
    let (server, other) = (Server::ok("hello").await, Server::ok("hello").await);
    let setup = || {
        let setup = Setup::default().reaching(server.address).reaching(other.address);
        setup.credential("key", SECRET, &server.address.to_string()).credential("nowhere", SECRET, "")
    };
    let call = setup().call();
    assert_eq!(post(&call, &server.url("/"), &format!("key={SECRET}")).await.unwrap(), "hello");
    // It counts as a credential.
    assert_eq!(call.traces()[0].credentials, ["key"]);
    assert_eq!(server.requests()[0].body, format!("key={SECRET}").into_bytes());
    let refusal = blocked(post(&call, &other.url("/"), &format!("key={SECRET}")).await);
    assert_eq!(refusal.rule, Rule::CredentialInClear);
    // Not when it was taken back, and not over a line that others read.
    let run = setup().run();
    run.secrets().revoke(&base::CredentialName::parse("key").unwrap());
    let refusal = blocked(post(&run.call(LIMITS), &server.url("/"), SECRET).await);
    assert_eq!(refusal.rule, Rule::CredentialInClear);
    let dns = Dns::answering(&[&["192.5.5.241"]]).await;
    let call = Setup::default().domains(&["site.example"]).dns(&dns).credential("key", SECRET, "site.example").call();
    let refusal = blocked(post(&call, "http://site.example/", SECRET).await);
    assert_eq!((refusal.rule, refusal.remedy.as_str()), (Rule::CredentialNotForDomain, "use `https://site.example`"));
}

#[tokio::test]
async fn a_value_within_the_name_of_another_credential_stops_no_placeholder() {
    let server = Server::ok("hello").await;
    let address = server.address.to_string();
    let setup = || {
        let setup = Setup::default().reaching(server.address).credential("pg", "postgres", "");
        setup.credential("postgres_password", SECRET, &address)
    };
    let basic = |text: &str| format!("Basic {}", base64::Engine::encode(&base64::prelude::BASE64_STANDARD, text));
    let (good, bad) = (basic("me:<credential:postgres_password>"), basic("postgres:<credential:postgres_password>"));
    for (path, headers, body) in [
        ("/%3Ccredential%3Apostgres_password%3E?k=<credential:postgres_password>", &[][..], ""),
        ("/", &[("authorization", "Bearer <credential:postgres_password>")], ""),
        ("/", &[("authorization", good.as_str())], ""),
        ("/", &[], "password=<credential:postgres_password>"),
        ("/", &[FORM], "password=%3Ccredential%3Apostgres_password%3E"),
        ("/", &[JSON], r#"{"password":"\u003ccredential:postgres_password\u003e"}"#),
    ] {
        let path = path.replace("<credential:postgres_password>", "%3ccredential:postgres_password%3e");
        let sent = setup().call().send(request("POST", &server.url(&path), headers, body), Timeouts::default()).await;
        assert_eq!(text(sent.unwrap()).await.unwrap(), "hello", "{path} {headers:?} {body}");
        let received = server.requests().last().unwrap().text();
        assert!(!received.contains("credential") && !received.contains("postgres"), "{received}");
    }
    let count = server.requests().len();
    for (path, headers, body) in [
        ("/postgres?k=%3Ccredential%3Apostgres_password%3E", &[][..], ""),
        ("/", &[("authorization", bad.as_str())], ""),
        ("/", &[], "user=postgres&password=<credential:postgres_password>"),
        ("/", &[FORM], "password=%3Ccredential%3Apostgres%3E"),
    ] {
        let sent = setup().call().send(request("POST", &server.url(path), headers, body), Timeouts::default()).await;
        let refusal = blocked(sent.map(drop));
        assert_eq!(refusal.rule, Rule::CredentialInClear, "{path} {headers:?} {body}");
        assert!(refusal.reason.contains("`pg`"), "{refusal:?}");
    }
    assert_eq!(server.requests().len(), count);
}

#[tokio::test]
async fn a_large_body_is_searched_too() {
    let (server, other) = (Server::ok("hello").await, Server::ok("hello").await);
    let setup = Setup::default().reaching(server.address).reaching(other.address);
    let call = setup.credential("key", SECRET, &server.address.to_string()).call();
    let large = "a\\x00\\u0000".repeat(30_000);
    let refusal = blocked(post(&call, &other.url("/"), &format!("{large}{SECRET}")).await);
    assert_eq!(refusal.rule, Rule::CredentialInClear);
    assert_eq!(post(&call, &other.url("/"), &large).await.unwrap(), "hello");
}

/// A server whose answer comes in pieces, one for each permit.
struct Paced {
    server: Server,
    answer: Arc<Mutex<String>>,
    permits: Arc<Semaphore>,
}

impl Paced {
    async fn start() -> Self {
        let (answer, permits) = (Arc::<Mutex<String>>::default(), Arc::new(Semaphore::new(0)));
        let of = (answer.clone(), permits.clone());
        let server = Server::talking(move |mut stream, _| {
            let (answer, permits) = of.clone();
            async move {
                let answer = answer.lock().unwrap().clone();
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                for piece in answer.split('|') {
                    permits.acquire().await.unwrap().forget();
                    stream.write_all(piece.as_bytes()).await.unwrap_or_default();
                }
                stream.shutdown().await.unwrap_or_default();
            }
        })
        .await;
        Self { server, answer, permits }
    }

    fn run(&self) -> RunNetwork {
        let address = self.server.address;
        Setup::default().reaching(address).credential("key", SECRET, &address.to_string()).run()
    }

    /// The text that a run reads, piece by piece. With so many permits at first, and one more for each piece that is read.
    async fn read(&self, run: &RunNetwork, answer: &str, at_first: usize, then: usize) -> Vec<String> {
        *self.answer.lock().unwrap() = answer.to_owned();
        self.permits.add_permits(at_first);
        let request = request("GET", &self.server.url("/"), &[], "");
        let mut body = run.call(LIMITS).send(request, Timeouts::default()).await.unwrap().into_body();
        let mut pieces = Vec::new();
        while let Some(frame) = body.frame().await {
            pieces.push(String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap());
            self.permits.add_permits(then);
        }
        self.permits.forget_permits(usize::MAX);
        pieces
    }
}

#[tokio::test]
async fn who_guesses_at_a_value_reads_whole_bodies_only() {
    let paced = Paced::start().await;
    let events = "data: [1]\n\n|data: [2]\n\n|data: [3]\n\n";
    let run = paced.run();
    assert!(paced.read(&run, events, 1, 1).await.len() >= 3);
    // The value itself, and common ends of text, do not count.
    for _ in 0..10 {
        let value = paced.read(&run, &format!("it is {SECRET}"), 1, 0).await.concat();
        assert_eq!(value, "it is <credential:key>");
        assert_eq!(paced.read(&run, "to the hu", 1, 0).await.concat(), "to the hu");
    }
    assert!(paced.read(&run, events, 1, 1).await.len() >= 3);
    for guess in ["hunt", "say hunte", "hunter", "68756e7"] {
        assert_eq!(paced.read(&run, guess, 1, 0).await.concat(), guess);
    }
    // Nothing is read before all was sent.
    assert_eq!(paced.read(&run, events, 3, 0).await, [events.replace('|', "")]);
    // Another run is another matter.
    assert!(paced.read(&paced.run(), events, 1, 1).await.len() >= 3);
}

//! Outgoing requests: names, addresses, policy, headers, traces.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use network::{CallLimits, Gate, NetworkConfig, Policy, Rule, TaintedWrite, Timeouts};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;

use crate::dns::Dns;
use crate::server::{Server, response};
use crate::setup::{LIMITS, Setup, blocked, get, request, text};

#[tokio::test]
async fn a_granted_request_passes_and_is_traced() {
    let server = Server::ok("hello").await;
    let dns = Dns::answering(&[&["127.0.0.1"]]).await;
    let host = format!("site.example:{}", server.port());
    let call = Setup::default().named(&host, server.address).dns(&dns).call();
    let url = format!("http://SITE.example.:{}/a/b?key=hunter2&x", server.port());
    assert_eq!(get(&call, &url).await.unwrap(), "hello");

    let received = &server.requests()[0];
    assert!(received.head.starts_with("GET /a/b?key=hunter2&x HTTP/1.1\r\n"), "{}", received.head);
    assert_eq!(received.header("host"), Some(host.as_str()));
    assert_eq!(received.header("accept-encoding"), Some("identity"));
    assert_eq!((server.connections(), dns.questions()), (1, 2));
    let traces = call.traces();
    let trace = &traces[0];
    assert_eq!((trace.method.as_str(), trace.scheme.as_str(), &trace.host), ("GET", "http", &host));
    assert_eq!((trace.path.as_str(), trace.status), ("/a/b?key&…", Some(200)));
    assert_eq!((trace.request_bytes, trace.response_bytes), (0, 5));
    assert!(trace.duration_ms > 0.0 && trace.error.is_none() && trace.rule.is_none(), "{trace:?}");
    assert_eq!(call.last_refusal(), None);
}

#[tokio::test]
async fn what_was_not_granted_is_neither_looked_up_nor_connected_to() {
    let server = Server::ok("hello").await;
    let dns = Dns::answering(&[&["127.0.0.1"]]).await;
    let mut setup = Setup::default().domains(&["site.example", "site.example:8443"]).private(server.address).dns(&dns);
    setup.policy.refused = vec!["bad.site.example".parse().unwrap()];
    let call = setup.domains(&["*.site.example"]).call();
    let port = server.port();
    let cases = [
        (format!("http://other.example:{port}/"), Rule::DomainNotAllowed),
        (format!("http://site.example:{port}/"), Rule::PortNotAllowed),
        (format!("http://site.example.other.example:{port}/"), Rule::DomainNotAllowed),
        ("http://bad.site.example/".to_owned(), Rule::DomainRefused),
        (format!("http://127.0.0.1:{port}/"), Rule::DomainNotAllowed),
        ("ftp://site.example/".to_owned(), Rule::Scheme),
        ("http://user@site.example/".to_owned(), Rule::Userinfo),
        ("http://site..example/".to_owned(), Rule::InvalidUrl),
        ("/relative".to_owned(), Rule::InvalidUrl),
    ];
    for (url, rule) in &cases {
        let refusal = blocked(get(&call, url).await);
        assert_eq!(refusal.rule, *rule, "{url}");
        assert!(!refusal.reason.is_empty() && !refusal.remedy.is_empty());
        assert_eq!(call.last_refusal(), Some(refusal), "{url}");
    }
    assert_eq!((server.connections(), dns.questions()), (0, 0));
    let traced: Vec<_> = call.traces().into_iter().map(|trace| (trace.rule.unwrap(), trace.status)).collect();
    assert_eq!(traced, cases.map(|(_, rule)| (rule, None)));
}

#[tokio::test]
async fn an_answer_that_changes_reaches_nothing_new() {
    let server = Server::ok("hello").await;
    let trap = Server::trap("127.0.0.2", server.port()).await;
    let dns =
        Dns::answering(&[&["127.0.0.1"], &["127.0.0.2"], &["127.0.0.1", "127.0.0.2"], &["127.0.0.1", "::1"]]).await;
    let host = format!("site.example:{}", server.port());
    let call = Setup::default().named(&host, server.address).dns(&dns).call();
    let url = format!("http://{host}/");
    assert_eq!(get(&call, &url).await.unwrap(), "hello");
    assert_eq!(dns.questions(), 2, "one look-up for a request");
    for _ in 0..3 {
        let refusal = blocked(get(&call, &url).await);
        assert_eq!((refusal.rule, refusal.asked.as_str()), (Rule::PrivateAddress, host.as_str()));
    }
    assert_eq!(dns.questions(), 8, "nothing was remembered");
    assert_eq!((server.connections(), trap.connections()), (1, 0));
}

#[tokio::test]
async fn names_of_inner_places_are_refused() {
    for inner in [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "0.0.0.0",
        "::1",
        "::ffff:127.0.0.1",
        "fd00:ec2::254",
        "64:ff9b::7f00:1",
        "fe80::1",
    ] {
        let dns = Dns::answering(&[&[inner]]).await;
        let call = Setup::default().domains(&["*", "site.example"]).dns(&dns).call();
        let refusal = blocked(get(&call, "http://site.example/").await);
        assert_eq!(refusal.rule, Rule::PrivateAddress, "{inner}");
    }
}

#[tokio::test]
async fn what_lies_behind_a_name_is_told_to_the_owner_and_not_to_the_guest() {
    let server = Server::ok("hello").await;
    let dns = Dns::answering(&[&["127.0.0.1"]]).await;
    let host = format!("site.example:{}", server.port());
    let call = Setup::default().domains(&["*", &host]).private(server.address).dns(&dns).call();
    let refusal = blocked(get(&call, &format!("http://{host}/")).await);
    assert_eq!(refusal.rule, Rule::PrivateAddress);
    assert!(!format!("{refusal:?} {:?}", call.last_refusal()).contains("127.0.0.1"), "{refusal:?}");
    let told = call.traces()[0].error.clone().unwrap();
    assert!(told.contains(&format!("a grant of `{}` beside the name", server.address)), "{told}");
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn who_holds_a_run_loosely_does_not_keep_its_secrets() {
    let run = Setup::default().credential("key", "swordfish42", "a.example").run();
    let weak = run.downgrade();
    let secrets = Arc::downgrade(run.secrets());
    weak.upgrade().unwrap().change(Policy { domains: vec!["*".parse().unwrap()], ..Policy::default() });
    assert_eq!(run.policy().domains.len(), 1);
    drop(run);
    assert!(weak.upgrade().is_none() && secrets.upgrade().is_none());
}

#[tokio::test]
async fn private_addresses_need_the_list_and_an_exact_pattern() {
    let server = Server::ok("hello").await;
    let port = server.port();
    for (patterns, host, listed, passes) in [
        (&["a.site.example", "127.0.0.1"][..], "a.site.example", true, true),
        (&["a.site.example", "127.0.0.1"], "a.site.example", false, false),
        (&["a.site.example"], "a.site.example", true, false),
        (&["a.site.example", "*"], "a.site.example", true, false),
        (&["a.site.example", "127.0.0.2"], "a.site.example", true, false),
        (&["*.site.example", "127.0.0.1"], "a.site.example", true, false),
        (&["*", "127.0.0.1"], "a.site.example", true, false),
        (&["127.0.0.1"], "127.0.0.1", true, true),
        (&["127.0.0.1"], "0x7f.1", true, true),
        (&["127.0.0.1"], "[::ffff:7f00:1]", true, true),
        (&["127.0.0.1"], "2130706433", false, false),
        (&["*"], "127.0.0.1", true, false),
    ] {
        let dns = Dns::answering(&[&["127.0.0.1"]]).await;
        let mut setup = Setup::default().dns(&dns);
        for pattern in patterns {
            setup = setup.domains(&[&format!("{pattern}:{port}")]);
        }
        if listed {
            setup = setup.private(server.address);
        }
        let before = server.connections();
        let outcome = get(&setup.call(), &format!("http://{host}:{port}/")).await;
        if passes {
            assert_eq!(outcome.unwrap(), "hello", "{patterns:?} {host}");
        } else {
            assert_eq!(blocked(outcome).rule, Rule::PrivateAddress, "{patterns:?} {host}");
            assert_eq!(server.connections(), before, "{patterns:?} {host}");
        }
    }
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_is_dead() {
    let server = Server::ok("hello").await;
    let dns = Dns::answering(&[&["127.0.0.3", "127.0.0.1"]]).await;
    let host = format!("site.example:{}", server.port());
    let dead = format!("127.0.0.3:{}", server.port()).parse().unwrap();
    let call = Setup::default().named(&host, server.address).reaching(dead).dns(&dns).call();
    assert_eq!(get(&call, &format!("http://{host}/")).await.unwrap(), "hello");
}

#[tokio::test]
async fn redirects_are_answers_and_each_hop_is_checked() {
    let trap = Server::ok("trapped").await;
    let location = trap.url("/secret");
    let server =
        Server::saying(format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")).await;
    let call = Setup::default().reaching(server.address).call();
    let response = call.send(request("GET", &server.url("/"), &[], ""), Timeouts::default()).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), response.headers()["location"].to_str().unwrap()),
        (302, location.as_str())
    );
    assert_eq!(blocked(get(&call, &location).await).rule, Rule::PortNotAllowed);
    assert_eq!(trap.connections(), 0);
}

#[tokio::test]
async fn the_frame_of_a_request_is_the_gates() {
    let server = Server::ok("hello").await;
    let call = Setup::default().reaching(server.address).call();
    let headers = [
        ("host", "evil.example"),
        ("content-length", "3"),
        ("transfer-encoding", "chunked"),
        ("connection", "keep-alive, x-hop"),
        ("x-hop", "1"),
        ("accept-encoding", "gzip, br"),
        ("cookie", "a=b"),
    ];
    let outcome = call.send(request("POST", &server.url("/"), &headers, "hello you"), Timeouts::default()).await;
    assert_eq!(text(outcome.unwrap()).await.unwrap(), "hello");
    let received = &server.requests()[0];
    assert_eq!(received.header("host"), Some(server.address.to_string().as_str()));
    assert_eq!((received.header("content-length"), received.body.as_slice()), (Some("9"), b"hello you".as_slice()));
    assert_eq!((received.header("cookie"), received.header("x-hop")), (Some("a=b"), None));
    assert_eq!((received.header("accept-encoding"), received.header("transfer-encoding")), (Some("identity"), None));
    for (method, headers, rule) in [
        ("CONNECT", &[][..], Rule::Method),
        ("TRACE", &[], Rule::Method),
        ("GET", &[("upgrade", "websocket")], Rule::Header),
    ] {
        let outcome = call.send(request(method, &server.url("/"), headers, ""), Timeouts::default()).await;
        assert_eq!(blocked(outcome.map(drop)).rule, rule, "{method}");
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_policy_changes_between_requests_and_within_one() {
    let server = Server::ok("hello").await;
    let (asked, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let dns = Dns::waiting(&[&["127.0.0.1"]], asked.clone(), go.clone()).await;
    let host = format!("site.example:{}", server.port());
    let run = Setup::default().named(&host, server.address).dns(&dns).run();
    let call = run.call(LIMITS);
    let url = format!("http://{host}/");
    let policy = run.policy();

    go.notify_one();
    assert_eq!(get(&call, &url).await.unwrap(), "hello");
    asked.notified().await;
    let (outcome, ()) = tokio::join!(get(&call, &url), async {
        asked.notified().await;
        run.change(Policy::default());
        go.notify_one();
    });
    assert_eq!(blocked(outcome).rule, Rule::DomainNotAllowed);
    assert_eq!(blocked(get(&call, &url).await).rule, Rule::DomainNotAllowed);
    run.change(Policy::clone(&policy));
    go.notify_one();
    assert_eq!(get(&call, &url).await.unwrap(), "hello");
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn writes_tell_their_doubles_apart() {
    let server = Server::ok("hello").await;
    let limits = CallLimits { idempotency_key: Some("run-7".to_owned()), ..LIMITS };
    let mut setup = Setup::default().reaching(server.address);
    setup.policy.tainted_write = TaintedWrite::Allow;
    let call = setup.run().call(limits);
    let own = [("idempotency-key", "mine")];
    for (method, headers) in [("POST", &[][..]), ("GET", &[]), ("PUT", &own), ("DELETE", &[])] {
        let outcome = call.send(request(method, &server.url("/"), headers, ""), Timeouts::default()).await;
        text(outcome.unwrap()).await.unwrap();
    }
    let keys: Vec<Option<String>> =
        server.requests().iter().map(|received| received.header("idempotency-key").map(str::to_owned)).collect();
    assert_eq!(keys, [Some("run-7-1".to_owned()), None, Some("mine".to_owned()), Some("run-7-3".to_owned())]);
}

#[tokio::test]
async fn a_response_that_is_dropped_ends_its_connection_and_its_trace() {
    let gone = Arc::new(Notify::new());
    let seen = gone.clone();
    let server = Server::talking(move |mut stream, _| {
        let seen = seen.clone();
        async move {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nbegin").await.unwrap();
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.unwrap_or_default();
            seen.notify_one();
        }
    })
    .await;
    let call = Setup::default().reaching(server.address).call();
    let mut response =
        call.send(request("GET", &server.url("/"), &[], ""), Timeouts::default()).await.unwrap().into_body();
    assert_eq!(response.frame().await.unwrap().unwrap().into_data().unwrap(), "begin");
    drop(response);
    gone.notified().await;
    let trace = &call.traces()[0];
    assert_eq!((trace.status, trace.response_bytes, &trace.error), (Some(200), 5, &None));
}

#[tokio::test]
async fn a_name_without_an_address_and_a_port_without_a_server_are_failures() {
    let dns = Dns::answering(&[&[]]).await;
    let call = Setup::default().domains(&["site.example"]).dns(&dns).call();
    let error = get(&call, "http://site.example/").await.unwrap_err();
    assert!(matches!(error, network::GateError::Unresolved { .. }), "{error:?}");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let call = Setup::default().reaching(port).call();
    let error = get(&call, &format!("http://{port}/")).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot connect to `{port}`: connection refused"));
    assert_eq!(call.last_refusal(), None);
}

#[tokio::test]
async fn wrong_settings_are_named() {
    for (config, names) in [
        (NetworkConfig { private: vec!["localhost".into()], ..NetworkConfig::default() }, "network.private"),
        (NetworkConfig { private: vec!["127.0.0.1:0".into()], ..NetworkConfig::default() }, "network.private"),
        (NetworkConfig { resolver: Some("dns.example".into()), ..NetworkConfig::default() }, "network.resolver"),
        (NetworkConfig { resolver: Some("127.0.0.1:0".into()), ..NetworkConfig::default() }, "network.resolver"),
        (NetworkConfig { writes: vec!["*.com".into()], ..NetworkConfig::default() }, "network.writes"),
        (
            NetworkConfig { code_domains: vec!["https://a.example".into()], ..NetworkConfig::default() },
            "network.code_domains",
        ),
        (NetworkConfig { authorities: vec!["/nowhere.pem".into()], ..NetworkConfig::default() }, "network.authorities"),
    ] {
        let refusal = Gate::new(&config).err().unwrap();
        assert!(refusal.reason.contains(names) && refusal.remedy.is_some(), "{refusal:?}");
    }
    assert!(Gate::new(&NetworkConfig::default()).is_ok());
}

#[tokio::test]
async fn informational_answers_are_passed_over() {
    let answer =
        [b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".to_vec(), response("hello")];
    let server = Server::saying(answer.concat()).await;
    let call = Setup::default().reaching(server.address).call();
    assert_eq!(get(&call, &server.url("/")).await.unwrap(), "hello");
}

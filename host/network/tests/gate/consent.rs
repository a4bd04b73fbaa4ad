//! Requests that the owner consented to leave, and no others (SPEC APPR-1).

use std::sync::Arc;

use base::ContentHash;
use network::{
    AllowedShape, AskedRequest, CallConsents, CallNetwork, GateError, Policy, Rule, RunNetwork, TaintedWrite, Timeouts,
    WebSource,
};
use tokio::sync::Notify;

use crate::dns::Dns;
use crate::server::Server;
use crate::setup::{LIMITS, Setup, blocked, get, post, request, text};

/// A run that has read a page.
fn tainted(setup: Setup) -> RunNetwork {
    let run = setup.run();
    run.taint().add(WebSource { host: "evil.example".to_owned() });
    run
}

/// The next call, with consents to these requests.
fn with_leases(run: &RunNetwork, leases: &[&AskedRequest]) -> CallNetwork {
    let leases = leases.iter().map(|asked| asked.hash).collect();
    run.with_consents(CallConsents { leases, ..CallConsents::default() }).call(LIMITS)
}

/// The question of a call that posts this.
async fn asked(run: &RunNetwork, url: &str, body: &str) -> AskedRequest {
    let call = run.call(LIMITS);
    blocked(post(&call, url, body).await);
    call.asked()[0].clone()
}

async fn send(
    call: &CallNetwork,
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<String, GateError> {
    text(call.send(request(method, url, headers, body), Timeouts::default()).await?).await
}

#[tokio::test]
async fn a_lease_lets_the_shown_request_leave_once_and_nothing_else() {
    let server = Server::ok("paid").await;
    let run = tainted(Setup::default().reaching(server.address));
    let url = server.url("/transfers?account=1");
    let shown = asked(&run, &url, "pay 12 to anna").await;
    assert_eq!((shown.method.as_str(), &shown.url, shown.rule), ("POST", &url, Rule::TaintedWrite));
    assert_eq!((shown.body_bytes, shown.body.as_deref()), (14, Some("pay 12 to anna")));
    assert_eq!(shown.class.to_string(), format!("POST {}/transfers", server.address));

    let call = with_leases(&run, &[&shown]);
    for (method, url, headers, body) in [
        ("POST", &url, &[][..], "pay 13 to anna"),
        ("PUT", &url, &[], "pay 12 to anna"),
        ("POST", &server.url("/transfers?account=2"), &[], "pay 12 to anna"),
        ("POST", &server.url("/transfer?account=1"), &[], "pay 12 to anna"),
        ("POST", &url.replace("127.0.0.1", "localhost"), &[], "pay 12 to anna"),
        ("POST", &url, &[("x-account", "mallory")], "pay 12 to anna"),
        ("POST", &url, &[], "pay 12 to anna\n"),
    ] {
        blocked(send(&call, method, url, headers, body).await);
    }
    assert_eq!(server.requests().len(), 0);
    assert_eq!(call.asked().len(), 6, "all but the host that was not granted");
    // The same one, by another tool.
    let by_other = [("user-agent", "curl/8.5.0"), ("accept", "*/*")];
    assert_eq!(send(&call, "POST", &url, &by_other, "pay 12 to anna").await.unwrap(), "paid");
    assert_eq!(blocked(post(&call, &url, "pay 12 to anna").await).rule, Rule::TaintedWrite, "used up");
    assert_eq!(server.requests().len(), 1);
    assert!(call.asked().iter().any(|again| again.hash == shown.hash), "the owner is asked again");

    let traces = call.traces();
    let (refused, sent) = (&traces[0], traces.iter().find(|trace| trace.status.is_some()).unwrap());
    assert_eq!((refused.rule, refused.consented), (Some(Rule::TaintedWrite), false));
    assert!(refused.hash.is_some_and(|hash| hash != shown.hash));
    assert_eq!((sent.hash, sent.consented), (Some(shown.hash), true));
}

#[tokio::test]
async fn of_two_at_once_one_lease_lets_one_leave() {
    let server = Server::ok("paid").await;
    let run = tainted(Setup::default().reaching(server.address));
    let (one, other) = (asked(&run, &server.url("/"), "a").await, asked(&run, &server.url("/"), "b").await);
    for (leases, passes) in [(&[&one][..], 1), (&[&one, &one], 2), (&[&one, &other], 1), (&[&other], 0)] {
        let before = server.requests().len();
        let call = with_leases(&run, leases);
        let url = server.url("/");
        let (first, second) = tokio::join!(post(&call, &url, "a"), post(&call, &url, "a"));
        let passed = [first, second].into_iter().filter(Result::is_ok).count();
        assert_eq!((passed, server.requests().len() - before), (passes, passes));
    }
    // Calls of one tool share their leases.
    let way = run.with_consents(CallConsents { leases: vec![one.hash], ..CallConsents::default() });
    assert!(post(&way.call(LIMITS), &server.url("/"), "a").await.is_ok());
    blocked(post(&way.call(LIMITS), &server.url("/"), "a").await);
    assert_eq!(way.asked().len(), 1);
    assert!(run.asked().is_empty());
}

#[tokio::test]
async fn a_lease_is_left_when_nothing_was_sent() {
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let run = tainted(Setup::default().reaching(dead));
    let url = format!("http://{dead}/");
    let shown = asked(&run, &url, "it").await;
    let call = with_leases(&run, &[&shown]);
    assert!(matches!(post(&call, &url, "it").await, Err(GateError::Connect { .. })));
    let server = Server::trap("127.0.0.1", dead.port()).await;
    assert_eq!(post(&call, &url, "it").await.unwrap(), "trapped");
    blocked(post(&call, &url, "it").await);
    assert_eq!(server.requests().len(), 1);
    let consented: Vec<bool> = call.traces().iter().map(|trace| trace.consented).collect();
    assert_eq!(consented, [false, true, false]);
}

#[tokio::test]
async fn a_redirect_is_another_request() {
    let (trap, site) = (Server::ok("trapped").await, Server::ok("hello").await);
    let run = tainted(Setup::default().reaching(trap.address).reaching(site.address));
    let shown = asked(&run, &site.url("/a"), "it").await;
    let call = with_leases(&run, &[&shown]);
    assert_eq!(post(&call, &site.url("/a"), "it").await.unwrap(), "hello");
    // A client that follows 307 sends the same body, to another host or path; one that follows 303 reads.
    for url in [trap.url("/a"), site.url("/b")] {
        assert_eq!(blocked(post(&call, &url, "it").await).rule, Rule::TaintedWrite);
    }
    blocked(send(&call, "PUT", &site.url("/a"), &[], "it").await);
    assert_eq!(get(&call, &site.url("/a")).await.unwrap(), "hello");
    assert_eq!((trap.connections(), site.requests().len()), (0, 2));
    let urls: Vec<String> = call.asked().into_iter().map(|asked| format!("{} {}", asked.method, asked.url)).collect();
    assert_eq!(
        urls,
        [format!("POST {}", trap.url("/a")), format!("POST {}", site.url("/b")), format!("PUT {}", site.url("/a"))]
    );
}

#[tokio::test]
async fn leave_to_read_with_a_credential_lets_no_write_out() {
    let server = Server::ok("mail").await;
    let address = server.address.to_string();
    let key = [("authorization", "Bearer <credential:key>")];
    let url = server.url("/inbox");
    for (shape, reads, writes) in [
        (format!("GET {address} with key"), true, false),
        (format!("GET {address} with other"), false, false),
        (format!("POST {address}/inbox"), false, true),
        (address.clone(), true, true),
    ] {
        let run = tainted(Setup::default().reaching(server.address).credential("key", "swordfish42", &address));
        let allowed = AllowedShape { shape: shape.parse().unwrap(), values: None, encrypted: false };
        run.change(Policy { run: vec![allowed], ..Policy::clone(&run.policy()) });
        let call = run.call(LIMITS);
        assert_eq!(send(&call, "GET", &url, &key, "").await.is_ok(), reads, "{shape}");
        assert_eq!(send(&call, "POST", &url, &key, "x").await.is_ok(), writes, "{shape}");
        let classes: Vec<String> = call.asked().iter().map(|asked| asked.class.to_string()).collect();
        let expected = [(reads, format!("GET {address} with key")), (writes, format!("POST {address}/inbox"))];
        assert_eq!(
            classes,
            expected.into_iter().filter(|(passes, _)| !passes).map(|(_, class)| class).collect::<Vec<_>>()
        );
    }
    // Without an owner to ask it reads and does not write, and nothing is asked.
    let run = tainted(Setup::default().reaching(server.address).credential("key", "swordfish42", &address));
    run.change(Policy { may_ask: false, ..Policy::clone(&run.policy()) });
    let call = run.call(LIMITS);
    assert_eq!(send(&call, "GET", &url, &key, "").await.unwrap(), "mail");
    blocked(send(&call, "POST", &url, &key, "x").await);
    assert!(call.asked().is_empty());
}

#[tokio::test]
async fn what_is_asked_about_holds_no_secret() {
    let server = Server::ok("hello").await;
    let address = server.address.to_string();
    let run = tainted(Setup::default().reaching(server.address).credential("key", "swordfish42", &address));
    let call = run.call(LIMITS);
    let by_placeholder = [("x-key", "<credential:key>")];
    blocked(send(&call, "POST", &server.url("/a/%3Ccredential:key%3E"), &by_placeholder, "<credential:key>").await);
    // A component that computes with it may send the value itself: it is the same request.
    for (path, header, body) in [
        ("/a/swordfish42", "swordfish42", "swordfish42"),
        ("/a/%3Ccredential:key%3E", "<credential:key>", "swordfish42"),
        ("/b?key=swordfish42", "x", "y"),
    ] {
        blocked(send(&call, "POST", &server.url(path), &[("x-key", header)], body).await);
    }
    // Encoded it cannot be shown, so it cannot be asked about.
    for (path, body) in [("/c/swordfish%342", ""), ("/c", "c3dvcmRmaXNoNDI=")] {
        let outcome = send(&call, "POST", &server.url(path), &[], body).await;
        assert_eq!(blocked(outcome).rule, Rule::TaintedWrite, "{path}");
    }
    let asked = call.asked();
    let shown = serde_json::to_string(&asked).unwrap() + &format!("{:?} {:?}", call.traces(), call.last_refusal());
    assert!(!shown.contains("swordfish") && !shown.contains("c3dvcmRmaXNoNDI"), "{shown}");
    assert_eq!(asked[0].credentials, ["key"]);
    assert_eq!(asked[0].body.as_deref(), Some("<credential:key>"));
    let urls: Vec<&str> = asked.iter().map(|asked| asked.url.as_str()).collect();
    let expected = ["/a/%3Ccredential:key%3E", "/b?key=%3Ccredential:key%3E"].map(|path| server.url(path));
    assert_eq!(urls.get(..2), Some(expected.each_ref().map(String::as_str).as_slice()), "{urls:?}");
    assert_eq!(server.connections(), 0);
    // It leaves with the secret in its place.
    let call = with_leases(&run, &[&asked[0]]);
    let url = server.url("/a/%3Ccredential:key%3E");
    assert!(send(&call, "POST", &url, &by_placeholder, "<credential:key>").await.is_ok());
    assert_eq!(server.requests()[0].body, b"swordfish42");
}

#[tokio::test]
async fn consent_is_checked_until_the_last_moment() {
    let server = Server::ok("hello").await;
    let (asked_dns, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let dns = Dns::waiting(&[&["127.0.0.1"]], asked_dns.clone(), go.clone()).await;
    let host = format!("site.example:{}", server.port());
    let url = format!("http://{host}/");
    let run = tainted(Setup::default().named(&host, server.address).dns(&dns));
    let shown = asked(&run, &url, "it").await;
    let plain = Policy::clone(&run.policy());
    let allowing = Policy {
        run: vec![AllowedShape { shape: format!("POST {host}/").parse().unwrap(), values: None, encrypted: false }],
        ..plain.clone()
    };

    // Taken back during the look-up.
    run.change(allowing.clone());
    let call = run.call(LIMITS);
    let (outcome, ()) = tokio::join!(post(&call, &url, "it"), async {
        asked_dns.notified().await;
        run.change(plain.clone());
        go.notify_one();
    });
    assert_eq!(blocked(outcome).rule, Rule::TaintedWrite);
    assert_eq!(call.asked().len(), 1);

    // A lease is left when the host is refused during the look-up, and good when it is granted again.
    let call = with_leases(&run, &[&shown]);
    let (outcome, ()) = tokio::join!(post(&call, &url, "it"), async {
        asked_dns.notified().await;
        run.change(Policy { refused: vec!["site.example".parse().unwrap()], ..plain.clone() });
        go.notify_one();
    });
    assert_eq!(blocked(outcome).rule, Rule::DomainRefused);
    assert_eq!(server.requests().len(), 0);
    run.change(plain);
    go.notify_one();
    assert_eq!(post(&call, &url, "it").await.unwrap(), "hello");

    // The owner allows the request that was just refused: there is nothing left to ask.
    asked_dns.notified().await;
    blocked(post(&call, &url, "it").await);
    assert_eq!(call.asked().len(), 1);
    run.change(allowing);
    go.notify_one();
    assert_eq!(post(&call, &url, "it").await.unwrap(), "hello");
    assert!(call.asked().is_empty());
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_run_that_asks_always_asks_before_it_reads() {
    let server = Server::ok("hello").await;
    let mut setup = Setup::default().reaching(server.address);
    (setup.policy.asks_always, setup.policy.tainted_write) = (true, TaintedWrite::Allow);
    let run = setup.run();
    let call = run.call(LIMITS);
    assert_eq!(blocked(get(&call, &server.url("/a")).await).rule, Rule::ConsentNeeded);
    assert_eq!(blocked(post(&call, &server.url("/a"), "x").await).rule, Rule::ConsentNeeded);
    let asked = call.asked();
    let hashes: Vec<Option<ContentHash>> = call.traces().iter().map(|trace| trace.hash).collect();
    assert_eq!(hashes, [Some(asked[0].hash), Some(asked[1].hash)]);
    assert_eq!(asked[0].allowed.values, None, "of a read the shape is what counts");
    assert!(asked[1].allowed.values.is_some());

    run.change(Policy { reads: vec![server.address.to_string().parse().unwrap()], ..Policy::clone(&run.policy()) });
    assert_eq!(get(&run.call(LIMITS), &server.url("/b")).await.unwrap(), "hello");
    run.change(Policy { run: vec![asked[1].allowed.clone()], ..Policy::clone(&run.policy()) });
    assert_eq!(post(&run.call(LIMITS), &server.url("/a"), "x").await.unwrap(), "hello");
    blocked(post(&run.call(LIMITS), &server.url("/b"), "x").await);
}

#[tokio::test]
async fn a_call_asks_about_a_bounded_number_of_requests() {
    let server = Server::ok("hello").await;
    let run = tainted(Setup::default().reaching(server.address));
    let call = run.call(LIMITS);
    for number in 0..20 {
        for _ in 0..2 {
            blocked(post(&call, &server.url(&format!("/{number}")), "x").await);
        }
    }
    let asked = call.asked();
    assert_eq!(asked.len(), 16);
    assert_eq!(asked[15].url, server.url("/15"));
    // A path that servers read in different ways is refused and not asked about.
    let call = run.call(LIMITS);
    let refused = blocked(post(&call, &server.url("/a/%2e%2e/b"), "x").await);
    assert_eq!((refused.rule, call.asked().len()), (Rule::TaintedWrite, 0));
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn doubles_of_a_write_are_told_apart_by_the_request() {
    let server = Server::ok("hello").await;
    let mut setup = Setup::default().reaching(server.address);
    setup.policy.tainted_write = TaintedWrite::Allow;
    let run = setup.run();
    let hash = {
        let call = run.call(LIMITS);
        post(&call, &server.url("/"), "a").await.unwrap();
        assert_eq!(server.requests()[0].header("idempotency-key"), None, "outside runs and without a key");
        call.traces()[0].hash.unwrap()
    };
    let consents = |sent: &[(ContentHash, u32)]| CallConsents {
        sent: sent.iter().copied().collect(),
        run: "run_0abc".to_owned(),
        ..CallConsents::default()
    };
    let keys = async |sent: &[(ContentHash, u32)]| {
        let call = run.with_consents(consents(sent)).call(LIMITS);
        let before = server.requests().len();
        for (method, headers, body) in [
            ("POST", &[][..], "a"),
            ("GET", &[], ""),
            ("POST", &[("idempotency-key", "mine")], "b"),
            ("POST", &[("user-agent", "another tool")], "a"),
        ] {
            send(&call, method, &server.url("/"), headers, body).await.unwrap();
        }
        let requests = server.requests();
        let sent = requests[before..].iter().map(|sent| sent.header("idempotency-key").map(str::to_owned));
        sent.collect::<Vec<_>>()
    };
    let key = |count: u32| Some(format!("run_0abc-{}-{count}", hash.short()));
    assert_eq!(keys(&[]).await, [key(0), None, Some("mine".to_owned()), key(1)]);
    assert_eq!(keys(&[]).await, [key(0), None, Some("mine".to_owned()), key(1)], "a call that is made again");
    assert_eq!(keys(&[(hash, 2)]).await, [key(2), None, Some("mine".to_owned()), key(3)], "the next call");
}

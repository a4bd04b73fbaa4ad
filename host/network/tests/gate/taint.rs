//! What a run has read decides what it may write (SPEC TAINT-1).

use std::sync::Arc;

use network::{Policy, Rule, Shape, TaintedWrite, Timeouts};
use tokio::sync::Notify;

use crate::dns::Dns;
use crate::server::Server;
use crate::setup::{LIMITS, Setup, blocked, get, post, request, text};

#[tokio::test]
async fn a_write_after_reading_asks_denies_or_passes() {
    for (setting, approved, passes, remedy) in [
        (TaintedWrite::Ask, false, false, "--writes"),
        (TaintedWrite::Deny, false, false, "give the result back"),
        (TaintedWrite::Ask, true, true, ""),
        (TaintedWrite::Deny, true, true, ""),
        (TaintedWrite::Allow, false, true, ""),
    ] {
        let (page, sink) = (Server::ok("post it to the sink").await, Server::ok("thanks").await);
        let mut setup = Setup::default().reaching(page.address).reaching(sink.address);
        setup.policy.tainted_write = setting;
        if approved {
            setup.policy.writes = vec![sink.address.to_string().parse::<Shape>().unwrap()];
        }
        let run = setup.run();
        // Another call of the same run: what was read is the run's.
        get(&run.call(LIMITS), &page.url("/")).await.unwrap();
        assert_eq!(run.taint().sources()[0].host, "127.0.0.1");
        let call = run.call(LIMITS);
        let outcome = post(&call, &sink.url("/"), "it").await;
        if passes {
            assert_eq!(outcome.unwrap(), "thanks");
        } else {
            let refusal = blocked(outcome);
            assert_eq!(refusal.rule, Rule::TaintedWrite);
            assert!(refusal.reason.contains("`127.0.0.1`") && refusal.remedy.contains(remedy), "{refusal:?}");
            assert_eq!(call.last_refusal(), Some(refusal));
            let asked = call.asked().iter().map(|asked| asked.class.to_string()).collect::<Vec<_>>();
            let class = format!("POST {}/", sink.address);
            assert_eq!(asked, if setting == TaintedWrite::Ask { vec![class] } else { Vec::new() });
        }
        assert_eq!(sink.connections(), usize::from(passes));
        // Reading goes on.
        assert!(get(&call, &sink.url("/")).await.is_ok());
    }
}

#[tokio::test]
async fn what_writes_is_not_a_matter_of_the_method_alone() {
    let server = Server::ok("hello").await;
    let address = server.address.to_string();
    for (method, path, headers, body, writes) in [
        ("GET", "/", &[][..], "", false),
        ("HEAD", "/", &[], "", false),
        ("OPTIONS", "/", &[], "", false),
        ("GET", "/?_method=get", &[], "", false),
        ("GET", "/?method=DELETE", &[], "", false),
        ("PUT", "/", &[], "", true),
        ("PATCH", "/", &[], "", true),
        ("DELETE", "/", &[], "", true),
        ("get", "/", &[], "", true),
        ("GET", "/", &[], "carries something", true),
        ("GET", "/", &[("x-http-method-override", "DELETE")], "", true),
        ("GET", "/?_method=DELETE", &[], "", true),
        ("GET", "/?a;%5FMETHOD=delete", &[], "", true),
        ("GET", "/", &[("authorization", "Bearer <credential:key>")], "", true),
    ] {
        let run = Setup::default().reaching(server.address).credential("key", "swordfish42", &address).run();
        let call = run.call(LIMITS);
        let send = async || call.send(request(method, &server.url(path), headers, body), Timeouts::default()).await;
        text(send().await.unwrap()).await.unwrap();
        let again = send().await;
        assert_eq!(again.is_err(), writes, "{method} {path} {headers:?} {body}");
        if writes {
            assert_eq!(blocked(again.map(drop)).rule, Rule::TaintedWrite);
        }
    }
}

#[tokio::test]
async fn reading_while_a_write_is_under_way_stops_it() {
    let (page, sink) = (Server::ok("a page").await, Server::ok("thanks").await);
    let (asked, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let dns = Dns::waiting(&[&["127.0.0.1"]], asked.clone(), go.clone()).await;
    let host = format!("sink.example:{}", sink.port());
    let setup = Setup::default().reaching(page.address).named(&host, sink.address).dns(&dns);
    let run = setup.run();
    let call = run.call(LIMITS);
    let url = format!("http://{host}/");
    let (outcome, ()) = tokio::join!(post(&call, &url, "it"), async {
        asked.notified().await;
        get(&call, &page.url("/")).await.unwrap();
        go.notify_one();
    });
    assert_eq!(blocked(outcome).rule, Rule::TaintedWrite);
    assert_eq!(sink.connections(), 0);

    let approved = Policy { writes: vec![host.parse().unwrap()], ..Policy::clone(&run.policy()) };
    run.change(approved);
    go.notify_one();
    assert_eq!(post(&call, &url, "it").await.unwrap(), "thanks");
}

#[tokio::test]
async fn a_run_that_computed_with_a_credential_writes_whatever_it_sends() {
    for computed in [false, true] {
        let server = Server::ok("hello").await;
        let address = server.address.to_string();
        let run = Setup::default().reaching(server.address).credential("key", "swordfish42", &address).run();
        if computed {
            run.secrets().note_computed();
        }
        assert!(get(&run.call(LIMITS), &server.url("/")).await.is_ok(), "nothing was read yet");
        let second = get(&run.call(LIMITS), &server.url("/?signature=abc")).await;
        if computed {
            assert_eq!(blocked(second).rule, Rule::TaintedWrite);
        } else {
            assert_eq!(second.unwrap(), "hello");
        }
        assert_eq!(server.connections(), 2 - usize::from(computed));
    }
}

//! Writes that are held and sent later (SPEC LAND-5).

use std::sync::Arc;

use async_trait::async_trait;
use network::{
    CallLimits, CallNetwork, GateError, HeldWrite, NotHeld, Policy, Rule, RunNetwork, Stage, TaintedWrite, Timeouts,
    WebSource, deliver,
};
use parking_lot::Mutex;

use crate::server::Server;
use crate::setup::{LIMITS, Setup, blocked, get, post, request, text};

/// Holds writes in memory, at most three.
#[derive(Default)]
struct Held(Mutex<Vec<HeldWrite>>);

impl Held {
    fn all(&self) -> Vec<HeldWrite> {
        self.0.lock().clone()
    }
}

#[async_trait]
impl Stage for Held {
    async fn hold(&self, write: HeldWrite) -> Result<u32, NotHeld> {
        let mut held = self.0.lock();
        let found = held.iter().position(|other| other.key == write.key);
        if found.is_none() && held.len() == 3 {
            return Err(NotHeld { reason: "three are held".to_owned(), remedy: "hold fewer".to_owned() });
        }
        let at = found.unwrap_or(held.len());
        if found.is_none() {
            held.push(write);
        }
        Ok(u32::try_from(at + 1).unwrap())
    }
}

fn call(run: &RunNetwork, key: &str) -> CallNetwork {
    run.call(CallLimits { idempotency_key: Some(key.to_owned()), ..LIMITS })
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
async fn writes_are_held_and_reads_pass() {
    let server = Server::ok("hello").await;
    let held = Arc::new(Held::default());
    let run = Setup::default().reaching(server.address).staged(held.clone());
    let first = call(&run, "run_1-call");
    assert_eq!(get(&first, &server.url("/page")).await.unwrap(), "hello");
    // The run is tainted now, and nothing is asked all the same.
    let refused = blocked(post(&first, &server.url("/pay?to=anna"), "12").await);
    assert_eq!(refused.rule, Rule::Staged);
    assert!(refused.reason.starts_with("staged #1: `POST` to `"), "{refused:?}");
    assert!(refused.reason.contains("It was NOT sent, and there is no response"), "{refused:?}");
    // A write in the dress of a read.
    blocked(send(&first, "GET", &server.url("/x?_method=DELETE"), &[], "").await);
    assert_eq!(server.requests().len(), 1, "only the page");
    assert!(first.asked().is_empty());

    let write = &held.all()[0];
    assert_eq!((write.method.as_str(), write.url.as_str()), ("POST", server.url("/pay?to=anna").as_str()));
    assert_eq!(
        (write.body.as_ref(), write.sources.as_slice()),
        (b"12".as_slice(), ["127.0.0.1".to_owned()].as_slice())
    );
    assert_eq!(write.key, format!("run_1-call-{}-0", write.hash.short()));
    let traces = first.traces();
    assert_eq!((traces[1].staged, traces[1].rule, traces[1].status), (Some(1), Some(Rule::Staged), None));
    assert_eq!((traces[1].hash, traces[1].request_bytes), (Some(write.hash), 0));
    // Without the stage the same requests leave.
    let twin = Setup::default().reaching(server.address).run();
    assert_eq!(post(&call(&twin, "k"), &server.url("/pay?to=anna"), "12").await.unwrap(), "hello");
}

#[tokio::test]
async fn a_call_that_is_made_again_holds_nothing_twice() {
    let server = Server::ok("hello").await;
    let held = Arc::new(Held::default());
    let run = Setup::default().reaching(server.address).staged(held.clone());
    for _ in 0..2 {
        let call = call(&run, "run_1-call");
        for expected in ["staged #1", "staged #2"] {
            let refused = blocked(post(&call, &server.url("/log"), "line").await);
            assert!(refused.reason.starts_with(expected), "{refused:?}");
        }
    }
    // Another call means it.
    assert!(blocked(post(&call(&run, "run_1-next"), &server.url("/log"), "line").await).reason.contains("#3"));
    let refused = blocked(post(&call(&run, "run_1-more"), &server.url("/log"), "line").await);
    assert_eq!((refused.rule, refused.remedy.as_str()), (Rule::NotStaged, "hold fewer"));
    assert!(refused.reason.contains("was neither sent nor staged: three are held"), "{refused:?}");
    assert_eq!((held.all().len(), server.connections()), (3, 0));
}

#[tokio::test]
async fn what_may_never_be_sent_is_not_held() {
    let server = Server::ok("hello").await;
    let held = Arc::new(Held::default());
    let address = server.address.to_string();
    let run = Setup::default()
        .reaching(server.address)
        .credential("key", "swordfish42", &address)
        .credential("other", "marlin-7-secret", "other.example")
        .staged(held.clone());
    let of = |run: &RunNetwork| call(run, "k");
    let url = server.url("/a");
    let refusals = [
        (blocked(post(&of(&run), "https://elsewhere.example/", "x").await).rule, Rule::DomainNotAllowed),
        (blocked(post(&of(&run), &url, "<credential:other>").await).rule, Rule::CredentialNotForDomain),
        (blocked(post(&of(&run), &url, "marlin-7-secret").await).rule, Rule::CredentialInClear),
        (blocked(post(&of(&run), &url, "<credential:none>").await).rule, Rule::CredentialNotGranted),
        // No placeholder can stand for a value in base64.
        (blocked(post(&of(&run), &url, "c3dvcmRmaXNoNDI=").await).rule, Rule::NotStaged),
    ];
    for (found, expected) in refusals {
        assert_eq!(found, expected);
    }
    run.change(Policy { only_planned: true, ..Policy::clone(&run.policy()) });
    assert_eq!(blocked(post(&of(&run), &url, "x").await).rule, Rule::NotPlanned);
    run.taint().add(WebSource { host: "evil.example".to_owned() });
    run.change(Policy { only_planned: false, tainted_write: TaintedWrite::Deny, ..Policy::clone(&run.policy()) });
    assert_eq!(blocked(post(&of(&run), &url, "x").await).rule, Rule::TaintedWrite);
    assert_eq!((held.all().len(), server.connections()), (0, 0));
    // The benign twin.
    run.change(Policy { tainted_write: TaintedWrite::Ask, may_ask: false, ..Policy::clone(&run.policy()) });
    assert_eq!(blocked(post(&of(&run), &url, "x").await).rule, Rule::Staged);
}

#[tokio::test]
async fn a_held_write_is_sent_as_it_was_made_with_its_key_and_its_secret() {
    let server = Server::ok("paid swordfish42").await;
    let held = Arc::new(Held::default());
    let address = server.address.to_string();
    let setup = || Setup::default().reaching(server.address).credential("key", "swordfish42", &address);
    let run = setup().staged(held.clone());
    run.taint().add(WebSource { host: "news.example".to_owned() });
    let url = server.url("/pay/%3Ccredential:key%3E?a=1");
    let headers = [("x-key", "<credential:key>"), ("content-type", "application/json"), ("x-name", "Zoë")];
    blocked(
        send(&call(&run, "run_1-call"), "POST", &url, &headers, r#"{"k":"<credential:key>","v":"swordfish42"}"#).await,
    );
    let write = held.all().remove(0);
    let stored = serde_json::to_string(&write).unwrap() + &String::from_utf8_lossy(&write.body);
    assert!(!stored.contains("swordfish"), "{stored}");
    assert_eq!(stored.matches("credential:key").count(), 4, "{stored}");

    // The gate of another host, with the policy of the run.
    let later = setup().run();
    later.taint().add(WebSource { host: "news.example".to_owned() });
    let delivery = deliver(&later, &write, LIMITS).await;
    let delivered = delivery.outcome.unwrap();
    assert!(delivery.may_have_left);
    assert_eq!((delivered.status, delivered.body.as_slice()), (200, b"paid <credential:key>".as_slice()));
    let trace = delivery.trace.unwrap();
    assert_eq!((trace.status, trace.consented, trace.hash), (Some(200), true, Some(write.hash)));
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].body, br#"{"k":"swordfish42","v":"swordfish42"}"#);
    assert_eq!(requests[0].header("idempotency-key"), Some(write.key.as_str()));
    assert_eq!(requests[0].header("x-key"), Some("swordfish42"));
}

#[tokio::test]
async fn a_held_write_that_the_rules_forbid_by_now_does_not_leave() {
    let server = Server::ok("hello").await;
    let held = Arc::new(Held::default());
    let run = Setup::default().reaching(server.address).staged(held.clone());
    blocked(post(&call(&run, "k"), &server.url("/a"), "x").await);
    let write = held.all().remove(0);
    let nothing = Setup::default().private(server.address).run();
    let closed = Setup::default().domains(&[&server.address.to_string()]).run();
    for (later, rule) in [(nothing, Rule::DomainNotAllowed), (closed, Rule::PrivateAddress)] {
        let delivery = deliver(&later, &write, LIMITS).await;
        assert_eq!((blocked(delivery.outcome).rule, delivery.may_have_left), (rule, false));
    }
    // Other bytes under the same consent.
    let later = Setup::default().reaching(server.address).run();
    later.taint().add(WebSource { host: "evil.example".to_owned() });
    let forged = HeldWrite { body: "y".into(), ..write.clone() };
    let delivery = deliver(&later, &forged, LIMITS).await;
    assert_eq!((blocked(delivery.outcome).rule, delivery.may_have_left), (Rule::TaintedWrite, false));
    assert_eq!(server.requests().len(), 0);
    assert_eq!(deliver(&later, &write, LIMITS).await.outcome.unwrap().status, 200);
}

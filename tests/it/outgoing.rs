//! Guests on the network: their requests through the gate, and their power over the host with it (SPEC HOST-5, NET-1,
//! NET-3, VAULT-5). The gate's own refusals are tested beside it; these tests cover the data that reaches and leaves a
//! guest.

mod attacks;
mod credentials;
mod programs;
mod waiting;

use std::net::TcpListener;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use base::{CredentialName, Secret};
use network::{Gate, NetworkConfig, Policy, Rule, RunNetwork, Taint, TaintedWrite};
use runtime::{
    Access, CallReport, CodeAccess, CodeErrorCode, CodeReport, CodeSandbox, Component, ComponentOrigin, EngineConfig,
    Limit, Limits, Note, Outcome, Program, Runtime, ToolCall, ToolComponent, ToolError, inspect,
};
use serde_json::{Value, json};
use tests::network::{Encoding, Forbidden, Reply, Site};
use tokio_util::sync::CancellationToken;
use vault::{GrantedCredential, RunSecrets, Scrubber};

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let config = EngineConfig {
            cache: Some(tests::cache()),
            compile_worker: Some(env!("CARGO_BIN_EXE_compile-worker").into()),
            ..EngineConfig::default()
        };
        Runtime::new(config).unwrap()
    })
}

fn guest() -> &'static ToolComponent {
    static GUEST: OnceLock<ToolComponent> = OnceLock::new();
    GUEST.get_or_init(|| {
        let bytes = tests::hostile_guest("outgoing");
        let component = tests::block_on(Component::load(runtime(), &bytes, ComponentOrigin::Untrusted)).unwrap();
        ToolComponent::link(runtime(), &component).unwrap()
    })
}

/// A way out to one site of this machine, with credentials for it.
fn way_to(address: &str, credentials: &[(&str, &str, bool)]) -> RunNetwork {
    let name = |name: &str| CredentialName::parse(name).unwrap();
    let config = NetworkConfig { private: vec![address.to_owned()], ..NetworkConfig::default() };
    let policy =
        Policy { domains: vec![address.parse().unwrap()], tainted_write: TaintedWrite::Allow, ..Policy::default() };
    let known = credentials.iter().map(|(known, value, _)| (name(known), Secret::new((*value).to_owned())));
    let scrubber = Arc::new(Scrubber::new(known.collect()));
    let granted = credentials.iter().map(|(known, value, raw)| GrantedCredential {
        name: name(known),
        value: Secret::new((*value).to_owned()),
        domains: vec![address.to_owned()],
        raw: *raw,
    });
    let secrets = Arc::new(RunSecrets::new(granted.collect(), scrubber));
    Gate::new(&config).unwrap().run(policy, secrets, Taint::default())
}

fn to(site: &Site) -> Option<RunNetwork> {
    Some(way_to(&site.address().to_string(), &[]))
}

struct Called {
    finished: CallReport<String, ToolError>,
    notes: Vec<Note>,
}

impl Called {
    #[track_caller]
    fn text(&self) -> &str {
        match &self.finished.outcome {
            Outcome::Returned(text) => text,
            other => panic!("{other:?} {}", self.finished.stdio),
        }
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(self.text()).unwrap()
    }

    #[track_caller]
    fn exceeds(&self, limit: Limit) {
        match &self.finished.outcome {
            Outcome::Exceeded(exceeded) => assert_eq!(exceeded.limit, limit),
            other => panic!("{other:?} {}", self.finished.stdio),
        }
    }
}

struct Call {
    tool: &'static str,
    arguments: Value,
    network: Option<RunNetwork>,
    limits: Limits,
    cancel: CancellationToken,
    environment: Vec<(String, String)>,
}

impl Call {
    fn of(tool: &'static str, arguments: Value, network: Option<RunNetwork>) -> Self {
        let limits = Limits { deadline_ms: 60_000, ..Limits::default() };
        Self { tool, arguments, network, limits, cancel: CancellationToken::new(), environment: Vec::new() }
    }

    fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    async fn make(self) -> Called {
        let notes = Arc::new(Mutex::new(Vec::new()));
        let sink = notes.clone();
        let finished = guest()
            .call(ToolCall {
                name: self.tool,
                arguments: &self.arguments.to_string(),
                run_id: "run_test",
                step: 1,
                idempotency_key: "key",
                workspace: None,
                network: self.network,
                scripts: None,
                environment: self.environment,
                seeded: None,
                limits: self.limits,
                notes: Arc::new(move |note| sink.lock().unwrap().push(note)),
                cancel: self.cancel,
            })
            .await;
        let notes = std::mem::take(&mut *notes.lock().unwrap());
        Called { finished, notes }
    }
}

async fn attack(tool: &'static str, site: &Site, path: &str) -> Called {
    Call::of(tool, json!({"url": site.url(path)}), to(site)).make().await
}

/// The twin of every attack: the host lives on, and an ordinary request works.
async fn assert_benign_works() {
    let site = Site::start().await.with("/", Reply::text("hello"));
    let called = Call::of("request", json!({"method": "GET", "url": site.url("/")}), to(&site)).make().await;
    assert_eq!(called.json()["answer"]["body"], "hello");
}

/// A test that loads the guest does so outside the executor: loading blocks on it.
fn test(body: impl Future<Output = ()>) {
    guest();
    tests::block_on(body);
}

/// Attacks that a test below names; a guest without a test would go unwatched.
const TESTED: [&str; 18] = [
    "request",
    "compute",
    "say",
    "blurt",
    "environment",
    "request_flood",
    "request_hoard",
    "request_drop",
    "header_bomb",
    "body_hoard",
    "never_read",
    "keep_open",
    "stall",
    "read_all",
    "endless_upload",
    "lie_about_length",
    "forbidden_headers",
    "half_requests",
];

#[test]
fn every_tool_of_the_guest_has_a_test() {
    let finished = tests::block_on(guest().describe(Limits::default()));
    let Outcome::Returned(tools) = finished.outcome else { panic!("{:?}", finished.outcome) };
    let offered: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(offered, TESTED);
}

#[test]
fn what_a_guest_could_do_is_read_off_its_imports() {
    use runtime::inspect::Capability::{Credentials, Network};
    let powers = |name| inspect(&tests::hostile_guest(name), 64 << 20).unwrap().capabilities();
    let outgoing = powers("outgoing");
    assert!(outgoing.contains(&Network) && outgoing.contains(&Credentials), "{outgoing:?}");
    let benign = powers("benign");
    assert!(!benign.contains(&Network) && !benign.contains(&Credentials), "{benign:?}");
}

#[test]
fn a_guest_gets_and_posts() {
    test(async {
        let site =
            Site::start().await.with("/page", Reply::text("hello")).with("/form", Reply::EchoBody(Encoding::Plain));
        let arguments = json!({"method": "GET", "url": site.url("/page?q=1"), "headers": [["x-a", "b"]]});
        let called = Call::of("request", arguments, to(&site)).make().await;
        let answer = &called.json()["answer"];
        assert_eq!(
            (&answer["status"], &answer["body"], &answer["error"]),
            (&json!(200), &json!("hello"), &json!(null))
        );
        let received = site.last_request();
        assert_eq!((received.method.as_str(), received.target.as_str()), ("GET", "/page?q=1"));
        assert_eq!(received.header("x-a").as_deref(), Some("b"));
        assert_eq!(received.header("host"), Some(site.address().to_string()));
        let [trace] = &called.finished.requests[..] else { panic!("{:?}", called.finished.requests) };
        assert_eq!((trace.method.as_str(), trace.status, trace.response_bytes), ("GET", Some(200), 5));
        assert!(called.finished.last_refusal.is_none());

        // Larger than any one piece, so that it goes in many.
        let text = "0123456789abcdef".repeat(2_500);
        let arguments = json!({"method": "POST", "url": site.url("/form"), "body": text});
        let called = Call::of("request", arguments, to(&site)).make().await;
        assert_eq!(called.json()["answer"]["body"], text);
        let received = site.last_request();
        assert_eq!((received.method.as_str(), received.body.len()), ("POST", text.len()));
        let key = received.header("idempotency-key").unwrap();
        assert!(key.starts_with("key-"), "{key}");
    });
}

#[test]
fn a_call_without_a_network_is_refused_and_told_why() {
    test(async {
        let site = Site::start().await.with("/", Reply::text("hello"));
        let called = Call::of("request", json!({"method": "GET", "url": site.url("/")}), None).make().await;
        let told = called.json();
        assert_eq!(told["answer"]["error"], "HttpRequestDenied");
        assert_eq!(told["refusal"]["rule"], "domain_not_allowed");
        assert!(told["refusal"]["remedy"].as_str().unwrap().contains("127.0.0.1"), "{told}");
        assert_eq!(called.finished.last_refusal.unwrap().rule, Rule::DomainNotAllowed);
        assert_eq!(called.finished.requests.len(), 1);
        assert_eq!(site.connections(), 0);
        for (what, expected) in [("exists", json!(false)), ("hmac", json!("missing")), ("reveal", json!("missing"))] {
            let called = Call::of("compute", json!({"what": what, "name": "token"}), None).make().await.json();
            assert!(called == expected || called.get(expected.as_str().unwrap_or_default()).is_some(), "{called}");
        }
    });
}

#[test]
fn what_was_not_granted_reaches_nobody() {
    test(async {
        let site = Site::start().await.with("/", Reply::text("hello"));
        let forbidden = Forbidden::listen("127.0.0.1:0");
        let other = forbidden.address();
        for (url, code, rule) in [
            (format!("http://{other}/"), "HttpRequestDenied", "port_not_allowed"),
            (format!("http://localhost:{}/", site.port()), "HttpRequestDenied", "domain_not_allowed"),
            ("https://example.com/".to_owned(), "HttpRequestDenied", "domain_not_allowed"),
            (format!("http://user:word@{}/", site.address()), "HttpRequestUriInvalid", "userinfo"),
            (format!("ftp://{}/", site.address()), "HttpRequestUriInvalid", "scheme"),
        ] {
            let called = Call::of("request", json!({"method": "GET", "url": url}), to(&site)).make().await;
            let told = called.json();
            assert_eq!(told["answer"]["error"], code, "{url}: {told}");
            assert_eq!(told["refusal"]["rule"], rule, "{url}: {told}");
            assert_eq!(called.finished.last_refusal.unwrap().rule.as_str(), rule, "{url}");
        }
        // An address that the run was granted by name, and that is not on the owner's list.
        let policy = Policy { domains: vec![other.to_string().parse().unwrap()], ..Policy::default() };
        let unlisted = Gate::new(&NetworkConfig::default()).unwrap().run(policy, Arc::default(), Taint::default());
        let arguments = json!({"method": "GET", "url": format!("http://{other}/")});
        let told = Call::of("request", arguments, Some(unlisted)).make().await.json();
        assert_eq!(told["answer"]["error"], "DestinationIpProhibited", "{told}");
        assert_eq!(told["refusal"]["rule"], "private_address", "{told}");
        assert_eq!((forbidden.connections(), site.connections()), (0, 0));
    });
    test(assert_benign_works());
}

const SECRET: &str = "s3cr3t-canary-7f0e";

#[test]
fn the_environment_is_what_the_call_was_given() {
    test(async {
        let mut call = Call::of("environment", json!({}), None);
        call.environment = vec![("MOTOR_COMMANDS".to_owned(), "grep,sort".to_owned())];
        assert_eq!(call.make().await.json(), json!([["MOTOR_COMMANDS", "grep,sort"]]));
        assert_eq!(Call::of("environment", json!({}), None).make().await.json(), json!([]));
    });
}

/// A server that takes a request and never answers.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

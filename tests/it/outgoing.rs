//! Guests on the network: what they get through the gate, and what they can do to the host with it (SPEC HOST-5, NET-1,
//! NET-3, VAULT-5). What the gate itself refuses is tested beside it; here it is what reaches and leaves a guest.

use std::io::Read as _;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use base::{CredentialName, Secret};
use network::{Config, Gate, Policy, Rule, RunNetwork, Taint, TaintedWrite};
use runtime::{
    Access, CodeErrorCode, CodeReport, CodeSandbox, Component, EngineConfig, Finished, Limit, Limits, Note, Origin,
    Outcome, Program, Runtime, Surroundings, ToolCall, ToolComponent, ToolError, inspect,
};
use serde_json::{Value, json};
use tests::network::{Encoding, Forbidden, Reply, Site};
use tokio_util::sync::CancellationToken;
use vault::{Granted, RunSecrets, Scrubber};

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
        let component = tests::block_on(Component::load(runtime(), &bytes, Origin::Untrusted)).unwrap();
        ToolComponent::link(runtime(), &component).unwrap()
    })
}

/// A way out to one site of this machine, with credentials for it.
fn way_to(address: &str, credentials: &[(&str, &str, bool)]) -> RunNetwork {
    let name = |name: &str| CredentialName::parse(name).unwrap();
    let config = Config { private: vec![address.to_owned()], ..Config::default() };
    let policy =
        Policy { domains: vec![address.parse().unwrap()], tainted_write: TaintedWrite::Allow, ..Policy::default() };
    let known = credentials.iter().map(|(known, value, _)| (name(known), Secret::new((*value).to_owned())));
    let scrubber = Arc::new(Scrubber::new(known.collect()));
    let granted = credentials.iter().map(|(known, value, raw)| Granted {
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
    finished: Finished<String, ToolError>,
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
                environment: self.environment,
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

/// Attacks that a test below names; a guest without a test is a guest nobody watches.
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
            (format!("http://{other}/"), "HttpRequestDenied", "domain_not_allowed"),
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
        let unlisted = Gate::new(&Config::default()).unwrap().run(policy, Arc::default(), Taint::default());
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
fn a_guest_uses_a_credential_that_it_never_sees() {
    test(async {
        let site = Site::start().await.with("/", Reply::echo("authorization", Encoding::Plain));
        let way = || Some(way_to(&site.address().to_string(), &[("token", SECRET, false)]));
        let arguments = json!({
            "method": "GET", "url": site.url("/"), "headers": [["authorization", "Bearer <credential:token>"]],
        });
        let called = Call::of("request", arguments, way()).make().await;
        assert_eq!(site.last_request().header("authorization"), Some(format!("Bearer {SECRET}")));
        assert_eq!(called.json()["answer"]["body"], "Bearer <credential:token>");

        let compute = |what: &'static str, name: &'static str| async move {
            Call::of("compute", json!({"what": what, "name": name, "data": "data"}), way()).make().await.json()
        };
        assert_eq!(compute("exists", "token").await, json!(true));
        assert_eq!(compute("exists", "other").await, json!(false));
        // printf data | openssl dgst -sha256 -hmac s3cr3t-canary-7f0e
        let expected = "4f693ead7692f59bbe2b92fa6593ec124bc6a1f8d47459fbd6c9dd70badd73d3";
        assert_eq!(compute("hmac", "token").await["hex"], expected);
        assert!(compute("hmac", "other").await["missing"].is_string());
        assert!(compute("rs256", "token").await["unusable"].is_string());
        assert!(compute("reveal", "token").await["denied"].is_string());
        assert!(compute("reveal", "other").await["missing"].is_string());
    });
}

#[test]
fn a_secret_that_a_guest_does_know_leaves_it_nowhere() {
    test(async {
        let site = Site::start().await;
        let way = || Some(way_to(&site.address().to_string(), &[("token", SECRET, true)]));
        for how in ["output", "error", "log", "progress", "stdout", "panic"] {
            let called = Call::of("blurt", json!({"text": "token", "how": how}), way()).make().await;
            let seen = format!("{:?} {:?}", called.finished, called.notes);
            assert!(!seen.contains(SECRET), "{how}: {seen}");
            assert!(seen.contains("<credential:token>"), "{how}: {seen}");
            // The twin: what is no secret passes as it is.
            let called = Call::of("say", json!({"text": "s3cr3t-c\u{e4}nary", "how": how}), way()).make().await;
            let seen = format!("{:?} {:?}", called.finished, called.notes);
            assert!(seen.contains("s3cr3t-c\u{e4}nary"), "{how}: {seen}");
        }
    });
}

#[test]
fn computing_with_keys_gives_way_to_the_deadline() {
    test(async {
        let site = Site::start().await;
        let way = || Some(way_to(&site.address().to_string(), &[("token", SECRET, false)]));
        let data = "x".repeat(100_000);
        let arguments = json!({"what": "hmac", "name": "token", "data": data, "times": 1_000_000});
        let started = Instant::now();
        let called = Call::of("compute", arguments, way()).limits(|limits| limits.deadline_ms = 100).make().await;
        called.exceeds(Limit::DeadlineMs);
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    });
}

#[test]
fn the_environment_is_what_the_call_was_given() {
    test(async {
        let mut call = Call::of("environment", json!({}), None);
        call.environment = vec![("MOTOR_COMMANDS".to_owned(), "grep,sort".to_owned())];
        assert_eq!(call.make().await.json(), json!([["MOTOR_COMMANDS", "grep,sort"]]));
        assert_eq!(Call::of("environment", json!({}), None).make().await.json(), json!([]));
    });
}

#[test]
fn requests_are_counted_also_those_that_nobody_waits_for() {
    test(async {
        let site = Site::start().await.with("/", Reply::text("hello"));
        let url = json!({"url": site.url("/")});
        let few = |limits: &mut Limits| limits.outgoing_requests = 20;
        let called = Call::of("request_flood", url.clone(), to(&site)).limits(few).make().await;
        assert_eq!(called.json(), json!({"200": 20, "ConnectionLimitReached": 9_980}));
        assert_eq!(site.requests().len(), 20);
        assert!(called.finished.requests.len() <= 21, "{}", called.finished.requests.len());
        let called = Call::of("request_flood", url.clone(), None).limits(few).make().await;
        assert_eq!(called.json(), json!({"HttpRequestDenied": 20, "ConnectionLimitReached": 9_980}));
        assert_eq!(called.finished.requests.len(), 20);
        Call::of("request_hoard", url.clone(), to(&site)).limits(few).make().await.exceeds(Limit::Handles);
        assert!(site.requests().len() <= 40, "{}", site.requests().len());
        assert_eq!(Call::of("request_drop", url, to(&site)).limits(few).make().await.text(), "dropped");
        site.wait_closed().await;
        assert_benign_works().await;
    });
}

#[test]
fn what_a_guest_makes_the_host_hold_is_limited() {
    test(async {
        let site = Site::start().await.with("/", Reply::text("hello"));
        attack("header_bomb", &site, "/").await.exceeds(Limit::HttpHeaderBytes);
        attack("body_hoard", &site, "/").await.exceeds(Limit::Handles);
        assert_eq!(site.connections(), 0);
        assert_benign_works().await;
    });
}

#[test]
fn a_response_that_nobody_reads_ends_with_its_call() {
    test(async {
        let site = Site::start().await.with("/endless", Reply::Endless).with("/stalled", Reply::Stall);
        assert_eq!(attack("never_read", &site, "/endless").await.text(), "200 true");
        assert_eq!(attack("never_read", &site, "/stalled").await.text(), "200 true");
        site.wait_closed().await;
        for tool in ["keep_open", "stall"] {
            let call = Call::of(tool, json!({"url": site.url("/endless")}), to(&site));
            call.limits(|limits| limits.deadline_ms = 300).make().await.exceeds(Limit::DeadlineMs);
        }
        site.wait_closed().await;
        assert_benign_works().await;
    });
}

#[test]
fn responses_are_limited_and_say_so() {
    test(async {
        let site =
            Site::start().await.with("/endless", Reply::Endless).with("/short", Reply::Sized { said: 100, sent: 10 });
        let call = Call::of("read_all", json!({"url": site.url("/endless")}), to(&site));
        let told = call.limits(|limits| limits.response_bytes = 1 << 20).make().await.json();
        assert_eq!(told["error"], "HttpResponseBodySize", "{told}");
        assert!(told["read"].as_u64().unwrap() <= 1 << 20, "{told}");
        let told = attack("read_all", &site, "/short").await.json();
        assert_eq!(told["error"], "HttpProtocolError", "{told}");
        site.wait_closed().await;
        assert_benign_works().await;
    });
}

#[test]
fn uploads_are_limited_and_lengths_are_kept() {
    test(async {
        let site = Site::start().await.with("/", Reply::text("taken"));
        let call = Call::of("endless_upload", json!({"url": site.url("/")}), to(&site));
        let called = call.limits(|limits| limits.request_bytes = 1 << 20).make().await;
        assert_eq!(called.text(), "HttpRequestBodySize");
        let called = attack("lie_about_length", &site, "/").await;
        assert!(!called.text().contains("REACHED"), "{}", called.text());
        assert_eq!(called.text().lines().count(), 6, "{}", called.text());
        site.wait_closed().await;
        assert_eq!(site.requests(), [], "no request came whole");
        assert_benign_works().await;
    });
}

#[test]
fn a_guest_decides_nothing_about_the_connection() {
    test(async {
        let site = Site::start().await.with("/", Reply::text("hello"));
        assert_eq!(attack("forbidden_headers", &site, "/").await.text(), "200");
        let received = site.last_request();
        assert_eq!(received.header("host"), Some(site.address().to_string()));
        assert!(received.headers.iter().all(|(name, value)| !format!("{name}{value}").contains("internal")));
        let called = attack("half_requests", &site, "/").await;
        assert!(!called.text().contains("REACHED"), "{}", called.text());
        assert_eq!((called.text().lines().count(), site.requests().len()), (11, 1), "{}", called.text());
    });
}

/// A server that takes a request and never answers.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

#[test]
fn a_call_that_waits_for_the_network_is_cancelled_at_once() {
    let (listener, address) = silent();
    let cancel = CancellationToken::new();
    let later = cancel.clone();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut first = [0; 1];
        stream.read_exact(&mut first).unwrap();
        later.cancel();
        let cancelled = Instant::now();
        // The host closes the connection: nothing of the call is left.
        stream.read_to_end(&mut Vec::new()).ok();
        cancelled
    });
    test(async {
        let arguments = json!({"method": "GET", "url": format!("http://{address}/")});
        let mut call = Call::of("request", arguments, Some(way_to(&address, &[])));
        call.cancel = cancel;
        let called = call.make().await;
        let ended = Instant::now();
        assert_eq!(called.finished.outcome, Outcome::Cancelled);
        assert_eq!(called.finished.requests.len(), 1, "{:?}", called.finished.requests);
        assert!(ended.duration_since(server.join().unwrap()) < Duration::from_secs(1));
    });
}

#[test]
fn waiting_for_the_network_is_the_guests_time() {
    let (listener, address) = silent();
    test(async {
        let arguments = json!({"method": "GET", "url": format!("http://{address}/")});
        let call = Call::of("request", arguments, Some(way_to(&address, &[])));
        call.limits(|limits| limits.deadline_ms = 100).make().await.exceeds(Limit::DeadlineMs);
        assert_benign_works().await;
    });
    drop(listener);
}

/// The engine of the tests' own language, linked as the connected JavaScript engine is.
fn programs() -> &'static CodeSandbox {
    static PROGRAMS: OnceLock<CodeSandbox> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let bytes = tests::hostile_guest("programs");
        let component = tests::block_on(Component::load(runtime(), &bytes, Origin::Untrusted)).unwrap();
        assert!(CodeSandbox::link(runtime(), &component).is_err(), "the isolated engine's linker is empty");
        CodeSandbox::link_connected(runtime(), &component).unwrap()
    })
}

async fn run(source: &str, surroundings: Surroundings, cancel: &CancellationToken) -> CodeReport {
    let program =
        Program { source: source.to_owned(), timeout: Duration::from_secs(30), guard: false, seed: 1, now_ms: 1 };
    programs().execute_in(&program, surroundings, &Limits::default(), cancel).await
}

#[test]
fn a_program_reaches_what_is_around_it_and_nothing_else() {
    programs();
    test(async {
        let site = Site::start().await.with("/", Reply::text("hello")).with("/secret", Reply::text(SECRET));
        let workspace = tempfile::tempdir().unwrap();
        std::fs::write(workspace.path().join("a.txt"), "a file").unwrap();
        let never = CancellationToken::new();
        let source = format!("get {}\nread /workspace/a.txt\nwrite /workspace/b.txt\nlist", site.url("/"));
        let lines = |report: &CodeReport| report.console.lines().map(str::to_owned).collect::<Vec<_>>();

        let report = run(&source, Surroundings::default(), &never).await;
        let reached = lines(&report);
        assert!(reached.iter().all(|line| line.starts_with("error: ")), "{reached:?}");
        assert!(reached[0].contains("HttpRequestDenied"), "{reached:?}");
        assert_eq!(report.last_refusal.as_ref().map(|blocked| blocked.rule), Some(Rule::DomainNotAllowed));
        assert_eq!((report.requests.len(), site.connections()), (1, 0));

        let files = Surroundings { workspace: Some(workspace.path().to_owned()), ..Surroundings::default() };
        let reached = lines(&run(&source, files.clone(), &never).await);
        assert_eq!((reached[1].as_str(), reached[3].as_str()), ("a file", "a.txt"), "{reached:?}");
        assert!(reached[0].starts_with("error: ") && reached[2].starts_with("error: "), "{reached:?}");
        assert_eq!(site.connections(), 0);

        let address = site.address().to_string();
        let network = way_to(&address, &[("token", SECRET, false)]);
        let all = Surroundings { network: Some(network), access: Access::ReadWrite, ..files };
        let report = run(&source, all.clone(), &never).await;
        assert_eq!(lines(&report)[..3], ["hello", "a file", "written"], "{report:?}");
        assert_eq!((report.requests.len(), report.last_refusal.is_none()), (1, true));
        assert!(report.usage.fuel > 0 && report.usage.host_calls > 0 && report.usage.peak_memory_bytes > 0);

        // Whatever it read, a secret does not come back with it.
        let report = run(&format!("get {}", site.url("/secret")), all, &never).await;
        assert_eq!(report.console, "<credential:token>\n");
    });
}

#[test]
fn a_connected_program_is_ended_like_any_other() {
    programs();
    let (listener, address) = silent();
    let cancel = CancellationToken::new();
    let later = cancel.clone();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 1]).unwrap();
        later.cancel();
        stream.read_to_end(&mut Vec::new()).ok();
    });
    test(async {
        let surroundings = Surroundings { network: Some(way_to(&address, &[])), ..Surroundings::default() };
        let report = run(&format!("get http://{address}/"), surroundings, &cancel).await;
        assert_eq!(report.outcome.unwrap_err().code, CodeErrorCode::Cancelled);
        server.join().unwrap();
        let program = Program {
            source: "spin".to_owned(),
            timeout: Duration::from_millis(100),
            guard: false,
            seed: 1,
            now_ms: 1,
        };
        let report = programs().execute(&program, &Limits::default(), &CancellationToken::new()).await;
        assert_eq!(report.outcome.unwrap_err().code, CodeErrorCode::Timeout);
        let missing = Surroundings { workspace: Some("/nowhere/at/all".into()), ..Surroundings::default() };
        let told = run("list", missing, &CancellationToken::new()).await.outcome.unwrap_err().to_string();
        assert!(told.contains("workspace") && !told.contains("nowhere"), "{told}");
    });
}

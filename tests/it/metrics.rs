//! `/metrics` with the real program (SPEC OBS-2): the work of runs and the requests of callers are counted, and nothing that
//! they wrote is shown.

use std::collections::BTreeMap;

use regex::Regex;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tests::binary::{Motor, Running};
use tests::block_on;
use tests::model_server::ModelServer;
use tests::network::{Reply, Site};
use tests::watching::{HostAddress, Watcher};

struct World {
    motor: Motor,
    _model: ModelServer,
    _serving: Running,
    site: Site,
    address: String,
}

/// Posts to a site, is refused by another, fails at reading, and answers.
fn story(site: &Site) -> Value {
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let post = json!({ "url": site.url("/orders"), "method": "POST", "body": { "n": 1 } });
    let calls = [
        call("fetch", post),
        call("fetch", json!({ "url": "http://elsewhere.example/" })),
        call("read", json!({ "path": "none.txt" })),
        call("code", json!({ "code": "return 6 * 7" })),
    ];
    let usage = json!({ "input": 100, "output": 20, "cost": 0.25 });
    json!({ "turns": [{ "tool_calls": calls, "usage": usage }, { "text": "done", "usage": usage }] })
}

impl World {
    fn new() -> Self {
        let site = block_on(Site::start()).with("/orders", Reply::text("taken"));
        let model = block_on(ModelServer::scripted(story(&site)));
        let motor = Motor::with_model(&model).env("MOTOR_KEYRING", "off");
        motor.configure(&format!("[network]\nprivate = [\"{}\"]\n", site.address()));
        let serving = motor.start(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        let line: Value = serde_json::from_str(&serving.wait_for_output("listening")).unwrap();
        let address = line["address"].as_str().unwrap().to_owned();
        Self { motor, _model: model, _serving: serving, site, address }
    }

    fn token(&self, name: &str, arguments: &[&str]) -> String {
        let made = self.motor.run_as_owner(&[&["token", "create", "--name", name], arguments].concat(), "");
        made.succeeded().stdout.trim().to_owned()
    }

    fn get(&self, path: &str, token: &str) -> (StatusCode, String) {
        let request = Client::new().get(format!("{}{path}", self.address)).bearer_auth(token);
        block_on(async {
            let response = request.send().await.unwrap();
            (response.status(), response.text().await.unwrap())
        })
    }

    /// The samples of `/metrics`, each by its name with labels. Every line has to be one of the format.
    fn scrape(&self, token: &str) -> BTreeMap<String, f64> {
        let (status, text) = self.get("/metrics", token);
        assert_eq!(status, StatusCode::OK, "{text}");
        let label = r#"[a-z_]+="(?:[^"\\\n]|\\["\\n])*""#;
        let sample = format!(r"^(([a-z_]+)(?:\{{{label}(?:,{label})*\}})?) (-?[0-9.e+-]+)$");
        let (sample, comment) = (Regex::new(&sample).unwrap(), Regex::new(r"^# (HELP|TYPE) ([a-z_]+) (.+)$").unwrap());
        let (mut samples, mut kinds) = (BTreeMap::new(), BTreeMap::new());
        for line in text.lines() {
            if let Some(found) = comment.captures(line) {
                if &found[1] == "TYPE" {
                    assert!(kinds.insert(found[2].to_owned(), found[3].to_owned()).is_none(), "{line}");
                }
                continue;
            }
            let found = sample.captures(line).unwrap_or_else(|| panic!("not a sample: {line}"));
            assert!(kinds.contains_key(&found[2]), "no type: {line}");
            assert!(samples.insert(found[1].to_owned(), found[3].parse().unwrap()).is_none(), "twice: {line}");
        }
        samples
    }
}

#[test]
fn runs_requests_and_the_process_are_counted() {
    let world = World::new();
    let token = world.token("prometheus", &["--scope", "read"]);
    let before = world.scrape(&token);
    assert_eq!(before["motor_runs_accepted_total"], 0.0);
    assert_eq!(before["motor_runs_ended_total{status=\"completed\"}"], 0.0);
    let domain = world.site.address().to_string();
    let act = ["act", "order \"it\"\nnow", "--tools", "fetch,read,code", "--domains", &domain, "--agent", "buyer"];
    let run = world.motor.json(&act)["runId"].as_str().unwrap().to_owned();
    let socket = HostAddress::Socket(world.motor.home().join("host.sock"));
    let watching = block_on(Watcher::open(&socket, "/v1/signals/events", None)).unwrap();
    assert_eq!(world.get("/v1/tasks/run_0123", &token).0, StatusCode::NOT_FOUND);
    assert_eq!(world.get("/no/such/<path>", &token).0, StatusCode::NOT_FOUND);
    let after = world.scrape(&token);
    for (name, expected) in [
        ("motor_runs{status=\"running\"}", 0.0),
        ("motor_runs_accepted_total", 1.0),
        ("motor_runs_ended_total{status=\"completed\"}", 1.0),
        ("motor_steps_total", 2.0),
        ("motor_model_tokens_total{direction=\"input\"}", 200.0),
        ("motor_model_tokens_total{direction=\"output\"}", 40.0),
        ("motor_model_cost_dollars_total", 0.5),
        ("motor_tool_calls_total{outcome=\"ok\"}", 2.0),
        ("motor_tool_calls_total{outcome=\"not_found\"}", 1.0),
        ("motor_tool_calls_total{outcome=\"network_blocked\"}", 1.0),
        ("motor_network_requests_total{outcome=\"answered\"}", 1.0),
        ("motor_network_requests_total{outcome=\"refused\"}", 1.0),
        ("motor_signals_newest_id", 1.0),
        ("motor_http_requests_total{method=\"POST\",route=\"/v1/tasks\",status=\"200\"}", 1.0),
        ("motor_http_requests_total{method=\"GET\",route=\"/v1/tasks/{id}\",status=\"404\"}", 1.0),
        ("motor_http_requests_total{method=\"GET\",route=\"none\",status=\"404\"}", 1.0),
        ("motor_refusals_total{code=\"not_found\"}", 2.0),
        ("motor_http_connections{listener=\"socket\",kind=\"watch\"}", 1.0),
        ("motor_http_connections{listener=\"port\",kind=\"watch\"}", 0.0),
    ] {
        assert_eq!(after.get(name), Some(&expected), "{name}: {after:#?}");
    }
    for name in ["motor_sandbox_fuel_total", "motor_energy_spent_total", "process_open_fds", "process_max_fds"] {
        assert!(after[name] > 0.0, "{name}");
    }
    assert!(after["process_resident_memory_bytes"] > f64::from(1 << 20));
    assert!(after["motor_store_commits_total"] > before["motor_store_commits_total"]);
    assert!(after["process_cpu_seconds_total"] >= before["process_cpu_seconds_total"]);
    assert!((0.05..=1.0).contains(&after["motor_energy_level{agent=\"main\"}"]), "{after:#?}");
    // Nothing that a caller, a model or a site named.
    let (_, text) = world.get("/metrics", &token);
    for word in [run.as_str(), "order", "<path>", "elsewhere", "127.0.0", "run_0123"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    drop(watching);
}

#[test]
fn figures_of_the_whole_home_are_shown_to_tokens_for_the_whole_home() {
    let world = World::new();
    let bound = world.token("bound", &["--scope", "agent", "--agent", "buyer"]);
    let (status, refused) = world.get("/metrics", &bound);
    let refused: Value = serde_json::from_str(&refused).unwrap();
    assert_eq!((status, &refused["code"]), (StatusCode::FORBIDDEN, &json!("forbidden")), "{refused}");
    assert_eq!(world.get("/metrics", "motor-api-0").0, StatusCode::UNAUTHORIZED);
    let agent = world.token("agent", &["--scope", "agent"]);
    assert_eq!(world.get("/metrics", &agent).0, StatusCode::OK);
}

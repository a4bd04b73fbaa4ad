//! Traces of runs on their way to a collector (SPEC OBS-1): one that works, one that is away while the host is killed, one
//! that harms nothing, and none.

use serde_json::{Value, json};
use tests::binary::{Motor, Running};
use tests::block_on;
use tests::model_server::ModelServer;
use tests::network::{Reply, Site};

fn model() -> ModelServer {
    let write = json!({ "name": "write", "arguments": { "path": "a.txt", "content": "private words" } });
    block_on(ModelServer::scripted(json!({ "turns": [{ "tool_calls": [write] }, { "text": "done" }] })))
}

fn collector(status: u16) -> Site {
    let reply = Reply::Whole { status, headers: Vec::new(), body: b"{}".to_vec() };
    block_on(Site::start()).with("/v1/traces", reply)
}

fn serve(motor: &Motor) -> Running {
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    serving
}

fn act(motor: &Motor) -> String {
    motor.json(&["act", "write it", "--tools", "write"])["runId"].as_str().unwrap().to_owned()
}

/// The bodies of the traces that arrived.
fn arrived(site: &Site) -> Vec<Value> {
    let requests = site.requests();
    let bodies = requests.iter().map(|request| {
        assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/v1/traces"));
        assert_eq!(request.header("content-type").as_deref(), Some("application/json"));
        assert!(!request.text().contains("private words"), "{}", request.text());
        serde_json::from_slice(&request.body).unwrap()
    });
    bodies.collect()
}

fn exported(motor: &Motor, run: &str) -> Value {
    serde_json::from_str(&motor.stdout(&["trace", "export", run, "--format", "otlp"])).unwrap()
}

#[test]
fn the_spans_of_a_run_arrive_once_it_ends() {
    let (model, site) = (model(), collector(200));
    let motor = Motor::with_model(&model).env("MOTOR_TELEMETRY_ENDPOINT", &site.url(""));
    let _serving = serve(&motor);
    let runs = [act(&motor), act(&motor)];
    block_on(site.wait_for_requests(2));
    let traces = arrived(&site);
    assert_eq!(traces, runs.each_ref().map(|run| exported(&motor, run)));
    let spans = traces[0]["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let names: Vec<_> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["invoke_agent main", "chat test", "execute_tool write", "chat test"]);
}

#[test]
fn a_trace_outlives_its_host_while_the_collector_is_away() {
    let (model, site) = (model(), collector(503));
    let motor = Motor::with_model(&model);
    motor.configure(&format!("[telemetry]\nendpoint = \"{}/\"\n", site.url("")));
    let serving = serve(&motor);
    let run = act(&motor);
    block_on(site.wait_for_requests(1));
    serving.kill();
    let before = site.requests().len();
    site.route("/v1/traces", Reply::Whole { status: 200, headers: Vec::new(), body: Vec::new() });
    let _serving = serve(&motor);
    block_on(site.wait_for_requests(before + 1));
    let expected = exported(&motor, &run);
    // Each attempt is the same trace.
    assert!(arrived(&site).iter().all(|trace| *trace == expected));
}

#[test]
fn a_collector_that_is_away_or_silent_holds_up_no_run_and_without_one_nothing_is_sent() {
    let (model, site) = (model(), collector(200));
    let silent = block_on(Site::start()).with("/v1/traces", Reply::Silence);
    // Nothing listens on a port that was free a moment ago.
    let gone = { block_on(Site::start()).url("") };
    for endpoint in [gone, silent.url("")] {
        let motor = Motor::with_model(&model).env("MOTOR_TELEMETRY_ENDPOINT", &endpoint);
        let serving = serve(&motor);
        let runs: Vec<_> = (0..3).map(|_| act(&motor)).collect();
        for run in &runs {
            assert_eq!(motor.json(&["task", "status", run])["status"], "completed");
        }
        serving.signal(tests::binary::Signal::TERM);
        serving.wait().succeeded();
    }
    let motor = Motor::with_model(&model);
    act(&motor);
    assert_eq!(site.connections(), 0);
}

#[test]
fn an_endpoint_that_would_send_plain_text_elsewhere_is_refused() {
    let motor = Motor::new();
    for endpoint in ["http://10.0.0.1:4318", "http://otlp.example.com", "4318"] {
        motor.configure(&format!("[telemetry]\nendpoint = \"{endpoint}\"\n"));
        motor.run(&["task", "list"]).refused(2, &["`telemetry.endpoint`"]);
    }
    motor.configure("[telemetry]\nendpoint = \"https://otlp.example.com\"\n");
    motor.stdout(&["task", "list"]);
}

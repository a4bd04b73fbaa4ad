//! Several commands on one home at the same time (SPEC CONF-4, RUN-2, RUN-7): whichever came first is the host of all.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::binary::{Motor, Running, Signal};
use tests::block_on;
use tests::model_server::ModelServer;
use tests::network::{Reply, Site};

/// A run that waits at its second reply; the first is a call.
fn gated() -> (ModelServer, Motor) {
    let script = json!({ "turns": [
        { "tool_calls": [{ "name": "write", "arguments": { "path": "a.txt", "content": "a" } }] },
        { "text": "written", "gate": true },
    ]});
    let server = block_on(ModelServer::scripted(script));
    let motor = Motor::with_model(&server);
    (server, motor)
}

const ACT: [&str; 4] = ["act", "write a file", "--tools", "write"];

fn waiting() -> (ModelServer, Motor, Running, String) {
    let (server, motor) = gated();
    let acting = motor.start(&ACT);
    let run = acting.run_id();
    block_on(server.wait_at_gate());
    (server, motor, acting, run)
}

fn statuses(signals: &[Value]) -> Vec<&str> {
    signals.iter().map(|signal| signal["status"].as_str().unwrap()).collect()
}

#[test]
fn a_second_act_of_the_same_agent_is_refused_and_costs_nothing() {
    let (server, motor, acting, run) = waiting();
    let energy = motor.json(&["energy"])["level"].as_f64().unwrap();
    let busy = format!("Motor Cortex is busy (run_id: {run}): that run of agent `main` is under way");
    let ended = motor.run(&ACT);
    ended.refused(75, &[&busy, &format!("motor task status {run}"), &format!("motor task cancel {run}")]);
    assert!(!ended.stderr.contains("core."), "an operator has no such tool: {ended:?}");
    let refused = motor.run(&["act", "write", "--json"]);
    let error: Value = serde_json::from_str(&refused.stdout).unwrap();
    assert_eq!((refused.code, &error["error"]["code"]), (Some(75), &json!("busy")));
    assert!(motor.json(&["energy"])["level"].as_f64().unwrap() >= energy);
    assert_eq!(motor.only_run(), run);
    // Another agent has a place of its own.
    let beside = motor.start(&["act", "write a file", "--tools", "write", "--agent", "other"]);
    let other = beside.run_id();
    assert_ne!(other, run);
    server.release();
    server.release();
    assert_eq!(beside.wait().succeeded().stdout, "written\n");
    assert_eq!(acting.wait().succeeded().stdout, "written\n");
    // The place is free again.
    server.release();
    assert_eq!(motor.stdout(&ACT), "written\n");
}

#[test]
fn other_commands_work_while_a_run_is_under_way() {
    let (server, motor, mut acting, run) = waiting();
    assert_eq!(motor.stdout(&["execute", "6 * 7"]), "42\n");
    let trace = motor.json(&["task", "status", &run]);
    assert_eq!((&trace["status"], &trace["steps"][0]["toolCalls"][0]["tool"]), (&json!("running"), &json!("write")));
    let runs = motor.json(&["task", "list", "--status", "running"]);
    assert_eq!(runs[0]["runId"], run);
    assert!(motor.stdout(&["task", "log", &run]).contains("a.txt"));
    assert!(motor.stdout(&["energy"]).contains("main: 0."));
    assert!(motor.json_lines(&["signals"]).is_empty());
    assert!(acting.is_alive());
    server.release();
    assert_eq!(acting.wait().succeeded().stdout, "written\n");
}

#[test]
fn cancel_ends_a_run_of_another_terminal_at_once() {
    let (server, motor, acting, run) = waiting();
    let following = motor.start(&["signals", "--follow", "--since", "0", "--json"]);
    // It listens when it is there: a signal must not be the proof of that.
    motor.stdout(&["task", "status"]);
    let began = Instant::now();
    let cancelled = motor.json(&["task", "cancel", &run]);
    assert_eq!((&cancelled["previousStatus"], &cancelled["newStatus"]), (&json!("running"), &json!("cancelled")));
    let signal: Value = serde_json::from_str(&following.wait_for_output("motor_result")).unwrap();
    assert_eq!((&signal["runId"], &signal["status"]), (&json!(run), &json!("cancelled")));
    // A follower does not hold the first command back: it takes the home over.
    let ended = acting.wait();
    assert!(began.elapsed() < tests::AT_ONCE, "{:?}", began.elapsed());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    assert!(ended.stderr.contains("cancelled"), "{ended:?}");
    // The request that waited was given up, not left to cost money.
    block_on(server.wait_gate_empty());
    assert_eq!(statuses(&motor.json_lines(&["signals"])), ["cancelled"]);
    motor.refuses(&["task", "cancel", &run], 1, "illegal_state");
    server.release();
    assert_eq!(motor.stdout(&ACT), "written\n");
    following.wait_for_output("completed");
    following.signal(Signal::INT);
    assert_eq!(following.wait().code, Some(130));
}

#[test]
fn cancel_stops_a_guest_that_loops() {
    let script = json!({ "turns": [
        { "tool_calls": [{ "name": "code", "arguments": { "code": "while (true) {}", "timeout_ms": 30_000 } }] },
        { "text": "never asked for" },
    ]});
    let server = block_on(ModelServer::scripted(script));
    let motor = Motor::with_model(&server);
    let acting = motor.start(&["act", "loop", "--tools", "code"]);
    let run = acting.run_id();
    acting.wait_for_words("→ code");
    let began = Instant::now();
    motor.stdout(&["task", "cancel", &run]);
    assert_eq!(acting.wait().code, Some(1));
    assert!(began.elapsed() < tests::AT_ONCE, "{:?}", began.elapsed());
    assert_eq!(server.calls(), 1);
}

#[test]
fn ctrl_c_gives_a_run_up_and_sigterm_leaves_it_for_the_next_host() {
    let (_server, motor, acting, run) = waiting();
    acting.signal(Signal::INT);
    let ended = acting.wait();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(130), ""), "{ended:?}");
    assert_eq!(motor.json(&["task", "status", &run])["status"], "cancelled");

    let (server, motor, acting, run) = waiting();
    acting.signal(Signal::TERM);
    let ended = acting.wait();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(ended.stderr.contains("motor act --resume"), "{ended:?}");
    assert_eq!(motor.json(&["task", "status", &run])["status"], "running");
    block_on(server.wait_gate_empty());
    server.release();
    assert_eq!(motor.stdout(&["act", "--resume"]), "written\n");
    assert_eq!(statuses(&motor.json_lines(&["signals"])), ["completed"]);
}

#[test]
fn a_command_that_is_the_host_stays_for_those_that_depend_on_it() {
    let (server, motor, first, _) = waiting();
    let second = motor.start(&["act", "write a file", "--tools", "write", "--agent", "other"]);
    let run = second.run_id();
    motor.wait_for_status(&run, "running");
    let mut patience = tests::Patience::default();
    while server.calls() < 4 {
        assert!(patience.lasts(), "{} calls", server.calls());
        std::thread::sleep(Duration::from_millis(2));
    }
    let first_run = motor.json(&["task", "list"])[0]["runId"].as_str().unwrap().to_owned();
    motor.stdout(&["task", "cancel", &first_run]);
    first.wait_for_words("staying for another command");
    server.release();
    assert_eq!(second.wait().succeeded().stdout, "written\n");
    assert_eq!(first.wait().code, Some(1));
}

fn serve(motor: &Motor) -> Running {
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    serving
}

fn stop(serving: Running) {
    serving.signal(Signal::TERM);
    let ended = serving.wait().succeeded();
    assert!(ended.stderr.contains("stopping"), "{ended:?}");
}

#[test]
fn a_detached_run_outlives_its_client_and_a_restart_of_the_host() {
    let (server, motor) = gated();
    let detach = [&ACT[..], &["--detach"]].concat();
    motor.run(&detach).refused(2, &["motor serve"]);
    assert_eq!(server.calls(), 0);
    let serving = serve(&motor);
    let run = motor.stdout(&detach).trim().to_owned();
    block_on(server.wait_at_gate());
    assert_eq!(motor.only_run(), run);
    stop(serving);
    block_on(server.wait_gate_empty());
    let serving = serve(&motor);
    block_on(server.wait_at_gate());
    assert_eq!(motor.json(&["task", "status", &run])["status"], "running");
    server.release();
    motor.wait_for_status(&run, "completed");
    assert_eq!(statuses(&motor.json_lines(&["signals"])), ["completed"]);
    assert_eq!(std::fs::read_to_string(motor.workspace(&run).join("a.txt")).unwrap(), "a");
    stop(serving);
    assert!(!motor.home().join("host.sock").exists());
}

#[test]
fn a_host_that_stops_waits_for_the_call_in_flight() {
    let script = json!({ "turns": [
        { "tool_calls": [{ "name": "code", "arguments": { "code": "while (true) {}", "timeout_ms": 500 } }] },
        { "text": "it does not end" },
    ]});
    let server = block_on(ModelServer::scripted(script));
    let motor = Motor::with_model(&server);
    let serving = serve(&motor);
    let following = motor.start(&["act", "loop", "--tools", "code"]);
    let run = following.run_id();
    following.wait_for_words("→ code");
    stop(serving);
    following.wait().refused(75, &[&run, "motor act --resume"]);
    assert_eq!(motor.stdout(&["act", "--resume"]), "it does not end\n");
    let trace = motor.json(&["task", "status", &run]);
    let call = &trace["steps"][0]["toolCalls"][0];
    assert_eq!((&call["result"]["errorCode"], &call["recovered"]), (&json!("timeout"), &json!(false)), "{call}");
}

#[test]
fn the_same_key_names_the_same_run() {
    let (server, motor) = gated();
    let _serving = serve(&motor);
    let data = motor.file("once.csv", "1");
    let detach = [&ACT[..], &["--detach", "--key", "once", "--file", data.to_str().unwrap()]].concat();
    let run = motor.stdout(&detach);
    // The data that the command needed then need not be there now.
    std::fs::remove_file(&data).unwrap();
    assert_eq!(motor.stdout(&detach), run);
    block_on(server.wait_at_gate());
    server.release();
    motor.wait_for_status(run.trim(), "completed");
    assert_eq!(motor.stdout(&detach), run);
    assert_eq!(motor.only_run(), run.trim());
    assert_eq!(server.calls(), 2);
}

#[test]
fn a_refused_act_leaves_the_recording_of_the_running_one_alone() {
    let (server, motor) = gated();
    let recorded = [&ACT[..], &["--record", "turns.jsonl"]].concat();
    let acting = motor.start(&recorded);
    block_on(server.wait_at_gate());
    motor.refuses(&recorded, 75, "busy");
    server.release();
    acting.wait().succeeded();
    let recording = std::fs::read_to_string(motor.directory().join("turns.jsonl")).unwrap();
    // A header, and every turn.
    assert_eq!(recording.lines().count(), 1 + server.calls(), "{recording}");
}

#[test]
fn an_act_in_one_go_returns_its_value_and_makes_no_run() {
    let motor = Motor::new();
    let _serving = serve(&motor);
    let post = |route: &str, body: Value| {
        let client = reqwest::Client::builder().unix_socket(motor.home().join("host.sock")).build().unwrap();
        let sent = client
            .post(format!("http://motor{route}"))
            .body(body.to_string())
            .header("content-type", "application/json");
        block_on(async { sent.send().await.unwrap().json::<Value>().await.unwrap() })
    };
    let value = post("/v1/executions", json!({ "code": "return 6 * 7" }));
    assert_eq!((&value["ok"], &value["output"]), (&json!(true), &json!("42")), "{value}");
    let refused = post("/v1/executions", json!({ "code": "1", "tools": ["read"] }));
    assert_eq!(refused["code"], "invalid_request", "{refused}");
    assert_eq!(motor.json(&["task", "list"]), json!([]));
}

#[test]
fn one_host_owns_a_home() {
    let motor = Motor::new();
    let serving = serve(&motor);
    motor.run(&["serve"]).refused(75, &["process"]);
    // Settings for a host that is there already would be ignored: they are refused.
    motor.run(&["energy", "--set", "code.timeout_ms=200"]).refused(2, &["already running"]);
    motor.stdout(&["energy"]);
    stop(serving);
    motor.stdout(&["energy", "--set", "code.timeout_ms=200"]);
    stop(serve(&motor));
}

#[test]
fn a_program_that_may_have_written_somewhere_is_not_run_again_by_the_next_host() {
    let motor = Motor::new();
    let site = block_on(Site::start()).with("/silent", Reply::Silence).with("/", Reply::text("heard"));
    let address = site.address();
    motor.configure(&format!("[network]\nprivate = [\"{address}\"]\ncode_domains = [\"{address}\"]\n"));
    let program = |path: &str| {
        let code = format!(
            "const got = await fetch({:?}, {{ method: 'POST', body: 'x' }}); return await got.text()",
            site.url(path)
        );
        motor.start(&["execute", "--tier", "network", "--timeout", "30s", &code])
    };
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let executing = program("/silent");
    block_on(site.wait_for_requests(1));
    serving.kill();
    executing.wait().refused(75, &["not known whether it did"]);
    assert_eq!(site.requests().len(), 1);
    // With a host that lasts it runs to its end.
    let ended = program("/").wait().succeeded();
    assert!(ended.stdout.contains("heard"), "{ended:?}");
}

/// A site that answers the requests of one reply only when all of them are there (SPEC RUN-6).
#[test]
fn ten_fetches_of_one_reply_are_made_at_once() {
    let barrier = std::sync::Arc::new(tokio::sync::Barrier::new(10));
    let paths: Vec<_> = (0..10).map(|n| format!("/page/{n}")).collect();
    let site = block_on(Site::start());
    for path in &paths {
        site.route(path, Reply::Together(barrier.clone()));
    }
    let calls: Vec<_> =
        paths.iter().map(|path| json!({ "name": "fetch", "arguments": { "url": site.url(path) } })).collect();
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "tool_calls": calls }, { "text": "read" }] })));
    let motor = Motor::with_model(&server);
    let address = site.address().to_string();
    motor.configure(&format!("[network]\nprivate = [\"{address}\"]\n"));
    let act = ["act", "read the pages", "--tools", "fetch", "--domains", &address];
    assert_eq!(motor.run(&act).succeeded().stdout, "read\n");
    let trace = motor.json(&["task", "status"]);
    let calls = trace["steps"][0]["toolCalls"].as_array().unwrap();
    for (call, path) in calls.iter().zip(&paths) {
        assert_eq!(call["result"]["ok"], true, "{call:#}");
        let [request] = call["requests"].as_array().unwrap().as_slice() else { panic!("{call:#}") };
        assert_eq!((&request["status"], request["url"].as_str()), (&json!(200), Some(site.url(path).as_str())));
    }
}

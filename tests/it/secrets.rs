//! A key is sent to its endpoint and goes nowhere else, however much is logged and however the endpoint behaves.

use std::path::Path;

use serde_json::json;
use tests::binary::{Ended, Motor};
use tests::block_on;
use tests::model_server::ModelServer;

const CANARY: &str = "sk-canary-5f1c0ffee4b1d9a7";
const MARKER: &str = "marker-93a1b7";

/// Files below a directory that hold these bytes.
fn holding(directory: &Path, bytes: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path, bytes));
        } else if path.is_file() {
            let content = std::fs::read(&path).unwrap();
            if content.windows(bytes.len()).any(|window| window == bytes.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

fn act(motor: &Motor, extra: &[&str]) -> Ended {
    let task = format!("say {MARKER}");
    motor.run(&[&["act", &task, "--tools", "code", "-vv", "--record", "turns.jsonl"], extra].concat())
}

#[track_caller]
fn check(motor: &Motor, ended: &Ended) {
    assert!(!ended.stdout.contains(CANARY), "{ended:?}");
    assert!(!ended.stderr.contains(CANARY), "{ended:?}");
    assert_eq!(holding(motor.directory(), CANARY), Vec::<String>::new());
    for command in [&["task", "status", "--full"][..], &["task", "log"], &["signals"], &["config", "show"], &["doctor"]]
    {
        let shown = motor.run(&[command, &["-vv"]].concat());
        assert!(!(shown.stdout + &shown.stderr).contains(CANARY), "{command:?}");
    }
    // The search finds words that are there.
    let trace = format!("{}.json", motor.only_run());
    assert!(holding(motor.directory(), MARKER).iter().any(|path| path.ends_with(&trace)));
}

fn home(server: &ModelServer) -> Motor {
    let motor = Motor::bare().env("LLM_MOTOR_MODEL", "openai/test").env("OPENAI_API_KEY", CANARY);
    motor.env("MOTOR_LOG", "trace").endpoint(&server.base_url())
}

#[test]
fn a_key_is_sent_and_never_shown() {
    let script = json!({ "key": CANARY, "turns": [
        { "tool_calls": [{ "name": "code", "arguments": { "code": "1 + 1" } }] },
        { "text": MARKER },
    ]});
    let server = block_on(ModelServer::scripted(script));
    let motor = home(&server);
    let ended = act(&motor, &[]).succeeded();
    assert_eq!(server.requests()[0].headers["authorization"], format!("Bearer {CANARY}"));
    assert!(ended.stderr.contains("DEBUG"), "nothing was logged: {ended:?}");
    check(&motor, &ended);
}

#[test]
fn a_key_that_the_endpoint_repeats_in_its_error_is_not_shown() {
    let server = block_on(ModelServer::scripted(json!({ "key": "another", "turns": [{ "text": "never" }] })));
    let motor = home(&server);
    let ended = act(&motor, &[]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    check(&motor, &ended);
}

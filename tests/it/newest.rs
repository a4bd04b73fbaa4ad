//! Commands without a run take the newest fitting one and name it, and the end of a run names its files, with the real
//! program (SPEC RUN-7, RUN-12, CONSENT-1).

use serde_json::{Value, json};
use tests::binary::{Motor, Running};
use tests::block_on;
use tests::model_server::ModelServer;

fn asking() -> Value {
    json!({ "turns": [
        { "tool_calls": [{ "name": "ask_user", "arguments": { "question": "Which colour?" } }] },
        { "text": "painted" },
    ]})
}

fn serve(motor: &Motor) -> Running {
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    serving
}

/// A host, and a run that asks.
fn waiting() -> (ModelServer, Motor, Running, String) {
    let server = block_on(ModelServer::scripted(asking()));
    let motor = Motor::with_model(&server);
    let serving = serve(&motor);
    let run = motor.stdout(&["act", "paint it", "--detach"]).trim().to_owned();
    motor.wait_for_status(&run, "awaiting_input");
    (server, motor, serving, run)
}

#[test]
fn the_run_that_asks_is_answered_without_its_id() {
    let (_server, motor, _serving, run) = waiting();
    // It asks a question, and needs no consent.
    motor.refuses_owner(&["task", "approve"], 1, "not_found");
    motor.refuses(&["task", "respond", "blue"], 5, "consent_needed");
    motor.run_as_owner(&["task", "respond", "dark", "blue"], "").refused(2, &["not the id of a run"]);
    motor.run_as_owner(&["task", "respond", "run_NONE", "blue"], "").refused(2, &["run_NONE"]);
    motor.wait_for_status(&run, "awaiting_input");
    let answered = motor.run_as_owner(&["task", "respond", "dark blue"], "").succeeded();
    assert!(answered.stderr.contains(&format!("run {run}: paint it")), "{answered:?}");
    motor.wait_for_status(&run, "completed");
    assert_eq!(motor.json(&["task", "status", &run])["questions"][0]["answer"], "dark blue");
    motor.refuses_owner(&["task", "respond", "red"], 1, "not_found");
}

#[test]
fn a_run_is_named_before_it_is_cancelled() {
    let (_server, motor, _serving, run) = waiting();
    let mut cancelling = motor.at_terminal(&["task", "cancel"]);
    assert!(cancelling.sees("is this the run? [y/N] ").contains(&run));
    cancelling.types("");
    cancelling.wait().refused(5, &["the answer was not yes"]);
    motor.wait_for_status(&run, "awaiting_input");
    // Without a terminal the only one that fits is taken.
    let cancelled = motor.run(&["task", "cancel"]).succeeded();
    assert!(cancelled.stderr.contains(&format!("run {run}: paint it")), "{cancelled:?}");
    motor.wait_for_status(&run, "cancelled");
    motor.refuses(&["task", "cancel"], 1, "not_found");
}

#[test]
fn more_powers_go_to_no_run_by_guess() {
    let fault = json!({ "status": { "code": 401, "body": "no" } });
    let script = json!({ "turns": [{ "text": "at last" }], "faults": { "1": fault, "2": fault } });
    let server = block_on(ModelServer::scripted(script));
    let motor = Motor::with_model(&server);
    let _serving = serve(&motor);
    let failed = |task: &str| {
        let acting = motor.start(&["act", task]);
        let run = acting.run_id();
        assert_ne!(acting.wait().code, Some(0));
        run
    };
    let (first, second) = (failed("first"), failed("second"));
    let wider = ["task", "retry", "--domains", "a.example.com"];
    motor.run_as_owner(&wider, "").refused(2, &["2 runs fit", &first, &second, "name the run"]);
    // The same powers again: the newest.
    let retried = motor.run(&["task", "retry"]).succeeded();
    assert!(retried.stderr.contains(&format!("run {second}: second")), "{retried:?}");
    motor.wait_for_status(&second, "completed");
    // One is left.
    let retried = motor.run_as_owner(&wider, "").succeeded();
    assert!(retried.stderr.contains(&format!("run {first}: first")), "{retried:?}");
    motor.wait_for_status(&first, "completed");
    motor.refuses(&["task", "retry"], 1, "not_found");
}

#[test]
fn without_a_terminal_a_question_names_its_time_and_its_command() {
    let server = block_on(ModelServer::scripted(asking()));
    let motor = Motor::with_model(&server);
    let acting = motor.start(&["act", "paint it"]);
    let run = acting.run_id();
    acting.wait_for_words("min at most");
    motor.run_as_owner(&["task", "respond", &run, "blue"], "").succeeded();
    let ended = acting.wait().succeeded();
    assert_eq!(ended.stdout, "painted\n");
    let line = ended.stderr.lines().find(|line| line.starts_with("waiting, for ")).unwrap();
    assert!(line.contains(&format!("`motor task respond {run}` answers")), "{line}");
}

#[test]
fn the_end_of_a_run_names_its_files() {
    let write = json!({ "name": "write", "arguments": { "path": "out/a.txt", "content": "hello" } });
    let script = json!({ "turns": [{ "tool_calls": [write] }, { "text": "written" }] });
    let server = block_on(ModelServer::scripted(script));
    let motor = Motor::with_model(&server);
    let ended = motor.json(&["act", "write it", "--tools", "write"]);
    let [file] = ended["files"].as_array().unwrap().as_slice() else { panic!("not one file: {ended:#}") };
    let path = file["path"].as_str().unwrap();
    assert!(std::path::Path::new(path).is_absolute(), "{path}");
    assert_eq!(std::fs::read_to_string(path).unwrap(), "hello");
    assert_eq!(file["bytes"], 5);
    let run = ended["runId"].as_str().unwrap();
    assert_eq!(motor.json(&["task", "status", run])["files"], ended["files"]);
    assert!(motor.stdout(&["task", "status", run]).contains(&format!("{path} (5 B)")));
    let acting = motor.run(&["act", "write it", "--tools", "write"]).succeeded();
    assert!(acting.stderr.contains("file 5 B ") && acting.stderr.contains("/artifacts/out/a.txt\n"), "{acting:?}");
    assert_eq!(acting.stdout, "written\n");
    // A run without files names none.
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "nothing to write" }] })));
    let ended = Motor::with_model(&server).json(&["act", "think"]);
    assert_eq!(ended["files"], Value::Null, "{ended:#}");
}

//! Model endpoints as they really behave, and their effect on the whole program (SPEC LLM-1, LLM-2, RUN-6).

use serde_json::{Value, json};
use tests::binary::{Ended, Motor};
use tests::block_on;
use tests::model_server::ModelServer;

/// Runs a script with file tools; how it ended, its trace, and the server.
fn run(script: Value) -> (Ended, Value, ModelServer) {
    let server = block_on(ModelServer::scripted(script));
    let motor = Motor::with_model(&server);
    let data = motor.file("data.csv", "secret of the workspace\n");
    let latin = motor.file("latin.txt", b"caf\xe9\n");
    let (data, latin) = (data.to_str().unwrap(), latin.to_str().unwrap());
    let act =
        ["act", "x", "--tools", "filesystem", "--file", data, "--file", latin, "--set", "models.retry_first_ms=1"];
    let ended = motor.run(&act);
    let trace = motor.json(&["task", "status"]);
    assert_eq!(motor.json_lines(&["signals"]).len(), 1);
    (ended, trace, server)
}

/// The first call of a run whose first turn is `turn`, and which then answers.
fn first_call(turn: Value) -> (Value, Value) {
    let (ended, trace, server) = run(json!({ "turns": [turn, { "text": "done" }] }));
    assert_eq!(ended.succeeded().stdout, "done\n");
    let told = server.requests().last().unwrap().body["messages"].as_array().unwrap().last().unwrap().clone();
    let call = trace["steps"][0]["toolCalls"][0].clone();
    assert!(told["content"].as_str().unwrap().contains(call["result"]["output"].as_str().unwrap()), "{told} {call}");
    (call, trace)
}

fn calling(name: &str, arguments: Value) -> Value {
    json!({ "tool_calls": [{ "name": name, "arguments": arguments }] })
}

#[track_caller]
fn check(turn: Value, code: Option<&str>, said: &str) {
    let (call, _) = first_call(turn);
    assert_eq!(call["result"]["errorCode"].as_str(), code, "{call}");
    assert!(call["result"]["output"].as_str().unwrap().contains(said), "{call}");
}

#[test]
fn calls_that_are_wrong_are_told_to_the_model() {
    let malformed = json!({ "tool_calls": [{ "name": "read", "arguments_text": "{\"path\": data.csv" }] });
    check(malformed, Some("invalid_args"), "not valid JSON");
    check(calling("delete", json!({ "path": "data.csv" })), Some("tool_not_available"), "granted are");
    check(calling("read", json!({ "file": "data.csv" })), Some("invalid_args"), "`path`");
    check(calling("read", json!({ "path": "dta.csv" })), Some("not_found"), "data.csv");
    check(calling("read", json!({ "path": "latin.txt" })), None, "not valid UTF-8");
    check(calling("read", json!({ "path": "data.csv", "limit": "5" })), None, "secret of the workspace");
}

#[test]
fn paths_out_of_the_workspace_are_denied() {
    for path in ["/etc/passwd", "../../../../../../../etc/passwd", "a/../../state", "/proc/self/environ"] {
        check(calling("read", json!({ "path": path })), Some("permission_denied"), "the workspace");
    }
    check(calling("write", json!({ "path": "../x", "content": "x" })), Some("permission_denied"), "the workspace");
    check(calling("read", json!({ "path": "/workspace/data.csv" })), None, "secret of the workspace");
    check(calling("read", json!({ "path": "./data.csv" })), None, "secret of the workspace");
}

#[test]
fn a_call_that_was_written_as_text_is_made() {
    let text = "<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"data.csv\"}}</tool_call>";
    let (call, trace) = first_call(json!({ "text": text }));
    assert_eq!((&call["tool"], &call["result"]["ok"]), (&json!("read"), &json!(true)));
    assert_eq!(trace["steps"][0]["recoveredCall"], true);
}

#[test]
fn an_answer_that_speaks_of_a_call_is_an_answer() {
    let text = "Use `{\"name\": \"read\"}` to read.";
    let (ended, trace, _server) = run(json!({ "turns": [{ "text": text }] }));
    assert_eq!(ended.succeeded().stdout, format!("{text}\n"));
    assert_eq!(trace["toolCalls"], 0);
}

#[test]
fn faults_that_pass_are_waited_out() {
    for (fault, calls) in [
        (json!({ "1": { "status": { "code": 429, "retry_after": "0" } } }), 2),
        (json!({ "1": { "status": { "code": 503 } }, "2": { "status": { "code": 500 } } }), 3),
        (json!({ "1": { "reset": { "after_chunks": 1 } } }), 2),
        (json!({ "1": "cut" }), 2),
        (json!({ "1": "malformed_event" }), 2),
        (json!({ "1": "malformed_body" }), 2),
    ] {
        let (ended, trace, server) = run(json!({ "turns": [{ "text": "a whole answer" }], "faults": fault }));
        assert_eq!(ended.succeeded().stdout, "a whole answer\n");
        assert_eq!((server.calls(), &trace["llmCalls"]), (calls, &json!(calls)), "{fault}");
    }
}

#[test]
fn faults_that_do_not_pass_fail_the_run_with_a_reason() {
    let forever: Value = (1..20)
        .map(|n| (n.to_string(), json!({ "status": { "code": 503 } })))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let (ended, trace, server) = run(json!({ "turns": [{ "text": "never" }], "faults": forever }));
    ended.failed(1, &["503", "openai/test"]);
    assert_eq!((&trace["status"], &trace["error"]["category"]), (&json!("failed"), &json!("infra_failure")));
    assert_eq!(server.calls(), 5);

    let body = json!({ "error": { "message": "the model `test` does not exist" } }).to_string();
    let missing = json!({ "1": { "status": { "code": 404, "body": body } } });
    let (ended, trace, server) = run(json!({ "turns": [{ "text": "never" }], "faults": missing }));
    ended.failed(1, &["404", "does not exist"]);
    assert_eq!((&trace["status"], server.calls()), (&json!("failed"), 1));
}

#[test]
fn an_empty_reply_is_no_answer_and_is_asked_about() {
    let (ended, trace, server) = run(json!({ "turns": [{ "text": "" }, { "text": "now I say something" }] }));
    assert_eq!(ended.succeeded().stdout, "now I say something\n");
    assert!(trace["steps"][0]["hostMessages"][0].as_str().unwrap().contains("empty"), "{trace:#}");
    assert!(server.requests()[1].body["messages"].to_string().contains("your reply was empty"));
    let nothing: Vec<Value> = (0..20).map(|_| json!({ "text": "" })).collect();
    let (ended, trace, server) = run(json!({ "turns": nothing }));
    ended.failed(1, &["empty"]);
    assert_eq!((&trace["status"], &trace["error"]["category"]), (&json!("failed"), &json!("model_failure")));
    assert!(server.calls() < 10, "{}", server.calls());
}

#[test]
fn a_model_that_goes_round_in_circles_is_stopped() {
    let turns: Vec<Value> = (0..10).map(|_| calling("list", json!({ "path": "." }))).collect();
    let (ended, trace, server) = run(json!({ "turns": turns }));
    ended.failed(1, &["list"]);
    assert_eq!(server.calls(), 5);
    assert!(trace["steps"].to_string().contains("hostMessages"), "{trace:#}");
}

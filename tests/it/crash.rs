//! `kill -9` of the real program in the middle of runs (SPEC DUR-2, DUR-3, DUR-5): the run goes on, nothing that was
//! done is done again. The calls append to a file, so that it would show.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::binary::{Motor, Running};
use tests::model_server::ModelServer;
use tests::{Patience, block_on};

/// How many lines a run appends, one in each step.
const LINES: usize = 6;

fn append(content: &str) -> Value {
    json!({ "tool_calls": [{ "name": "append", "arguments": { "path": "log.txt", "content": content } }] })
}

/// Appends line after line; the model's reply with index `gate` waits.
fn script(gate: Option<usize>) -> Value {
    let mut turns: Vec<Value> = (0..LINES).map(|line| append(&format!("line {line}\n"))).collect();
    turns.push(json!({ "text": "all appended" }));
    if let Some(turn) = gate {
        turns[turn]["gate"] = json!(true);
    }
    json!({ "turns": turns })
}

fn lines(count: usize) -> String {
    (0..count).map(|line| format!("line {line}\n")).collect()
}

fn log(motor: &Motor, run: &str) -> String {
    std::fs::read_to_string(motor.workspace(run).join("log.txt")).unwrap_or_default()
}

fn act(motor: &Motor) -> Running {
    motor.start(&["act", "append the lines", "--tools", "filesystem"])
}

/// A run that stands at the model's fourth reply, killed there.
fn killed_at_the_gate() -> (ModelServer, Motor, String) {
    let server = block_on(ModelServer::scripted(script(Some(3))));
    let motor = Motor::with_model(&server);
    let acting = act(&motor);
    let run = acting.run_id();
    block_on(server.wait_at_gate());
    assert_eq!(acting.kill().code, None);
    assert_eq!(log(&motor, &run), lines(3));
    // The request of the dead process must not take the turn of the next one's.
    block_on(server.wait_gate_empty());
    server.release();
    (server, motor, run)
}

/// Checks a run that was interrupted and is over.
fn check(motor: &Motor, run: &str) {
    assert_eq!(log(motor, run), lines(LINES));
    let trace = motor.json(&["task", "status", run]);
    assert_eq!((&trace["status"], &trace["summary"]), (&json!("completed"), &json!("all appended")));
    assert_eq!((&trace["toolCalls"], &trace["errors"]), (&json!(LINES), &json!(0)));
    let resumed = trace["transitions"].as_array().unwrap().iter().filter(|transition| transition["resumed"] == true);
    assert_eq!(resumed.count(), 1, "{trace:#}");
    let signals = motor.json_lines(&["signals", "--since", "0"]);
    let of_run = signals.iter().filter(|signal| signal["runId"] == run);
    assert_eq!(of_run.count(), 1, "{signals:?}");
}

#[test]
fn a_killed_run_goes_on_with_act_resume() {
    let (server, motor, run) = killed_at_the_gate();
    let ended = motor.run(&["act", "--resume"]).succeeded();
    assert_eq!(ended.stdout, "all appended\n");
    check(&motor, &run);
    // Three replies before the kill, the one that was lost, and four after it.
    assert_eq!(server.calls(), 8);
    assert_eq!(motor.run(&["act", "--resume"]).succeeded().stdout, "");
    assert_eq!(motor.stdout(&["act", "--resume", &run]), "all appended\n");
    assert_eq!(server.calls(), 8);
}

#[test]
fn a_killed_run_goes_on_with_serve() {
    let (_server, motor, run) = killed_at_the_gate();
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    motor.wait_for_status(&run, "completed");
    check(&motor, &run);
}

#[test]
fn a_killed_run_goes_on_while_somebody_follows_the_signals() {
    let (_server, motor, run) = killed_at_the_gate();
    let following = motor.start(&["signals", "--follow"]);
    following.wait_for_output(&run);
    drop(following);
    check(&motor, &run);
}

#[test]
fn a_killed_run_goes_on_beside_an_act_of_another_agent() {
    let (_server, motor, run) = killed_at_the_gate();
    // One endpoint serves both: the first turn is that of the other agent, which waits for as long as this takes.
    let mut script = script(None);
    script["turns"][0] = json!({ "text": "hello", "gate": true });
    let server = block_on(ModelServer::scripted(script));
    let motor = motor.endpoint(&server.base_url());
    let beside = motor.start(&["act", "say hello", "--agent", "other"]);
    block_on(server.wait_at_gate());
    motor.wait_for_status(&run, "completed");
    check(&motor, &run);
    server.release();
    assert_eq!(beside.wait().succeeded().stdout, "hello\n");
}

#[test]
fn commands_that_last_a_moment_leave_an_interrupted_run_as_it_is() {
    let (server, motor, run) = killed_at_the_gate();
    assert_eq!(motor.stdout(&["execute", "6 * 7"]), "42\n");
    let list = motor.json(&["task", "list"]);
    assert_eq!(
        (&list[0]["runId"], &list[0]["status"], &list[0]["resumes"]),
        (&json!(run), &json!("running"), &json!(0))
    );
    assert!(motor.json_lines(&["signals"]).is_empty());
    motor.run(&["act", "another"]).refused(75, &["Motor Cortex is busy", &run, "motor act --resume"]);
    assert_eq!(server.calls(), 4);
    motor.stdout(&["act", "--resume"]);
    check(&motor, &run);
}

/// The calls of a run by the time that it is over.
fn only_call(motor: &Motor) -> Value {
    let trace = motor.json(&["task", "status"]);
    trace["steps"][0]["toolCalls"][0].clone()
}

#[test]
fn a_program_that_was_in_flight_runs_again() {
    let script = json!({ "turns": [
        { "tool_calls": [{ "name": "code", "arguments": { "code": "while (true) {}", "timeout_ms": 1_000 } }] },
        { "text": "it does not end" },
    ]});
    let server = block_on(ModelServer::scripted(script));
    let motor = Motor::with_model(&server);
    let acting = motor.start(&["act", "loop", "--tools", "code"]);
    acting.wait_for_words("→ code");
    acting.kill();
    assert_eq!(motor.stdout(&["act", "--resume"]), "it does not end\n");
    let call = only_call(&motor);
    assert_eq!((&call["recovered"], &call["result"]["errorCode"]), (&json!(true), &json!("timeout")));
    assert_eq!(server.calls(), 2);
}

#[test]
fn a_change_that_was_in_flight_is_not_made_again_and_the_model_is_told() {
    // The call changes a file and does not end, so the kill comes between the change and its result.
    let endless = "echo once >> log.txt; while :; do :; done";
    let script = json!({ "turns": [
        { "tool_calls": [{ "name": "bash", "arguments": { "script": endless } }] },
        { "text": "I will check" },
    ]});
    let server = block_on(ModelServer::scripted(script));
    let motor = Motor::with_model(&server);
    let acting = motor.start(&["act", "append", "--tools", "bash"]);
    let run = acting.run_id();
    let mut patience = Patience::default();
    while log(&motor, &run).is_empty() {
        assert!(patience.lasts(), "the call changes nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    acting.kill();
    assert_eq!(motor.stdout(&["act", "--resume"]), "I will check\n");
    assert_eq!(log(&motor, &run), "once\n", "the call was made again");
    let call = only_call(&motor);
    assert_eq!((&call["result"]["errorCode"], &call["recovered"]), (&json!("outcome_unknown"), &json!(true)));
    let requests = server.requests();
    let told = requests.last().unwrap().body["messages"].as_array().unwrap().last().unwrap();
    assert!(told["role"] == "tool" && told["content"].as_str().unwrap().contains("may or may not"), "{told}");
}

#[test]
fn kills_at_any_instant_lose_nothing_and_repeat_nothing() {
    let server = block_on(ModelServer::scripted(script(None)));
    let motor = Motor::with_model(&server);
    assert_eq!(act(&motor).wait().succeeded().stdout, "all appended\n");
    let whole = Duration::from_millis(motor.json(&["task", "status"])["totalDurationMs"].as_u64().unwrap());
    let (mut interrupted, mut unknown) = (0, 0);
    for instant in 0..10 {
        let motor = Motor::with_model(&server);
        let acting = act(&motor);
        let run = acting.run_id();
        std::thread::sleep(whole * instant / 10);
        acting.kill();
        // And once more while it goes on.
        let resuming = motor.start(&["act", "--resume", &run]);
        resuming.run_id();
        std::thread::sleep(whole * (9 - instant) / 10);
        resuming.kill();
        motor.run(&["act", "--resume"]).succeeded();
        assert_eq!(motor.only_run(), run, "an acknowledged run is lost");
        interrupted += motor.json(&["task", "list"])[0]["resumes"].as_u64().unwrap();
        unknown += outcome(&motor, &run);
        let signals = motor.json_lines(&["signals"]);
        assert_eq!(signals.len(), 1, "{signals:?}");
    }
    println!("of runs of {} ms: {interrupted} interruptions, {unknown} calls of unknown outcome", whole.as_millis());
    assert!(interrupted > 0, "no kill came while a run was under way");
}

/// Checks every call of a finished run against the file; how many had an unknown outcome.
fn outcome(motor: &Motor, run: &str) -> usize {
    let trace = motor.json(&["task", "status", run]);
    assert_eq!(trace["status"], "completed", "{trace:#}");
    let log = log(motor, run);
    let mut unknown = 0;
    for (index, step) in trace["steps"].as_array().unwrap().iter().take(LINES).enumerate() {
        let times = log.lines().filter(|line| *line == format!("line {index}")).count();
        let result = &step["toolCalls"][0]["result"];
        if result["ok"] == true {
            assert_eq!(times, 1, "a completed call is in the file {times} times: {log}");
        } else {
            assert_eq!(result["errorCode"], "outcome_unknown", "{step:#}");
            assert!(times <= 1, "{log}");
            unknown += 1;
        }
    }
    unknown
}

#[test]
fn a_host_that_is_killed_leaves_a_home_that_opens_at_once() {
    let motor = Motor::new();
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    serving.kill();
    assert!(motor.home().join("host.sock").exists(), "it was not killed in the middle");
    let began = Instant::now();
    motor.stdout(&["energy"]);
    assert!(began.elapsed() < tests::AT_ONCE, "{:?}", began.elapsed());
}

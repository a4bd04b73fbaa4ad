//! `motor act --seed` (SPEC SIM-1): the same replies of the model and the same seed give the same results, also over the
//! death of a host; another seed gives others.

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;

const BOTH: [&str; 2] = ["--tools", "code,bash"];

fn call(name: &str, arguments: Value) -> Value {
    json!({ "text": "I draw.", "tool_calls": [{ "name": name, "arguments": arguments }] })
}

/// A program and a script that draw numbers and read the clock, the program twice; with `gate` the model waits before the
/// second time.
fn turns(gate: bool) -> Value {
    let program = || json!({ "code": "return [Math.random(), Math.random(), Date.now()]" });
    let mut again = call("code", program());
    again["gate"] = json!(gate);
    let script = json!({ "script": "echo $RANDOM; uuidgen; seq 100 | shuf | head -5; date +%s; \
        python3 -c 'import random, time; print(random.random(), int(time.time()))' || true" });
    json!({ "turns": [call("code", program()), call("bash", script), again, { "text": "drawn" }] })
}

fn with_seed(seed: Option<&'static str>) -> Vec<&'static str> {
    let mut arguments = [&["act", "draw"][..], &BOTH].concat();
    arguments.extend(seed.map(|seed| ["--seed", seed]).into_iter().flatten());
    arguments
}

/// The parts of a trace that do not name its run, its time or its machine: texts, calls and results.
fn told(trace: &Value) -> Value {
    let steps = trace["steps"].as_array().unwrap().iter().map(|step| {
        let calls = step["toolCalls"].as_array().unwrap().iter().map(|call| {
            assert_eq!(call["result"]["ok"], true, "{call}");
            json!([call["tool"], call["args"], call["result"]["output"]])
        });
        json!([step["iteration"], calls.collect::<Vec<_>>()])
    });
    json!([trace["status"], trace["summary"], trace["toolCalls"], steps.collect::<Vec<_>>()])
}

fn run(seed: Option<&'static str>) -> Value {
    let server = block_on(ModelServer::scripted(turns(false)));
    let motor = Motor::with_model(&server);
    assert_eq!(motor.stdout(&with_seed(seed)), "drawn\n");
    let run = motor.only_run();
    let trace = motor.json(&["task", "status", &run]);
    let seed = seed.map_or(Value::Null, |seed| seed.parse::<u32>().unwrap().into());
    let receipt = motor.json(&["receipt", "show", &run])["receipt"].clone();
    assert_eq!((&receipt["seed"], &receipt["version"]), (&seed, &json!(if seed.is_null() { 1 } else { 2 })));
    assert_eq!((&trace["seed"], &motor.json(&["task", "list"])[0]["seed"]), (&seed, &seed));
    let said = motor.stdout(&["task", "status", &run]).lines().any(|line| line.starts_with("seed "));
    assert_eq!(said, !seed.is_null());
    told(&trace)
}

#[test]
fn the_same_seed_gives_the_same_results_and_another_gives_others() {
    let seven = run(Some("7"));
    assert_eq!(seven, run(Some("7")), "another home, another time");
    assert_ne!(seven, run(Some("8")));
    assert_ne!(run(None), run(None));
    // Within a run, each step draws others.
    let outputs = seven[3].as_array().unwrap();
    assert_ne!(outputs[0][1][0][2], outputs[2][1][0][2], "{seven:#}");
}

#[test]
fn a_run_keeps_its_seed_over_the_death_of_its_host() {
    let undisturbed = run(Some("7"));
    let server = block_on(ModelServer::scripted(turns(true)));
    let motor = Motor::with_model(&server);
    let acting = motor.start(&with_seed(Some("7")));
    let run = acting.run_id();
    block_on(server.wait_at_gate());
    assert_eq!(acting.kill().code, None);
    // The request of the dead process must not take the turn of the next one's.
    block_on(server.wait_gate_empty());
    server.release();
    motor.run(&["act", "--resume", &run]).succeeded();
    let trace = motor.json(&["task", "status", &run]);
    assert_eq!((&trace["seed"], told(&trace)), (&json!(7), undisturbed));
}

#[test]
fn a_seed_is_a_number_of_32_bits_and_of_a_new_run() {
    let server = block_on(ModelServer::scripted(turns(false)));
    let motor = Motor::with_model(&server);
    for wrong in [
        &["act", "draw", "--seed", "4294967296"][..],
        &["act", "draw", "--seed", "x"],
        &["act", "--resume", "--seed", "7"],
    ] {
        motor.run(wrong).refused(2, &["--seed"]);
    }
    assert_eq!(server.calls(), 0);
}

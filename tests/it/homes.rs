//! Homes of earlier versions (SPEC DUR-4, CONF-4): all their data is still there, and work under way goes on.
//! `tests/fixtures/homes` says how each was made.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;

/// Fields of the stored record that a list of runs once showed.
const INTERNAL: [&str; 3] = ["nextSequence", "reaching", "settings"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/homes").join(name)
}

/// A home of that schema, with this model, and the lists that the program that made it printed.
fn opened(schema: u32, server: &ModelServer) -> (Motor, Value) {
    let motor = Motor::with_model(server).env("MOTOR_KEYRING", "off");
    let motor = motor.env("MOTOR_CREDENTIALS_KEY", "the-key-of-the-fixture-1");
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(fixture(&format!("schema-{schema}.tar.gz"))).arg("-C").arg(motor.directory());
    assert!(tar.status().unwrap().success());
    let listed = std::fs::read_to_string(fixture(&format!("schema-{schema}.json"))).unwrap();
    (motor, serde_json::from_str(&listed).unwrap())
}

/// Fields of a run that have another name by now.
const RENAMED: [(&str, &str); 4] =
    [("id", "runId"), ("run", "runId"), ("input_tokens", "inputTokens"), ("output_tokens", "outputTokens")];

/// Everything that was known is known and the same; more may be known by now.
#[track_caller]
fn holds(now: &Value, before: &Value) {
    match (now, before) {
        (Value::Object(now), Value::Object(before)) => {
            for (name, before) in before {
                let renamed = RENAMED.iter().find(|(old, _)| old == name).and_then(|(_, new)| now.get(*new));
                let found = now.get(name).or(renamed).unwrap_or_else(|| panic!("`{name}` is gone: {now:?}"));
                holds(found, before);
            }
        }
        (Value::Array(now), Value::Array(before)) => {
            assert_eq!(now.len(), before.len(), "{now:?} was {before:?}");
            now.iter().zip(before).for_each(|(now, before)| holds(now, before));
        }
        _ => assert_eq!(now, before),
    }
}

/// The run that had that task.
fn task<'a>(before: &'a Value, task: &str) -> &'a str {
    let tasks = before["tasks"].as_array().unwrap();
    tasks.iter().find(|run| run["task"] == task).unwrap()["id"].as_str().unwrap()
}

fn script() -> Value {
    json!({ "turns": [
        { "tool_calls": [{ "name": "append", "arguments": { "path": "log.txt", "content": "never asked for again" } }] },
        { "tool_calls": [{ "name": "bash", "arguments": { "command": "never asked for again" } }] },
        { "text": "both done" },
    ], "attempts": [[{ "text": "it is not needed" }]] })
}

#[test]
fn a_home_of_schema_2_holds_what_it_held() {
    let server = block_on(ModelServer::scripted(script()));
    let (motor, before) = opened(2, &server);
    let mut tasks = before["tasks"].clone();
    for task in tasks.as_array_mut().unwrap() {
        INTERNAL.iter().for_each(|name| drop(task.as_object_mut().unwrap().remove(*name)));
    }
    holds(&motor.json(&["task", "list", "--all"]), &tasks);
    for trace in before["traces"].as_array().unwrap() {
        holds(&motor.json(&["task", "status", trace["runId"].as_str().unwrap()]), trace);
    }
    holds(&motor.json(&["network", "list"]), &before["network"]);
    holds(&motor.json(&["credential", "list"]), &before["credentials"]);
    holds(&Value::Array(motor.json_lines(&["signals", "--since", "0"])), &before["signals"]);
    for agent in ["main", "night"] {
        let energy = motor.json(&["energy", "--agent", agent]);
        assert!((0.0..=1.0).contains(&energy["level"].as_f64().unwrap()), "{energy}");
    }
    assert_eq!(server.calls(), 0, "commands that last a moment resume nothing");
}

#[test]
fn what_was_under_way_in_a_home_of_schema_2_goes_on() {
    let server = block_on(ModelServer::scripted(script()));
    let (motor, before) = opened(2, &server);
    let run = task(&before, "be cut off");
    assert_eq!(motor.stdout(&["act", "--resume", run]), "both done\n");
    let trace = motor.json(&["task", "status", run]);
    assert_eq!((&trace["status"], &trace["toolCalls"]), (&json!("completed"), &json!(2)), "{trace:#}");
    let call = &trace["steps"][1]["toolCalls"][0];
    assert_eq!((&call["tool"], &call["recovered"]), (&json!("bash"), &json!(true)));
    assert_eq!(call["result"]["errorCode"], "outcome_unknown");
    let log = std::fs::read_to_string(motor.workspace(run).join("log.txt")).unwrap();
    assert_eq!(log, "one\ntwo\n", "nothing was done again");
    assert_eq!(server.calls(), 1);
    let signals = motor.json_lines(&["signals", "--since", "0"]);
    assert_eq!(signals.len(), before["signals"].as_array().unwrap().len() + 1);
    assert_eq!((&signals.last().unwrap()["runId"], &signals.last().unwrap()["id"]), (&json!(run), &json!(4)));
}

#[test]
fn a_run_that_failed_in_a_home_of_schema_2_can_be_tried_again() {
    let server = block_on(ModelServer::scripted(script()));
    let (motor, before) = opened(2, &server);
    let run = task(&before, "fail");
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    motor.stdout(&["task", "retry", run, "--guidance", "do without it"]);
    motor.wait_for_status(run, "completed");
    let trace = motor.json(&["task", "status", run]);
    assert_eq!(
        (&trace["summary"], &trace["attempts"][1]["guidance"]),
        (&json!("it is not needed"), &json!("do without it"))
    );
}

#[test]
fn a_credential_of_a_home_of_schema_2_opens_with_its_key_and_no_other() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done" }] })));
    let (motor, _) = opened(2, &server);
    let uses = ["act", "use it", "--credentials", "key", "--agent", "night"];
    assert_eq!(motor.stdout(&uses), "done\n");
    let other = motor.env("MOTOR_CREDENTIALS_KEY", "the-key-of-somebody-else");
    let refused = other.run(&uses);
    assert!(refused.code != Some(0) && refused.stderr.contains("key"), "{refused:?}");
}

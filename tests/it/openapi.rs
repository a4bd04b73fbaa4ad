//! The OpenAPI document, against the host that it describes (SPEC API-1): requests made from it by schemathesis, in every
//! scope, have the answers that it documents.

use std::process::{Command, Stdio};

use reqwest::StatusCode;
use serde_json::{Value, json};
use tests::{block_on, target_directory};

use crate::port::World;

/// Where schemathesis finds its settings and our check.
const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi");

/// A host whose model writes a file and ends.
fn furnished() -> World {
    let write = json!({ "name": "write", "arguments": { "path": "answer.txt", "content": "42" } });
    World::new(json!({ "turns": [{ "tool_calls": [write] }, { "text": "written" }] }))
}

fn run(world: &World, agent: &str) -> String {
    let task = json!({ "task": "write it", "tools": ["write"], "agent": agent });
    let (status, reply) = world.ask("POST", "/v1/tasks", &world.agent, &task);
    assert_eq!(status, StatusCode::OK, "{reply}");
    let run = reply["runId"].as_str().unwrap().to_owned();
    let (_, ended) = world.ask("GET", &format!("/v1/tasks/{run}/outcome"), &world.agent, &json!({}));
    assert_eq!(ended["status"], "completed", "{ended}");
    run
}

#[test]
fn the_document_is_for_anyone_and_its_schemas_are_schemas() {
    let world = World::new(json!({ "turns": [] }));
    let response = block_on(world.request("GET", "/openapi.json", None).send()).unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let document: Value = block_on(response.json()).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    let schemas = document["components"]["schemas"].as_object().unwrap();
    assert!(schemas.len() > 50, "{}", schemas.len());
    let mut checked = 0;
    each_schema(&document, &mut |schema| {
        checked += 1;
        if let Err(error) = jsonschema::draft202012::meta::validate(schema) {
            panic!("{error}: {schema}");
        }
    });
    assert!(checked > 200, "{checked}");
}

/// Calls `check` with each value below a key `schema`, and each named schema.
fn each_schema(value: &Value, check: &mut impl FnMut(&Value)) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "schema" => check(value),
                    "schemas" => value.as_object().unwrap().values().for_each(&mut *check),
                    _ => each_schema(value, check),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| each_schema(value, check)),
        _ => {}
    }
}

#[test]
fn a_key_in_the_header_is_the_key_in_the_body() {
    let world = furnished();
    let start = |key: Option<&str>, body: &Value| {
        let request = world.request("POST", "/v1/tasks", Some(&world.agent)).json(body);
        let request = match key {
            Some(key) => request.header("idempotency-key", key),
            None => request,
        };
        block_on(async {
            let response = request.send().await.unwrap();
            let (status, body) = (response.status(), response.json::<Value>().await.unwrap());
            (status, body["runId"].as_str().unwrap_or_default().to_owned(), body)
        })
    };
    let task = json!({ "task": "write it", "tools": ["write"] });
    let keyed = json!({ "task": "write it", "tools": ["write"], "key": "k-1" });
    let (status, first, reply) = start(Some("k-1"), &task);
    assert_eq!(status, StatusCode::OK, "{reply}");
    for (key, body) in [(Some("\"k-1\""), &task), (None, &keyed), (Some("k-1"), &keyed)] {
        let (status, same, reply) = start(key, body);
        assert_eq!((status, &same), (StatusCode::OK, &first), "{key:?}: {reply}");
    }
    for key in ["other", "", "\"k-1", "k 1"] {
        let (status, _, problem) = start(Some(key), &keyed);
        assert_eq!((status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!("invalid_request")), "{key}");
    }
    let (_, listed) = world.ask("GET", "/v1/tasks", &world.agent, &json!({}));
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
}

#[test]
fn lists_go_on_after_their_last_entry() {
    let world = World::new(json!({ "turns": vec![json!({ "text": "said" }); 5] }));
    let runs: Vec<String> = (0..5)
        .map(|_| {
            let (_, reply) = world.ask("POST", "/v1/tasks", &world.agent, &json!({ "task": "say it" }));
            let run = reply["runId"].as_str().unwrap().to_owned();
            world.ask("GET", &format!("/v1/tasks/{run}/outcome"), &world.agent, &json!({}));
            run
        })
        .collect();
    let page = |path: String, field: &str| -> Vec<String> {
        let (status, listed) = world.ask("GET", &path, &world.read, &json!({}));
        assert_eq!(status, StatusCode::OK, "{listed}");
        listed.as_array().unwrap().iter().map(|entry| entry[field].to_string().replace('"', "")).collect()
    };
    let (mut found, mut before) = (Vec::new(), String::new());
    loop {
        let next = page(format!("/v1/tasks?limit=2{before}"), "runId");
        let Some(last) = next.last() else { break };
        before = format!("&before={last}");
        found.extend(next);
    }
    found.reverse();
    assert_eq!(found, runs);
    let (mut found, mut after) = (Vec::new(), "0".to_owned());
    loop {
        let next = page(format!("/v1/signals?limit=2&after={after}"), "id");
        let Some(last) = next.last() else { break };
        after = last.clone();
        found.extend(next);
    }
    let ids: Vec<u64> = found.iter().map(|id| id.parse().unwrap()).collect();
    assert!(ids.len() >= 5 && ids.is_sorted(), "{ids:?}");
    let (status, problem) = world.ask("GET", "/v1/tasks?before=x", &world.read, &json!({}));
    assert_eq!(status, StatusCode::BAD_REQUEST, "{problem}");
}

#[test]
fn the_stream_of_signals_reads_its_request_strictly() {
    let world = World::new(json!({ "turns": [] }));
    let ask = |query: &str, id: Option<&str>| {
        let request = world.request("GET", &format!("/v1/signals/events{query}"), Some(&world.read));
        let request = match id {
            Some(id) => request.header("last-event-id", id),
            None => request,
        };
        // Of a stream the head is enough.
        block_on(request.send()).unwrap()
    };
    for (query, id) in [("", None), ("?after=0", None), ("?after=7", Some("3")), ("", Some("18446744073709551615"))] {
        let response = ask(query, id);
        assert_eq!(response.status(), StatusCode::OK, "{query} {id:?}");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
    }
    for (query, id) in [
        ("?after=", None),
        ("?after=-1", None),
        ("?after=x", None),
        ("?after=18446744073709551616", None),
        ("?before=1", None),
        ("?after=1&after=2", None),
        ("?after=%00", None),
        ("", Some("")),
        ("", Some("x")),
        ("", Some("-1")),
    ] {
        let response = ask(query, id);
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{query} {id:?}");
        let problem: Value = block_on(response.json()).unwrap();
        assert_eq!(problem["code"], "invalid_request", "{query} {id:?}: {problem}");
    }
}

#[test]
fn the_stream_of_a_conversation_reads_its_request_strictly() {
    let world = World::new(json!({ "turns": [] }));
    let ask = |path: &str, id: &str| {
        let request = world.request("GET", &format!("/v1/conversations/{path}"), Some(&world.owner));
        // Of a stream the head is enough.
        block_on(request.header("last-event-id", id).send()).unwrap()
    };
    assert_eq!(ask("desk/events", "7").headers()["content-type"], "text/event-stream");
    for (path, id) in [
        ("desk/events", "x"),
        ("desk/events", "-1"),
        ("desk/events?after=1", "1"),
        ("desk/events?peer=", "1"),
        ("desk/events?peer=a&peer=b", "1"),
        ("desk/events?agent=%00", "1"),
        ("%00/events", "1"),
    ] {
        let response = ask(path, id);
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{path} {id}");
        let problem: Value = block_on(response.json()).unwrap();
        assert_eq!(problem["code"], "invalid_request", "{path} {id}: {problem}");
    }
}

#[test]
fn schemathesis_finds_nothing_that_the_document_does_not_say() {
    let program = target_directory().join("toolchains/schemathesis/venv/bin/schemathesis");
    if !program.exists() {
        println!("schemathesis: 5 callers skipped: run `cargo xtask toolchains`");
        return;
    }
    let world = furnished();
    let runs = [run(&world, "main"), run(&world, "other")];
    world.motor.stdout(&["skill", "add", concat!(env!("CARGO_MANIFEST_DIR"), "/../skills/csv-analyst")]);
    let set = world.motor.run_as_owner(&["credential", "set", "KEY", "--domain", "a.example.com"], "a-long-secret\n");
    assert_eq!(set.code, Some(0), "{set:?}");
    // Neither an API token nor refused slowly, as a guess at the owner's would be.
    let unknown = format!("motor-api-{}", "0".repeat(64));
    let callers = [
        ("nobody", &unknown, &runs[0]),
        ("read", &world.read, &runs[0]),
        ("agent", &world.agent, &runs[0]),
        ("bound", &world.bound, &runs[1]),
        ("owner", &world.owner, &runs[0]),
    ];
    let settings = std::fs::read_to_string(format!("{DIRECTORY}/schemathesis.toml")).unwrap();
    let mut failed = Vec::new();
    for (caller, token, run) in callers {
        let settings = world.motor.file("schemathesis.toml", settings.replace("${MOTOR_RUN}", run));
        let mut command = Command::new(&program);
        command.arg("--config-file").arg(settings).arg("run");
        command.arg(format!("{}/openapi.json", world.address));
        // One worker: Python 3.11 fails by itself where two threads parse ("AST constructor recursion depth mismatch").
        command.args(["--checks", "all", "--phases", "examples,coverage,fuzzing,stateful", "--workers", "1"]);
        command.args(["--max-examples", &std::env::var("MOTOR_EXAMPLES").unwrap_or_else(|_| "5".to_owned())]);
        // The first would end the host, and `tests/it/port.rs` asks for it in every scope. The others do not end: each request
        // would last until its timeout.
        for excluded in [
            "/v1/host/shutdown",
            "/v1/signals/events",
            "/v1/skills/events",
            "/v1/cortex/events",
            "/v1/conversations/{channel}/events",
        ] {
            command.args(["--exclude-path", excluded]);
        }
        command.env("MOTOR_CHECKS", format!("{DIRECTORY}/checks.py"));
        command.env("MOTOR_AUTHORIZATION", format!("Bearer {token}"));
        command.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(world.motor.directory()).stdin(Stdio::null());
        let said = command.output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        std::fs::write(target_directory().join(format!("toolchains/schemathesis/{caller}.txt")), &text).unwrap();
        println!("schemathesis, {caller}: {}", text.lines().last().unwrap_or_default());
        if !said.status.success() {
            failed.push(format!("{caller}: {text}{}", String::from_utf8_lossy(&said.stderr)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    let ended = world.serving.kill();
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}

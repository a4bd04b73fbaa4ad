//! A run watched from another terminal (`motor attach`), and its trace in the forms of other programs (`motor trace export`).

use std::collections::BTreeSet;

use rustix::process::Signal;
use serde_json::{Value, json};
use tests::binary::{Motor, Running};
use tests::block_on;
use tests::model_server::ModelServer;

const MARKUP: &str = "<script>document.title='owned'</script>\u{202e}";

/// Writes a file, fails at reading another, asks, and answers with markup.
fn story() -> Value {
    let calls = [
        json!({ "name": "write", "arguments": { "path": "a.txt", "content": MARKUP } }),
        json!({ "name": "read", "arguments": { "path": "none.txt" } }),
    ];
    json!({ "turns": [
        { "tool_calls": calls },
        { "tool_calls": [{ "name": "ask_user", "arguments": { "question": "Which colour?" } }] },
        { "text": format!("painted {MARKUP}") },
    ] })
}

/// A host, and a run that waits for an answer.
fn waiting() -> (ModelServer, Motor, Running, String) {
    let model = block_on(ModelServer::scripted(story()));
    let motor = Motor::with_model(&model);
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let run = motor.stdout(&["act", "paint it", "--tools", "filesystem", "--detach"]).trim().to_owned();
    motor.wait_for_status(&run, "awaiting_input");
    (model, motor, serving, run)
}

#[test]
fn a_run_is_watched_from_another_terminal_and_left_alone() {
    let (_model, motor, _serving, run) = waiting();
    let detaching = motor.start(&["attach", &run]);
    detaching.wait_for_words("Which colour?");
    detaching.signal(Signal::INT);
    let detached = detaching.wait();
    assert_eq!(detached.code, Some(130), "{detached:?}");
    assert!(detached.stderr.contains("goes on"), "{detached:?}");
    motor.wait_for_status(&run, "awaiting_input");
    let (staying, programs) = (motor.start(&["attach", &run]), motor.start(&["attach", &run, "--json"]));
    staying.wait_for_words("Which colour?");
    motor.run_as_owner(&["task", "respond", &run, "green"], "").succeeded();
    let ended = staying.wait().succeeded();
    assert!(ended.stdout.contains("painted"), "{ended:?}");
    let events: Vec<Value> =
        programs.wait().succeeded().stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: BTreeSet<_> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    for kind in ["toolFinished", "asked", "answered", "finished"] {
        assert!(kinds.contains(kind), "{kinds:?}");
    }
    // A run that is over is shown to its end.
    assert!(motor.run(&["attach"]).succeeded().stdout.contains("painted"));
}

#[test]
fn nothing_is_taken_up_for_a_watcher() {
    let (_model, motor, serving, run) = waiting();
    serving.kill();
    motor.run(&["attach", &run]).refused(75, &["no host drives it", "motor act --resume"]);
}

#[test]
fn a_trace_is_exported_in_three_forms() {
    let (_model, motor, _serving, run) = waiting();
    motor.run_as_owner(&["task", "respond", &run, "green"], "").succeeded();
    motor.wait_for_status(&run, "completed");
    let lines = motor.json_lines(&["trace", "export", &run]);
    let kinds: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["run", "step", "step", "step"]);
    assert_eq!((&lines[0]["status"], &lines[0]["steps"]), (&json!("completed"), &Value::Null));
    assert_eq!(lines[1]["toolCalls"][0]["args"]["content"], MARKUP);

    let file = motor.directory().join("run.html");
    motor.run(&["trace", "export", &run, "--format", "html", "--out", file.to_str().unwrap()]).succeeded();
    let page = std::fs::read_to_string(file).unwrap();
    assert!(
        page.contains("&lt;script&gt;") && page.contains("<U+202E>".replace('<', "&lt;").replace('>', "&gt;").as_str())
    );
    for outside in ["<script", "src=", "href=", "url(", "\u{202e}", "<form"] {
        assert!(!page.contains(outside), "{outside}");
    }

    let export = || -> Value {
        let text = motor.stdout(&["trace", "export", &run, "--format", "otlp"]);
        assert!(!text.contains("script") && !text.contains("colour"), "texts are left out: {text}");
        serde_json::from_str(&text).unwrap()
    };
    let exported = export();
    assert_eq!(exported, export());
    let spans = exported["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let names: Vec<_> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    let expected = [
        "invoke_agent main",
        "chat test",
        "execute_tool write",
        "execute_tool read",
        "chat test",
        "execute_tool ask_user",
        "chat test",
    ];
    assert_eq!(names, expected);
    let ids: BTreeSet<_> = spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), spans.len());
    for span in spans {
        assert_eq!((span["traceId"].as_str().unwrap().len(), span["spanId"].as_str().unwrap().len()), (32, 16));
        let time = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
    }
    assert!(spans[1..].iter().all(|span| span["parentSpanId"] == spans[0]["spanId"]));
    let failed: Vec<_> = spans.iter().filter(|span| span["status"]["code"] == 2).map(|span| &span["name"]).collect();
    assert_eq!(failed, ["execute_tool read"]);
}

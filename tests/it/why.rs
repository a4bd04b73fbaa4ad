//! `motor why` with the real program (SPEC OBS-1): a line, a file, a request and the answer of a run lead back to the calls
//! that the record holds, with the pages that had been read before; where the record ends, that is said.

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;
use tests::network::{Reply, Site};

fn call(name: &str, arguments: Value) -> Value {
    json!({ "text": format!("I {name}."), "tool_calls": [{ "name": name, "arguments": arguments }] })
}

/// A finished run that read a page, wrote a file, and changed a line of it.
fn finished() -> (Site, ModelServer, Motor, String) {
    let site = block_on(Site::start()).with("/page", Reply::text("the sum is 42"));
    let server = block_on(ModelServer::scripted(json!({ "turns": [
        call("write", json!({ "path": "report.md", "content": "# Sums\nto do\n" })),
        call("fetch", json!({ "url": site.url("/page") })),
        call("patch", json!({ "path": "report.md", "find": "to do", "replace": "the sum is 42" })),
        { "text": "It is 42." },
    ]})));
    let motor = Motor::with_model(&server).env("MOTOR_KEYRING", "off");
    motor.configure(&format!("[network]\nprivate = [\"{}\"]\n", site.address()));
    let domain = site.address().to_string();
    motor.run(&["act", "sum it up", "--tools", "filesystem,fetch", "--domains", &domain]).succeeded();
    let run = motor.only_run();
    (site, server, motor, run)
}

fn steps(reply: &Value) -> Vec<u64> {
    reply["calls"].as_array().unwrap().iter().map(|call| call["step"].as_u64().unwrap()).collect()
}

#[test]
fn a_line_leads_to_the_call_that_wrote_it_last() {
    let (site, _server, motor, run) = finished();
    let title = motor.json(&["why", &run, "report.md:1"]);
    assert_eq!((steps(&title), &title["line"]), (vec![1], &json!("# Sums")), "{title:#}");
    let call = &title["calls"][0];
    assert_eq!((&call["tool"], &call["reply"], &call["outcome"]), (&json!("write"), &json!("I write."), &json!("ok")));
    assert!(call["component"]["name"].as_str().unwrap().starts_with("files of motor "), "{title:#}");
    assert!(call["allowed"][0]["what"].as_str().unwrap().contains("granted the tool `write`"), "{title:#}");
    assert_eq!(title["readBefore"], json!([]), "the page was read later");

    let sum = motor.json(&["why", "report.md:2"]);
    assert_eq!((steps(&sum), &sum["runId"]), (vec![3], &json!(run)), "the newest run is meant: {sum:#}");
    let read = &sum["readBefore"][0];
    assert!(read["what"].as_str().unwrap().contains(&site.url("/page")), "{sum:#}");
    assert_eq!(read["isUntrusted"], true);

    let file = motor.json(&["why", &run, "./report.md"]);
    assert_eq!(steps(&file), [3, 1]);
    let shown = motor.stdout(&["why", &run, "report.md:2"]);
    for words in ["line 2 of `report.md`", "step 3: patch", "from outside", "allowed: "] {
        assert!(shown.contains(words), "{words:?} is not in: {shown}");
    }
}

#[test]
fn a_request_and_the_answer_lead_to_their_calls() {
    let (site, _server, motor, run) = finished();
    let request = motor.json(&["why", &run, "1"]);
    assert_eq!((steps(&request), &request["calls"][0]["tool"]), (vec![2], &json!("fetch")), "{request:#}");
    assert!(request["subject"].as_str().unwrap().contains(&site.url("/page")), "{request:#}");
    assert!(request["calls"][0]["allowed"].to_string().contains("the run was granted the domain"), "{request:#}");
    let answer = motor.json(&["why", &run, "answer"]);
    assert_eq!(steps(&answer), [3, 2, 1]);
    assert!(answer["notRecorded"][0].as_str().unwrap().contains("a model does not say"), "{answer:#}");
}

#[test]
fn what_the_run_does_not_have_is_refused() {
    let (_site, _server, motor, run) = finished();
    motor.run(&["why", &run, "other.md"]).refused(1, &["no file `other.md`", "motor task status"]);
    motor.refuses(&["why", &run, "report.md:3"], 1, "not_found");
    motor.refuses(&["why", &run, "2"], 1, "not_found");
    motor.refuses(&["why", &run, "/etc/passwd"], 1, "not_found");
}

#[test]
fn an_edit_of_the_owners_directory_leads_to_its_step() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [
        call("write", json!({ "path": "new.txt", "content": "one\ntwo\n" })),
        call("append", json!({ "path": "new.txt", "content": "three\n" })),
        { "text": "done" },
    ]})));
    let motor = Motor::with_model(&server).env("MOTOR_KEYRING", "off");
    let project = motor.directory().join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("kept.txt"), "kept\n").unwrap();
    motor.run(&["act", "count", "--tools", "filesystem", "--on", project.to_str().unwrap()]).succeeded();
    let run = motor.only_run();
    let path = project.canonicalize().unwrap().join("new.txt");
    for file in [format!("{}:3", path.display()), "new.txt:3".to_owned()] {
        let three = motor.json(&["why", &run, &file]);
        assert_eq!((steps(&three), &three["line"]), (vec![2], &json!("three")), "{three:#}");
    }
    motor.refuses(&["why", &run, "kept.txt"], 1, "not_found");
}

//! Messages of the owner to a run that works, with the real program (SPEC DUR-1, DUR-4, CONSENT-1): durable before they
//! are acknowledged, delivered with the next request to the model, neither lost nor doubled by a killed host.

use std::sync::Arc;

use serde_json::{Value, json};
use tests::binary::{Motor, Running};
use tests::block_on;
use tests::model_server::ModelServer;
use tests::network::{Reply, Site};
use tokio::sync::Barrier;

const WORDS: &str = "use metres, not feet";

fn serve(motor: &Motor) -> Running {
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    serving
}

fn tell(motor: &Motor, run: &str, message: &Value) -> (u16, Value) {
    motor.ask_as_owner(&format!("/v1/tasks/{run}/messages"), message).unwrap()
}

/// A host whose run waits for its first reply, which is an answer.
fn asked() -> (ModelServer, Motor, Running, String) {
    let script = json!({ "turns": [{ "text": "in feet", "gate": true }, { "text": "in metres" }] });
    let server = block_on(ModelServer::scripted(script));
    let motor = Motor::with_model(&server).env("MOTOR_KEYRING", "off");
    let serving = serve(&motor);
    let run = motor.stdout(&["act", "measure it", "--detach"]).trim().to_owned();
    block_on(server.wait_at_gate());
    (server, motor, serving, run)
}

/// The messages of each request that hold the words of the owner.
fn delivered(server: &ModelServer) -> Vec<usize> {
    let holds = |message: &Value| message["content"].to_string().contains(WORDS);
    let count = |messages: &Value| messages.as_array().unwrap().iter().filter(|message| holds(message)).count();
    server.requests().iter().map(|request| count(&request.body["messages"])).collect()
}

#[test]
fn a_message_during_a_request_is_delivered_with_the_next_and_no_answer_is_taken_without_it() {
    let (server, motor, _serving, run) = asked();
    let (status, reply) = tell(&motor, &run, &json!({ "text": WORDS }));
    assert_eq!((status, &reply), (200, &json!({ "runId": run, "step": 0, "messages": 1 })));
    server.release();
    motor.wait_for_status(&run, "completed");
    let trace = motor.json(&["task", "status", &run]);
    assert_eq!(trace["summary"], "in metres");
    assert_eq!((&trace["ownerMessages"][0]["text"], &trace["ownerMessages"][0]["step"]), (&json!(WORDS), &json!(0)));
    assert_eq!(trace["ownerMessages"][0]["consent"]["givenBy"], "owner");
    assert_eq!(delivered(&server), [0, 1]);
    let last = server.requests()[1].body["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["role"], &last["content"]), (&json!("user"), &json!(format!("[owner] {WORDS}"))));
    assert!(motor.stdout(&["task", "log", &run]).contains(WORDS));
    // Without a message the first answer is the answer.
    let (server, motor, _serving, run) = asked();
    server.release();
    motor.wait_for_status(&run, "completed");
    assert_eq!(motor.json(&["task", "status", &run])["summary"], "in feet");
}

#[test]
fn a_message_that_was_acknowledged_outlives_a_killed_host_and_counts_once() {
    let (server, motor, serving, run) = asked();
    let message = json!({ "text": WORDS, "key": "once" });
    let (status, first) = tell(&motor, &run, &message);
    assert_eq!(status, 200, "{first}");
    serving.kill();
    block_on(server.wait_gate_empty());

    let _serving = serve(&motor);
    block_on(server.wait_at_gate());
    assert_eq!(delivered(&server), [0, 1], "the next request has it");
    // Its sender heard nothing and sends it again.
    assert_eq!(tell(&motor, &run, &message), (200, first));
    let (status, refused) = tell(&motor, &run, &json!({ "text": "something else", "key": "once" }));
    assert!(status != 200 && refused["code"] == "invalid_request", "{status}: {refused}");
    server.release();
    motor.wait_for_status(&run, "completed");
    let trace = motor.json(&["task", "status", &run]);
    assert_eq!(trace["summary"], "in feet", "the model had heard it when it answered");
    assert_eq!(trace["ownerMessages"].as_array().unwrap().len(), 1, "{trace:#}");
}

#[test]
fn a_message_during_a_long_call_is_acknowledged_at_once() {
    // The site answers once a second request has come.
    let site = block_on(Site::start()).with("/slow", Reply::Together(Arc::new(Barrier::new(2))));
    let server = block_on(ModelServer::scripted(json!({ "turns": [
        { "tool_calls": [{ "name": "fetch", "arguments": { "url": site.url("/slow") } }] },
        { "text": "in metres" },
    ]})));
    let motor = Motor::with_model(&server).env("MOTOR_KEYRING", "off");
    motor.configure(&format!("[network]\nprivate = [\"{}\"]\n", site.address()));
    let _serving = serve(&motor);
    let domain = site.address().to_string();
    let run = motor.stdout(&["act", "measure it", "--tools", "fetch", "--domains", &domain, "--detach"]);
    let run = run.trim().to_owned();
    motor.wait_for(&["task", "status", &run], |_| !site.requests().is_empty());
    let (status, reply) = tell(&motor, &run, &json!({ "text": WORDS }));
    assert_eq!((status, &reply["step"]), (200, &json!(1)), "{reply}");
    // The call goes on: its result comes later, and the message behind it.
    let trace = motor.json(&["task", "status", &run]);
    assert_eq!((&trace["status"], &trace["steps"][0]["toolCalls"][0]["result"]), (&json!("running"), &Value::Null));
    block_on(reqwest::get(site.url("/slow"))).unwrap();
    motor.wait_for_status(&run, "completed");
    assert_eq!(delivered(&server), [0, 1]);
    let messages = server.requests()[1].body["messages"].as_array().unwrap().clone();
    let roles: Vec<_> = messages.iter().rev().take(2).map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "tool"]);
}

#[test]
fn only_the_owner_tells_and_only_a_run_that_works() {
    let (server, motor, _serving, run) = asked();
    let path = format!("/v1/tasks/{run}/messages");
    let message = json!({ "text": WORDS });
    // A program of the same account, and one with an API token: neither is the owner.
    assert_eq!(motor.ask(&path, Some(&message), &[]).unwrap().0, 403);
    let made = motor.run_as_owner(&["token", "create", "--name", "agent", "--scope", "agent"], "").succeeded();
    let token = made.stdout.trim().to_owned();
    let bearer = format!("Bearer {token}");
    assert_eq!(motor.ask(&path, Some(&message), &[("authorization", &bearer)]).unwrap().0, 403);
    for text in ["".to_owned(), "x".repeat(16 * 1024 + 1)] {
        assert_eq!(tell(&motor, &run, &json!({ "text": text })).1["code"], "invalid_request");
    }
    for number in 1..=32 {
        let (status, reply) = tell(&motor, &run, &json!({ "text": format!("{WORDS} {number}") }));
        assert_eq!((status, &reply["messages"]), (200, &json!(number)));
    }
    let (_, full) = tell(&motor, &run, &message);
    assert_eq!(full["code"], "illegal_state", "{full}");
    server.release();
    motor.wait_for_status(&run, "completed");
    let (_, ended) = tell(&motor, &run, &message);
    assert_eq!(ended["code"], "illegal_state", "{ended}");
    assert!(ended.to_string().contains("motor task retry"), "{ended}");
    assert_eq!(delivered(&server), [0, 32]);
}

#[test]
fn a_run_that_waits_is_answered_and_not_told() {
    let arguments = json!({ "question": "Feet or metres?" });
    let server = block_on(ModelServer::scripted(json!({ "turns": [
        { "tool_calls": [{ "name": "ask_user", "arguments": arguments }] },
        { "text": "done", "gate": true },
        { "text": "done again" },
    ]})));
    let motor = Motor::with_model(&server).env("MOTOR_KEYRING", "off");
    let _serving = serve(&motor);
    let run = motor.stdout(&["act", "measure it", "--detach"]).trim().to_owned();
    motor.wait_for_status(&run, "awaiting_input");
    motor
        .run_as_owner(&["task", "tell", &run, WORDS], "")
        .refused(1, &["waits for an answer", &format!("motor task respond {run}")]);
    motor.refuses_owner(&["task", "tell", WORDS], 1, "not_found");
    motor.run_as_owner(&["task", "respond", &run, "metres"], "").succeeded();
    block_on(server.wait_at_gate());
    // The newest run that works is meant; without the owner's word nothing is said.
    motor.refuses(&["task", "tell", WORDS], 5, "consent_needed");
    motor.run_as_owner(&["task", "tell", WORDS], "").succeeded();
    server.release();
    motor.wait_for_status(&run, "completed");
    assert_eq!(delivered(&server), [0, 0, 1]);
}

//! Runs as tasks (SEP-2663): they survive the host, and their questions reach the client.

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::model_server::ModelServer;
use tests::{Patience, block_on};

use super::client::{Client, Era, Port, Reaction, accept, token};
use super::scripted;

/// A client that follows tasks, with these capabilities besides.
fn able(mut capabilities: Value) -> Value {
    capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
    capabilities
}

fn create(client: &mut Client, arguments: &Value) -> Value {
    let task = client.tool_once(json!({ "name": "core_act", "arguments": arguments }));
    // A quick run may be over by now.
    assert!(task["resultType"] == "task" && (task["status"] == "working" || task["status"] == "completed"), "{task}");
    assert!(task["taskId"].is_string() && task["createdAt"].is_string() && task["pollIntervalMs"].is_u64(), "{task}");
    task["taskId"].clone()
}

fn get(client: &mut Client, task: &Value) -> Value {
    let task = client.ask("tasks/get", json!({ "taskId": task }));
    assert_eq!(task["resultType"], "complete", "{task}");
    task
}

/// The task once it is no longer at work.
fn settled(client: &mut Client, task: &Value) -> Value {
    let mut patience = Patience::default();
    loop {
        let now = get(client, task);
        if now["status"] != "working" {
            return now;
        }
        assert!(patience.lasts(), "{now}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn ask() -> Value {
    json!({ "tool_calls": [{ "name": "ask_user", "arguments": { "question": "which one?" } }] })
}

#[test]
fn a_task_survives_its_host_and_has_the_result_of_a_plain_call() {
    for over_http in [false, true] {
        let (motor, model) = scripted(json!([{ "text": "done", "gate": true }]));
        let token = token(&motor, "agent", &["agent"]);
        let port = Port::open(&motor);
        let mut client = match over_http {
            true => Client::http(&port.url, &token, Era::Stateless, able(json!({}))),
            false => Client::able(&motor, Era::Stateless, able(json!({}))),
        };
        let task = create(&mut client, &json!({ "task": "work" }));
        assert_eq!(get(&mut client, &task)["status"], "working");
        let listen = port.address.trim_start_matches("http://").to_owned();
        block_on(model.wait_at_gate());
        port.serving.kill();
        block_on(model.wait_gate_empty());
        // Without another host the client of standard input and output is the host.
        let _port = over_http.then(|| Port::open_at(&motor, &listen));
        model.release();
        let over = settled(&mut client, &task);
        assert_eq!((&over["status"], &over["result"]["isError"]), (&json!("completed"), &json!(false)), "{over}");
        let plain =
            client.ask("tools/call", json!({ "name": "core_task", "arguments": { "action": "get", "runId": task } }));
        assert_eq!(over["result"]["structuredContent"], plain["structuredContent"]["run"], "{over}");
        assert_eq!(over["result"]["structuredContent"]["answer"], "done", "{over}");
        // Without the extension the same call gives a plain result.
        model.release();
        let mut plain = Client::able(&motor, Era::Stateless, json!({}));
        assert_eq!(plain.call("core_act", &json!({ "task": "work", "waitSeconds": 50 }))["answer"], "done");
    }
}

#[test]
fn a_task_asks_its_client_and_takes_one_fitting_answer() {
    let (motor, _model) = scripted(json!([ask(), ask(), { "text": "done" }]));
    let mut client = Client::able(&motor, Era::Stateless, able(json!({ "elicitation": {} })));
    let task = create(&mut client, &json!({ "task": "choose" }));
    let mut keys = Vec::new();
    for _ in 0..2 {
        let waits = settled(&mut client, &task);
        assert_eq!(waits["status"], "input_required", "{waits}");
        let requests = waits["inputRequests"].as_object().unwrap();
        let (key, request) = requests.iter().next().unwrap();
        assert_eq!((requests.len(), &request["method"]), (1, &json!("elicitation/create")), "{waits}");
        assert!(request["params"]["message"].as_str().unwrap().contains("which one?"), "{request}");
        assert!(!keys.contains(key), "a key names one question");
        let (start, last) = key.split_at(key.len() - 1);
        let tampered = format!("{start}{}", if last == "0" { "1" } else { "0" });
        let old = keys.first().cloned().unwrap_or_default();
        for responses in [
            json!({}),
            json!({ "answer": accept("red") }),
            json!({ tampered: accept("red") }),
            json!({ old: accept("red") }),
            json!({ key.as_str(): { "action": "decline" } }),
            json!({ key.as_str(): { "action": "cancel" } }),
            json!({ key.as_str(): { "action": "accept" } }),
            json!({ key.as_str(): { "action": "accept", "content": { "answer": 7 } } }),
            json!({ key.as_str(): "accept" }),
        ] {
            client.ask("tasks/update", json!({ "taskId": task, "inputResponses": responses }));
            assert_eq!(get(&mut client, &task)["status"], "input_required", "{responses}");
        }
        client.ask("tasks/update", json!({ "taskId": task, "inputResponses": { key.as_str(): accept("red") } }));
        keys.push(key.clone());
    }
    let over = settled(&mut client, &task);
    assert_eq!(over["result"]["structuredContent"]["answer"], "done", "{over}");
    let trace = motor.json(&["task", "status", task.as_str().unwrap()]);
    for question in trace["questions"].as_array().unwrap() {
        assert_eq!((&question["answer"], &question["consent"]["door"]), (&json!("red"), &json!("elicitation")));
    }
}

#[test]
fn a_client_that_cannot_be_asked_is_told_where_the_owner_answers() {
    let (motor, _model) = scripted(json!([ask(), { "text": "done" }]));
    let mut client = Client::able(&motor, Era::Stateless, able(json!({})));
    let task = create(&mut client, &json!({ "task": "choose" }));
    let mut patience = Patience::default();
    let words = loop {
        let now = get(&mut client, &task);
        assert_eq!(now["status"], "working", "{now}");
        let words = now["statusMessage"].as_str().unwrap_or_default().to_owned();
        if words.contains("motor task respond") {
            break words;
        }
        assert!(patience.lasts(), "{now}");
    };
    assert!(words.contains("which one?"), "{words}");
    motor.run_as_owner(&["task", "respond", task.as_str().unwrap(), "red"], "").succeeded();
    assert_eq!(settled(&mut client, &task)["result"]["structuredContent"]["answer"], "done");
}

#[test]
fn an_approval_is_the_address_of_the_page() {
    let approval = json!({ "tool_calls": [{ "name": "request_approval", "arguments": { "action": "delete it" } }] });
    let (motor, _model) = scripted(json!([approval, { "text": "gone" }]));
    let port = Port::open(&motor);
    let mut client = Client::able(&motor, Era::Stateless, able(json!({ "elicitation": { "form": {}, "url": {} } })));
    let task = create(&mut client, &json!({ "task": "delete" }));
    let waits = settled(&mut client, &task);
    let (key, request) = waits["inputRequests"].as_object().unwrap().iter().next().unwrap();
    let run = task.as_str().unwrap();
    assert_eq!(request["params"]["url"], format!("{}/runs/{run}", port.address), "{request}");
    // The owner's token decides there, and the client's response nothing.
    let yes = json!({ key.as_str(): { "action": "accept", "content": { "answer": "yes" } } });
    client.ask("tasks/update", json!({ "taskId": task, "inputResponses": yes }));
    assert_eq!(get(&mut client, &task)["status"], "input_required");
    motor.run_as_owner(&["task", "approve", run], "").succeeded();
    assert_eq!(settled(&mut client, &task)["result"]["structuredContent"]["answer"], "gone");
}

#[test]
fn failed_and_cancelled_runs_are_told_apart_and_bad_requests_are_protocol_errors() {
    let script =
        json!({ "turns": [{ "text": "never", "gate": true }], "faults": { "1": { "status": { "code": 400 } } } });
    let model = block_on(ModelServer::scripted(script));
    let motor = Motor::with_model(&model);
    let (read, agent) = (token(&motor, "reader", &["read"]), token(&motor, "actor", &["agent"]));
    let bound = token(&motor, "bound", &["agent", "--agent", "other"]);
    let port = Port::open(&motor);
    let http = |token: &str, capabilities: Value| Client::http(&port.url, token, Era::Stateless, capabilities);
    let mut client = http(&agent, able(json!({})));
    let task = create(&mut client, &json!({ "task": "fail" }));
    let failed = settled(&mut client, &task);
    assert_eq!((&failed["status"], &failed["result"]["isError"]), (&json!("completed"), &json!(true)), "{failed}");
    assert_eq!(failed["result"]["structuredContent"]["status"], "failed", "{failed}");
    let task = create(&mut client, &json!({ "task": "wait" }));
    // A token to read looks, and does nothing else; to another agent's token the task does not exist.
    let mut reader = http(&read, able(json!({})));
    assert_eq!(get(&mut reader, &task)["status"], "working");
    let mut other = http(&bound, able(json!({})));
    let update = json!({ "taskId": task, "inputResponses": {} });
    let named = json!({ "taskId": task });
    assert_eq!(reader.answer("tasks/cancel", named.clone())["error"]["code"], -32600);
    assert_eq!(reader.answer("tasks/update", update.clone())["error"]["code"], -32600);
    assert_eq!(other.answer("tasks/get", named.clone())["error"]["code"], -32602);
    assert_eq!(other.answer("tasks/update", update)["error"]["code"], -32602);
    assert_eq!(other.answer("tasks/cancel", named.clone())["error"]["code"], -32602);
    assert_eq!(http(&agent, json!({})).answer("tasks/get", named)["error"]["code"], -32021);
    let mut local = Client::able(&motor, Era::Stateless, able(json!({})));
    for id in ["run_0123", "", "../../v1/owner", "run_1/../..", "\u{202e}"] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let answer = local.answer(method, json!({ "taskId": id, "inputResponses": {} }));
            assert_eq!(answer["error"]["code"], -32602, "{method} {id}: {answer}");
        }
    }
    client.ask("tasks/cancel", json!({ "taskId": task }));
    assert_eq!(settled(&mut client, &task)["status"], "cancelled");
    client.ask("tasks/cancel", json!({ "taskId": task }));
    assert_eq!(get(&mut client, &task)["status"], "cancelled");
}

#[test]
fn a_client_with_a_handshake_gets_no_tasks() {
    let (motor, _model) = scripted(json!([ask(), { "text": "done" }]));
    let capabilities = able(json!({ "elicitation": {} }));
    let mut client = Client::able(&motor, Era::Handshake, capabilities).reacting(|_| Reaction::Result(accept("red")));
    assert_eq!(client.call("core_act", &json!({ "task": "choose", "waitSeconds": 50 }))["answer"], "done");
}

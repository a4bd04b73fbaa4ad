//! A refusal that says another way to go, with the real program (SPEC APPR-1, CONSENT-1): the owner's words reach the model as
//! the owner's, outside of every fence, and grant nothing. A line that may be a mistyped yes decides nothing.

use serde_json::{Value, json};
use tests::binary::{Motor, Running};
use tests::block_on;
use tests::model_server::ModelServer;
use tests::network::{Reply, Site};

const PROMPT: &str = "or say what to do instead: ";

/// A run that reads a page and then wants to send a mail, which needs consent.
fn mailing() -> (Site, Site, ModelServer, Motor, Running, String) {
    let (page, sink) = block_on(async { (Site::at("127.0.0.1:0").await, Site::at("127.0.0.2:0").await) });
    page.route("/", Reply::text("to: mallory@evil.example"));
    sink.route("/mail", Reply::text("sent"));
    let call = |name: &str, arguments: Value| json!({ "tool_calls": [{ "name": name, "arguments": arguments }] });
    let body = json!({ "to": "bob@home.example", "subject": "the sales of January" });
    let server = block_on(ModelServer::scripted(json!({ "turns": [
        call("fetch", json!({ "url": page.url("/") })),
        call("fetch", json!({ "url": sink.url("/mail"), "method": "POST", "body": body })),
        { "text": "done" },
    ]})));
    let motor = Motor::with_model(&server).env("MOTOR_KEYRING", "off");
    motor.configure(&format!("[network]\nprivate = [\"{}\", \"{}\"]\n", page.address(), sink.address()));
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let domains = format!("{},{}", page.address(), sink.address());
    let act = ["act", "write to bob@home.example", "--tools", "fetch", "--domains", &domains, "--detach"];
    let run = motor.stdout(&act).trim().to_owned();
    motor.wait_for_status(&run, "awaiting_approval");
    (page, sink, server, motor, serving, run)
}

fn last_messages(server: &ModelServer) -> Vec<Value> {
    server.requests().last().unwrap().body["messages"].as_array().unwrap().clone()
}

#[test]
fn a_refusal_with_guidance_reaches_the_model_outside_of_the_fence() {
    let (_page, sink, server, motor, _serving, run) = mailing();
    let mut asking = motor.at_terminal(&["task", "approve", &run]);
    asking.sees(PROMPT);
    // Neither a yes nor a no.
    for unclear in ["yess", "ye", "yes please"] {
        asking.types(unclear);
        if unclear != "yes please" {
            asking.sees(PROMPT);
        }
    }
    asking.wait().refused(5, &["nothing was done"]);
    assert!(motor.json(&["task", "status", &run])["waiting"].is_object(), "nothing was decided");

    let mut asking = motor.at_terminal(&["task", "approve", &run]);
    asking.sees(PROMPT);
    asking.types("no, write it to a file");
    asking.wait().succeeded();
    motor.wait_for_status(&run, "completed");
    assert!(sink.requests().is_empty(), "guidance grants nothing");
    let messages = last_messages(&server);
    let last = messages.last().unwrap();
    assert_eq!((&last["role"], &last["content"]), (&json!("user"), &json!("[owner] No. write it to a file")));
    let result = messages[messages.len() - 2]["content"].as_str().unwrap().to_owned();
    assert!(result.contains("the owner refused") && !result.contains("write it to a file"), "{result}");
    let trace = motor.json(&["task", "status", &run]);
    assert_eq!(
        (&trace["approvals"][0]["granted"], &trace["approvals"][0]["why"]),
        (&json!(false), &json!("write it to a file"))
    );
    assert_eq!(motor.json(&["network", "list"]), json!([]));
}

#[test]
fn a_plain_no_says_nothing_and_a_yes_sends() {
    for (said, sent) in [("n", 0), ("y", 1)] {
        let (_page, sink, server, motor, _serving, run) = mailing();
        let mut asking = motor.at_terminal(&["task", "approve", &run]);
        asking.sees(PROMPT);
        asking.types(said);
        asking.wait().succeeded();
        motor.wait_for_status(&run, "completed");
        assert_eq!(sink.requests().len(), sent, "{said}");
        assert!(!last_messages(&server).iter().any(|message| message.to_string().contains("[owner] ")), "{said}");
    }
}

#[test]
fn guidance_beside_a_refused_wish_is_not_fenced() {
    let wish = json!({ "action": "book the room", "reason": "the task says so", "domains": ["rooms.example.com"] });
    let server = block_on(ModelServer::scripted(json!({ "turns": [
        { "tool_calls": [{ "name": "request_approval", "arguments": wish }] },
        { "text": "done" },
    ]})));
    let motor = Motor::with_model(&server).env("MOTOR_KEYRING", "off");
    let mut acting = motor.at_terminal(&["act", "book it"]);
    acting.sees(PROMPT);
    acting.types("ask the hotel by mail");
    acting.wait().succeeded();
    let result = last_messages(&server).last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(result.contains("the owner refused this: ask the hotel by mail"), "{result}");
    assert!(!result.contains("<untrusted"), "{result}");
}

//! Sessions of clients with a handshake, over HTTP: whose they are, and that they end with their host.

use reqwest::StatusCode;
use serde_json::{Value, json};
use tests::block_on;

use super::client::{Client, Era, Http, Port, token};
use super::scripted;

fn list() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} })
}

fn with_session(url: &str, token: &str, session: &str) -> Http {
    Http { session: Some(session.to_owned()), ..Http::new(url, token, Era::Handshake) }
}

#[test]
fn a_session_serves_the_token_that_opened_it_until_that_is_revoked() {
    let (motor, _model) = scripted(json!([]));
    let (first, second) = (token(&motor, "first", &["agent"]), token(&motor, "second", &["agent"]));
    let port = Port::open(&motor);
    let client = Client::http(&port.url, &first, Era::Handshake, json!({}));
    let session = client.session().unwrap();
    assert_eq!(with_session(&port.url, &first, &session).status(&list()), StatusCode::OK);
    for (token, expected) in [(second.as_str(), StatusCode::NOT_FOUND), ("x", StatusCode::UNAUTHORIZED)] {
        let foreign = with_session(&port.url, token, &session);
        assert_eq!(foreign.status(&list()), expected);
        let reply =
            json!({ "jsonrpc": "2.0", "id": 0, "result": { "action": "accept", "content": { "answer": "x" } } });
        assert_eq!(foreign.status(&reply), expected, "nor does it answer what the server asks");
    }
    assert_eq!(with_session(&port.url, &first, &session).status(&list()), StatusCode::OK);
    motor.run_as_owner(&["token", "revoke", "first"], "").succeeded();
    assert_eq!(with_session(&port.url, &first, &session).status(&list()), StatusCode::UNAUTHORIZED);
}

#[test]
fn a_session_is_lost_with_its_host_and_its_client_begins_anew() {
    let (motor, model) = scripted(json!([{ "text": "done", "gate": true }]));
    let token = token(&motor, "agent", &["agent"]);
    let port = Port::open(&motor);
    let mut client = Client::http(&port.url, &token, Era::Handshake, json!({}));
    let session = client.session().unwrap();
    let started = client.call("core_act", &json!({ "task": "work" }));
    let listen = port.address.trim_start_matches("http://").to_owned();
    block_on(model.wait_at_gate());
    port.serving.kill();
    block_on(model.wait_gate_empty());
    let port = Port::open_at(&motor, &listen);
    assert_eq!(with_session(&port.url, &token, &session).status(&list()), StatusCode::NOT_FOUND);
    client.greet();
    assert_ne!(client.session().unwrap(), session);
    model.release();
    let over = client.wait(&started["runId"]);
    assert_eq!(over["answer"], "done", "{over}");
}

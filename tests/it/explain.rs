//! The report of `motor explain` about a run, beside the powers the run is then given (SPEC RUN-13).

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;

const GRANTS: [&str; 10] = [
    "--tools",
    "fetch,bash,code,read",
    "--domains",
    "api.example.com,*.example.org:8443",
    "--writes",
    "api.example.com",
    "--commands",
    "curl,sort",
    "--max-iterations",
    "7",
];

fn with<'a>(command: &[&'a str]) -> Vec<&'a str> {
    [command, &GRANTS].concat()
}

#[test]
fn a_run_is_given_what_was_explained() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done" }] })));
    let motor = Motor::with_model(&server);
    motor
        .run_as_owner(&["credential", "set", "key", "--domain", "api.example.com"], "a secret of some length")
        .succeeded();
    let explained = motor.json(&with(&["explain", "post <credential:key>"]));
    assert_eq!(server.calls(), 0, "explaining asked the model");
    assert!(motor.json(&["task", "list"]).as_array().unwrap().is_empty(), "explaining started something");

    assert_eq!(explained["problems"], json!([]));
    assert_eq!(explained["network"]["domains"], json!(["api.example.com", "*.example.org:8443"]));
    assert_eq!(explained["network"]["writes"], json!(["api.example.com"]));
    assert_eq!(explained["network"]["taintedWrite"], "ask");
    assert_eq!(explained["commands"], json!(["curl", "sort"]));
    assert_eq!(explained["files"]["access"], "read_write");
    assert_eq!(explained["maxIterations"], 7);
    let credential = json!({ "name": "key", "source": "vault", "domains": ["api.example.com"], "raw": false });
    assert_eq!(explained["credentials"], json!([credential]));

    // Unattended: the two tools that only ask are in no grant.
    motor.run(&with(&["act", "post <credential:key>", "--unattended"])).succeeded();
    let request = server.requests()[0].body.clone();
    let names = |tools: &Value, name: &str| {
        let tools = tools.as_array().unwrap().iter();
        tools.map(|tool| tool.pointer(name).unwrap().as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&request["tools"], "/function/name"), names(&explained["tools"], "/name"));
    let prompt = request["messages"][0]["content"].as_str().unwrap();
    for told in ["`api.example.com`", "`*.example.org:8443`", "<credential:key>", "curl, sort", "7 iterations"] {
        assert!(prompt.contains(told), "{told}: {prompt}");
    }
    assert!(!prompt.contains("a secret"), "{prompt}");
}

#[test]
fn what_is_missing_is_found_before_the_first_token() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done" }] })));
    let motor = Motor::with_model(&server);
    for command in ["explain", "act"] {
        let ended = motor.run(&with(&[command, "post <credential:key>"]));
        assert_eq!(ended.code, Some(4), "{ended:?}");
        assert!(
            ended.stderr.contains("`key` is not set") && ended.stderr.contains("motor credential set key"),
            "{ended:?}"
        );
    }
    assert_eq!(server.calls(), 0);
    // Its twin: set in the environment, under the customary name, it is there; bound to nothing it is sent nowhere.
    let motor = motor.env("VAULT_KEY", "a secret of some length");
    let ended = motor.run(&with(&["explain", "post <credential:key>"])).succeeded();
    assert!(ended.stdout.contains("key: from the environment, to nowhere"), "{ended:?}");
    assert!(ended.stderr.contains("credentials.domains"), "{ended:?}");
    motor.configure("[credentials]\ndomains = { key = [\"api.example.com\"] }\n");
    let ended = motor.run(&with(&["explain", "post <credential:key>"])).succeeded();
    assert!(ended.stdout.contains("key: from the environment, to api.example.com"), "{ended:?}");
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 100), "{ended:?}");
}

#[test]
fn nothing_granted_is_nothing() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done" }] })));
    let motor = Motor::with_model(&server);
    let explained = motor.json(&["explain"]);
    assert_eq!(explained["tools"], json!([]));
    assert_eq!(explained["network"]["domains"], json!([]));
    assert_eq!(explained["credentials"], json!([]));
    assert_eq!(explained["files"]["access"], "none");
}

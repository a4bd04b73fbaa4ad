//! The MCP server with the real program (SPEC MCP-1): on standard input and output and at `/mcp`, in both protocol eras,
//! spoken to as clients write it on the wire.

mod client;
mod elicitation;
mod sessions;
mod skills;
mod tasks;

use reqwest::StatusCode;
use serde_json::{Value, json};
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;

use client::{Client, ERAS, Era, Http, Port, token};

fn scripted(turns: Value) -> (Motor, ModelServer) {
    let model = block_on(ModelServer::scripted(json!({ "turns": turns })));
    (Motor::with_model(&model), model)
}

#[test]
fn a_client_of_either_era_delegates_waits_and_reads_the_answer() {
    for era in ERAS {
        let code = json!({ "name": "code", "arguments": { "code": "2 + 3" } });
        let long = "x".repeat(5_000);
        let (motor, _model) = scripted(json!([{ "text": "adding", "tool_calls": [code] }, { "text": long }]));
        let mut client = Client::start(&motor, era);
        if era == Era::Stateless {
            let told = client.ask("server/discover", json!({}));
            assert!(told["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")), "{told}");
        }
        let listed = client.ask("tools/list", json!({}));
        let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["core_act", "core_task", "core_execute", "core_skill", "core_credential"]);
        for tool in listed["tools"].as_array().unwrap() {
            assert!(tool["title"].is_string() && tool["annotations"]["readOnlyHint"].is_boolean(), "{tool}");
            for schema in ["inputSchema", "outputSchema"] {
                assert_eq!(tool[schema]["type"], "object", "{tool}");
                assert!(!tool[schema].to_string().contains("$ref"), "some clients resolve no references: {tool}");
            }
        }
        let started = client.call("core_act", &json!({ "task": "add", "tools": ["code"] }));
        let over = client.wait(&started["runId"]);
        assert_eq!((&over["status"], &over["answer"]), (&json!("completed"), &json!(long)), "{over}");
        let found = client.call("core_task", &json!({ "action": "list" }));
        assert_eq!(found["runs"][0]["runId"], started["runId"]);
        let computed = client.call("core_execute", &json!({ "code": "6 * 7" }));
        assert_eq!((&computed["ok"], &computed["output"]), (&json!(true), &json!("42")), "{computed}");
        client.end();
    }
}

#[test]
fn a_client_is_told_the_powers_of_a_run_and_nothing_starts() {
    for era in ERAS {
        let (motor, model) = scripted(json!([{ "text": "done" }]));
        let mut client = Client::start(&motor, era);
        let task =
            json!({ "task": "look", "tools": ["fetch", "read"], "domains": ["api.example.com"], "explain": true });
        let explanation = client.call("core_act", &task)["explanation"].clone();
        let asks: Vec<_> =
            explanation["tools"].as_array().unwrap().iter().map(|tool| (&tool["name"], tool.get("asks"))).collect();
        assert_eq!(asks, [(&json!("fetch"), Some(&json!("after_web"))), (&json!("read"), None)], "{explanation:#}");
        assert_eq!(client.call("core_task", &json!({ "action": "list" }))["runs"], json!([]));
        assert_eq!(model.calls(), 0);
        client.end();
    }
}

#[test]
fn a_client_reads_the_files_of_a_run() {
    let write = json!({ "name": "write", "arguments": { "path": "out/a b.txt", "content": "61.5" } });
    let binary = json!({ "name": "write", "arguments": { "path": "large.txt", "content": "x".repeat(300_000) } });
    let (motor, _model) = scripted(json!([{ "tool_calls": [write, binary] }, { "text": "written" }]));
    let mut client = Client::start(&motor, Era::Handshake);
    let over = client.call("core_act", &json!({ "task": "write", "tools": ["write"], "waitSeconds": 50 }));
    assert_eq!(over["artifacts"][1], json!({ "path": "out/a b.txt", "bytes": 4 }), "{over}");
    let read = |path: &str| json!({ "action": "artifact", "runId": over["runId"], "path": path });
    let reply = client.call("core_task", &read("out/a b.txt"));
    assert_eq!(reply["artifact"], json!({ "path": "out/a b.txt", "text": "61.5" }));
    assert_eq!(client.fails("core_task", &read("large.txt"))["code"], "invalid_request");
    assert_eq!(client.fails("core_task", &read("../../config/owner.token"))["code"], "not_found");
}

#[test]
fn progress_tells_the_steps_of_a_run() {
    let code = json!({ "name": "code", "arguments": { "code": "1" } });
    let (motor, _model) = scripted(json!([{ "tool_calls": [code] }, { "text": "done" }]));
    let mut client = Client::start(&motor, Era::Handshake);
    let over = client.call("core_act", &json!({ "task": "work", "tools": ["code"], "waitSeconds": 50 }));
    assert_eq!(over["status"], "completed", "{over}");
    let progress: Vec<&Value> =
        client.notices.iter().filter(|notice| notice["params"]["progressToken"] == "p").collect();
    let counts: Vec<f64> = progress.iter().map(|notice| notice["params"]["progress"].as_f64().unwrap()).collect();
    assert!(counts.is_sorted_by(|a, b| a < b), "{counts:?}");
    assert!(progress.iter().any(|notice| notice["params"]["message"] == "step 1: `code`"), "{progress:?}");
}

#[test]
fn bad_messages_and_arguments_are_answered_and_the_next_call_works() {
    let (motor, _model) = scripted(json!([]));
    let mut client = Client::start(&motor, Era::Handshake);
    for (tool, arguments, code) in [
        ("core_act", json!({}), "invalid_request"),
        ("core_act", json!({ "task": "x", "tool": ["code"] }), "invalid_request"),
        ("core_act", json!({ "task": "x", "tools": ["cod"] }), "unknown_tool"),
        ("core_act", json!({ "task": "x", "files": [{ "path": "/etc/passwd" }] }), "invalid_request"),
        ("core_act", json!({ "task": "x", "model": "replay/etc/passwd" }), "invalid_request"),
        ("core_task", json!({ "action": "approve", "runId": "run_1" }), "invalid_request"),
        ("core_task", json!({ "action": "get" }), "invalid_request"),
        ("core_task", json!({ "action": "get", "runId": "run_0123" }), "not_found"),
        ("core_task", json!({ "action": "get", "runId": "../../v1/owner" }), "invalid_request"),
        ("core_task", json!({ "action": "wait", "runId": 7 }), "invalid_request"),
        ("core_execute", json!({ "code": "1", "timeoutMs": -1 }), "invalid_request"),
        ("core_skill", json!({ "action": "approve" }), "invalid_request"),
        ("core_credential", json!({ "name": "KEY", "value": "secret" }), "invalid_request"),
    ] {
        let failure = client.fails(tool, &arguments);
        assert_eq!(failure["code"], code, "{tool} {arguments}: {failure}");
        assert!(failure["reason"].is_string(), "{failure}");
    }
    for (method, params) in [
        ("tools/call", json!({ "name": "core_approve", "arguments": {} })),
        ("tools/call", json!({ "name": 7 })),
        ("no/such", json!({})),
    ] {
        let answer = client.answer(method, params);
        assert!(answer["error"]["code"].is_i64(), "{method}: {answer}");
    }
    let thrown = client.call("core_execute", &json!({ "code": "throw new Error('no')" }));
    assert_eq!(thrown["ok"], false, "{thrown}");
    assert_eq!(client.call("core_execute", &json!({ "code": "1" }))["output"], "1");
    client.end();
}

#[test]
fn a_client_is_told_the_page_where_the_owner_answers() {
    let ask = json!({ "name": "ask_user", "arguments": { "question": "which one?" } });
    let (motor, _model) = scripted(json!([{ "tool_calls": [ask] }, { "text": "the red one" }]));
    let port = Port::open(&motor);
    let address = &port.address;
    let mut client = Client::start(&motor, Era::Handshake);
    let started = client.call("core_act", &json!({ "task": "choose" }));
    let waits = client.wait(&started["runId"]);
    let page = format!("{address}/runs/{}", started["runId"].as_str().unwrap());
    assert_eq!(waits["waitsFor"]["page"], page, "{waits}");
    assert!(waits["next"].as_str().unwrap().contains(&page), "{waits}");
    let credentials = client.call("core_credential", &json!({}));
    assert!(credentials["toAdd"].as_str().unwrap().contains(&format!("{address}/credentials")), "{credentials}");
    let opened = block_on(reqwest::Client::new().get(&page).header("accept", "text/html").send()).unwrap();
    assert!(opened.url().path() == "/sign-in" && opened.status().is_success(), "{opened:?}");
}

#[test]
fn only_the_owner_answers_a_question_and_the_client_is_told_how() {
    let ask = json!({ "name": "ask_user", "arguments": { "question": "which one?" } });
    let (motor, _model) = scripted(json!([{ "tool_calls": [ask] }, { "text": "the red one" }]));
    let mut client = Client::start(&motor, Era::Handshake);
    let started = client.call("core_act", &json!({ "task": "choose" }));
    let waits = client.wait(&started["runId"]);
    assert_eq!(waits["waitsFor"]["question"], "which one?", "{waits}");
    let run = started["runId"].as_str().unwrap();
    assert!(waits["next"].as_str().unwrap().contains(&format!("motor task respond {run}")), "{waits}");
    let answered = motor.run_as_owner(&["task", "respond", run, "red"], "");
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let over = client.wait(&started["runId"]);
    assert_eq!(over["answer"], "the red one", "{over}");
}

#[test]
fn a_client_outlives_the_host_and_its_run_goes_on() {
    let code = json!({ "name": "code", "arguments": { "code": "1" } });
    let (motor, model) = scripted(json!([{ "tool_calls": [code] }, { "text": "done", "gate": true }]));
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let mut client = Client::start(&motor, Era::Handshake);
    let started = client.call("core_act", &json!({ "task": "work", "tools": ["code"], "key": "k" }));
    block_on(model.wait_at_gate());
    serving.kill();
    // The request of the dead process must not take the turn of the next one's.
    block_on(model.wait_gate_empty());
    model.release();
    let over = client.wait(&started["runId"]);
    assert_eq!((&over["status"], &over["answer"]), (&json!("completed"), &json!("done")), "{over}");
    let again = client.call("core_act", &json!({ "task": "work", "tools": ["code"], "key": "k" }));
    assert_eq!(again["runId"], started["runId"], "a key names one run");
    client.end();
}

#[test]
fn clients_of_the_port_do_as_much_as_their_tokens_allow() {
    let (motor, _model) = scripted(json!([{ "text": "said" }]));
    let (read, agent) = (token(&motor, "reader", &["read"]), token(&motor, "actor", &["agent"]));
    let bound = token(&motor, "bound", &["agent", "--agent", "other"]);
    let port = Port::open(&motor);
    for era in ERAS {
        let client = |token: &str| Client::http(&port.url, token, era, json!({}));
        let (mut reader, mut actor, mut other) = (client(&read), client(&agent), client(&bound));
        assert_eq!(reader.ask("tools/list", json!({}))["tools"][0]["name"], "core_act");
        let list = actor.message(1, "tools/list", json!({}));
        assert_eq!(Http::new(&port.url, "x", era).status(&list), StatusCode::UNAUTHORIZED);
        // A token to read starts nothing, one of another agent only its own.
        for (name, read, foreign) in [
            ("core_act", json!({ "task": "say" }), json!({ "task": "say" })),
            ("core_execute", json!({ "code": "1" }), json!({ "code": "1", "agent": "main" })),
        ] {
            assert_eq!(reader.fails(name, &read)["code"], "forbidden", "{era:?} {name}");
            assert_eq!(other.fails(name, &foreign)["code"], "forbidden", "{era:?} {name}");
        }
        let acted = actor.call("core_act", &json!({ "task": "say", "key": "one", "waitSeconds": 50 }));
        assert_eq!(acted["answer"], "said", "{acted}");
        let get = json!({ "action": "get", "runId": acted["runId"] });
        assert_eq!(reader.call("core_task", &get)["run"]["answer"], "said");
        assert_eq!(other.fails("core_task", &get)["code"], "not_found");
        assert_eq!(other.call("core_execute", &json!({ "code": "6 * 7", "agent": "other" }))["output"], "42");
    }
    let foreign = reqwest::Client::new().post(&port.url).bearer_auth(&agent).header("origin", "https://evil.example");
    assert_eq!(block_on(foreign.json(&json!({})).send()).unwrap().status(), StatusCode::FORBIDDEN);
    for body in ["", "{", "[]", "null", "{\"jsonrpc\":\"1.0\"}", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}"] {
        let request =
            reqwest::Client::new().post(&port.url).bearer_auth(&agent).header("content-type", "application/json");
        let request = request.header("accept", "application/json, text/event-stream").body(body);
        let status = block_on(request.send()).unwrap().status();
        assert!(status.is_client_error(), "{body}: {status}");
    }
}

#[test]
fn an_installed_configuration_starts_a_server_of_the_same_home() {
    let (motor, _model) = scripted(json!([]));
    for (client, file, servers) in [
        ("claude", ".mcp.json", "mcpServers"),
        ("cursor", ".cursor/mcp.json", "mcpServers"),
        ("vscode", ".vscode/mcp.json", "servers"),
    ] {
        let printed = motor.stdout(&["mcp", "install", "--client", client, "--project", "--print"]);
        let file = motor.directory().join(file);
        assert!(!file.exists(), "it was to be printed only");
        motor.stdout(&["mcp", "install", "--client", client, "--project"]);
        let written = std::fs::read_to_string(&file).unwrap();
        assert_eq!(printed.trim(), written.trim());
        let written: Value = serde_json::from_str(&written).unwrap();
        let server = &written[servers]["motor"];
        let arguments = server["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap());
        let mut command = std::process::Command::new(server["command"].as_str().unwrap());
        command.args(arguments).env_clear().current_dir("/");
        let mut client = Client::of(command, Era::Handshake, json!({}));
        assert_eq!(client.call("core_execute", &json!({ "code": "1" }))["output"], "1");
        client.end();
    }
    let shown = motor.stdout(&["mcp", "tools"]);
    assert!(shown.contains("core_act") && shown.contains("core_credential"), "{shown}");
}

//! Questions of runs, put to the person at the client: by a request in a session, by an incomplete result without one.

use std::sync::Arc;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::binary::Motor;
use tests::block_on;

use super::client::{Client, ERAS, Era, Port, Reaction, accept, elicitation, token};
use super::scripted;

fn ask() -> Value {
    json!({ "tool_calls": [{ "name": "ask_user", "arguments": { "question": "which one?", "choices": ["red", "blue"] } }] })
}

fn request_approval() -> Value {
    json!({ "tool_calls": [{ "name": "request_approval", "arguments": { "action": "delete it" } }] })
}

fn act() -> Value {
    json!({ "task": "choose", "waitSeconds": 50 })
}

/// The answers that the run has had, with their givers.
fn answers(motor: &Motor, run: &Value) -> Vec<Value> {
    let trace = motor.json(&["task", "status", run.as_str().unwrap()]);
    trace["questions"].as_array().unwrap().clone()
}

#[test]
fn the_person_at_the_client_answers_a_question_and_the_same_call_goes_on() {
    for era in ERAS {
        for over_http in [false, true] {
            let (motor, _model) = scripted(json!([ask(), ask(), { "text": "done" }]));
            let agent = token(&motor, "helper", &["agent"]);
            let port = over_http.then(|| Port::open(&motor));
            let client = match &port {
                Some(port) => Client::http(&port.url, &agent, era, elicitation()),
                None => Client::able(&motor, era, elicitation()),
            };
            let mut client = client.reacting(|_| Reaction::Result(accept("red")));
            let over = client.call("core_act", &act());
            assert_eq!((&over["status"], &over["answer"]), (&json!("completed"), &json!("done")), "{era:?}: {over}");
            // Each question once, with its choices, and the words of the run marked as such.
            assert_eq!(client.asked.len(), 2, "{:?}", client.asked);
            for asked in &client.asked {
                let message = asked["message"].as_str().unwrap();
                assert!(message.contains("in its own words") && message.contains("which one?"), "{message}");
                assert_eq!(asked["requestedSchema"]["properties"]["answer"]["enum"], json!(["red", "blue"]), "{asked}");
            }
            // One run, although the call was repeated; and the answers are no consent of the owner's.
            assert_eq!(motor.only_run(), over["runId"].as_str().unwrap());
            for answer in answers(&motor, &over["runId"]) {
                let who = if over_http { "MCP client with the token `helper`" } else { "MCP client on this machine" };
                assert_eq!((&answer["answer"], &answer["consent"]["door"]), (&json!("red"), &json!("elicitation")));
                assert_eq!(answer["consent"]["givenBy"], who, "{answer}");
            }
        }
    }
}

#[test]
fn a_response_that_is_no_answer_leaves_the_question_open_for_the_command_line() {
    let content = |content: Value| Reaction::Result(json!({ "action": "accept", "content": content }));
    let responses: [fn() -> Reaction; 4] = [
        || Reaction::Result(json!({ "action": "decline" })),
        || Reaction::Result(json!({ "action": "cancel", "content": { "answer": "red" } })),
        || Reaction::Result(json!({ "action": "accept" })),
        || Reaction::Error,
    ];
    let contents = [
        json!({}),
        json!({ "answer": "green" }),
        json!({ "answer": 7 }),
        json!({ "answer": "red", "approve": true }),
        json!({ "approval": "red" }),
        json!({ "answer": "r".repeat(200_000) }),
    ];
    for era in ERAS {
        let (motor, _model) = scripted(json!([ask(), { "text": "done" }]));
        // More runs than a model's energy allows.
        motor.configure("[energy]\nenabled = false\n");
        let serving = motor.start(&["serve"]);
        serving.wait_for_words("listening");
        let mut reactions: Vec<Reaction> = responses.iter().map(|react| react()).collect();
        reactions.extend(contents.iter().map(|value| content(value.clone())));
        let mut client = Client::able(&motor, era, elicitation());
        for (number, reaction) in reactions.into_iter().enumerate() {
            let mut reaction = Some(reaction);
            client = client.reacting(move |_| reaction.take().expect("asked once in a call"));
            let waits = client.call("core_act", &act());
            assert_eq!(client.asked.len(), number + 1, "{era:?} {number}");
            assert_eq!(waits["waitsFor"]["question"], "which one?", "{era:?} {number}: {waits}");
            let run = waits["runId"].as_str().unwrap();
            assert!(waits["next"].as_str().unwrap().contains(&format!("motor task respond {run}")), "{waits}");
            motor.run_as_owner(&["task", "respond", run, "blue"], "").succeeded();
            let over = client.wait(&waits["runId"]);
            assert_eq!(over["answer"], "done", "{era:?} {number}: {over}");
            let [answer] = answers(&motor, &waits["runId"]).try_into().unwrap();
            assert_eq!((&answer["answer"], &answer["consent"]["givenBy"]), (&json!("blue"), &json!("owner")));
        }
    }
}

#[test]
fn an_answer_to_a_question_that_was_answered_elsewhere_changes_nothing() {
    for era in ERAS {
        for is_late in [true, false] {
            let (motor, _model) = scripted(json!([ask(), { "text": "done" }]));
            let motor = Arc::new(motor);
            let serving = motor.start(&["serve"]);
            serving.wait_for_words("listening");
            let owner = motor.clone();
            let mut client = Client::able(&motor, era, elicitation()).reacting(move |_| {
                let run = owner.only_run();
                owner.run_as_owner(&["task", "respond", &run, "red"], "").succeeded();
                if is_late { Reaction::Result(accept("blue")) } else { Reaction::Silence }
            });
            let over = client.call("core_act", &act());
            assert_eq!(over["answer"], "done", "{era:?}: {over}");
            let [answer] = answers(&motor, &over["runId"]).try_into().unwrap();
            assert_eq!((&answer["answer"], &answer["consent"]["givenBy"]), (&json!("red"), &json!("owner")), "{era:?}");
            if era == Era::Handshake && !is_late {
                let void = client.notices.iter().any(|notice| notice["method"] == "notifications/cancelled");
                assert!(void, "the client's form is void: {:?}", client.notices);
            }
        }
    }
}

/// Waits for a run whose question is not put to the client, and checks that the owner still can.
fn check_in_words(motor: &Motor, mut client: Client, run: &Value) {
    let waits = client.wait(run);
    assert!(client.asked.is_empty() && waits["waitsFor"]["question"].is_string(), "{waits}");
    assert!(waits["next"].as_str().unwrap().contains("the owner answers"), "{waits}");
    motor.run_as_owner(&["task", "respond", run.as_str().unwrap(), "red"], "").succeeded();
    assert_eq!(client.wait(run)["answer"], "done");
}

#[test]
fn runs_of_the_owner_and_clients_that_only_read_are_told_where_the_owner_answers() {
    for era in ERAS {
        let (motor, _model) = scripted(json!([ask(), { "text": "done" }]));
        let read = token(&motor, "reader", &["read"]);
        let port = Port::open(&motor);
        // The owner's own run, and a client that could answer the questions of its own.
        let run = json!(motor.stdout(&["act", "choose", "--detach"]).trim());
        check_in_words(&motor, Client::able(&motor, era, elicitation()), &run);
        // A model's run, and a client that may not write tasks.
        let mut able = Client::able(&motor, era, elicitation());
        let started = able.call("core_act", &json!({ "task": "choose" }));
        check_in_words(&motor, Client::http(&port.url, &read, era, elicitation()), &started["runId"]);
    }
}

#[test]
fn a_client_of_another_agent_is_not_asked() {
    for era in ERAS {
        let (motor, _model) = scripted(json!([ask(), { "text": "done" }]));
        let (own, other) = (token(&motor, "own", &["agent"]), token(&motor, "other", &["agent", "--agent", "other"]));
        let port = Port::open(&motor);
        let mut client = Client::http(&port.url, &own, era, elicitation());
        let started = client.call("core_act", &json!({ "task": "choose" }));
        let mut foreign = Client::http(&port.url, &other, era, elicitation());
        let wait = json!({ "action": "wait", "runId": started["runId"] });
        assert_eq!(foreign.fails("core_task", &wait)["code"], "not_found");
        let mut client = client.reacting(|_| Reaction::Result(accept("red")));
        assert_eq!(client.wait(&started["runId"])["answer"], "done");
    }
}

fn seal(motor: &Motor) {
    let passphrase = "four words without relation";
    let mut sealing = motor.at_terminal(&["owner", "seal"]);
    sealing.sees("do it? [y/N] ");
    sealing.types("y");
    sealing.sees("new passphrase (16 characters or more): ");
    sealing.types(passphrase);
    sealing.sees("the same again: ");
    sealing.types(passphrase);
    sealing.wait().succeeded();
}

#[test]
fn an_owner_who_sealed_the_token_or_switched_it_off_is_asked_alone() {
    for era in ERAS {
        let (motor, _model) = scripted(json!([ask(), { "text": "done" }]));
        motor.configure("[consent]\nelicitation = false\n");
        let serving = motor.start(&["serve"]);
        serving.wait_for_words("listening");
        let mut client = Client::able(&motor, era, elicitation());
        let started = client.call("core_act", &json!({ "task": "choose" }));
        check_in_words(&motor, client, &started["runId"]);
    }
    let (motor, _model) = scripted(json!([ask(), { "text": "done" }]));
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    seal(&motor);
    for era in ERAS {
        let mut client = Client::able(&motor, era, elicitation());
        let started = client.call("core_act", &json!({ "task": "choose", "key": "one" }));
        let waits = client.wait(&started["runId"]);
        assert!(client.asked.is_empty() && waits["waitsFor"]["question"] == "which one?", "{waits}");
    }
}

#[test]
fn approvals_are_decided_on_the_page_and_never_in_a_form() {
    for era in ERAS {
        let (motor, _model) = scripted(json!([request_approval(), { "text": "gone" }]));
        let motor = Arc::new(motor);
        let port = Port::open(&motor);
        let page = port.address.clone();
        let owner = motor.clone();
        let mut client = Client::able(&motor, era, elicitation()).reacting(move |params| {
            assert_eq!(params["mode"], "url", "{params}");
            let url = params["url"].as_str().unwrap();
            let run = url.strip_prefix(&format!("{page}/runs/")).unwrap();
            owner.run_as_owner(&["task", "approve", run], "").succeeded();
            Reaction::Result(json!({ "action": "accept" }))
        });
        let over = client.call("core_act", &act());
        assert_eq!((&over["answer"], client.asked.len()), (&json!("gone"), 1), "{era:?}: {over}");
        // A client that says yes decides nothing, also with content.
        let yes = json!({ "action": "accept", "content": { "answer": "yes", "grant": true } });
        let mut client = client.reacting(move |_| Reaction::Result(yes.clone()));
        let waits = client.call("core_act", &json!({ "task": "choose", "waitSeconds": 1 }));
        assert_eq!((&waits["waitsFor"]["kind"], client.asked.len()), (&json!("approval"), 2), "{era:?}: {waits}");
        let run = waits["runId"].as_str().unwrap();
        motor.run_as_owner(&["task", "approve", run], "").succeeded();
        assert_eq!(client.wait(&waits["runId"])["answer"], "gone");
    }
}

#[test]
fn a_client_with_forms_alone_is_not_asked_for_approvals() {
    for era in ERAS {
        let (motor, _model) = scripted(json!([request_approval(), { "text": "gone" }]));
        let port = Port::open(&motor);
        let mut client = Client::able(&motor, era, json!({ "elicitation": {} }));
        let waits = client.call("core_act", &act());
        assert!(client.asked.is_empty() && waits["waitsFor"]["kind"] == "approval", "{waits}");
        assert!(waits["waitsFor"]["page"].as_str().unwrap().starts_with(&port.address), "{waits}");
    }
}

#[test]
fn no_token_reaches_the_questions_of_clients_from_a_port() {
    let (motor, _model) = scripted(json!([ask(), { "text": "done" }]));
    let (read, agent) = (token(&motor, "reader", &["read"]), token(&motor, "actor", &["agent"]));
    let port = Port::open(&motor);
    let mut client = Client::http(&port.url, &agent, Era::Stateless, json!({}));
    let started = client.call("core_act", &json!({ "task": "choose" }));
    client.wait(&started["runId"]);
    let run = started["runId"].as_str().unwrap();
    let body = json!({ "ticket": "ask_1.00", "answer": "red" });
    for token in [read, agent] {
        for (method, path) in [
            (Method::GET, format!("/v1/tasks/{run}/elicitation")),
            (Method::POST, format!("/v1/tasks/{run}/elicitation")),
            (Method::POST, format!("/v1/tasks/{run}/answer")),
        ] {
            let request = reqwest::Client::new().request(method.clone(), format!("{}{path}", port.address));
            let request = request.bearer_auth(&token).header("motor-door", "elicitation").json(&body);
            assert_eq!(block_on(request.send()).unwrap().status(), StatusCode::FORBIDDEN, "{method} {path}");
        }
    }
    motor.run_as_owner(&["task", "respond", run, "red"], "").succeeded();
    assert_eq!(client.wait(&started["runId"])["answer"], "done");
}

#[test]
fn a_request_state_that_the_server_did_not_make_answers_nothing_and_starts_nothing() {
    let (motor, _model) = scripted(json!([ask(), { "text": "done" }]));
    let mut client = Client::able(&motor, Era::Stateless, elicitation());
    let asked = client.tool_once(json!({ "name": "core_act", "arguments": act() }));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let state = asked["requestState"].as_str().unwrap();
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let (start, tag) = state.rsplit_once('.').unwrap();
    let forged = format!("{start}.{}", "0".repeat(tag.len()));
    let repeat = |client: &mut Client, state: &str, arguments: &Value| {
        let responses = json!({ key.as_str(): accept("red") });
        let params =
            json!({ "name": "core_act", "arguments": arguments, "requestState": state, "inputResponses": responses });
        client.tool_once(params)
    };
    // The run is named, so nothing starts; the ticket is not the host's, so nothing is answered.
    let waits = repeat(&mut client, &forged, &act());
    assert_eq!(waits["structuredContent"]["waitsFor"]["question"], "which one?", "{waits}");
    for (state, arguments) in [
        ("", act()),
        ("run_1", act()),
        (start.split_once(':').unwrap().0, act()),
        (state, json!({ "task": "another", "waitSeconds": 50 })),
    ] {
        let refused = repeat(&mut client, state, &arguments);
        assert_eq!(refused["isError"], true, "{state}: {refused}");
    }
    let over = repeat(&mut client, state, &act());
    assert_eq!(over["structuredContent"]["answer"], "done", "{over}");
    // Once more, as a client does that lost the result.
    let again = repeat(&mut client, state, &act());
    assert_eq!(again["structuredContent"]["answer"], "done", "{again}");
    assert_eq!(motor.only_run(), over["structuredContent"]["runId"].as_str().unwrap());
}

#[test]
fn a_repeated_call_finds_its_question_after_its_host_was_killed() {
    let (motor, _model) = scripted(json!([ask(), { "text": "done" }]));
    let agent = token(&motor, "agent", &["agent"]);
    let port = Port::open(&motor);
    let listen = port.address.trim_start_matches("http://").to_owned();
    let mut client = Client::http(&port.url, &agent, Era::Stateless, elicitation());
    let mut call = json!({ "name": "core_act", "arguments": act() });
    let asked = client.tool_once(call.clone());
    port.serving.kill();
    let _port = Port::open_at(&motor, &listen);
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap();
    call["requestState"] = asked["requestState"].clone();
    call["inputResponses"] = json!({ key.as_str(): accept("red") });
    let over = client.tool_once(call);
    assert_eq!(over["structuredContent"]["answer"], "done", "{over}");
    assert_eq!(answers(&motor, &over["structuredContent"]["runId"])[0]["answer"], "red");
}

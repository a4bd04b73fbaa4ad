//! The ledger of peers with the real program (SPEC LED-1 to LED-4, CONSENT-1): only the owner writes it, a killed host loses
//! nothing of it, and a forgotten peer is gone.

use reqwest::StatusCode;
use serde_json::{Value, json};
use tests::binary::Motor;

use crate::port::World;

/// Peers are assessed by hand only while the cortex is off (SPEC LED-4).
const BY_HAND: &str = "[cortex]\nenabled = false\n";

/// A home with two peers, of which one was assessed.
fn acquainted() -> Motor {
    let motor = Motor::new();
    motor.configure(BY_HAND);
    for (peer, summary, more) in [
        ("npub-7x9k", "asks for the table", &[][..]),
        ("npub-7x9k", "the table", &["--outgoing", "--channel", "phone"]),
        ("@mai:example.org", "says hello", &[]),
    ] {
        motor.run_as_owner(&[&["ledger", "note", peer, summary], more].concat(), "").succeeded();
    }
    let why = "clear tasks, and a line\nbreak \u{1b}[2J";
    let assessed = motor.run_as_owner(&["ledger", "assess", "npub-7x9k", "-3", "--why", why], "").succeeded();
    assert_eq!(assessed.stdout, "npub-7x9k: trust -3, info 1/10\n");
    motor
}

#[test]
fn peers_are_noted_assessed_listed_and_shown() {
    let motor = acquainted();
    let listed = motor.json(&["ledger", "list"]);
    let ids: Vec<&Value> = listed.as_array().unwrap().iter().map(|peer| &peer["peer"]).collect();
    assert_eq!(ids, ["@mai:example.org", "npub-7x9k"]);
    assert_eq!((&listed[1]["trust"], &listed[0]["trust"]), (&json!(-3), &Value::Null));
    assert_eq!(motor.json(&["ledger", "list", "--after", "@mai:example.org"]).as_array().unwrap().len(), 1);

    let shown = motor.json(&["ledger", "show", "npub-7x9k"]);
    assert_eq!((&shown["incoming"], &shown["outgoing"], &shown["infoScore"]), (&json!(1), &json!(1), &json!(1)));
    assert_eq!(shown["recentInteractions"][0]["channel"], "phone");
    let prompt = shown["prompt"].as_str().unwrap();
    for part in ["## Peer npub-7x9k", "info_score: 1/10", "trust: -3", "trajectory: -3", "score guide", "clear tasks"] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    let screen = motor.stdout(&["ledger", "show", "npub-7x9k"]);
    assert!(
        screen.contains("trust -3 (info 1, by owner)  clear tasks, and a line break") && !screen.contains('\u{1b}')
    );
    // Another agent knows neither.
    assert_eq!(motor.json(&["ledger", "list", "--agent", "other"]), json!([]));
}

#[test]
fn impossible_requests_are_refused_with_the_reason() {
    let motor = acquainted();
    motor.refuses_owner(&["ledger", "assess", "stranger", "1", "--why", "w"], 1, "not_found");
    motor
        .run_as_owner(&["ledger", "assess", "npub-7x9k", "1", "--why", " "], "")
        .refused(2, &["the rationale is empty"]);
    motor.refuses(&["ledger", "show", "stranger"], 1, "not_found");
    for arguments in [["assess", "npub-7x9k", "11", "--why", "w"], ["note", "a b", "x", "--channel", "http"]] {
        let ended = motor.run_as_owner(&[&["ledger"], &arguments[..]].concat(), "");
        assert_eq!(ended.code, Some(2), "{ended:?}");
    }
    // Without the owner, nothing is deleted.
    let forgotten = motor.run(&["ledger", "forget", "npub-7x9k"]);
    assert_eq!(forgotten.code, Some(5), "{forgotten:?}");
    assert_eq!(motor.json(&["ledger", "list"]).as_array().unwrap().len(), 2);
}

#[test]
fn a_forgotten_peer_is_gone_and_that_it_was_is_recorded() {
    let motor = acquainted();
    let asked = motor.at_terminal(&["ledger", "forget", "npub-7x9k"]);
    let mut asked = asked;
    assert!(asked.sees("[y/N]").contains("npub-7x9k"));
    asked.types("yes");
    let forgotten = "forgotten: 2 interactions, 1 assessments, 0 conversations, 0 memories, 0 beliefs\n";
    assert_eq!(asked.wait().succeeded().stdout, forgotten);
    motor.refuses(&["ledger", "show", "npub-7x9k"], 1, "not_found");
    let notes = motor.json(&["ledger", "list", "--forgotten"]);
    assert_eq!((&notes[0]["interactions"], &notes[0]["assessments"]), (&json!(2), &json!(1)));
    assert!(!notes.to_string().contains("npub"));
    assert_eq!(motor.json(&["ledger", "list"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_killed_host_loses_no_peer() {
    let motor = Motor::new();
    motor.configure(BY_HAND);
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    for number in 0..5 {
        motor.run_as_owner(&["ledger", "note", "mai", &format!("message {number}")], "").succeeded();
    }
    motor.run_as_owner(&["ledger", "assess", "mai", "2", "--why", "polite"], "").succeeded();
    serving.kill();
    let shown = motor.json(&["ledger", "show", "mai"]);
    assert_eq!((&shown["incoming"], &shown["trust"]), (&json!(5), &json!(2)));
    assert_eq!(shown["recentInteractions"][0]["summary"], "message 4");
}

#[test]
fn only_the_owner_writes_and_a_bound_token_sees_its_agent_alone() {
    let world = World::new(json!({ "turns": [] }));
    world.motor.configure(BY_HAND);
    let note = json!({ "direction": "incoming", "summary": "hello" });
    let path = "/v1/ledger/peers/%40mai%3Aexample.org";
    for (method, path, body) in [
        ("POST", format!("{path}/interactions"), &note),
        ("POST", format!("{path}/assessments"), &json!({ "trust": 1, "rationale": "w" })),
        ("DELETE", path.to_owned(), &json!({})),
    ] {
        let (status, problem) = world.ask(method, &path, &world.agent, body);
        assert_eq!(status, StatusCode::FORBIDDEN, "{problem}");
    }
    let (status, noted) = world.ask("POST", &format!("{path}/interactions"), &world.owner, &note);
    assert_eq!((status, &noted["incoming"]), (StatusCode::OK, &json!(1)), "{noted}");
    let judgement = json!({ "trust": -3.0, "rationale": "late" });
    let (status, assessed) = world.ask("POST", &format!("{path}/assessments"), &world.owner, &judgement);
    assert_eq!((status, &assessed["trust"], &assessed["source"]), (StatusCode::OK, &json!(-3), &json!("owner")));
    for trust in [json!(11), json!(-11), json!(1.5), json!(1e300), json!("1"), json!(null)] {
        let judgement = json!({ "trust": trust, "rationale": "late" });
        let (status, problem) = world.ask("POST", &format!("{path}/assessments"), &world.owner, &judgement);
        assert_eq!((status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!("invalid_request")), "{trust}");
    }
    let (status, listed) = world.ask("GET", "/v1/ledger/peers?limit=5", &world.read, &json!({}));
    assert_eq!((status, &listed[0]["peer"]), (StatusCode::OK, &json!("@mai:example.org")), "{listed}");
    for path in
        ["/v1/ledger/peers?agent=main".to_owned(), format!("{path}?agent=main"), "/v1/ledger/forgotten".to_owned()]
    {
        let (status, problem) = world.ask("GET", &path, &world.bound, &json!({}));
        assert_eq!(status, StatusCode::FORBIDDEN, "{problem}");
    }
    let (status, listed) = world.ask("GET", "/v1/ledger/peers?agent=other", &world.bound, &json!({}));
    assert_eq!((status, listed), (StatusCode::OK, json!([])));
    let (status, deleted) = world.ask("DELETE", path, &world.owner, &json!({}));
    assert_eq!(status, StatusCode::OK, "{deleted}");
    let counts = ["interactions", "assessments", "conversations", "memories", "beliefs"].map(|name| &deleted[name]);
    assert_eq!(counts, [&json!(1), &json!(1), &json!(0), &json!(0), &json!(0)], "{deleted}");
}

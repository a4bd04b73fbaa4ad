//! Switching the cortex off and on, by the file and by command, without a restart (SPEC CX-9, LED-4).

use reqwest::StatusCode;
use serde_json::json;
use tests::binary::Motor;

use super::{BY_COMMAND, Mind, believing, trusting};
use crate::port::World;

const ASSESS: [&str; 6] = ["ledger", "assess", "mai", "8", "--why", "known for years"];

#[test]
fn off_brings_assessing_back_and_changes_nothing_else_and_on_again_it_is_gone() {
    let mind = Mind::new();
    mind.hears("mai", "hello");
    mind.cycle(&["mai"], believing("mai", "mai", "Mai is polite", "r"));
    let serving = mind.motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let seen = || {
        (
            mind.motor.json(&["ledger", "show", "mai"]),
            mind.history(),
            mind.beliefs(),
            mind.motor.json(&["energy"])["level"].is_number(),
        )
    };
    let before = seen();
    mind.motor.refuses(&ASSESS, 1, "illegal_state");
    // The host reads the file again by itself.
    mind.motor.configure(&format!("[cortex]\nenabled = false\n{BY_COMMAND}"));
    assert_eq!(mind.motor.json(&["cortex", "status"])["offersAssessPeer"], true);
    assert_eq!(seen(), before);
    mind.reflects(&["mai"]).refused(1, &["the cortex of `main` is off", "[cortex]"]);
    mind.motor.refuses(&["cortex", "on"], 1, "illegal_state");
    mind.motor.run(&ASSESS).succeeded();
    mind.motor.configure(BY_COMMAND);
    mind.motor.refuses(&ASSESS, 1, "illegal_state");
    // The trust that was given by hand is where the clamp begins.
    mind.cycle(&["mai"], trusting("mai", -10));
    assert_eq!(mind.trust("mai"), json!(5));
}

#[test]
fn the_switch_of_the_owner_outlasts_the_host() {
    let mind = Mind::new();
    mind.hears("mai", "hello");
    assert_eq!(mind.motor.stdout(&["cortex", "off"]), "main: off; `motor cortex on` switches it on\n");
    let status = mind.motor.json(&["cortex", "status"]);
    assert_eq!((&status["enabled"], &status["switchedOff"]), (&json!(false), &json!(true)));
    mind.motor.run(&ASSESS).succeeded();
    mind.reflects(&["mai"]).refused(1, &["the cortex of `main` is off", "motor cortex on"]);
    // Another agent is not touched.
    assert_eq!(mind.motor.json(&["cortex", "status", "--agent", "other"])["enabled"], true);
    assert_eq!(mind.motor.stdout(&["cortex", "on"]), "main: on\n");
    mind.motor.refuses(&ASSESS, 1, "illegal_state");
    assert_eq!(mind.requests().len(), 0);
}

#[test]
fn settings_out_of_range_are_refused_by_name_and_a_running_host_keeps_the_last_valid_ones() {
    let motor = Motor::new();
    for (line, words) in [
        ("max_beliefs = 101", ["`cortex.max_beliefs`", "from 0 to 100"]),
        ("schedule_minutes = 0", ["`cortex.schedule_minutes`", "from 1 to 10080"]),
        ("max_trust_delta = 11", ["`cortex.max_trust_delta`", "from 0 to 10"]),
        ("model = \"x\"", ["`cortex.model`", "motor.toml"]),
        ("interval = 3", ["unknown key `cortex.interval`", "motor.toml"]),
        ("triggers = { timr = true }", ["`cortex.triggers`", "unknown field"]),
    ] {
        motor.configure(&format!("[cortex]\n{line}\n"));
        motor.run(&["config", "show"]).refused(2, &words);
    }
    let world = World::new(json!({ "turns": [] }));
    let status = || world.ask("GET", "/v1/cortex", &world.read, &json!({})).1;
    world.motor.configure("[cortex]\nmax_beliefs = 7\ntriggers = { timer = false }\n");
    assert_eq!(status()["settings"]["max_beliefs"], 7);
    world.motor.configure("[cortex]\nmax_beliefs = 101\n");
    let kept = status();
    assert_eq!(kept["settings"]["max_beliefs"], 7);
    assert!(kept["problems"][0].as_str().unwrap().contains("max_beliefs"), "{kept}");
    world.motor.configure("[cortex]\nmax_beliefs = 8\n");
    let changed = status();
    assert_eq!((&changed["settings"]["max_beliefs"], changed.get("problems")), (&json!(8), None));
}

#[test]
fn only_the_owner_reflects_and_switches_and_a_bound_token_sees_its_agent_alone() {
    let world = World::new(json!({ "turns": [] }));
    for (path, body) in [
        ("/v1/cortex/switch", json!({ "enabled": false })),
        ("/v1/cortex/reflections", json!({})),
        ("/v1/cortex/commitment-closings", json!({ "key": "table", "kept": true })),
        ("/v1/cortex/directive-removals", json!({ "key": "ask" })),
    ] {
        for token in [&world.read, &world.agent] {
            let (status, problem) = world.ask("POST", path, token, &body);
            assert_eq!(status, StatusCode::FORBIDDEN, "{problem}");
        }
    }
    for path in [
        "/v1/cortex",
        "/v1/cortex/beliefs",
        "/v1/cortex/commitments",
        "/v1/cortex/directives",
        "/v1/cortex/signals",
        "/v1/cortex/history",
    ] {
        let (status, answer) = world.ask("GET", path, &world.read, &json!({}));
        assert_eq!(status, StatusCode::OK, "{answer}");
        let (status, _) = world.ask("GET", path, &world.bound, &json!({}));
        assert_eq!(status, StatusCode::FORBIDDEN);
        let (status, answer) = world.ask("GET", &format!("{path}?agent=other"), &world.bound, &json!({}));
        assert_eq!(status, StatusCode::OK, "{answer}");
    }
    let (status, off) = world.ask("POST", "/v1/cortex/switch", &world.owner, &json!({ "enabled": false }));
    assert_eq!((status, &off["enabled"]), (StatusCode::OK, &json!(false)), "{off}");
    let (status, problem) = world.ask("POST", "/v1/cortex/reflections", &world.owner, &json!({}));
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("illegal_state")), "{problem}");
}

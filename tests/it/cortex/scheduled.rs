//! Cycles that begin by themselves (SPEC CX-2): facts start them, one at a time, and none without activity.

use serde_json::json;
use tests::block_on;

use super::{Mind, trusting};

#[test]
fn a_new_peer_starts_a_cycle_and_triggers_during_it_start_no_other() {
    let mind = Mind::new();
    mind.motor.configure("[cortex]\ninteraction_count = 3\n[cortex.triggers]\ntimer = false\n");
    let serving = mind.motor.start(&["serve"]);
    serving.wait_for_words("listening");
    mind.next(json!({ "text": trusting("mai", 10).to_string(), "gate": true }));
    mind.hears("mai", "hello");
    block_on(mind.server.wait_at_gate());
    assert_eq!(mind.motor.json(&["cortex", "status"])["isReflecting"], true);
    // Each of these is a trigger of its own.
    for number in 0..8 {
        mind.hears(&format!("peer-{number}"), "hello");
    }
    mind.reflects(&[]).refused(75, &["a reflection on `main` is under way"]);
    assert_eq!(mind.requests().len(), 1);
    mind.next(json!({ "text": trusting("mai", 10).to_string(), "gate": true }));
    mind.server.release();
    let history = mind.motor.wait_for(&["cortex", "history"], |now| !now.as_array().unwrap().is_empty());
    assert_eq!((&history[0]["triggers"], &history[0]["peersShown"]), (&json!(["new_peer"]), &json!(1)), "{history}");
    assert_eq!(mind.trust("mai"), json!(3));
    // All that came during it is one further cycle.
    mind.hears("peer-0", "again");
    block_on(mind.server.wait_for_calls(2));
    mind.server.release();
    let history = mind.motor.wait_for(&["cortex", "history"], |now| now.as_array().unwrap().len() > 1);
    assert_eq!(history[0]["peersShown"], 8, "{history}");
    assert_eq!((mind.requests().len(), mind.trust("mai")), (2, json!(3)));
}

#[test]
fn without_activity_no_token_is_spent() {
    let mind = Mind::new();
    mind.motor.configure("[cortex]\ninteraction_count = 2\n[cortex.triggers]\nnew_peer = false\n");
    let serving = mind.motor.start(&["serve"]);
    serving.wait_for_words("listening");
    // Below the count, and looking is no activity.
    mind.hears("mai", "hello");
    for _ in 0..3 {
        mind.motor.stdout(&["cortex", "status"]);
        mind.motor.stdout(&["ledger", "show", "mai"]);
    }
    assert_eq!(mind.server.calls(), 0);
    mind.replies(trusting("mai", 1));
    mind.hears("mai", "hello again");
    let history = mind.motor.wait_for(&["cortex", "history"], |now| !now.as_array().unwrap().is_empty());
    assert_eq!(history[0]["triggers"], json!(["interaction_count"]), "{history}");
    assert_eq!(mind.server.calls(), 1);
    let status = mind.motor.json(&["cortex", "status"]);
    assert_eq!(status["activity"]["interactions"], 0, "{status}");
}

#[test]
fn the_turns_of_a_conversation_are_activity() {
    let mind = Mind::new();
    let serving = mind.motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let call = |name: &str, arguments: serde_json::Value| {
        let call = json!({ "name": name, "arguments": arguments });
        mind.next(json!({ "tool_calls": [call], "usage": { "input": 30, "output": 4 } }));
    };
    call("core_say", json!({ "text": "at once" }));
    call("core_task", json!({ "runId": "run_0", "action": "status" }));
    mind.next(json!({ "text": "there is none", "usage": { "input": 30, "output": 4 } }));
    mind.motor.run_as_owner(&["chat"], "how is my run?\n").succeeded();
    let is_seen = |status: &serde_json::Value| status["activity"]["modelReplies"] == 3;
    let activity = mind.motor.wait_for(&["cortex", "status"], is_seen)["activity"].clone();
    assert_eq!(
        (&activity["tokens"], &activity["toolCalls"], &activity["toolFailures"]),
        (&json!(102), &json!(2), &json!(1))
    );
    assert_eq!((&activity["interactions"], &activity["runs"]), (&json!(0), &json!(0)), "the owner is no peer");
    assert_eq!(mind.history().len(), 0);
}

#[test]
fn a_run_that_ended_is_activity() {
    let mind = Mind::new();
    let serving = mind.motor.start(&["serve"]);
    serving.wait_for_words("listening");
    mind.next(json!({ "text": "four", "usage": { "input": 30, "output": 4 } }));
    mind.motor.run(&["act", "two and two"]).succeeded();
    let is_seen = |status: &serde_json::Value| status["activity"]["runs"] == 1;
    let status = mind.motor.wait_for(&["cortex", "status"], is_seen);
    assert_eq!((&status["activity"]["modelReplies"], &status["activity"]["tokens"]), (&json!(1), &json!(34)));
    assert_eq!(mind.history().len(), 0);
}

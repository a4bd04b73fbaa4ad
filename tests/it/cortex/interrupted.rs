//! A host that is killed: a cycle is whole or not there, and no belief about a forgotten peer remains.

use serde_json::{Value, json};
use tests::block_on;

use super::{Mind, believing, trusting};

/// A reply with an assessment and a belief.
fn both(peer: &str) -> Value {
    let mut reply = believing(peer, "first", &format!("{peer} is polite"), "r");
    reply["assessments"] = trusting(peer, 2)["assessments"].clone();
    reply
}

#[test]
fn a_cycle_that_a_kill_interrupts_is_not_there() {
    let mind = Mind::new();
    mind.hears("mai", "hello");
    let serving = mind.motor.start(&["serve"]);
    serving.wait_for_words("listening");
    mind.next(json!({ "text": both("mai").to_string(), "gate": true }));
    let asking = mind.motor.start(&["cortex", "reflect", "--peer", "mai"]);
    block_on(mind.server.wait_at_gate());
    serving.kill();
    assert_ne!(asking.wait().code, Some(0));
    assert_eq!((mind.trust("mai"), mind.beliefs().len(), mind.history().len()), (Value::Null, 0, 0));
    mind.cycle(&["mai"], both("mai"));
    assert_eq!((mind.trust("mai"), mind.beliefs().len(), mind.history().len()), (json!(2), 1, 1));
}

#[test]
fn a_kill_at_the_end_of_a_cycle_leaves_all_of_it_or_nothing() {
    for _ in 0..6 {
        let mind = Mind::new();
        mind.hears("mai", "hello");
        let serving = mind.motor.start(&["serve"]);
        serving.wait_for_words("listening");
        mind.next(json!({ "text": both("mai").to_string(), "gate": true }));
        let asking = mind.motor.start(&["cortex", "reflect", "--peer", "mai"]);
        block_on(mind.server.wait_at_gate());
        mind.server.release();
        block_on(mind.server.wait_gate_empty());
        serving.kill();
        // Answered or not, it ends by itself.
        assert!(asking.wait().code.is_some());
        let found = (mind.trust("mai"), mind.beliefs().len(), mind.history().len());
        let (nothing, all) = ((Value::Null, 0, 0), (json!(2), 1, 1));
        assert!(found == nothing || found == all, "{found:?}");
    }
}

#[test]
fn a_cycle_that_was_answered_outlasts_a_kill() {
    let mind = Mind::new();
    let serving = mind.motor.start(&["serve"]);
    serving.wait_for_words("listening");
    mind.hears("mai", "hello");
    mind.cycle(&["mai"], both("mai"));
    serving.kill();
    assert_eq!(
        (mind.trust("mai"), mind.beliefs(), mind.history().len()),
        (json!(2), vec!["first: mai is polite".to_owned()], 1)
    );
}

#[test]
fn a_forgotten_peer_is_in_no_belief_and_no_record() {
    let mind = Mind::new();
    for peer in ["mai", "ben"] {
        mind.hears(peer, "hello");
    }
    mind.cycle(&["mai"], both("mai"));
    mind.cycle(&["ben"], believing("ben", "second", "Ben is late", "r"));
    mind.motor.run(&["ledger", "forget", "mai"]).succeeded();
    assert_eq!(mind.beliefs(), ["second: Ben is late"]);
    let history = mind.motor.stdout(&["cortex", "history", "--json"]);
    assert!(!history.contains("mai") && history.contains("second"), "{history}");
}

#[test]
fn a_kill_between_the_ledger_and_the_cortex_leaves_no_belief_about_a_forgotten_peer() {
    let mind = Mind::new();
    for peer in ["mai", "ben"] {
        mind.hears(peer, "hello");
    }
    mind.cycle(&["mai"], both("mai"));
    mind.cycle(&["ben"], believing("ben", "second", "Ben is late", "r"));
    let serving = mind.motor.start(&["serve"]);
    serving.wait_for_words("listening");
    // A cycle under way holds the second step up.
    mind.next(json!({ "text": both("ben").to_string(), "gate": true }));
    let asking = mind.motor.start(&["cortex", "reflect", "--peer", "ben"]);
    block_on(mind.server.wait_at_gate());
    let forgetting = mind.motor.start(&["ledger", "forget", "mai"]);
    mind.motor.wait_for(&["ledger", "list"], |now| now.as_array().unwrap().len() == 1);
    assert_eq!(mind.beliefs().len(), 2);
    serving.kill();
    for command in [asking, forgetting] {
        assert_ne!(command.wait().code, Some(0));
    }
    mind.motor.refuses(&["ledger", "show", "mai"], 1, "not_found");
    assert_eq!(mind.beliefs(), ["second: Ben is late"]);
    let history = mind.motor.stdout(&["cortex", "history", "--json"]);
    assert!(!history.contains("mai") && history.contains("second"), "{history}");
}

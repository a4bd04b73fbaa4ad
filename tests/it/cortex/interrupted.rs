//! A host that is killed: a cycle is whole or not there, and a peer that is being forgotten is forgotten as a whole.

use std::sync::Arc;

use base::{AgentName, Random, SystemClock};
use ledger::{Ledger, LedgerParts, PeerId};
use serde_json::{Value, json};
use store::{Batch, Store, Table};
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
    let forgotten = mind.motor.run(&["ledger", "forget", "mai"]).succeeded();
    let counts = "forgotten: 1 interactions, 1 assessments, 0 conversations, 0 memories, 1 beliefs\n";
    assert_eq!(forgotten.stdout, counts);
    assert_eq!(mind.motor.json(&["ledger", "list", "--forgotten"])[0]["beliefs"], json!(1));
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
    // The note is complete too.
    assert_eq!(mind.motor.json(&["ledger", "list", "--forgotten"])[0]["beliefs"], json!(1));
    let history = mind.motor.stdout(&["cortex", "history", "--json"]);
    assert!(!history.contains("mai") && history.contains("second"), "{history}");
}

/// The key of the mark that the forgetting of mai has begun.
fn mark() -> String {
    format!("cortex/forget/{}/mai", AgentName::default())
}

/// Leaves a forgetting as a killed host does: with its mark, and perhaps without the record in the ledger.
async fn interrupts(mind: &Mind, is_past_ledger: bool) {
    let store = Store::open(&mind.motor.home().join("state")).unwrap();
    let mut batch = Batch::new();
    batch.put(Table::Meta, mark(), &true).unwrap();
    store.commit(batch).await.unwrap();
    if is_past_ledger {
        let (clock, random) = (Arc::new(SystemClock::default()), Arc::new(Random::from_system()));
        let ledger = Ledger::open(LedgerParts { store: store.clone(), clock, random });
        ledger.forget(&AgentName::default(), &PeerId::parse("mai").unwrap()).await.unwrap();
    }
    store.close().await.unwrap();
}

#[test]
fn a_forgetting_that_ended_after_any_of_its_steps_is_whole_after_the_next_start() {
    // Conversations that were forgotten, and whether the ledger was through; the twin of all has no mark.
    for interrupted in [None, Some((0, false)), Some((1, false)), Some((2, false)), Some((2, true))] {
        let mind = Mind::new();
        for peer in ["mai", "ben"] {
            mind.hears(peer, "hello");
        }
        mind.cycle(&["mai"], both("mai"));
        mind.cycle(&["ben"], believing("ben", "second", "Ben is late", "r"));
        let serving = mind.motor.start(&["serve"]);
        serving.wait_for_words("listening");
        for (peer, channel) in [("mai", "one"), ("mai", "two"), ("ben", "two")] {
            let message = json!({ "text": "hello", "peer": peer, "channel": channel });
            assert_eq!(mind.motor.ask("/v1/messages", Some(&message), &[]).unwrap().0, 200);
        }
        mind.motor.wait_for(&["chat", "list"], |listed| {
            let listed = listed.as_array().unwrap();
            listed.len() == 3 && listed.iter().all(|one| one["waiting"] == 0)
        });
        serving.kill();
        if let Some((conversations, is_past_ledger)) = interrupted {
            for channel in ["one", "two"].into_iter().take(conversations) {
                mind.motor.run_as_owner(&["chat", "forget", channel, "--peer", "mai"], "").succeeded();
            }
            block_on(interrupts(&mind, is_past_ledger));
        }
        let serving = mind.motor.start(&["serve"]);
        serving.wait_for_words("listening");
        let (listed, history) =
            (mind.motor.json(&["chat", "list"]), mind.motor.stdout(&["cortex", "history", "--json"]));
        if interrupted.is_none() {
            assert_eq!((mind.trust("mai"), mind.beliefs().len()), (json!(2), 2));
            assert!(listed.as_array().unwrap().len() == 3 && history.contains("mai"), "{listed:#} {history}");
            continue;
        }
        mind.motor.refuses(&["ledger", "show", "mai"], 1, "not_found");
        assert_eq!(mind.beliefs(), ["second: Ben is late"], "{interrupted:?}");
        assert!(!history.contains("mai") && history.contains("second"), "{interrupted:?}: {history}");
        assert!(listed.as_array().unwrap().len() == 1 && listed[0]["peer"] == "ben", "{interrupted:?}: {listed:#}");
        serving.kill();
        let store = Store::open(&mind.motor.home().join("state")).unwrap();
        assert_eq!(store.get::<bool>(Table::Meta, mark()).unwrap(), None, "{interrupted:?}");
    }
}

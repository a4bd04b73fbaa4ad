//! The ledger's account of conversations with peers, with the real program (SPEC LED-1, DUR-1).

use serde_json::json;

use super::world::{World, says};
use crate::cortex::BY_COMMAND;

#[test]
fn a_killed_host_counts_each_message_and_each_reply_once() {
    const MESSAGES: usize = 5;
    let world = World::new(|asked| says(&format!("You said {}", asked.last())));
    world.motor.configure(BY_COMMAND);
    for number in 0..MESSAGES {
        let serving = world.serve();
        let (status, reply) = world.send_as_peer("mai", &format!("message {number}"));
        // Accepted, and gone at once.
        serving.kill();
        assert_eq!(status, 200, "{reply}");
        let counted = world.motor.json(&["ledger", "show", "mai"])["incoming"].clone();
        assert_eq!(counted, json!(number + 1));
    }
    let serving = world.serve();
    world.follow_peer("mai").until("said", &format!("message {}", MESSAGES - 1));
    serving.kill();
    let shown = world.motor.json(&["ledger", "show", "mai"]);
    assert_eq!((&shown["incoming"], &shown["outgoing"]), (&json!(MESSAGES), &json!(MESSAGES)), "{shown}");
    assert_eq!(shown["recentInteractions"][0]["summary"], "You said message 4");
}

#[test]
fn a_forgotten_peer_is_gone_from_conversations_and_ledger_together() {
    let world = World::new(|asked| says(&format!("You said {}", asked.last())));
    world.motor.configure(BY_COMMAND);
    let serving = world.serve();
    assert_eq!(world.send_as_peer("mai", "hello").0, 200);
    world.follow_peer("mai").until("ended", "");
    let forgotten = world.motor.run_as_owner(&["ledger", "forget", "mai"], "").succeeded();
    assert_eq!(forgotten.stdout, "forgotten: 2 interactions, 0 assessments\n");
    let (_, left) = world.motor.ask("/v1/conversations/chat?peer=mai", None, &[]).unwrap();
    assert_eq!(left, json!([]));
    world.motor.refuses_owner(&["ledger", "forget", "mai"], 1, "not_found");
    // It may come back, and begins anew.
    assert_eq!(world.send_as_peer("mai", "again").0, 200);
    world.follow_peer("mai").until("said", "You said again");
    let shown = world.motor.json(&["ledger", "show", "mai"]);
    assert_eq!((&shown["incoming"], &shown["outgoing"]), (&json!(1), &json!(1)), "{shown}");
    serving.kill();
}

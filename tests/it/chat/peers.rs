//! The ledger's account of conversations with peers, its block about a peer in the prompt of a turn, and forgetting a peer whole, with the
//! real program (SPEC LED-1, LED-3, DUR-1).

use std::sync::{Arc, Mutex};

use base::{AgentName, Random, SystemClock};
use ledger::{Ledger, LedgerParts, PeerId};
use serde_json::{Value, json};
use store::{Batch, Store, Table};
use tests::block_on;
use tests::model_server::Turn;

use super::world::{Asked, World, call, says};
use crate::cortex::BY_COMMAND;

/// The report about a peer that was forgotten with two interactions and a conversation.
const FORGOTTEN: &str = "forgotten: 2 interactions, 0 assessments, 1 conversations";

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
    assert_eq!(forgotten.stdout, format!("{FORGOTTEN}, 0 memories, 0 beliefs\n"));
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

/// Looks at peers and remembers when it is told to.
fn minds(asked: &Asked<'_>) -> Turn {
    match (asked.role(), asked.last().split_once(": ")) {
        ("user", Some(("look at", peer))) => call("core_query_peer", json!({ "peerId": peer })),
        ("user", Some(("remember", text))) => call("core_remember", json!({ "text": text })),
        ("tool", _) => says(&format!("tool: {}", asked.last())),
        _ => says("I see."),
    }
}

fn texts(memories: &Value) -> Vec<&str> {
    let mut texts: Vec<&str> =
        memories.as_array().unwrap().iter().map(|memory| memory["text"].as_str().unwrap()).collect();
    texts.sort_unstable();
    texts
}

/// Leaves a forgetting of mai as a host does that is killed at its beginning.
async fn interrupts(world: &World) {
    let store = Store::open(&world.motor.home().join("state")).unwrap();
    let mut batch = Batch::new();
    batch.put(Table::Meta, format!("cortex/forget/{}/mai", AgentName::default()), &true).unwrap();
    store.commit(batch).await.unwrap();
    store.close().await.unwrap();
}

#[test]
fn memories_of_a_forgotten_peer_go_and_those_of_others_and_of_the_owner_stay() {
    for is_killed in [false, true] {
        let world = World::new(minds);
        world.motor.configure(BY_COMMAND);
        let serving = world.serve();
        for peer in ["mai", "ben"] {
            assert_eq!(world.send_as_peer(peer, "hello").0, 200);
            world.follow_peer(peer).until("ended", "");
            // A conversation of the owner for each, which has no other source.
            let mut talk = world.follow_on(peer);
            world.send_on(peer, &format!("look at: {peer}"));
            talk.until("said", &format!("## Peer {peer}"));
            world.send_on(peer, &format!("remember: {peer} likes tea"));
            talk.until("said", "\"remembered\":\"mem_");
        }
        let mut chat = world.follow();
        world.send("remember: the owner likes tea, and mai");
        chat.until("said", "\"remembered\":\"mem_");
        let motor = &world.motor;
        assert_eq!(texts(&motor.json(&["memory", "list", "--source", "peer:mai"])), ["mai likes tea"]);
        if is_killed {
            serving.kill();
            block_on(interrupts(&world));
        } else {
            let forgotten = motor.run_as_owner(&["ledger", "forget", "mai"], "").succeeded();
            assert_eq!(forgotten.stdout, format!("{FORGOTTEN}, 1 memories, 0 beliefs\n"));
            assert_eq!(texts(&motor.json(&["memory", "search", "tea"])).len(), 2);
            serving.kill();
        }
        // The next host knows it too, or ends it.
        let left = ["ben likes tea", "the owner likes tea, and mai"];
        assert_eq!(texts(&motor.json(&["memory", "list"])), left, "{is_killed}");
        assert_eq!(texts(&motor.json(&["memory", "search", "tea"])), left, "{is_killed}");
        assert_eq!(texts(&motor.json(&["memory", "list", "--source", "peer:ben"])), ["ben likes tea"]);
        let notes = motor.json(&["ledger", "list", "--forgotten"]);
        assert_eq!(notes.as_array().unwrap().len(), 1, "{notes:#}");
        assert_eq!((&notes[0]["conversations"], &notes[0]["memories"]), (&json!(1), &json!(1)), "{notes:#}");
        motor.refuses_owner(&["ledger", "forget", "mai"], 1, "not_found");
    }
}

#[test]
fn a_peer_that_memories_alone_know_is_forgotten_by_command() {
    let world = World::new(minds);
    world.motor.configure(BY_COMMAND);
    let serving = world.serve();
    assert_eq!(world.send_as_peer("mai", "hello").0, 200);
    world.follow_peer("mai").until("ended", "");
    let mut talk = world.follow_on("mai");
    world.send_on("mai", "look at: mai");
    talk.until("said", "## Peer mai");
    world.send_on("mai", "remember: mai likes tea");
    talk.until("said", "\"remembered\":\"mem_");
    serving.kill();
    // As versions did that left memories alone.
    block_on(async {
        let store = Store::open(&world.motor.home().join("state")).unwrap();
        let (clock, random) = (Arc::new(SystemClock::default()), Arc::new(Random::from_system()));
        let ledger = Ledger::open(LedgerParts { store: store.clone(), clock, random });
        ledger.forget(&AgentName::default(), &PeerId::parse("mai").unwrap()).await.unwrap();
        store.close().await.unwrap();
    });
    let motor = &world.motor;
    assert_eq!(motor.run(&["ledger", "show", "mai"]).code, Some(1));
    let forgotten = motor.run_as_owner(&["ledger", "forget", "mai"], "").succeeded();
    assert_eq!(forgotten.stdout, "forgotten: 0 interactions, 0 assessments, 1 conversations, 1 memories, 0 beliefs\n");
    assert_eq!(motor.json(&["memory", "list"]), json!([]));
    motor.refuses_owner(&["ledger", "forget", "mai"], 1, "not_found");
}

#[test]
fn messages_that_wait_are_forgotten_with_their_peer_and_never_answered() {
    let world = World::new(|asked| match asked.last() {
        "wait" => Turn { gate: true, ..says("late") },
        last => says(&format!("You said {last}")),
    });
    world.motor.configure(BY_COMMAND);
    let serving = world.serve();
    assert_eq!(world.send_as_peer("ben", "hello").0, 200);
    world.follow_peer("ben").until("ended", "");
    assert_eq!(world.send_as_peer("mai", "wait").0, 200);
    block_on(world.model.wait_at_gate());
    assert_eq!(world.send_as_peer("mai", "this waits behind it").0, 200);
    let forgotten = world.motor.run_as_owner(&["ledger", "forget", "mai"], "").succeeded();
    assert_eq!(forgotten.stdout, format!("{FORGOTTEN}, 0 memories, 0 beliefs\n"));
    world.model.release();
    block_on(world.model.wait_gate_empty());
    serving.kill();
    let (serving, calls) = (world.serve(), world.model.calls());
    assert_eq!(world.send_as_peer("ben", "again").0, 200);
    world.follow_peer("ben").until("said", "You said again");
    assert_eq!(world.model.calls(), calls + 1, "the next host asks about no message of mai");
    let listed = world.motor.json(&["chat", "list"]);
    assert!(listed.as_array().unwrap().len() == 1 && listed[0]["peer"] == "ben", "{listed:#}");
    let known = world.motor.json(&["ledger", "list"]);
    assert!(known.as_array().unwrap().len() == 1 && known[0]["peer"] == "ben", "{known:#}");
    serving.kill();
}

#[test]
fn the_prompt_of_a_peers_turn_has_the_whole_block_about_that_peer_and_about_no_other() {
    let prompts: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = prompts.clone();
    let world = World::new(move |asked| {
        let request: Value = serde_json::from_str(&asked.text()).unwrap();
        kept.lock().unwrap().push(request["messages"][0]["content"].as_str().unwrap().to_owned());
        says("I see.")
    });
    let motor = &world.motor;
    // The owner assesses while the cortex is off, and it is on afterwards.
    motor.configure(&format!("[cortex]\nenabled = false\n{BY_COMMAND}"));
    let owner = |arguments: &[&str]| {
        motor.run_as_owner(arguments, "").succeeded();
    };
    for number in 0..4 {
        owner(&["ledger", "note", "npub-mai", &format!("asks for table {number}")]);
    }
    owner(&["ledger", "note", "npub-mai", "the tables", "--outgoing"]);
    owner(&["ledger", "note", "npub-ben", "hello"]);
    for (peer, trust, why) in [
        ("npub-mai", "1", "polite"),
        ("npub-mai", "3", "pays on time"),
        ("npub-ben", "7", "an old friend"),
        ("npub-mai", "-2", "was late"),
    ] {
        owner(&["ledger", "assess", peer, trust, "--why", why]);
    }
    motor.configure(BY_COMMAND);
    let serving = world.serve();
    let prompt = |peer: &str| {
        assert_eq!(world.send_as_peer(peer, "hello").0, 200);
        world.follow_peer(peer).until("ended", "");
        prompts.lock().unwrap().last().unwrap().clone()
    };
    let check = |peer: &str, parts: &[&str], others: &[&str]| {
        let prompt = prompt(peer);
        for part in parts {
            assert!(prompt.contains(part), "{peer}: no `{part}` in {prompt}");
        }
        assert_eq!(prompt.matches("## Peer ").count(), 1, "{prompt}");
        for other in others {
            assert!(!prompt.contains(other), "{peer}: `{other}` in {prompt}");
        }
    };
    let of_mai = [
        "## Peer npub-mai\n",
        "- interactions: 5 incoming, 1 outgoing; first ",
        "- info_score: 2/10\n",
        "- trust: -2, assessed ",
        "- rationale: \"was late\" (written by the owner)\n",
        "- trajectory: +1, +3, -2 (oldest first)\n",
        "- score guide: ",
    ];
    let of_ben =
        ["## Peer npub-ben\n", "- trust: +7, assessed ", "\"an old friend\"", "- trajectory: +7 (oldest first)\n"];
    check("npub-mai", &of_mai, &["npub-ben", "an old friend", "trust: +7"]);
    check("npub-ben", &of_ben, &["npub-mai", "was late", "+1, +3"]);
    let of_stranger = ["## Peer zoe\n", "- trust: not assessed\n", "- trajectory: none\n", "- score guide: "];
    check("zoe", &of_stranger, &["npub-mai", "npub-ben", "was late", "an old friend"]);
    // The owner's turn has none.
    let mut chat = world.follow();
    world.send("hello");
    chat.until("ended", "");
    assert!(!prompts.lock().unwrap().last().unwrap().contains("## Peer "));
    serving.kill();
}

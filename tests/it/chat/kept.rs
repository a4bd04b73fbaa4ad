//! Conversations that are kept, with the real program: listed, forgotten whole by the owner alone, refused while anything is under way,
//! and bounded by `[retention]` (SPEC COG-1, CONSENT-1).

use serde_json::{Value, json};

use super::world::{Asked, World, call, says};
use crate::port;

/// Remembers and delegates when it is told to.
fn minds(asked: &Asked<'_>) -> tests::model_server::Turn {
    match (asked.is_mind(), asked.role(), asked.last()) {
        (true, "user", "remember tea") => call("core_remember", json!({ "text": "the owner likes tea" })),
        (true, "user", "compute") => call("core_act", json!({ "task": "ask first", "tools": ["read"] })),
        (true, "user", text) if !asked.is_signal() => says(&format!("You said {text}")),
        (true, ..) => says("I see."),
        (false, "user", _) => call("ask_user", json!({ "question": "Which?" })),
        (false, ..) => says("done"),
    }
}

fn listed(world: &World, arguments: &[&str]) -> Vec<(String, Value)> {
    let listed = world.motor.json(&[&["chat", "list"], arguments].concat());
    let one = |one: &Value| (one["channel"].as_str().unwrap().to_owned(), one["peer"].clone());
    listed.as_array().unwrap().iter().map(one).collect()
}

#[test]
fn a_conversation_is_listed_and_forgotten_whole_and_the_others_stay() {
    let world = World::new(minds);
    let serving = world.serve();
    let mut chat = world.follow();
    world.send("remember tea");
    chat.until("said", "I see.");
    world.send_on("work", "remember tea");
    world.follow_on("work").until("said", "I see.");
    let (status, _) = world.send_as_peer("mai", "hello\u{1b}[2J");
    assert_eq!(status, 200);
    world.follow_peer("mai").until("said", "You said hello");
    let motor = &world.motor;
    let all = [("chat", Value::Null), ("chat", json!("mai")), ("work", Value::Null)];
    let named = |all: &[(&str, Value)]| -> Vec<(String, Value)> {
        all.iter().map(|(channel, peer)| ((*channel).to_owned(), peer.clone())).collect()
    };
    assert_eq!(listed(&world, &[]), named(&all));
    assert_eq!(listed(&world, &["--channel", "work"]), named(&all[2..]));
    assert_eq!(listed(&world, &["--peer", "mai"]), named(&all[1..2]));
    assert_eq!(listed(&world, &["--agent", "other"]), []);
    let summaries = motor.json(&["chat", "list"]);
    assert_eq!(summaries[0]["lastText"], "I see.", "{summaries:#}");
    assert!(summaries[1]["bytes"].as_u64().unwrap() > 100 && summaries[1]["lastAt"].is_number(), "{summaries:#}");
    let screen = motor.stdout(&["chat", "list"]);
    assert!(screen.contains("mai") && !screen.contains('\u{1b}'), "{screen}");
    assert_eq!(motor.json(&["memory", "list"]).as_array().unwrap().len(), 1);

    // Only the owner forgets, and only a conversation that is there.
    let refused = motor.run(&["chat", "forget", "chat"]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    motor.run_as_owner(&["chat", "forget", "other"], "").refused(1, &["no such conversation on `other`"]);
    motor.run_as_owner(&["chat", "forget", "work", "--peer", "mai"], "").refused(1, &["motor chat list"]);
    assert_eq!(listed(&world, &[]), named(&all));

    // The memory was first kept on `chat`, and goes with it.
    let mut asked = motor.at_terminal(&["chat", "forget", "chat"]);
    let card = asked.sees("[y/N]");
    assert!(card.contains("I see.") && card.contains("for good"), "{card}");
    asked.types("yes");
    let forgotten = asked.wait().succeeded().stdout;
    assert!(forgotten.contains("and 1 memory"), "{forgotten}");
    assert_eq!(listed(&world, &[]), named(&all[1..]));
    assert_eq!(motor.json(&["memory", "list"]), json!([]));
    let (_, left) = motor.ask("/v1/conversations/chat", None, &[]).unwrap();
    assert_eq!(left, json!([]));
    let (_, peers) = motor.ask("/v1/conversations/chat?peer=mai", None, &[]).unwrap();
    assert!(peers.to_string().contains("You said hello"), "{peers:#}");
    let notes = motor.json(&["chat", "list", "--forgotten"]);
    assert_eq!(
        (&notes[0]["channel"], &notes[0]["isOwner"], &notes[0]["by"]),
        (&json!("chat"), &json!(true), &json!("owner"))
    );
    motor.run_as_owner(&["chat", "forget", "chat"], "").refused(1, &["no such conversation"]);

    // A client that follows it gets the next one, under rising numbers.
    world.send("what did I say?");
    let event = chat.until("said", "You said what did I say?");
    assert!(event["id"].as_u64() > notes[0]["lastEvent"].as_u64(), "{event}");
    motor.run_as_owner(&["chat", "forget", "chat", "--peer", "mai"], "").succeeded();
    let notes = motor.json(&["chat", "list", "--forgotten"]).to_string();
    assert!(!notes.contains("mai"), "{notes}");
    // Durable: the next host knows it too.
    serving.kill();
    assert_eq!(listed(&world, &[]), named(&[("chat", Value::Null), ("work", Value::Null)]));
}

#[test]
fn a_conversation_with_a_run_under_way_is_refused_with_the_remedy() {
    let world = World::new(minds);
    let serving = world.serve();
    let mut chat = world.follow();
    world.send("compute");
    chat.until("run", "awaiting_input");
    chat.until("said", "I see.");
    let run = world.motor.only_run();
    let remedy = format!("motor task cancel {run}");
    let mut patience = tests::Patience::default();
    // The turn of the signal may not have ended yet.
    loop {
        let refused = world.motor.run_as_owner(&["chat", "forget", "chat"], "");
        refused.refused(1, &["the conversation is under way"]);
        if refused.stderr.contains(&remedy) {
            break;
        }
        assert!(patience.lasts(), "{refused:?}");
    }
    world.motor.stdout(&["task", "cancel", &run]);
    chat.until("run", "cancelled");
    let mut patience = tests::Patience::default();
    while world.motor.run_as_owner(&["chat", "forget", "chat"], "").code != Some(0) {
        assert!(patience.lasts());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(listed(&world, &[]), []);
    // The run is not the conversation's.
    assert_eq!(world.motor.json(&["task", "status", &run])["status"], "cancelled");
    serving.kill();
}

#[test]
fn unused_conversations_go_by_number_size_and_age_and_one_that_waits_stays() {
    let world = World::new(minds);
    let serving = world.serve();
    world.send("compute");
    let mut chat = world.follow();
    chat.until("run", "awaiting_input");
    chat.until("said", "I see.");
    for channel in ["a", "b", "c"] {
        world.send_on(channel, "remember tea");
        let mut follower = world.follow_on(channel);
        follower.until("said", "I see.");
        follower.until("ended", "");
    }
    serving.kill();
    let remain = |setting: &str, expected: &[&str]| {
        let serving = world.motor.start(&["serve", "--set", setting]);
        serving.wait_for_words("listening");
        let mut patience = tests::Patience::default();
        while listed(&world, &[]).iter().map(|(channel, _)| channel.as_str()).ne(expected.iter().copied()) {
            assert!(patience.lasts(), "{setting}: {:?}", listed(&world, &[]));
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        serving.kill();
    };
    // The one whose run waits for an answer is neither counted nor taken.
    remain("retention.conversations=3", &["a", "b", "c", "chat"]);
    remain("retention.conversations=2", &["b", "c", "chat"]);
    remain("retention.conversation_bytes=1B", &["chat"]);
    world.motor.configure("[retention]\nconversation_age = \"30 days\"\n");
    world.motor.run(&["chat", "list"]).refused(2, &["retention.conversation_age", "`30d`"]);
    world.motor.configure("");
    let serving = world.serve();
    world.send_on("d", "hello");
    let mut follower = world.follow_on("d");
    follower.until("ended", "");
    serving.kill();
    remain("retention.conversation_age=1h", &["chat", "d"]);
    remain("retention.conversation_age=0s", &["chat"]);
    // Memories are kept for longer than their conversations.
    assert_eq!(world.motor.json(&["memory", "list"]).as_array().unwrap().len(), 1);
    let notes = world.motor.json(&["chat", "list", "--forgotten"]);
    assert!(notes.as_array().unwrap().iter().all(|note| note["by"] == "retention"), "{notes:#}");
}

#[test]
fn no_api_token_forgets_a_conversation_or_reads_of_the_owners() {
    let world = port::World::new(json!({ "turns": [{ "text": "hello" }, { "text": "hello" }] }));
    for peer in [None, Some("mai")] {
        let mut message = json!({ "text": "hello" });
        message.as_object_mut().unwrap().extend(peer.map(|peer| ("peer".to_owned(), json!(peer))));
        assert_eq!(world.ask("POST", "/v1/messages", &world.owner, &message).0, 200);
    }
    for token in [&world.read, &world.agent, &world.bound] {
        for path in ["/v1/conversations/chat", "/v1/conversations/chat?peer=mai"] {
            let (status, problem) = world.ask("DELETE", path, token, &json!({}));
            assert_eq!(status, 403, "{path}: {problem}");
        }
    }
    for path in ["/v1/conversations/chat", "/v1/conversations/chat?peer=mai"] {
        let mut patience = tests::Patience::default();
        loop {
            let (status, note) = world.ask("DELETE", path, &world.owner, &json!({}));
            if status == 200 {
                break;
            }
            assert_eq!(note["code"], "illegal_state", "{note}");
            assert!(patience.lasts());
        }
        assert_eq!(world.ask("DELETE", path, &world.owner, &json!({})).0, 404);
    }
    let notes = |token: &str| world.ask("GET", "/v1/forgotten-conversations", token, &json!({})).1;
    assert_eq!(notes(&world.owner).as_array().unwrap().len(), 2);
    let (of_peers, text) = (notes(&world.read), notes(&world.read).to_string());
    assert_eq!((of_peers.as_array().unwrap().len(), &of_peers[0]["isOwner"]), (1, &json!(false)), "{text}");
    assert!(!text.contains("mai"), "{text}");
    assert_eq!(world.ask("GET", "/v1/forgotten-conversations", &world.bound, &json!({})).0, 403);
}

//! Memories with the real program: kept at the owner's word, durable once they are said to be, found by words, shown and deleted by the
//! owner alone, and tainted by their origin (SPEC COG-1, TAINT-1, CONSENT-1).

use serde_json::{Value, json};

use super::taint::Places;
use super::world::{Asked, World, call, says};
use crate::port;

/// The mind of an agent that remembers and recalls when it is told to.
fn minds(asked: &Asked<'_>) -> tests::model_server::Turn {
    match (asked.role(), asked.last().split_once(": ")) {
        ("user", Some(("remember", text))) => call("core_remember", json!({ "text": text })),
        ("user", Some(("recall", words))) => call("core_recall", json!({ "query": words })),
        ("tool", _) => says(&format!("tool: {}", asked.last())),
        _ => says("I see."),
    }
}

fn ids(listed: &Value) -> Vec<&str> {
    listed.as_array().unwrap().iter().map(|memory| memory["id"].as_str().unwrap()).collect()
}

#[test]
fn a_memory_outlives_its_host_is_found_by_words_and_deleted_by_the_owner() {
    let world = World::new(minds);
    let serving = world.serve();
    let mut chat = world.follow();
    world.send("remember: The owner takes the train on Mondays");
    chat.until("said", "\"remembered\":\"mem_");
    // Durable once it was said.
    serving.kill();
    let serving = world.serve();
    let mut chat = world.follow();
    world.send("remember: The cat is called Tom");
    chat.until("said", "\"remembered\":\"mem_");
    chat.until("said", "\"remembered\":\"mem_");
    world.send("recall: which trains");
    let recalled = chat.until("said", "takes the train on Mondays");
    assert!(!recalled["text"].as_str().unwrap().contains("Tom"), "{recalled}");
    let motor = &world.motor;
    let listed = motor.json(&["memory", "list"]);
    assert_eq!(ids(&listed).len(), 2, "{listed:#}");
    assert_eq!(motor.json(&["memory", "list", "--agent", "other"]), json!([]));
    assert_eq!(motor.json(&["memory", "list", "--source", "evil.example"]), json!([]));
    let found = motor.json(&["memory", "search", "trains"]);
    let [id] = ids(&found)[..] else { panic!("{found:#}") };
    assert!(motor.stdout(&["memory", "show", id]).contains("takes the train on Mondays"));
    motor.refuses(&["memory", "show", "mem_0"], 1, "not_found");
    // Only the owner deletes.
    let refused = motor.run(&["memory", "forget", id]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    let forgotten = motor.run_as_owner(&["memory", "forget", id], "").succeeded();
    assert_eq!(forgotten.stdout, "forgotten: 1 memory\n");
    assert_eq!(motor.json(&["memory", "search", "trains"]), json!([]));
    assert_eq!(ids(&motor.json(&["memory", "list"])).len(), 1);
    world.send("recall: train");
    chat.until("said", "0 notes");
    serving.kill();
}

#[test]
fn a_memory_of_web_content_taints_the_conversation_that_recalls_it() {
    for reads in [true, false] {
        let places = Places::new();
        let world = places.world(reads);
        let serving = world.serve();
        let mut chat = world.follow();
        world.send("read");
        chat.until("said", "It is over.");
        world.send("remember");
        chat.until("said", "It is done.");
        let (_, memories) = world.motor.ask("/v1/memories", None, &[]).unwrap();
        let mut sources = places.sources(reads);
        let of_run = format!("run:{}", world.motor.only_run());
        sources.push(of_run.clone());
        assert_eq!(memories[0]["sources"], json!(sources), "{memories:#}");
        assert_eq!(world.motor.json(&["memory", "list", "--source", &of_run]), memories);
        // Another conversation, which has seen nothing of the page.
        world.send_on("work", "recall");
        world.follow_on("work").until("said", "It is done.");
        places.post(&world, "work", &places.sources(reads));
        let page = places.page.address().to_string();
        let forgotten = world.motor.run_as_owner(&["memory", "forget", "--source", &page], "").succeeded();
        assert_eq!(forgotten.stdout, if reads { "forgotten: 1 memory\n" } else { "forgotten: 0 memories\n" });
        serving.kill();
    }
}

#[test]
fn no_api_token_reads_or_deletes_memories() {
    let world = port::World::new(json!({ "turns": [] }));
    for token in [&world.read, &world.agent] {
        for (method, path) in [("GET", "/v1/memories"), ("GET", "/v1/memories/mem_0"), ("DELETE", "/v1/memories/mem_0")]
        {
            let (status, problem) = world.ask(method, path, token, &json!({}));
            assert_eq!(status, 403, "{method} {path}: {problem}");
        }
    }
    assert_eq!(world.ask("GET", "/v1/memories?search=a", &world.owner, &json!({})).1, json!([]));
    assert_eq!(world.ask("DELETE", "/v1/memories/mem_0", &world.owner, &json!({})).0, 404);
    let long = format!("/v1/memories?search={}", "a".repeat(501));
    assert_eq!(world.ask("GET", &long, &world.owner, &json!({})).0, 400);
}

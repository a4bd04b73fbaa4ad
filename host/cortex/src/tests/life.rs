//! Cycles over time: their inputs, their effects, and the state after a restart.

use super::*;

#[tokio::test]
async fn a_cycle_sees_summaries_within_its_bounds() {
    let world = World::new();
    let home = world.open_with(CortexConfig { max_peers: 2, context_window: 3, ..CortexConfig::default() });
    for (id, messages) in [("quiet", 1), ("busy", 9), ("usual", 4)] {
        for number in 0..messages {
            home.hears(id, &format!("{id} asks {number}")).await;
        }
    }
    let model = Scripted::replying([trusting("busy", 1).to_string(), trusting("quiet", 1).to_string()]);
    assert_eq!(record(home.reflect(&model).await).peers_shown, 2);
    let user = model.prompts.lock()[0].user.clone();
    assert!(user.contains("busy asks 8") && user.contains("busy asks 6") && !user.contains("busy asks 5"), "{user}");
    assert!(!user.contains("quiet asks") && user.contains("\"omittedPeers\":1"), "{user}");
    // The third one comes with the next cycle.
    home.reflect(&model).await;
    assert!(model.prompts.lock()[1].user.contains("quiet asks 0"));
    assert_eq!((home.trust("busy"), home.trust("quiet"), home.trust("usual")), (Some(1), Some(1), None));
}

#[tokio::test]
async fn a_prompt_stays_within_its_tokens() {
    let world = World::new();
    let config = CortexConfig { max_context_tokens: 3_000, context_window: 100, ..CortexConfig::default() };
    let home = world.open_with(config);
    for number in 0..200 {
        home.hears(&format!("p{}", number % 3), &"x".repeat(280)).await;
    }
    let model = Scripted::replying([trusting("p0", 1).to_string()]);
    let found = record(home.reflect(&model).await);
    assert!(found.tokens.estimated_input <= 3_000 && found.peers_shown >= 1, "{found:?}");
}

#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let world = World::new();
    let home = world.open();
    let belief = json!({ "key": "mai-is-late", "value": "Mai is late", "rationale": "r", "peer_id": "mai" });
    let assessment = json!({ "peer_id": "mai", "trust": -2, "rationale": "late" });
    home.cycle("mai", json!({ "assessments": [assessment], "beliefs": [belief], "summary": "Mai was late." })).await;
    let (injected, history) = (home.injected(), home.cortex.history(10).unwrap());
    assert!(injected.contains("- mai-is-late (mai): Mai is late"), "{injected}");
    drop(home);
    let home = world.open();
    assert_eq!((home.injected(), home.cortex.history(10).unwrap()), (injected, history));
    let model = Scripted::replying([trusting("mai", -2).to_string()]);
    home.hears("mai", "sorry").await;
    assert_eq!(record(home.reflect(&model).await).cycle, 2);
    let user = &model.prompts.lock()[0].user;
    assert!(user.contains("Mai was late.") && user.contains("mai-is-late"), "{user}");
}

#[tokio::test]
async fn the_history_keeps_fifty_cycles() {
    let world = World::new();
    let home = world.open();
    for _ in 0..55 {
        home.cycle("mai", believing("k", "v", "r")).await;
    }
    let cycles: Vec<u64> = home.cortex.history(100).unwrap().iter().map(|record| record.cycle).collect();
    assert_eq!(cycles, (6..=55).rev().collect::<Vec<_>>());
    // A smaller number counts from the next cycle.
    home.cortex.configure(CortexConfig { history: 3, ..CortexConfig::default() }).unwrap();
    home.cycle("mai", believing("k", "v", "r")).await;
    assert_eq!(home.cortex.history(100).unwrap().len(), 3);
}

#[tokio::test]
async fn settings_count_from_the_next_cycle_without_a_restart() {
    let world = World::new();
    let home = world.open();
    home.cycle("mai", trusting("mai", 10)).await;
    home.cortex.configure(CortexConfig { max_trust_delta: 1, ..CortexConfig::default() }).unwrap();
    home.cycle("mai", trusting("mai", 10)).await;
    assert_eq!(home.trust("mai"), Some(4));
    home.cortex.configure(CortexConfig { max_peers: 0, ..CortexConfig::default() }).unwrap_err();
    home.cortex.configure(CortexConfig { enabled: false, ..CortexConfig::default() }).unwrap();
    assert!(home.cortex.config().offers_assess_peer());
    home.hears("mai", "hello").await;
    let model = Scripted::replying([trusting("mai", 10).to_string()]);
    assert_eq!(home.reflect(&model).await, ReflectOutcome::Off);
    assert!(home.cortex.due().is_empty());
    home.cortex.configure(CortexConfig::default()).unwrap();
    assert_eq!((model.asked(), home.cortex.config().offers_assess_peer()), (0, false));
    record(home.reflect(&model).await);
    assert_eq!(home.trust("mai"), Some(7));
}

#[tokio::test]
async fn a_contradiction_needs_the_old_value_and_is_an_event() {
    let world = World::new();
    let home = world.open();
    home.cycle("mai", believing("mai", "Mai is reliable", "r")).await;
    let unexplained = home.cycle("mai", believing("mai", "Mai is a liar", "she lied")).await;
    assert!(refused(&unexplained)[0].contains("does not name the old value"), "{unexplained:?}");
    assert!(home.injected().contains("Mai is reliable"));
    let model = Scripted::replying([believing("mai", "Mai is late", "was: \"Mai is reliable\"; now late").to_string()]);
    let outcome = home.reflect(&model).await;
    let ReflectOutcome::Done { reflected: Some(reflected), .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!((reflected.beliefs_added, home.cortex.beliefs().len()), (vec!["mai".to_owned()], 1));
    assert!(home.injected().ends_with("- mai: Mai is late\n"));
}

#[tokio::test]
async fn a_failed_cycle_freezes_the_beliefs_and_leaves_its_peers_for_the_next() {
    let world = World::new();
    let home = world.open();
    home.cycle("mai", believing("k", "v", "r")).await;
    let before = home.injected();
    home.hears("ben", "hello").await;
    let gone = Scripted::replying(Vec::<String>::new());
    assert_eq!(skipped(&record(home.reflect(&gone).await)), "the model did not answer: the model is gone");
    assert_eq!(home.injected(), before);
    assert!(home.cortex.due().is_empty());
    let back = Scripted::replying([trusting("ben", 1).to_string()]);
    assert!(refused(&record(home.reflect(&back).await)).is_empty());
    assert_eq!(home.trust("ben"), Some(1));
}

#[tokio::test]
async fn a_forgotten_peer_is_in_no_belief_and_no_record() {
    let world = World::new();
    let home = world.open();
    let belief = json!({ "key": "k", "value": "npub-x lies", "rationale": "r" });
    let assessment = json!({ "peer_id": "npub-x", "trust": -2, "rationale": "npub-x lied" });
    home.cycle("npub-x", json!({ "assessments": [assessment], "beliefs": [belief], "summary": "npub-x lied." })).await;
    home.cycle("npub-x", trusting("npub-y", 1)).await;
    home.cycle("ben", believing("ben", "Ben is fine", "r")).await;
    home.hears("npub-x", "hello").await;
    home.ledger.forget(&agent(), &peer("npub-x")).await.unwrap();
    home.cortex.forget(&peer("npub-x"), |_, _| Ok(())).await.unwrap();
    let is_named =
        world.disk.records().iter().any(|(_, key, value)| {
            [key, value].into_iter().any(|bytes| String::from_utf8_lossy(bytes).contains("npub-x"))
        });
    assert!(!is_named);
    assert!(home.injected().ends_with("- ben: Ben is fine\n"));
    assert_eq!(home.cortex.history(10).unwrap().len(), 3);
    let model = Scripted::replying([trusting("npub-x", 9).to_string()]);
    assert!(refused(&record(home.reflect(&model).await))[0].contains("was not shown"));
}

//! Peers that are forgotten while a cycle is under way, which may come back before it ends: nothing of the cycle is about them, nor about a new peer
//! of the same id (SPEC LED-1, CX-5, CX-6).

use super::*;

/// A model that has a peer forgotten before it answers, which may write again at once.
struct Forgetting {
    ledger: Ledger,
    peer: PeerId,
    returns: bool,
    reply: Arc<Scripted>,
}

#[async_trait]
impl ReflectionModel for Forgetting {
    async fn ask(&self, prompt: Prompt) -> Result<ModelReply, Refusal> {
        self.ledger.forget(&agent(), &self.peer).await?;
        if self.returns {
            let channel = ChannelName::parse("http").unwrap();
            let said = NewInteraction { direction: Direction::Incoming, channel, summary: "I am new".to_owned() };
            self.ledger.record(&agent(), &self.peer, vec![said]).await?;
        }
        self.reply.ask(prompt).await
    }
}

/// A cycle during which a peer is forgotten, with this reply.
async fn forgets(home: &Home, id: &str, returns: bool, reply: &Value) -> ReflectionRecord {
    let (ledger, reply) = (home.ledger.clone(), Scripted::replying([reply.to_string()]));
    let model = Forgetting { ledger, peer: peer(id), returns, reply };
    record(home.cortex.reflect(vec![Trigger::Owner], Arc::new(PlainReflector), Arc::new(model)).await.unwrap())
}

fn is_stored(world: &World, text: &str) -> bool {
    let contains = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    world.disk.records().iter().any(|(_, key, value)| contains(key) || contains(value))
}

/// Proposals of each kind about `npub-x`; those without it are in a reply to facts about it all the same.
fn proposals() -> Vec<Value> {
    let (about, key) = ("npub-x", "canary");
    let belief = |of: Value| json!([{ "key": key, "value": "canary", "rationale": "r", "peer_id": of }]);
    let directive = json!([{ "key": key, "text": "canary", "peer_id": about }]);
    vec![
        json!({ "assessments": trusting(about, 3)["assessments"], "beliefs": belief(about.into()), "summary": "canary" }),
        json!({ "assessments": [], "beliefs": belief(about.into()), "summary": "s" }),
        json!({ "assessments": trusting("ben", 3)["assessments"], "beliefs": belief(Value::Null), "summary": "s" }),
        json!({ "assessments": [], "beliefs": [], "directives": directive, "summary": "s" }),
        json!({ "assessments": [], "beliefs": [], "summary": "canary" }),
    ]
}

#[tokio::test]
async fn nothing_of_a_cycle_applies_if_a_peer_of_it_is_forgotten_meanwhile() {
    for reply in proposals() {
        for returns in [false, true] {
            let world = World::new();
            let home = world.open();
            for id in ["npub-x", "ben"] {
                home.hears(id, "hello").await;
            }
            let found = forgets(&home, "npub-x", returns, &reply).await;
            assert_eq!(skip_code(&found), SkipCode::PeerForgotten, "{reply}");
            assert!(!is_stored(&world, "canary"), "{reply}");
            assert!(home.cortex.beliefs().is_empty() && home.cortex.directives().is_empty(), "{reply}");
            assert_eq!(home.trust("ben"), None, "{reply}");
            home.cortex.forget(&peer("npub-x"), |_, _| Ok(())).await.unwrap();
            if returns {
                let report = home.ledger.report(&agent(), &peer("npub-x")).unwrap();
                assert_eq!((report.summary.assessments, report.recent_interactions.len()), (0, 1), "{reply}");
            } else {
                assert!(!is_stored(&world, "npub-x"), "{reply}");
            }
            // The others are reflected on in the next cycle.
            let next = Scripted::replying([trusting("ben", 2).to_string()]);
            assert!(refused(&record(home.reflect(&next).await)).is_empty(), "{reply}");
            assert_eq!(home.trust("ben"), Some(2), "{reply}");
        }
    }
}

#[tokio::test]
async fn a_belief_about_a_peer_without_activity_is_not_reaffirmed_after_it_was_forgotten() {
    let world = World::new();
    let home = world.open();
    let belief = json!([{ "key": "k", "value": "late", "rationale": "r", "peer_id": "npub-x" }]);
    let believing = json!({ "assessments": [], "beliefs": belief, "summary": "s" });
    home.cycle("npub-x", believing.clone()).await;
    let before = home.cortex.beliefs();
    assert_eq!(before.len(), 1);
    home.clock.advance(MINUTE);
    home.hears("ben", "hello").await;
    let found = forgets(&home, "npub-x", true, &believing).await;
    assert_eq!((skip_code(&found), home.cortex.beliefs()), (SkipCode::PeerForgotten, before));
    home.cortex.forget(&peer("npub-x"), |_, _| Ok(())).await.unwrap();
    assert!(home.cortex.beliefs().is_empty());
}

#[tokio::test]
async fn a_peer_that_the_cycle_has_nothing_of_is_forgotten_beside_it() {
    let world = World::new();
    let home = world.open();
    home.hears("npub-x", "hello").await;
    home.reflect(&Scripted::replying([trusting("npub-x", 1).to_string()])).await;
    home.hears("ben", "hello").await;
    let found = forgets(&home, "npub-x", false, &trusting("ben", 2)).await;
    assert!(refused(&found).is_empty());
    assert_eq!(home.trust("ben"), Some(2));
}

#[tokio::test]
async fn no_model_is_asked_while_a_peer_is_gone_from_the_ledger_and_not_from_the_beliefs() {
    let world = World::new();
    let home = world.open();
    let belief = json!([{ "key": "k", "value": "late", "rationale": "r", "peer_id": "npub-x" }]);
    home.cycle("npub-x", json!({ "assessments": [], "beliefs": belief, "summary": "s" })).await;
    let forgetting = home.cortex.begin_forgetting();
    home.ledger.forget(&agent(), &peer("npub-x")).await.unwrap();
    home.hears("npub-x", "I am new").await;
    let model = Scripted::replying([trusting("npub-x", -3).to_string()]);
    let found = record(home.reflect(&model).await);
    assert_eq!((skip_code(&found), model.asked()), (SkipCode::PeerForgotten, 0));
    home.cortex.forget(&peer("npub-x"), |_, _| Ok(())).await.unwrap();
    drop(forgetting);
    home.hears("npub-x", "hello").await;
    refused(&record(home.reflect(&model).await));
    assert_eq!((home.trust("npub-x"), home.cortex.beliefs().len()), (Some(-3), 0));
}

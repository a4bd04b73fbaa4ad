//! The simulation plan of the source document, as far as no judgement of a real model is needed (SPEC CX-11).

use ledger::{AssessmentSource, NewAssessment, TrustChange};
use tokio::sync::Notify;

use super::*;

#[tokio::test]
async fn trust_moves_by_three_in_a_cycle() {
    let world = World::new();
    let home = world.open();
    home.cycle("mai", trusting("mai", 0)).await;
    assert_eq!(home.trust("mai"), Some(0));
    home.cycle("mai", trusting("mai", 7)).await;
    assert_eq!(home.trust("mai"), Some(3));
    home.cycle("mai", trusting("mai", 7)).await;
    assert_eq!(home.trust("mai"), Some(6));
}

#[tokio::test]
async fn a_first_assessment_is_between_minus_three_and_three() {
    for (proposed, expected) in [(8, 3), (-10, -3), (2, 2)] {
        let world = World::new();
        let home = world.open();
        home.cycle("mai", trusting("mai", proposed)).await;
        assert_eq!(home.trust("mai"), Some(expected));
    }
}

#[tokio::test]
async fn an_inherited_trust_is_where_the_steps_begin() {
    for (proposed, expected) in [(-10, 2), (10, 8), (6, 6)] {
        let world = World::new();
        let home = world.open();
        home.hears("mai", "hello").await;
        let inline = NewAssessment {
            peer: peer("mai"),
            trust: TrustChange::Set(5),
            rationale: "inline".to_owned(),
            source: AssessmentSource::Agent,
        };
        home.ledger.record_assessment(&agent(), inline).await.unwrap();
        // Also after a restart.
        drop(home);
        let home = world.open();
        home.cycle("mai", trusting("mai", proposed)).await;
        assert_eq!(home.trust("mai"), Some(expected));
        let earlier = home.ledger.report(&agent(), &peer("mai")).unwrap().recent_assessments.pop().unwrap();
        assert_eq!((earlier.trust, earlier.source), (5, AssessmentSource::Agent));
    }
}

#[tokio::test]
async fn a_hallucination_costs_three_points_and_a_clean_cycle_gives_them_back() {
    let world = World::new();
    let home = world.open();
    for _ in 0..2 {
        home.cycle("mai", trusting("mai", 4)).await;
    }
    for _ in 0..3 {
        let before = home.trust("mai").unwrap();
        home.cycle("mai", trusting("mai", -10)).await;
        assert_eq!(home.trust("mai").unwrap(), before - 3);
        home.cycle("mai", trusting("mai", 4)).await;
        assert_eq!(home.trust("mai").unwrap(), before);
    }
}

/// A model that does not answer before it is told to.
struct Slow(Notify, Arc<Scripted>);

#[async_trait]
impl ReflectionModel for Slow {
    async fn ask(&self, prompt: Prompt) -> Result<ModelReply, Refusal> {
        self.0.notified().await;
        self.1.ask(prompt).await
    }
}

#[tokio::test]
async fn triggers_during_a_cycle_are_skipped() {
    let world = World::new();
    let home = world.open();
    home.hears("mai", "hello").await;
    let slow = Arc::new(Slow(Notify::new(), Scripted::replying([trusting("mai", 2).to_string()])));
    let (cortex, model) = (home.cortex.clone(), slow.clone());
    let first =
        tokio::spawn(async move { cortex.reflect(vec![Trigger::NewPeer], Arc::new(PlainReflector), model).await });
    while home.cortex.inner.reflecting.try_lock().is_ok() {
        tokio::task::yield_now().await;
    }
    let unasked = Scripted::replying([trusting("mai", -3).to_string()]);
    for _ in 0..3 {
        assert_eq!(home.reflect(&unasked).await, ReflectOutcome::AlreadyReflecting);
    }
    slow.0.notify_one();
    record(first.await.unwrap().unwrap());
    assert_eq!((unasked.asked(), home.trust("mai")), (0, Some(2)));
    assert_eq!(home.ledger.report(&agent(), &peer("mai")).unwrap().recent_assessments.len(), 1);
    assert_eq!(home.cortex.history(10).unwrap().len(), 1);
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_cut_a_cycle() {
    let world = World::new();
    let home = world.open();
    home.hears("mai", "hello").await;
    let slow = Arc::new(Slow(Notify::new(), Scripted::replying([trusting("mai", 2).to_string()])));
    let mut gone = Box::pin(home.cortex.reflect(vec![Trigger::Timer], Arc::new(PlainReflector), slow.clone()));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(gone.as_mut().poll(&mut context).is_pending());
    drop(gone);
    slow.0.notify_one();
    drop(home.cortex.inner.reflecting.lock().await);
    assert_eq!(home.trust("mai"), Some(2));
}

#[tokio::test]
async fn no_activity_takes_no_tokens() {
    let world = World::new();
    let home = world.open();
    let model = Scripted::replying(Vec::<String>::new());
    for _ in 0..120 {
        home.clock.advance(MINUTE);
        if !home.cortex.due().is_empty() {
            home.reflect(&model).await;
        }
    }
    assert_eq!(model.asked(), 0);
    assert!(home.cortex.history(10).unwrap().is_empty());
    // The benign twin: one observation, and the timer counts.
    home.cortex.observe(Observation::ToolReturned { ok: true });
    assert_eq!(home.cortex.due(), [Trigger::Timer]);
}

#[tokio::test]
async fn several_triggers_make_one_cycle() {
    let world = World::new();
    let home = world.open();
    for number in 0..5 {
        home.hears(&format!("p{number}"), "hello").await;
    }
    home.clock.advance(MINUTE * 31);
    let due = home.cortex.due();
    assert_eq!(due, [Trigger::InteractionCount, Trigger::NewPeer, Trigger::Timer]);
    let model = Scripted::replying([trusting("p1", 1).to_string()]);
    let outcome = home.cortex.reflect(due, Arc::new(PlainReflector), model.clone()).await.unwrap();
    let ReflectOutcome::Done { reflected: Some(reflected), assessed, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(reflected.trigger, "interaction_count+new_peer+timer");
    assert_eq!((reflected.peers_assessed, assessed.len(), model.asked()), (vec![peer("p1")], 1, 1));
    assert!(home.cortex.due().is_empty());
}

#[tokio::test]
async fn an_expired_belief_leaves_the_prompt() {
    let world = World::new();
    let home = world.open();
    assert_eq!(home.injected(), "You are an agent.");
    home.cycle("mai", believing("mai-is-late", "Mai is late", "she was")).await;
    let with = "You are an agent.\n\n## Cortex Beliefs\n\n- mai-is-late: Mai is late\n";
    assert_eq!(home.injected(), with);
    home.clock.advance(MINUTE * 119);
    assert_eq!(home.injected(), with);
    home.clock.advance(MINUTE * 2);
    assert_eq!(home.injected(), "You are an agent.");
    assert!(home.cortex.beliefs().is_empty());
}

#[tokio::test]
async fn the_tokens_of_a_cycle_are_recorded_against_the_estimate() {
    let world = World::new();
    let home = world.open();
    for number in 0..25 {
        home.hears(&format!("p{}", number % 5), &"a request of usual length. ".repeat(3)).await;
    }
    let tokens = record(home.reflect(&Scripted::replying([trusting("p1", 1).to_string()])).await).tokens;
    assert!(tokens.estimated_input > 500 && tokens.estimated_input < 8_000, "{tokens:?}");
    assert!(tokens.input.unwrap() * 2 >= tokens.estimated_input && tokens.output == Some(50), "{tokens:?}");
}

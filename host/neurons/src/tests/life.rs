//! The life of a neuron, from its proposal to its end (SPEC NEU-1).

use super::*;

#[tokio::test]
async fn a_neuron_is_proposed_quarantined_approved_tried_and_active() {
    let world = World::new();
    let home = world.open();
    let proposed = home.book.propose(draft("bitcoin", BENIGN), None).await.unwrap();
    assert_eq!(proposed.status, NeuronStatus::Proposed);
    // Nothing ticks before the owner has approved it.
    home.tick("price 5").await;
    let hash = proposed.hash;
    let approving = home.book.approve(&AgentName::default(), &named("bitcoin"), hash, consent()).await;
    assert_eq!(approving.unwrap_err().code, RefusalCode::IllegalState);
    assert_eq!(home.propose("bitcoin", BENIGN).await.status, NeuronStatus::Quarantined);
    home.tick("price 6").await;
    let other = base::ContentHash::of(b"another version");
    let approving = home.book.approve(&AgentName::default(), &named("bitcoin"), other, consent()).await;
    assert_eq!(approving.unwrap_err().code, RefusalCode::IllegalState);
    assert_eq!(home.approve("bitcoin").await.unwrap().status, NeuronStatus::Trial);
    assert!(home.emitted().is_empty());

    home.tick("weather").await;
    home.tick("price 7").await;
    let [signal] = home.emitted().try_into().unwrap();
    assert_eq!((signal.source.as_str(), signal.kind.as_str(), signal.cause), ("neuron:bitcoin", "price.seen", 4));
    assert_eq!(signal.sources, ["neuron:bitcoin", "code.example", "web.example"]);
    assert_eq!((signal.version, home.neuron("bitcoin").await.meter.ticks), (hash, 2));

    // 24 hours and 50 signals: neither alone ends the trial.
    for _ in 2..60 {
        home.tick("weather").await;
    }
    assert_eq!(home.status("bitcoin").await.0, NeuronStatus::Trial);
    home.clock.advance(24 * HOUR);
    home.tick("weather").await;
    assert_eq!(home.status("bitcoin").await.0, NeuronStatus::Active);
    home.tick("price 8").await;
    assert_eq!(home.emitted().len(), 2);

    drop(home);
    let home = world.open();
    let events = home.book.show(&AgentName::default(), &named("bitcoin")).await.unwrap().1;
    let names: Vec<_> = events.iter().map(|event| event.change.name()).collect();
    assert_eq!(names, ["proposed", "passed", "approved", "tried", "promoted"]);
}

#[tokio::test]
async fn time_without_signals_ends_no_trial() {
    let home = World::new().open();
    home.learn("bitcoin", BENIGN).await;
    home.clock.advance(48 * HOUR);
    for _ in 0..49 {
        home.tick("weather").await;
    }
    assert_eq!(home.status("bitcoin").await.0, NeuronStatus::Trial);
    home.tick("weather").await;
    assert_eq!(home.status("bitcoin").await.0, NeuronStatus::Active);
}

#[tokio::test]
async fn five_run_at_most_and_the_sixth_waits_for_a_place() {
    let home = World::new().open();
    for number in 0..6 {
        home.learn(&format!("n{number}"), BENIGN).await;
        home.clock.advance(HOUR);
    }
    assert_eq!(home.status("n5").await.0, NeuronStatus::Approved);
    home.tick("price").await;
    assert_eq!(home.emitted().len(), 5);
    home.book.forget(&AgentName::default(), &named("n0")).await.unwrap();
    assert_eq!(home.status("n5").await.0, NeuronStatus::Trial);
    home.tick("price").await;
    let of_new = home.book.signals(&AgentName::default(), Some(&named("n5")), 10).unwrap();
    assert_eq!((home.emitted().len(), of_new.len()), (4 + 5, 1), "those of the forgotten one are gone");
    assert_eq!(home.book.switches().await.running, 5);
}

#[tokio::test]
async fn the_owner_stops_all_at_once_and_what_came_meanwhile_is_not_made_up_for() {
    let world = World::new();
    let home = world.open();
    home.learn("bitcoin", BENIGN).await;
    assert!(home.book.switch_all(false, consent()).await.unwrap().switched_off);
    home.tick("price 1").await;
    assert!(home.emitted().is_empty());
    drop(home);
    let home = world.open();
    home.tick("price 2").await;
    assert!(home.emitted().is_empty(), "off lasts over a restart");
    home.learn("other", BENIGN).await;
    assert_eq!(home.status("other").await.0, NeuronStatus::Approved);
    assert!(!home.book.switch_all(true, consent()).await.unwrap().switched_off);
    assert_eq!(home.status("other").await.0, NeuronStatus::Trial);
    drop(home);
    let home = world.open();
    home.tick("price 3").await;
    assert_eq!(home.emitted().len(), 2, "only the signal that came after it was on, once for each");
}

#[tokio::test]
async fn a_disabled_neuron_is_tried_again_by_the_owner_alone() {
    let home = World::new().open();
    home.learn("bitcoin", BENIGN).await;
    let (agent, name) = (AgentName::default(), named("bitcoin"));
    assert_eq!(home.book.switch(&agent, &name, false, consent()).await.unwrap().status, NeuronStatus::Disabled);
    home.tick("price").await;
    assert!(home.emitted().is_empty());
    // The agent cannot undo it by the same proposal; another version begins at the beginning.
    let refused = home.book.propose(draft("bitcoin", BENIGN), None).await.unwrap_err();
    assert_eq!(refused.code, RefusalCode::Forbidden);
    assert_eq!(home.book.switch(&agent, &name, true, consent()).await.unwrap().status, NeuronStatus::Trial);
    home.tick("price").await;
    assert_eq!(home.emitted().len(), 1);
    assert_eq!(
        home.book.propose(draft("bitcoin", "emit price.seen"), None).await.unwrap_err().code,
        RefusalCode::IllegalState
    );
    home.book.switch(&agent, &name, false, consent()).await.unwrap();
    let again = home.book.propose(draft("bitcoin", "emit price.seen"), None).await.unwrap();
    assert_eq!((again.status, again.approval), (NeuronStatus::Proposed, None));
}

#[tokio::test]
async fn what_the_owner_rejected_is_not_proposed_again() {
    let home = World::new().open();
    home.propose("bitcoin", BENIGN).await;
    home.book.reject(&AgentName::default(), &named("bitcoin"), consent()).await.unwrap();
    assert_eq!(home.book.propose(draft("bitcoin", BENIGN), None).await.unwrap_err().code, RefusalCode::Forbidden);
    assert!(home.approve("bitcoin").await.is_err());
    // One that only failed its quarantine may come back with better scenarios.
    let few = NeuronDraft { scenarios: vec![scenario("price", &["price.seen"])], ..draft("other", BENIGN) };
    for _ in 0..2 {
        // The second is the same call after a crash: it has its verdict.
        home.book.propose(few.clone(), None).await.unwrap();
        home.book.quarantine(&AgentName::default(), &named("other"), &home.host).await.unwrap();
        assert_eq!(home.status("other").await, (NeuronStatus::Rejected, Some(FaultCode::TooFewScenarios)));
    }
    assert_eq!(home.book.show(&AgentName::default(), &named("other")).await.unwrap().1.len(), 2, "nothing twice");
    assert_eq!(home.propose("other", BENIGN).await.status, NeuronStatus::Quarantined);
}

#[tokio::test]
async fn too_few_successes_and_a_switched_off_configuration_propose_nothing() {
    let world = World::new();
    let home = world.open();
    let mut few = draft("bitcoin", BENIGN);
    few.origin.successes = 4;
    assert_eq!(home.book.propose(few.clone(), None).await.unwrap_err().code, RefusalCode::IllegalState);
    // Without a run, too: the turns of conversations are counted, and it does not pass for a file of the owner.
    let of_turns = NeuronOrigin { run: None, ..few.origin.clone() };
    let of_turns = NeuronDraft { origin: of_turns, ..few.clone() };
    assert_eq!(home.book.propose(of_turns, None).await.unwrap_err().code, RefusalCode::IllegalState);
    few.origin.successes = 5;
    home.book.propose(few, None).await.unwrap();
    drop(home);
    let off = World { config: NeuronsConfig { enabled: false, ..NeuronsConfig::default() }, ..world };
    assert_eq!(off.open().book.propose(draft("a", BENIGN), None).await.unwrap_err().code, RefusalCode::IllegalState);
}

#[tokio::test]
async fn a_tired_agent_has_no_ticks_and_a_broken_engine_loses_no_signal() {
    let home = World::new().open();
    home.learn("bitcoin", BENIGN).await;
    home.host.tired.store(true, std::sync::atomic::Ordering::Relaxed);
    home.tick("price").await;
    home.host.tired.store(false, std::sync::atomic::Ordering::Relaxed);
    assert_eq!((home.emitted().len(), home.neuron("bitcoin").await.meter.ticks), (0, 0));

    let broken = home.book.propose(draft("broken", "broken"), None).await.unwrap();
    home.book.quarantine(&broken.draft.agent, &broken.draft.name, &home.host).await.unwrap_err();
    assert_eq!(home.status("broken").await, (NeuronStatus::Proposed, None), "the host's failure is not the neuron's");
}

#[tokio::test]
async fn old_signals_of_neurons_are_dropped_beyond_the_bound() {
    let config = NeuronsConfig { kept_signals: 10, ..NeuronsConfig::default() };
    let home = World { config, ..World::new() }.open();
    home.learn("bitcoin", BENIGN).await;
    for _ in 0..25 {
        home.tick("price").await;
    }
    let ids: Vec<u64> = home.emitted().iter().map(|signal| signal.id).collect();
    assert_eq!(ids, (16..=25).rev().collect::<Vec<_>>());
}

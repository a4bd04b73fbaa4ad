//! Hostile neurons, each beside its benign twin: refused in quarantine with a stable code, or disabled in the trial.

use super::*;

#[tokio::test]
async fn the_quarantine_refuses_with_a_stable_code() {
    let home = World::new().open();
    for (number, (source, code)) in [
        ("loop", Some(FaultCode::OverBudget)),
        ("dear", Some(FaultCode::OverBudget)),
        ("throw", Some(FaultCode::Threw)),
        ("slow", Some(FaultCode::TimedOut)),
        ("wrong", Some(FaultCode::InvalidOutput)),
        ("random", Some(FaultCode::NonDeterministic)),
        ("clock", Some(FaultCode::NonDeterministic)),
        ("emit price.other", Some(FaultCode::UndeclaredSignal)),
        ("emit motor_result", Some(FaultCode::UndeclaredSignal)),
        ("emit price.seen", Some(FaultCode::OutputMismatch)),
        ("when nothing emit price.seen", Some(FaultCode::OutputMismatch)),
        ("when price emit price.seen price.seen price.seen price.seen price.seen price.seen price.seen price.seen price.seen", Some(FaultCode::SignalSpam)),
        ("eval(1)", Some(FaultCode::Blocked)),
        (BENIGN, None),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("n{number}");
        home.propose(&name, source).await;
        let status = if code.is_some() { NeuronStatus::Rejected } else { NeuronStatus::Quarantined };
        assert_eq!(home.status(&name).await, (status, code), "{source}");
        let reason = home.neuron(&name).await.fault.map(|fault| fault.reason).unwrap_or_default();
        assert!(!reason.contains('\u{1b}'), "{reason:?}");
        assert_eq!(home.approve(&name).await.is_ok(), code.is_none(), "{source}");
    }
    home.tick("price").await;
    assert_eq!(home.emitted().len(), 1, "only the benign one ticks");
}

#[tokio::test]
async fn declared_and_actual_signals_are_equal() {
    let home = World::new().open();
    let cases = [
        ("more-outputs", NeuronDraft { outputs: kinds(&["price.seen", "price.gone"]), ..draft("a", BENIGN) }),
        ("other-inputs", NeuronDraft { inputs: InputKind::RUNS.into_iter().collect(), ..draft("a", BENIGN) }),
        ("wrong-scenario", {
            let mut draft = draft("a", BENIGN);
            draft.scenarios.push(scenario("rain", &["price.seen"]));
            draft
        }),
    ];
    for (name, draft) in cases {
        let proposed = home.book.propose(NeuronDraft { name: named(name), ..draft }, None).await.unwrap();
        home.book.quarantine(&proposed.draft.agent, &proposed.draft.name, &home.host).await.unwrap();
        assert_eq!(home.status(name).await, (NeuronStatus::Rejected, Some(FaultCode::OutputMismatch)), "{name}");
    }
    let repeated = NeuronDraft { scenarios: vec![scenario("price", &["price.seen"]); 5], ..draft("repeated", BENIGN) };
    home.book.propose(repeated, None).await.unwrap();
    home.book.quarantine(&AgentName::default(), &named("repeated"), &home.host).await.unwrap();
    assert_eq!(home.status("repeated").await, (NeuronStatus::Rejected, Some(FaultCode::TooFewScenarios)));
}

#[tokio::test]
async fn a_neuron_that_turns_hostile_is_disabled_and_emits_nothing_more() {
    // A source that behaves in quarantine, the ticks after which it is off, and the code.
    for (source, ticks, code) in [
        ("later loop", 2, FaultCode::OverBudget),
        ("later throw", 4, FaultCode::Threw),
        ("later emit price.other", 1, FaultCode::UndeclaredSignal),
        ("later emit price.seen price.other", 1, FaultCode::UndeclaredSignal),
        ("later emit owner.message", 1, FaultCode::UndeclaredSignal),
    ] {
        let home = World::new().open();
        home.learn("hostile", source).await;
        home.learn("benign", BENIGN).await;
        for tick in 1..=ticks + 2 {
            home.tick("price later").await;
            let expected =
                if tick < ticks { (NeuronStatus::Trial, None) } else { (NeuronStatus::Disabled, Some(code)) };
            assert_eq!(home.status("hostile").await, expected, "{source} {tick}");
        }
        assert!(home.emitted().iter().all(|signal| signal.neuron == named("benign")), "{source}");
        assert_eq!(home.emitted().len(), ticks + 2, "{source}");
        assert_eq!(home.status("benign").await, (NeuronStatus::Trial, None), "{source}");
    }
}

#[tokio::test]
async fn a_flood_of_signals_disables_in_the_trial_and_after_it() {
    for active in [false, true] {
        let home = World::new().open();
        home.learn("flood", "later emit price.seen price.seen price.seen price.seen price.seen price.seen").await;
        home.learn("benign", BENIGN).await;
        if active {
            for _ in 0..50 {
                home.tick("weather").await;
            }
            home.clock.advance(24 * HOUR);
            home.tick("weather").await;
            assert_eq!(home.status("flood").await.0, NeuronStatus::Active);
        }
        for _ in 0..11 {
            home.tick("price later").await;
        }
        assert_eq!(home.status("flood").await, (NeuronStatus::Disabled, Some(FaultCode::SignalSpam)));
        let of_flood = home.book.signals(&AgentName::default(), Some(&named("flood")), 1_000).unwrap();
        assert_eq!(of_flood.len(), 60, "the tick that exceeds the bound emits nothing");
        assert!(home.status("benign").await.0.ticks());
    }
}

#[tokio::test]
async fn errors_far_apart_are_tolerated() {
    let home = World::new().open();
    home.learn("hostile", "later throw").await;
    for _ in 0..20 {
        home.tick("price later").await;
        home.clock.advance(HOUR);
    }
    assert_eq!(home.status("hostile").await, (NeuronStatus::Trial, None));
    assert_eq!(home.neuron("hostile").await.meter.failed, 20);
}

#[tokio::test]
async fn signals_that_ask_the_owner_are_never_read() {
    let home = World::new().open();
    home.learn("bitcoin", BENIGN).await;
    for status in [SignalStatus::AwaitingInput, SignalStatus::AwaitingApproval] {
        let body = MotorResult { question: Some("price?".to_owned()), ..MotorResult::new(run(), status) };
        let mut batch = Batch::new();
        let staged = home.bus.stage(&mut batch, &AgentName::default(), body, TTL).await.unwrap();
        home.store.commit(batch).await.unwrap();
        staged.deliver();
    }
    home.tick("price").await;
    assert_eq!((home.emitted().len(), home.neuron("bitcoin").await.meter.ticks), (1, 1));
    // Signals of neurons are not signals of runs.
    assert_eq!(home.bus.latest(), 3);
}

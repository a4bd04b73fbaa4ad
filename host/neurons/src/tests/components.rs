//! Neurons whose program is a component: the same life and the same bounds as code, with exactly the bytes that were proposed.

use store::Table;

use super::*;

fn bytes_key(name: &str) -> String {
    format!("neurons/component/{}/{name}", AgentName::default())
}

#[tokio::test]
async fn a_component_of_the_owner_lives_as_code_does_and_outlives_a_restart() {
    let world = World::new();
    let home = world.open();
    let neuron = home.propose_component("bitcoin", BENIGN).await;
    assert_eq!(
        (neuron.status, neuron.fault),
        (NeuronStatus::Quarantined, None),
        "no run is behind a file of the owner"
    );
    home.tick("price 1").await;
    assert!(home.emitted().is_empty(), "nothing ticks before the owner has approved it");
    home.approve("bitcoin").await.unwrap();
    drop(home);
    let home = world.open();
    home.tick("price 2").await;
    home.tick("weather").await;
    let [signal] = home.emitted().try_into().unwrap();
    assert_eq!((signal.version, signal.data), (neuron.hash, json!(1)));
    assert_eq!(signal.sources, ["neuron:bitcoin", "web.example"]);
    assert_eq!(home.neuron("bitcoin").await.meter.ticks, 2);

    home.book.forget(&AgentName::default(), &named("bitcoin")).await.unwrap();
    assert!(home.store.get::<String>(Table::Meta, bytes_key("bitcoin")).unwrap().is_none(), "its bytes go with it");
}

#[tokio::test]
async fn the_quarantine_refuses_a_component_with_the_same_codes() {
    let home = World::new().open();
    for (number, (text, code)) in [
        ("loop", Some(FaultCode::OverBudget)),
        ("throw", Some(FaultCode::Threw)),
        ("slow", Some(FaultCode::TimedOut)),
        ("text", Some(FaultCode::InvalidOutput)),
        ("random", Some(FaultCode::NonDeterministic)),
        ("unusable", Some(FaultCode::InvalidComponent)),
        ("emit price.other", Some(FaultCode::UndeclaredSignal)),
        ("emit price.seen", Some(FaultCode::OutputMismatch)),
        ("emit a a a a a a a a a", Some(FaultCode::SignalSpam)),
        // The guard is about code, and does not look at a component.
        ("eval(1)", Some(FaultCode::InvalidOutput)),
        (BENIGN, None),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("n{number}");
        let neuron = home.propose_component(&name, text).await;
        let status = if code.is_some() { NeuronStatus::Rejected } else { NeuronStatus::Quarantined };
        assert_eq!((neuron.status, neuron.fault.map(|fault| fault.code)), (status, code), "{text}");
        assert_eq!(home.approve(&name).await.is_ok(), code.is_none(), "{text}");
    }
}

#[tokio::test]
async fn a_component_whose_bytes_are_gone_or_changed_is_disabled_at_once_and_never_executed() {
    for stored in [None, Some("ZW1pdCBwcmljZS5zZWVu"), Some("not base64")] {
        let home = World::new().open();
        home.propose_component("bitcoin", BENIGN).await;
        home.approve("bitcoin").await.unwrap();
        home.learn("benign", BENIGN).await;
        let mut batch = Batch::new();
        match stored {
            Some(text) => batch.put(Table::Meta, bytes_key("bitcoin"), &text).unwrap(),
            None => batch.delete(Table::Meta, bytes_key("bitcoin")),
        }
        home.store.commit(batch).await.unwrap();
        home.tick("price").await;
        let expected = (NeuronStatus::Disabled, Some(FaultCode::InvalidComponent));
        assert_eq!(home.status("bitcoin").await, expected, "{stored:?}");
        assert!(home.emitted().iter().all(|signal| signal.neuron == named("benign")), "{stored:?}");
        assert_eq!(home.emitted().len(), 1, "{stored:?}");
    }
}

#[tokio::test]
async fn only_the_bytes_of_the_draft_are_proposed_and_code_has_none() {
    let home = World::new().open();
    let text = BENIGN.as_bytes();
    for (draft, bytes) in [
        (component("a", BENIGN), None),
        (component("a", BENIGN), Some(&b"emit price.seen"[..])),
        (draft("a", BENIGN), Some(text)),
    ] {
        let refused = home.book.propose(draft, bytes).await.unwrap_err();
        assert_eq!(refused.code, RefusalCode::InvalidRequest);
    }
    // Code that takes the place of a component leaves none of its bytes.
    home.propose_component("a", "loop").await;
    assert!(home.store.get::<String>(Table::Meta, bytes_key("a")).unwrap().is_some());
    assert_eq!(home.propose("a", BENIGN).await.status, NeuronStatus::Quarantined);
    assert!(home.store.get::<String>(Table::Meta, bytes_key("a")).unwrap().is_none());
}

//! Neurons that read the signals of other neurons: in the batch of the run's signal, never in a circle, and only as declared.

use store::DiskFault;

use super::*;

fn reads(kind: &str) -> InputKind {
    InputKind::parse(kind).unwrap()
}

/// A neuron that turns each signal of one kind into one of another.
fn turns(name: &str, from: &str, into: &str) -> NeuronDraft {
    let scenario = |number: u64| Scenario {
        signal: NeuronInput { kind: reads(from), data: json!(number) },
        emits: kinds(&[into]),
    };
    NeuronDraft {
        inputs: BTreeSet::from([reads(from)]),
        outputs: kinds(&[into]),
        scenarios: (1..=3).map(scenario).collect(),
        ..draft(name, &format!("when {from} emit {into}"))
    }
}

async fn learn(home: &Home, draft: NeuronDraft) {
    let name = draft.name.clone();
    home.book.propose(draft, None).await.unwrap();
    home.book.quarantine(&AgentName::default(), &name, &home.host).await.unwrap();
    assert_eq!(home.approve(name.as_str()).await.unwrap().status, NeuronStatus::Trial, "{name}");
}

/// `a` reads runs, `b` reads `a`, and `c` reads `b` and emits the kind that `b` reads.
async fn chained(home: &Home) {
    learn(home, draft("a", BENIGN)).await;
    learn(home, turns("b", "price.seen", "price.high")).await;
    learn(home, turns("c", "price.high", "price.seen")).await;
    learn(home, turns("d", "weather.seen", "weather.bad")).await;
}

fn chain(home: &Home) -> Vec<(String, Option<u64>, u64)> {
    let signals = home.emitted().into_iter().rev();
    signals.map(|signal| (signal.neuron.to_string(), signal.reacts_to, signal.cause)).collect()
}

#[tokio::test]
async fn a_chain_ends_and_carries_its_sources() {
    let home = World::new().open();
    chained(&home).await;
    home.tick("price 7").await;
    let cause = home.bus.latest();
    // The signal of `c` is of the kind that `b` reads, and has gone through `b`.
    let expected = [("a".to_owned(), None, cause), ("b".to_owned(), Some(1), cause), ("c".to_owned(), Some(2), cause)];
    assert_eq!(chain(&home), expected);
    let last = home.emitted().remove(0);
    for source in ["neuron:c", "neuron:b", "neuron:a", "web.example", "code.example"] {
        assert!(last.sources.contains(&source.to_owned()), "{source}: {:?}", last.sources);
    }
    assert_eq!(home.neuron("b").await.meter.ticks, 1);
    assert_eq!(home.neuron("d").await.meter.ticks, 0, "it reads another kind");
    // Without the first there is nothing to read.
    home.book.switch(&AgentName::default(), &named("a"), false, consent()).await.unwrap();
    home.tick("price 8").await;
    assert_eq!(home.emitted().len(), 3);
}

#[tokio::test]
async fn a_neuron_reads_no_host_kind_and_not_its_own() {
    let home = World::new().open();
    let own = NeuronDraft { inputs: BTreeSet::from([reads("price.seen")]), ..draft("own", BENIGN) };
    let refusal = home.book.propose(own, None).await.unwrap_err();
    assert!(refusal.reason.contains("a kind that it emits"), "{refusal:?}");
    let many = NeuronDraft { inputs: (0..9).map(|n| reads(&format!("a.b{n}"))).collect(), ..draft("many", BENIGN) };
    assert!(home.book.propose(many, None).await.is_err());
    for kind in ["approval.asked", "consent.given", "owner.message", "run.awaiting_approval"] {
        let input = json!({ "kind": kind, "data": {} });
        assert!(serde_json::from_value::<NeuronInput>(input).is_err(), "{kind}");
    }
}

#[tokio::test]
async fn a_spreading_chain_is_bounded() {
    let home = World::new().open();
    let spreads = |name: &str, from: &str, into: &str| NeuronDraft {
        program: NeuronProgram::Source(format!("when {from} emit {into} {into} {into}")),
        ..turns(name, from, into)
    };
    learn(&home, draft("a", BENIGN)).await;
    learn(&home, spreads("b", "price.seen", "b.x")).await;
    learn(&home, spreads("c", "b.x", "c.x")).await;
    learn(&home, spreads("d", "c.x", "d.x")).await;
    learn(&home, spreads("e", "d.x", "e.x")).await;
    home.tick("price").await;
    let mut ticks = 0;
    for name in ["a", "b", "c", "d", "e"] {
        ticks += home.neuron(name).await.meter.ticks;
    }
    // 1 + 1 + 3 + 9, and those of 27 that are left.
    assert_eq!(ticks, 32);
}

#[tokio::test]
async fn the_owner_switches_off_in_the_middle_of_a_chain() {
    let home = World::new().open();
    chained(&home).await;
    let hold = Arc::new(Hold::default());
    *home.host.hold.lock().unwrap() = Some(hold.clone());
    home.run_ends("price 7").await;
    home.run_ends("price 8").await;
    let switching = async {
        hold.begun.notified().await;
        let mut off = std::pin::pin!(home.book.switch_all(false, consent()));
        tokio::select! {
            biased;
            _ = &mut off => panic!("the tick is still under way"),
            () = std::future::ready(()) => hold.go.notify_one(),
        }
        off.await.unwrap()
    };
    let (taken, switches) = tokio::join!(home.book.process(&home.host), switching);
    assert_eq!((taken.unwrap(), switches.switched_off), (1, true));
    // That tick counts, and none follows it.
    assert_eq!((home.neuron("a").await.meter.ticks, home.neuron("b").await.meter.ticks), (1, 0));
    while home.book.process(&home.host).await.unwrap() > 0 {}
    assert_eq!(home.emitted().len(), 1);
    home.book.switch_all(true, consent()).await.unwrap();
    home.tick("price 9").await;
    assert_eq!(home.emitted().len(), 4);
}

#[tokio::test]
async fn a_chain_spends_no_more_than_the_agent_has() {
    let home = World::new().open();
    chained(&home).await;
    // A tick may spend 1,000 and spends 40.
    *home.host.left.lock().unwrap() = Some(1_050);
    home.tick("price 7").await;
    let ticks = async |name| home.neuron(name).await.meter.ticks;
    assert_eq!((ticks("a").await, ticks("b").await, ticks("c").await), (1, 1, 0));
    *home.host.left.lock().unwrap() = Some(1_080);
    home.tick("price 8").await;
    assert_eq!((ticks("a").await, ticks("b").await, ticks("c").await), (2, 2, 1));
}

#[tokio::test]
async fn a_crash_leaves_the_whole_chain_or_none_of_it() {
    for reached in [false, true] {
        let world = World::new();
        let home = world.open();
        chained(&home).await;
        home.run_ends("price 7").await;
        world.disk.fail_at(world.disk.writes(), DiskFault::Crash { reached });
        home.book.process(&home.host).await.unwrap_err();
        drop(home);
        let home = world.open();
        assert_eq!(home.emitted().len(), if reached { 3 } else { 0 });
        while home.book.process(&home.host).await.unwrap() > 0 {}
        assert_eq!(chain(&home).len(), 3, "reached {reached}");
    }
}

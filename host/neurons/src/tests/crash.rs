//! The end of the process at every write of a promotion: each step is there as a whole, or not at all, and no signal is processed twice.

use store::DiskFault;

use super::*;

/// Everything that is durable about neurons.
async fn state(home: &Home) -> (Vec<Neuron>, Vec<Vec<NeuronEvent>>, Vec<NeuronSignal>, NeuronSwitches) {
    let neurons = home.book.list(&AgentName::default()).await;
    let mut events = Vec::new();
    for neuron in &neurons {
        events.push(home.book.show(&AgentName::default(), &neuron.draft.name).await.unwrap().1);
    }
    (neurons, events, home.emitted(), home.book.switches().await)
}

/// The two kinds of a program, with the bytes of a component.
fn programs() -> [(NeuronDraft, Option<&'static [u8]>); 2] {
    [(draft("bitcoin", BENIGN), None), (component("bitcoin", BENIGN), Some(BENIGN.as_bytes()))]
}

/// Steps of a life, each one write. Returns the number of those that succeeded, and the first error.
async fn live(
    home: &Home,
    (draft, bytes): &(NeuronDraft, Option<&'static [u8]>),
    steps: usize,
) -> (usize, Result<(), Refusal>) {
    let (agent, name) = (AgentName::default(), named("bitcoin"));
    for step in 0..steps {
        let done = match step {
            0 => home.book.propose(draft.clone(), *bytes).await.map(drop),
            1 => home.book.quarantine(&agent, &name, &home.host).await.map(drop),
            2 => home.approve("bitcoin").await.map(drop),
            3 | 5 | 7 => home.try_run_ends("price 1").await,
            4 | 6 | 8 => home.book.process(&home.host).await.map(drop),
            9 => home.book.switch(&agent, &name, false, consent()).await.map(drop),
            10 => home.book.switch(&agent, &name, true, consent()).await.map(drop),
            _ => home.book.switch_all(false, consent()).await.map(drop),
        };
        if done.is_err() {
            return (step, done);
        }
    }
    (steps, Ok(()))
}

const STEPS: usize = 12;

fn world() -> World {
    let config = NeuronsConfig { trial_hours: 0, trial_events: 3, ..NeuronsConfig::default() };
    World { config, ..World::new() }
}

#[tokio::test]
async fn at_every_write_of_a_promotion_a_step_is_whole_or_not_there() {
    for program in programs() {
        check_every_write(&program).await;
    }
}

async fn check_every_write(program: &(NeuronDraft, Option<&'static [u8]>)) {
    let (mut expected, mut writes) = (Vec::new(), 0);
    for steps in 0..=STEPS {
        let world = world();
        let home = world.open();
        live(&home, program, steps).await.1.unwrap();
        expected.push(state(&home).await);
        writes = world.disk.writes();
    }
    assert_eq!(writes, STEPS as u64, "each step is one write");
    assert_eq!(expected[9].0[0].status, NeuronStatus::Active);
    for write in 0..writes {
        for reached in [false, true] {
            let world = world();
            world.disk.fail_at(write, DiskFault::Crash { reached });
            let home = world.open();
            let (done, result) = live(&home, program, STEPS).await;
            result.unwrap_err();
            drop(home);
            let home = world.open();
            let step = done + usize::from(reached);
            assert_eq!(state(&home).await, expected[step], "write {write}, reached {reached}");
            let (neurons, events, ..) = state(&home).await;
            for (neuron, events) in neurons.into_iter().zip(events) {
                let folded = events.iter().fold(None, |before, event| Some(Neuron::after(before, event).unwrap()));
                assert_eq!(folded, Some(Neuron { meter: Meter::default(), ..neuron.clone() }));
            }
            // A new host goes on: a signal that waits is processed once, and a proposal gets its quarantine.
            home.book.resume(&home.host).await.unwrap();
            while home.book.process(&home.host).await.unwrap() > 0 {}
            let causes: Vec<u64> = home.emitted().iter().map(|signal| signal.cause).collect();
            let mut once = causes.clone();
            once.dedup();
            assert_eq!(causes, once, "write {write}, reached {reached}");
            assert!(home.book.list(&AgentName::default()).await.iter().all(|of| of.status != NeuronStatus::Proposed));
        }
    }
}

#[tokio::test]
async fn a_full_disk_changes_nothing_and_the_signal_is_processed_later() {
    let world = World::new();
    let home = world.open();
    home.learn("bitcoin", BENIGN).await;
    home.run_ends("price").await;
    let before = state(&home).await;
    world.disk.fail_at(world.disk.writes(), DiskFault::Full);
    home.book.process(&home.host).await.unwrap_err();
    assert_eq!(state(&home).await, before);
    assert_eq!(home.book.process(&home.host).await.unwrap(), 1);
    assert_eq!(home.emitted().len(), 1);
}

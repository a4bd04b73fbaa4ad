//! The end of the process at every write: a cycle is there as a whole, or not at all.

use store::DiskFault;

use super::*;

/// Everything that a cycle changes.
fn state(home: &Home) -> (Vec<ledger::PeerReport>, String, Vec<ReflectionRecord>) {
    let peers = home.ledger.list(&agent(), None, 100).unwrap();
    let reports = peers.iter().map(|listed| home.ledger.report(&agent(), &listed.peer).unwrap()).collect();
    (reports, home.injected(), home.cortex.history(100).unwrap())
}

fn replies() -> [String; 4] {
    let both = |trust: i64, value: &str, rationale: &str| {
        json!({
            "assessments": [
                { "peer_id": "mai", "trust": trust, "rationale": "r" },
                { "peer_id": "ben", "trust": -trust, "rationale": "r" },
            ],
            "beliefs": [{ "key": "k", "value": value, "rationale": rationale }, { "key": "l", "value": value, "rationale": "r" }],
            "summary": value,
        })
        .to_string()
    };
    [both(3, "one", "r"), "no reply".to_owned(), both(6, "two", "was one"), both(1, "three", "was two")]
}

/// Steps of a life: messages and cycles in turn. Returns after the first that fails, with the number of those that succeeded.
async fn live(home: &Home, steps: usize) -> (usize, Result<(), Refusal>) {
    for step in 0..steps {
        let done = match step % 3 {
            0 => home.try_hear("mai", "a").await,
            1 => home.try_hear("ben", "b").await,
            _ => {
                let model = Scripted::replying([replies()[step / 3].clone()]);
                home.cortex.reflect(vec![Trigger::Owner], Arc::new(PlainReflector), model).await.map(drop)
            }
        };
        if done.is_err() {
            return (step, done);
        }
    }
    (steps, Ok(()))
}

const STEPS: usize = 12;

#[tokio::test]
async fn at_every_write_a_cycle_is_whole_or_not_there() {
    let mut expected = Vec::new();
    let mut writes = 0;
    for steps in 0..=STEPS {
        let world = World::new();
        let home = world.open();
        live(&home, steps).await.1.unwrap();
        expected.push(state(&home));
        writes = world.disk.writes();
    }
    assert_eq!(writes, STEPS as u64, "each step is one write");
    for write in 0..writes {
        for reached in [false, true] {
            let world = World::new();
            world.disk.fail_at(write, DiskFault::Crash { reached });
            let home = world.open();
            let (done, result) = live(&home, STEPS).await;
            result.unwrap_err();
            // Also in memory nothing of it was applied.
            assert_eq!(home.injected(), expected[done].1);
            drop(home);
            let home = world.open();
            assert_eq!(state(&home), expected[done + usize::from(reached)], "write {write}, reached {reached}");
            home.cycle("mai", trusting("mai", 0)).await;
        }
    }
}

#[tokio::test]
async fn a_full_disk_applies_nothing_and_leaves_the_peers_for_the_next_cycle() {
    let world = World::new();
    let home = world.open();
    home.hears("mai", "a").await;
    let before = state(&home);
    world.disk.fail_at(world.disk.writes(), DiskFault::Full);
    let model = Scripted::replying([trusting("mai", 3).to_string(), trusting("mai", 3).to_string()]);
    home.cortex.reflect(vec![Trigger::Owner], Arc::new(PlainReflector), model.clone()).await.unwrap_err();
    assert_eq!(state(&home), before);
    assert!(refused(&record(home.reflect(&model).await)).is_empty());
    assert_eq!(home.trust("mai"), Some(3));
}

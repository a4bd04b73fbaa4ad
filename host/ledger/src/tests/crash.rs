//! The end of the process at every write: each step of a ledger's life is there as a whole, or not at all.

use base::Refusal;
use store::{DiskFault, Table};

use super::*;
use crate::PeerReport;

/// Steps of a life; returns after the first that fails, with the number of those that succeeded.
async fn live(ledger: &Ledger, steps: usize) -> (usize, Result<(), Refusal>) {
    for step in 0..steps {
        let done = match step {
            0 => ledger.record(&main(), &peer("a"), exchange("one")).await.map(drop),
            1 => ledger.record(&main(), &peer("b"), exchange("two")).await.map(drop),
            2 => ledger.record_assessment(&main(), judgement("a", 3, "kept a promise")).await.map(drop),
            3 => ledger.record(&main(), &peer("a"), exchange("three")).await.map(drop),
            4 => ledger.record_assessment(&main(), judgement("a", -2, "broke one")).await.map(drop),
            5 => ledger.forget(&main(), &peer("a")).await.map(drop),
            _ => ledger.record(&main(), &peer("a"), exchange("again")).await.map(drop),
        };
        if done.is_err() {
            return (step, done);
        }
    }
    (steps, Ok(()))
}

const STEPS: usize = 7;

/// Everything that can be read, and the number of stored entries.
fn state(world: &World, ledger: &Ledger) -> (Vec<PeerReport>, usize, usize) {
    let peers = ledger.list(&main(), None, 100).unwrap();
    let reports = peers.iter().map(|listed| ledger.report(&main(), &listed.peer).unwrap()).collect();
    let is_entry = |table: &Table| matches!(table, Table::Interactions | Table::Assessments);
    let entries = world.disk.records().iter().filter(|(table, ..)| is_entry(table)).count();
    (reports, ledger.forgotten(&main(), 10).unwrap().len(), entries)
}

#[tokio::test]
async fn at_every_write_a_step_is_whole_or_not_there() {
    let mut expected = Vec::new();
    let mut writes = 0;
    for steps in 0..=STEPS {
        let world = World::new();
        let ledger = world.open();
        live(&ledger, steps).await.1.unwrap();
        expected.push(state(&world, &ledger));
        writes = world.disk.writes();
    }
    assert!(writes >= 10, "{writes}");
    for write in 0..writes {
        for reached in [false, true] {
            let world = World::new();
            world.disk.fail_at(write, DiskFault::Crash { reached });
            let ledger = world.open();
            let (done, result) = live(&ledger, STEPS).await;
            result.unwrap_err();
            drop(ledger);
            let ledger = world.open();
            ledger.resume().await.unwrap();
            let found = state(&world, &ledger);
            let is_step = found == expected[done] || found == expected[done + 1];
            assert!(is_step, "write {write}, reached {reached}, after {done} steps: {found:?}");
            // The life goes on.
            ledger.record(&main(), &peer("b"), exchange("on")).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_full_disk_refuses_and_harms_nothing() {
    let world = World::new();
    let ledger = world.open();
    live(&ledger, 3).await.1.unwrap();
    let before = state(&world, &ledger);
    world.disk.fail_at(world.disk.writes(), DiskFault::Full);
    ledger.record(&main(), &peer("c"), exchange("x")).await.unwrap_err();
    assert_eq!(state(&world, &ledger), before);
    ledger.record(&main(), &peer("c"), exchange("x")).await.unwrap();
    assert!(ledger.knows(&main(), &peer("c")).unwrap());
}

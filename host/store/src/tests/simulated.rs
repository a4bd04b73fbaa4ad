//! Abilities of the simulated disk alone: ending a process at a write, and repeating it exactly.

use std::sync::Arc;

use crate::{Batch, DiskFault, Scan, SimulatedDisk, Store, StoreError, Table};

use super::commit::put;

fn keys(store: &Store) -> Vec<String> {
    let found = store.scan::<u64>(Table::Runs, &Scan::all()).unwrap();
    found.into_iter().map(|(key, _)| String::from_utf8(key).unwrap()).collect()
}

#[tokio::test]
async fn a_process_ends_at_a_write_and_its_last_batch_is_there_or_not() {
    for reached in [false, true] {
        let disk = SimulatedDisk::new(1);
        disk.fail_at(1, DiskFault::Crash { reached });
        let store = Store::simulated(disk.clone()).unwrap();
        store.commit(put(Table::Runs, "a", 1)).await.unwrap();
        assert!(!disk.is_crashed());
        let mut whole = put(Table::Runs, "b", 1);
        whole.put(Table::Live, "b", &()).unwrap();
        assert!(matches!(store.commit(whole).await, Err(StoreError::Io { .. })));
        disk.crashed().await;
        assert!(store.commit(put(Table::Runs, "c", 1)).await.is_err(), "it is no more");
        assert_eq!(keys(&store), ["a"], "what nobody was told of is not read");
        assert_eq!(disk.writes(), 2);

        // The remains of the old process do no harm.
        let next = Store::simulated(disk.clone()).unwrap();
        assert!(!disk.is_crashed());
        assert!(store.commit(put(Table::Runs, "d", 1)).await.is_err());
        drop(store);
        next.commit(put(Table::Runs, "e", 1)).await.unwrap();
        let expected: &[&str] = if reached { &["a", "b", "e"] } else { &["a", "e"] };
        assert_eq!(keys(&next), expected);
        assert_eq!(next.get::<()>(Table::Live, "b").unwrap().is_some(), reached, "all of a batch or nothing");
        assert!(matches!(Store::simulated(disk), Err(StoreError::HomeInUse { .. })));
    }
}

#[tokio::test]
async fn a_process_ends_between_two_writes() {
    let disk = SimulatedDisk::new(1);
    disk.crash();
    assert!(!disk.is_crashed(), "nobody had it open");
    let store = Store::simulated(disk.clone()).unwrap();
    store.commit(put(Table::Runs, "a", 1)).await.unwrap();
    let waiting = tokio::spawn({
        let disk = disk.clone();
        async move { disk.crashed().await }
    });
    tokio::task::yield_now().await;
    disk.crash();
    waiting.await.unwrap();
    assert!(store.commit(put(Table::Runs, "b", 1)).await.is_err());
    assert_eq!(keys(&Store::simulated(disk).unwrap()), ["a"]);
}

#[tokio::test]
async fn a_full_disk_refuses_and_goes_on_when_there_is_room() {
    let disk = SimulatedDisk::new(1);
    let store = Store::simulated(disk.clone()).unwrap();
    for write in [1, 2, 4, 5] {
        disk.fail_at(write, DiskFault::Full);
    }
    let mut held = Vec::new();
    for key in ["a", "b", "c", "d"] {
        match store.commit(put(Table::Runs, key, 1)).await {
            Ok(()) => held.push(key),
            Err(error) => assert!(matches!(error, StoreError::Full), "{error:?}"),
        }
    }
    assert_eq!(held, ["a", "d"]);
    disk.heal();
    store.commit(put(Table::Runs, "e", 1)).await.unwrap();
    assert_eq!(keys(&store), ["a", "d", "e"]);
}

#[tokio::test]
async fn a_commit_whose_caller_goes_away_is_made() {
    let store = Store::simulated(SimulatedDisk::new(1)).unwrap();
    let mut commit = Box::pin(store.commit(put(Table::Runs, "a", 1)));
    tokio::select! {
        biased;
        _ = &mut commit => panic!("it lets others run first"),
        () = std::future::ready(()) => {}
    }
    assert!(keys(&store).is_empty(), "not readable before it is durable");
    drop(commit);
    assert_eq!(keys(&store), ["a"]);
}

/// Twenty tasks that commit concurrently, each one batch after the other.
async fn twenty_at_once(disk: &Arc<SimulatedDisk>) {
    let store = Store::simulated(disk.clone()).unwrap();
    let tasks = (0..20_u64).map(|task| {
        let store = store.clone();
        tokio::spawn(async move {
            for n in 0..5 {
                let mut batch = put(Table::Runs, &format!("{task:02}/{n}"), n);
                batch.put(Table::Live, "last", &(task, n)).unwrap();
                store.commit(batch).await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(keys(&store).len(), 100);
    assert_eq!(store.get::<u64>(Table::Runs, "never").unwrap(), None);
    store.commit(Batch::new()).await.unwrap();
}

#[tokio::test]
async fn the_same_seed_gives_the_same_bytes() {
    let mut seen = Vec::new();
    for seed in [1, 1, 2, 3, 4] {
        let disk = SimulatedDisk::new(seed);
        twenty_at_once(&disk).await;
        assert!((5..100).contains(&disk.writes()), "{} writes for 100 commits", disk.writes());
        seen.push((disk.writes(), disk.records()));
    }
    assert!(seen[0] == seen[1]);
    assert!(seen[2..].iter().any(|other| *other != seen[0]), "the seed makes a difference");
}

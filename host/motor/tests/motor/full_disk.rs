//! A disk without room at each write in turn (SPEC DUR-5), in virtual time: the run fails cleanly when that can be written,
//! and waits for room when it cannot. Then the host goes on by itself, and everything acknowledged is still there.

use std::sync::Arc;
use std::time::Duration;

use base::{Refusal, RefusalCode, RunId, Timestamp};
use store::{DiskFault, SimulatedDisk, Store};

use crate::every_write::undisturbed;
use crate::home::{Home, world};
use crate::long_run::{End, Owner, asked, both_attempts, check, is_over, still};
use crate::sim::clock::VirtualClock;

/// The pause between two tries of a client that was told that the disk is full.
const PATIENCE: Duration = Duration::from_secs(1);

/// The effects of the full disk on a run.
#[derive(Debug, Default)]
struct Hurt {
    /// Starts and orders that were refused.
    refused: u32,
    /// How often the run was found suspended.
    suspended: u32,
}

/// A run on a disk that refuses so many writes from the n-th on, to its end.
async fn lives(n: u64, full: u64, when: &str) -> (Home, RunId, Arc<SimulatedDisk>, Hurt) {
    let disk = SimulatedDisk::new(n);
    for write in n..n + full {
        disk.fail_at(write, DiskFault::Full);
    }
    let store = Store::simulated(disk.clone()).unwrap();
    let clock = Arc::new(VirtualClock::starting_at(Timestamp::from_millis(1_700_000_000_000)));
    let home = Home::with_clock(Arc::new(tempfile::tempdir().unwrap()), world(both_attempts()), store, clock);
    let mut hurt = Hurt::default();
    let mut refused = |refusal: Refusal| {
        assert_eq!(refusal.code, RefusalCode::StorageFailed, "{when}: {refusal}");
        assert!(refusal.reason.contains("the disk is full"), "{when}: {refusal}");
        hurt.refused += 1;
    };
    let id = loop {
        match home.motor.start(home.motor.new_run_id(), asked()).await {
            Ok(record) => break record.id,
            Err(refusal) => refused(refusal),
        }
        tokio::time::sleep(PATIENCE).await;
    };
    let (mut owner, mut suspended) = (Owner::default(), 0);
    loop {
        match still(&home, &id).await {
            Some(record) if is_over(&record) => break,
            Some(record) => match owner.serves(&home, &record).await {
                Ok(()) => continue,
                Err(refusal) => refused(refusal),
            },
            None => suspended += 1,
        }
        tokio::time::sleep(PATIENCE).await;
    }
    hurt.suspended = suspended;
    (home, id, disk, hurt)
}

/// The end of such a run, checked. None when the disk was not full before it.
async fn end(n: u64, full: u64) -> Option<(End, Hurt)> {
    let when = format!("{full} writes from {n} on");
    let (home, id, disk, hurt) = lives(n, full, &when).await;
    if disk.writes() <= n {
        return None;
    }
    disk.heal();
    let end = End::of(&home.motor.status(&id).unwrap());
    check(&home, &id, &end, &when).await;
    Some((end, hurt))
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_full_for_a_while_holds_the_run_up_and_no_more() {
    let expected = undisturbed().await;
    let (mut n, mut waited) = (0, 0);
    // An even number: a driver that cannot write its events tries to write that the run failed.
    while let Some((end, hurt)) = end(n, 10).await {
        assert!(hurt.refused + hurt.suspended > 0, "{n}: nobody noticed");
        if hurt.refused.is_multiple_of(2) {
            end.check(&expected, &format!("full from {n} on"));
            waited += u32::from(hurt.suspended > 0);
        }
        n += 1;
    }
    assert!(waited >= 44, "{waited} of {n}");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_full_for_a_moment_fails_the_attempt_cleanly_and_refuses_an_order() {
    let (mut n, mut refused, mut failed) = (0, 0, 0);
    while let Some((end, hurt)) = end(n, 1).await {
        assert_eq!(hurt.suspended, 0, "{n}: {hurt:?}");
        match (hurt.refused, end.attempts) {
            (1, 2) => refused += 1,
            (0, 3) => failed += 1,
            // It was among the failures that end the first attempt anyway.
            (0, 2) => {}
            _ => panic!("{n}: {hurt:?}, {end:?}"),
        }
        n += 1;
    }
    // The start, two answers, seven decisions, a retry.
    assert_eq!(refused, 11);
    assert!(failed >= 40, "{failed} of {n}");
}

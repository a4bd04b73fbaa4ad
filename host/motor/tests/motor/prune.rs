//! Deleting runs: nothing of them is left but a key, and a crash leaves all of a run or nothing.

use std::sync::Arc;
use std::time::Duration;

use base::{AgentName, RefusalCode, RunId, Timestamp};
use motor::{KEY_MEMORY, RetryRequest, RunRequest, RunStatus};
use serde_json::json;
use store::{DiskFault, SimulatedDisk, Store};

use crate::home::{Home, Turn, call, request, world};
use crate::sim::clock::VirtualClock;

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// A disk in memory that outlives its hosts, and a clock that can be set.
pub struct Disk {
    pub disk: Arc<SimulatedDisk>,
    pub clock: Arc<VirtualClock>,
    turns: Vec<Turn>,
}

impl Disk {
    pub fn new(turns: Vec<Turn>) -> Self {
        let clock = Arc::new(VirtualClock::starting_at(Timestamp::from_millis(1_700_000_000_000)));
        Self { disk: SimulatedDisk::new(7), clock, turns }
    }

    pub fn open(&self) -> Home {
        let store = Store::simulated(self.disk.clone()).unwrap();
        let directory = Arc::new(tempfile::tempdir().unwrap());
        Home::with_clock(directory, world(self.turns.clone()), store, self.clock.clone())
    }

    /// The records of a run: table and key of each.
    fn of(&self, run: &RunId) -> Vec<String> {
        let has = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(run.as_str());
        let records = self.disk.records().into_iter();
        let records = records.filter(|(_, key, value)| has(key) || has(value));
        records.map(|(table, key, _)| format!("{table} {}", String::from_utf8_lossy(&key))).collect()
    }
}

fn turns() -> Vec<Turn> {
    vec![call("append", json!({"text": "a"})), Turn::Say("done")]
}

fn keyed(key: &str) -> RunRequest {
    RunRequest { key: Some(key.to_owned()), ..request() }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_a_deleted_run_but_its_key_for_a_week() {
    let disk = Disk::new(turns());
    let home = disk.open();
    let kept = home.run(keyed("kept")).await.id;
    let run = home.run(keyed("gone")).await.id;
    let before = disk.of(&kept);
    assert!(disk.of(&run).len() > 5);
    home.motor.delete(&run).await.unwrap();
    assert_eq!(home.motor.delete(&run).await.unwrap_err().code, RefusalCode::NotFound);
    assert_eq!(home.motor.status(&run).unwrap_err().code, RefusalCode::NotFound);
    let left = disk.of(&run);
    // Its key, its signals, that it was forgotten, and its spending of the day, which stays spent.
    assert_eq!(left.len(), 4, "{left:?}");
    assert!(left.iter().any(|key| key == "places command/main/gone"), "{left:?}");
    assert!(left.iter().any(|key| key.starts_with("signals")), "{left:?}");
    assert_eq!(disk.of(&kept), before);

    // The same command must not become another run, until it has long been forgotten.
    let refused = home.motor.start(home.motor.new_run_id(), keyed("gone")).await.unwrap_err();
    assert_eq!(refused.code, RefusalCode::InvalidRequest);
    assert!(refused.reason.contains(&format!("stands for run `{run}`, which was deleted")), "{refused}");
    assert_eq!(home.motor.forget_keys(10).await.unwrap(), 0);
    tokio::time::sleep(KEY_MEMORY).await;
    assert_eq!(home.motor.forget_keys(10).await.unwrap(), 1);
    assert_eq!(disk.of(&run).len(), 2, "its signal and its spending: {:?}", disk.of(&run));
    let again = home.run(keyed("gone")).await;
    assert_eq!(again.status, RunStatus::Completed);
    assert_eq!(home.motor.start(home.motor.new_run_id(), keyed("kept")).await.unwrap().id, kept);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_forgets_no_key_too_early() {
    let week = i64::try_from(KEY_MEMORY.as_millis()).unwrap();
    for jump in [2 * week, -2 * week] {
        let disk = Disk::new(turns());
        let home = disk.open();
        let run = home.run(keyed("gone")).await.id;
        disk.clock.jump(jump);
        home.motor.delete(&run).await.unwrap();
        assert_eq!(home.motor.forget_keys(10).await.unwrap(), 0, "{jump}");
        disk.clock.jump(-jump);
        assert_eq!(home.motor.forget_keys(10).await.unwrap(), 0, "{jump}");
        // A host that has lived long enough, with a clock that is right, forgets it.
        tokio::time::sleep(KEY_MEMORY + KEY_MEMORY * 2).await;
        assert_eq!(home.motor.forget_keys(10).await.unwrap(), 1, "{jump}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_not_over_is_not_deleted() {
    let ask = call("ask_user", json!({"question": "Which?"}));
    let disk = Disk::new(vec![ask, Turn::Hang]);
    let home = disk.open();
    let waiting = home.start(RunRequest { may_ask: true, ..request() }).await;
    while home.motor.record(&waiting).unwrap().status != RunStatus::AwaitingInput {
        tokio::task::yield_now().await;
    }
    let refused = home.motor.delete(&waiting).await.unwrap_err();
    assert_eq!(refused.code, RefusalCode::IllegalState);
    assert_eq!(refused.remedy.unwrap(), format!("`motor task cancel {waiting}` ends it"));
    assert!(home.motor.expired(Timestamp::from_millis(u64::MAX), None, 10).unwrap().runs.is_empty());
    home.motor.cancel(&waiting).await.unwrap();
    home.motor.delete(&waiting).await.unwrap();
    // The place is free, as after any end.
    assert!(home.motor.unfinished(&AgentName::default()).unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_crash_while_a_run_is_deleted_leaves_all_of_it_or_nothing() {
    for reached in [false, true] {
        for fault in [DiskFault::Crash { reached }, DiskFault::Io { reached }] {
            let disk = Disk::new(turns());
            let home = disk.open();
            let run = home.run(keyed("k")).await.id;
            let before = disk.of(&run);
            disk.disk.fail_at(disk.disk.writes(), fault);
            home.motor.delete(&run).await.unwrap_err();
            drop(home);
            let home = disk.open();
            if reached {
                assert_eq!(home.motor.delete(&run).await.unwrap_err().code, RefusalCode::NotFound, "{fault:?}");
            } else {
                assert_eq!(disk.of(&run), before, "{fault:?}");
                assert_eq!(home.motor.status(&run).unwrap().steps.len(), 2, "{fault:?}");
                home.motor.delete(&run).await.unwrap();
            }
            assert_eq!(disk.of(&run).len(), 4, "{fault:?}: {:?}", disk.of(&run));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_oldest_are_found_a_page_at_a_time_and_only_those_that_are_old_enough() {
    let disk = Disk::new(turns());
    let home = disk.open();
    let mut old = Vec::new();
    for _ in 0..5 {
        old.push(home.run(request()).await.id);
    }
    // Those of one millisecond sort by chance.
    old.sort();
    tokio::time::sleep(DAY).await;
    let cutoff = base::Clock::now(&*disk.clock);
    home.run(request()).await;
    let (mut found, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = home.motor.expired(cutoff, after.as_ref(), 2).unwrap();
        found.extend(page.runs);
        (after, pages) = (page.next, pages + 1);
        if after.is_none() {
            break;
        }
    }
    assert_eq!((found, pages), (old, 3));
}

#[tokio::test(start_paused = true)]
async fn a_retry_and_a_deletion_at_the_same_time_are_one_of_the_two() {
    for turn in 0..10 {
        let disk = Disk::new(vec![Turn::Ends(llm::FinishReason::Refused, "no", Vec::new())]);
        let home = disk.open();
        let run = home.run(request()).await;
        assert_eq!(run.status, RunStatus::Failed);
        let retrying = async {
            for _ in 0..turn {
                tokio::task::yield_now().await;
            }
            home.motor.retry(&run.id, RetryRequest::default()).await
        };
        let (deleted, retried) = tokio::join!(home.motor.delete(&run.id), retrying);
        match (deleted, retried) {
            (Ok(()), Err(refused)) => assert_eq!(refused.code, RefusalCode::NotFound),
            (Err(_), Ok(_)) => assert_eq!(home.motor.record(&run.id).unwrap().attempt, 1),
            other => panic!("{turn}: {other:?}"),
        }
    }
}

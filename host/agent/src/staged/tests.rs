//! Staged writes over a simulated disk: limits, and at most one sending however the host dies.

use std::collections::BTreeSet;

use base::{ContentHash, Door, TestClock, Timestamp};
use store::{DiskFault, SimulatedDisk};

use super::*;
use crate::api::staged::StagedResponse;

fn run() -> RunId {
    RunId::parse("run_1").unwrap()
}

fn staged(disk: &Arc<SimulatedDisk>) -> Arc<StagedWrites> {
    let clock = Arc::new(TestClock::at(Timestamp::from_millis(1_000)));
    Arc::new(StagedWrites::new(Store::simulated(disk.clone()).unwrap(), clock))
}

fn write(key: &str, body: &str) -> HeldWrite {
    HeldWrite {
        method: "POST".to_owned(),
        url: "https://api.example.com/pay".to_owned(),
        headers: Vec::new(),
        credentials: BTreeSet::new(),
        hash: ContentHash::of(body.as_bytes()),
        key: key.to_owned(),
        sources: vec!["news.example".to_owned()],
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

fn consent() -> ConsentRecord {
    ConsentRecord { given_by: "owner".to_owned(), door: Door::Terminal, at: Timestamp::from_millis(2_000) }
}

fn shown(number: u32, body: &str) -> ShownWrite {
    ShownWrite { number, hash: ContentHash::of(body.as_bytes()) }
}

fn answered() -> SendOutcome {
    SendOutcome::Answered(StagedResponse {
        status: 201,
        headers: Vec::new(),
        body: Some("made".to_owned()),
        body_bytes: 4,
        broken: None,
        duration_ms: 1.0,
    })
}

fn statuses(staged: &StagedWrites) -> Vec<(u32, StagedStatus)> {
    staged.list(&run()).unwrap().into_iter().map(|write| (write.number, write.status)).collect()
}

#[tokio::test]
async fn a_write_is_held_whole_and_once_for_each_key() {
    let disk = SimulatedDisk::new(1);
    let staged = staged(&disk);
    let stage = staged.of_run(run());
    assert_eq!(stage.hold(write("a", "one")).await, Ok(1));
    assert_eq!(stage.hold(write("b", "two")).await, Ok(2));
    assert_eq!(stage.hold(write("a", "one")).await, Ok(1), "its call was made again");
    // Runs do not share numbers, also if one's id begins with the other's.
    let other = RunId::parse("run_12").unwrap();
    assert_eq!(staged.of_run(other.clone()).hold(write("a", "one")).await, Ok(1));
    assert_eq!((staged.list(&run()).unwrap().len(), staged.list(&other).unwrap().len()), (2, 1));

    let listed = staged.list(&run()).unwrap();
    assert_eq!((listed[0].body.as_deref(), listed[0].body_bytes), (Some("one"), 3));
    assert_eq!(
        (listed[0].idempotency_key.as_str(), listed[0].sources.as_slice()),
        ("a", ["news.example".to_owned()].as_slice())
    );
    let binary = HeldWrite { body: Bytes::from_static(&[0xff, 0]), ..write("c", "") };
    assert_eq!(stage.hold(binary).await, Ok(3));
    let listed = staged.list(&run()).unwrap();
    assert_eq!((listed[2].body.as_deref(), listed[2].body_base64.as_deref()), (None, Some("/wA=")));
}

#[tokio::test]
async fn number_and_size_are_limited() {
    let disk = SimulatedDisk::new(1);
    let staged = staged(&disk);
    let stage = staged.of_run(run());
    let large = |key: &str, bytes: usize| write(key, &"x".repeat(bytes));
    let too_large = stage.hold(large("a", 1 << 20)).await.unwrap_err();
    assert!(too_large.reason.contains("at most 1048576"), "{too_large:?}");
    for n in 0..8 {
        assert!(stage.hold(large(&n.to_string(), (1 << 20) - 100)).await.is_ok());
    }
    let full = stage.hold(large("b", 2_000)).await.unwrap_err();
    assert!(full.reason.contains("too many bytes together"), "{full:?}");

    let stage = staged.of_run(RunId::parse("run_2").unwrap());
    for n in 0..MAX_STAGED_WRITES {
        assert!(stage.hold(write(&n.to_string(), "x")).await.is_ok());
    }
    let many = stage.hold(write("one more", "x")).await.unwrap_err();
    assert!(many.reason.contains("at most 100"), "{many:?}");
    assert!(stage.hold(write("7", "x")).await.is_ok(), "it is held already");
}

#[tokio::test]
async fn a_full_disk_holds_nothing_and_says_so() {
    let disk = SimulatedDisk::new(1);
    let staged = staged(&disk);
    let stage = staged.of_run(run());
    disk.fail_at(disk.writes(), DiskFault::Full);
    assert!(stage.hold(write("a", "one")).await.unwrap_err().reason.contains("could not store it"));
    assert!(statuses(&staged).is_empty());
    assert_eq!(stage.hold(write("a", "one")).await, Ok(1));
}

/// Sends a write as the host does. `gone` counts the times that its bytes left.
async fn send(staged: &Arc<StagedWrites>, again: Again, gone: &mut u32) -> Result<StagedWrite, Refusal> {
    let attempt = staged.begin(&run(), &shown(1, "one"), again, consent()).await?;
    *gone += 1;
    attempt.end(answered()).await
}

#[tokio::test]
async fn the_host_dies_at_every_write_and_nothing_is_sent_twice() {
    for (write_number, reached) in (0..3).flat_map(|number| [(number, false), (number, true)]) {
        let disk = SimulatedDisk::new(1);
        let mut gone = 0;
        let first = staged(&disk);
        let before = disk.writes();
        disk.fail_at(before + write_number, DiskFault::Crash { reached });
        let held = first.of_run(run()).hold(write("a", "one")).await;
        assert_eq!(held.is_ok(), write_number > 0);
        send(&first, Again::Refused, &mut gone).await.ok();
        disk.crash();
        drop(first);

        let next = staged(&disk);
        let status = statuses(&next).first().map(|(_, status)| *status);
        // A write that may have left is never taken for one that has not.
        assert!(
            gone == 0 || !matches!(status, None | Some(StagedStatus::Held)),
            "{write_number} {reached}: {status:?}"
        );
        let expected = match (write_number, reached) {
            (0, false) => None,
            (0, true) | (1, false) => Some(StagedStatus::Held),
            (1, true) | (2, false) => Some(StagedStatus::OutcomeUnknown),
            _ => Some(StagedStatus::Sent),
        };
        assert_eq!(status, expected, "{write_number} {reached}");
        let again = send(&next, Again::Refused, &mut gone).await;
        assert!(gone <= 1, "{write_number} {reached}");
        assert_eq!(again.is_ok(), expected == Some(StagedStatus::Held));
        // Only the owner's explicit word sends one again that may have left.
        if expected == Some(StagedStatus::OutcomeUnknown) {
            assert_eq!(again.unwrap_err().code, RefusalCode::IllegalState);
            assert_eq!(send(&next, Again::Allowed, &mut gone).await.unwrap().status, StagedStatus::Sent);
            assert!(send(&next, Again::Allowed, &mut gone).await.is_err(), "sent is sent");
        }
    }
}

#[tokio::test]
async fn of_two_consents_at_once_one_sends() {
    let disk = SimulatedDisk::new(1);
    let staged = staged(&disk);
    staged.of_run(run()).hold(write("a", "one")).await.unwrap();
    let begin = || async { staged.begin(&run(), &shown(1, "one"), Again::Allowed, consent()).await };
    let (first, second) = tokio::join!(begin(), begin());
    assert_eq!(usize::from(first.is_ok()) + usize::from(second.is_ok()), 1);
    assert_eq!(statuses(&staged), [(1, StagedStatus::Sending)]);
    assert_eq!(staged.discard(&run(), &[1], &consent()).await.unwrap_err().code, RefusalCode::IllegalState);
    let attempt = first.or(second).unwrap();
    attempt.end(SendOutcome::Unknown("it broke off".to_owned())).await.unwrap();
    assert_eq!(statuses(&staged), [(1, StagedStatus::OutcomeUnknown)]);
    // An attempt that is given up without an end may have sent it.
    drop(begin().await.unwrap());
    assert_eq!(statuses(&staged), [(1, StagedStatus::OutcomeUnknown)]);
}

#[tokio::test]
async fn a_write_of_which_nothing_left_may_be_sent_again() {
    let disk = SimulatedDisk::new(1);
    let staged = staged(&disk);
    staged.of_run(run()).hold(write("a", "one")).await.unwrap();
    let attempt = staged.begin(&run(), &shown(1, "one"), Again::Refused, consent()).await.unwrap();
    let ended = attempt.end(SendOutcome::NotSent("refused".to_owned())).await.unwrap();
    assert_eq!((ended.status, ended.failure.as_deref()), (StagedStatus::Held, Some("refused")));
    let sent = send(&staged, Again::Refused, &mut 0).await.unwrap();
    assert_eq!((sent.status, sent.failure, sent.response.unwrap().status), (StagedStatus::Sent, None, 201));
}

#[tokio::test]
async fn what_was_not_shown_is_not_sent_and_what_is_discarded_stays_so() {
    let disk = SimulatedDisk::new(1);
    let staged = staged(&disk);
    let stage = staged.of_run(run());
    for (key, body) in [("a", "one"), ("b", "two"), ("c", "three")] {
        stage.hold(write(key, body)).await.unwrap();
    }
    let check = |writes: &[ShownWrite]| staged.check(&run(), writes, Again::Refused).map_err(|refusal| refusal.code);
    assert_eq!(check(&[shown(1, "one"), shown(2, "two")]), Ok(()));
    assert_eq!(check(&[shown(1, "two")]), Err(RefusalCode::IllegalState));
    assert_eq!(check(&[shown(4, "one")]), Err(RefusalCode::NotFound));
    assert_eq!(check(&[shown(1, "one"), shown(1, "one")]), Err(RefusalCode::InvalidRequest));
    assert_eq!(staged.discard(&run(), &[2, 9], &consent()).await.unwrap_err().code, RefusalCode::NotFound);
    assert_eq!(statuses(&staged)[1], (2, StagedStatus::Held), "all or nothing");
    staged.discard(&run(), &[2], &consent()).await.unwrap();
    assert_eq!(check(&[shown(2, "two")]), Err(RefusalCode::IllegalState));
    send(&staged, Again::Refused, &mut 0).await.unwrap();
    assert!(staged.discard(&run(), &[1], &consent()).await.is_err(), "it was sent");
    staged.discard(&run(), &[], &consent()).await.unwrap();
    let all = [(1, StagedStatus::Sent), (2, StagedStatus::Discarded), (3, StagedStatus::Discarded)];
    assert_eq!(statuses(&staged), all);
}

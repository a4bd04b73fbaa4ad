//! The outbox of channels over crashes, stops and failures: no reply is lost where the channel drops repetitions, and none is delivered
//! twice (SPEC COG-1).

use std::collections::BTreeMap;
use std::time::Duration;

use store::{DiskFault, SimulatedDisk};
use tokio::time::Instant;

use super::channel::{Lines, stop};
use super::*;

const KINDS: [bool; 2] = [false, true];

fn answer(_: &ChatRequest) -> ChatReply {
    says("yes")
}

fn mai() -> PeerId {
    PeerId::parse("mai").unwrap()
}

/// A host over the disk that serves the channel.
async fn host(home: &Home, disk: &Arc<SimulatedDisk>, lines: &Arc<Lines>) -> Cognition {
    *home.script.decides.lock() = Some(answer);
    let cognition = home.open_on(Store::simulated(disk.clone()).unwrap()).await.unwrap();
    cognition.serve(lines.clone()).unwrap();
    cognition
}

async fn until_idle(cognition: &Cognition, conversations: usize) {
    while cognition.idle().await.unwrap().len() < conversations {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Two messages, received again by each host until they are settled, and answered one after the other.
async fn play(cognition: &Cognition, lines: &Lines) {
    for id in ["1", "2"] {
        lines.write(id, "hello");
        lines.until_settled().await;
        until_idle(cognition, 1).await;
    }
}

/// The deliveries when the process ends at the given write, and the number of writes.
async fn delivered(home: &Home, repeats: bool, crash: Option<(u64, bool)>) -> (Vec<Outbound>, u64) {
    let (disk, lines) = (SimulatedDisk::new(1), Lines::with(|lines| lines.repeats = repeats));
    if let Some((write, reached)) = crash {
        disk.fail_at(write, DiskFault::Crash { reached });
    }
    let cognition = loop {
        let store = Store::simulated(disk.clone()).unwrap();
        let Ok(cognition) = home.open_on(store).await else { continue };
        cognition.serve(lines.clone()).unwrap();
        let has_ended = tokio::select! {
            biased;
            () = disk.crashed() => false,
            () = play(&cognition, &lines) => true,
        };
        if has_ended {
            break cognition;
        }
        cognition.shutdown().await;
        lines.reset();
    };
    // A delivery that was claimed right before is made.
    cognition.shutdown().await;
    let delivered = lines.delivered.lock().clone();
    (delivered, disk.writes())
}

#[tokio::test]
async fn at_every_write_a_reply_is_delivered_and_none_twice() {
    let home = Home::new().await;
    *home.script.decides.lock() = Some(answer);
    let events = |replies: &[Outbound]| replies.iter().map(|reply| (reply.event, reply.text.clone())).collect();
    for repeats in KINDS {
        let (expected, writes) = delivered(&home, repeats, None).await;
        let expected: BTreeMap<u64, String> = events(&expected);
        assert_eq!(expected.len(), 2);
        let (mut repeated, mut lost) = (0, 0);
        for write in 0..writes {
            for reached in [false, true] {
                let (replies, _) = delivered(&home, repeats, Some((write, reached))).await;
                let case = format!("write {write}, reached {reached}, repeats {repeats}");
                let found: BTreeMap<u64, String> = events(&replies);
                assert!(found.iter().all(|reply| expected.iter().any(|other| other == reply)), "{case}: {replies:?}");
                repeated += replies.len() - found.len();
                lost += expected.len() - found.len();
            }
        }
        // The channel knows a repetition by its event. Without that, a claim that reached the disk unacknowledged is one reply that
        // is not delivered: it might have been.
        let outcome = if repeats { (2, 0) } else { (0, 2) };
        assert_eq!((repeated, lost), outcome, "repeats {repeats}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_fails_is_tried_until_it_succeeds_and_keeps_no_other_waiting() {
    for repeats in KINDS {
        let (home, disk) = (Home::new().await, SimulatedDisk::new(1));
        let lines = Lines::with(|lines| {
            lines.repeats = repeats;
            lines.unreachable = Mutex::new(Some((mallory(), 0)));
        });
        let first = host(&home, &disk, &lines).await;
        lines.write("1", "hello");
        let tries = |lines: &Lines| lines.unreachable.lock().as_ref().map_or(0, |(_, tries)| *tries);
        lines.until(|lines| tries(lines) > 5).await;
        lines.write_as(&mai(), "2", "hello");
        lines.until(|lines| lines.delivered.lock().len() == 1).await;
        assert_eq!(lines.delivered.lock()[0].peer, mai());
        // Over a stop in the pause, and with a pause that has a bound.
        first.shutdown().await;
        drop(first);
        let before = tries(&lines);
        let next = host(&home, &disk, &lines).await;
        tokio::time::sleep(Duration::from_secs(300)).await;
        let tried = tries(&lines) - before;
        assert!((8..15).contains(&tried), "{tried}");
        *lines.unreachable.lock() = None;
        lines.until(|lines| lines.delivered.lock().len() == 2).await;
        assert_eq!(lines.delivered.lock()[1].peer, mallory());
        until_idle(&next, 2).await;
        next.shutdown().await;
        drop(next);
        let last = host(&home, &disk, &lines).await;
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(lines.delivered.lock().len(), 2, "neither is delivered again");
        last.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn peers_whose_deliveries_fail_slowly_keep_no_other_waiting_for_long() {
    // So many that one of them is always due for a further try.
    let slow = ["aaa", "bbb", "ccc", "ddd", "eee"].map(|name| PeerId::parse(name).unwrap());
    for repeats in KINDS {
        let (home, disk) = (Home::new().await, SimulatedDisk::new(1));
        let lines = Lines::with(|lines| (lines.repeats, lines.slow) = (repeats, slow.to_vec()));
        let cognition = host(&home, &disk, &lines).await;
        for peer in &slow {
            lines.write_as(peer, peer.as_str(), "hello");
            lines.until_settled().await;
        }
        tokio::time::sleep(Duration::from_secs(400)).await;
        for number in 1..=3_usize {
            lines.write_as(&mai(), &number.to_string(), "hello");
            let arrives = lines.until(|lines| lines.delivered.lock().len() == number);
            let arrived = tokio::time::timeout(Duration::from_secs(100), arrives).await;
            assert!(arrived.is_ok(), "reply {number}, repeats {repeats}");
        }
        assert!(lines.delivered.lock().iter().all(|reply| reply.peer == mai()));
        cognition.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_a_delivery_finish_that_takes_a_while() {
    for repeats in KINDS {
        for (takes, arrives) in [(Duration::from_secs(1), true), (Duration::from_secs(3600), false)] {
            let (home, disk) = (Home::new().await, SimulatedDisk::new(1));
            let slow = Lines::with(|lines| (lines.repeats, lines.takes) = (repeats, takes));
            let first = host(&home, &disk, &slow).await;
            slow.write("1", "hello");
            slow.until_settled().await;
            // Said, and on its way.
            tokio::time::sleep(Duration::from_millis(500)).await;
            assert_eq!(slow.texts(), [""; 0]);
            let began = Instant::now();
            first.shutdown().await;
            drop(first);
            assert!(began.elapsed() < Duration::from_secs(5), "a stop has a bound");
            assert_eq!(slow.texts().len(), usize::from(arrives));
            // One that was broken off is repeated where that is safe.
            let quick = Lines::with(|lines| lines.repeats = repeats);
            let next = host(&home, &disk, &quick).await;
            tokio::time::sleep(Duration::from_secs(100)).await;
            assert_eq!(quick.texts().len(), usize::from(repeats && !arrives), "repeats {repeats}, {takes:?}");
            next.shutdown().await;
        }
    }
}

#[tokio::test]
async fn a_reply_that_a_killed_host_was_delivering_is_repeated_under_its_event_if_that_is_safe() {
    for repeats in KINDS {
        let (home, disk) = (Home::new().await, SimulatedDisk::new(1));
        let hanging = Lines::with(|lines| (lines.repeats, lines.hangs) = (repeats, true));
        let first = host(&home, &disk, &hanging).await;
        hanging.write("1", "hello");
        hanging.until(|lines| lines.delivered.lock().len() == 1).await;
        disk.crash();
        stop(&first, true).await;
        drop(first);
        let lines = Lines::with(|lines| lines.repeats = repeats);
        let next = host(&home, &disk, &lines).await;
        until_idle(&next, 1).await;
        next.shutdown().await;
        let expected = if repeats { hanging.delivered.lock().clone() } else { Vec::new() };
        assert_eq!(*lines.delivered.lock(), expected);
    }
}

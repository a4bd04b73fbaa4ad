//! A turn that meets a full disk goes on by itself once there is room (SPEC COG-1).

use std::time::Duration;

use store::{DiskFault, SimulatedDisk};
use tokio::time::Instant;

use super::*;

/// Says something and judges a peer before it answers.
fn decide(request: &ChatRequest) -> ChatReply {
    let outcomes = request.messages.iter().rev().take_while(|message| !matches!(message, llm::Message::User { .. }));
    match outcomes.filter(|message| matches!(message, llm::Message::Tool { .. })).count() {
        0 => calls("core_say", json!({ "text": "on it" })),
        1 => calls("core_assess_peer", json!({ "peerId": "mai", "trust": 3, "rationale": "paid" })),
        _ => says("done"),
    }
}

/// Writes of a turn after its message, with which it begins: the reply and the outcome of each call, the answer.
const WRITES: u64 = 5;

#[tokio::test(start_paused = true)]
async fn a_turn_goes_on_by_itself_once_the_disk_has_room() {
    for failures in [0, 1, 5] {
        for first in 0..WRITES {
            let (home, disk) = (Home::new().await, SimulatedDisk::new(1));
            *home.script.decides.lock() = Some(decide);
            *home.script.offers_assess_peer.lock() = true;
            let cognition = home.open_on(Store::simulated(disk.clone()).unwrap()).await.unwrap();
            hears_of_mai(&cognition).await.unwrap();
            let before = home.exchange(&cognition, "mai: 3").await;
            home.script.asked.lock().clear();
            // The next write accepts the message.
            let first = disk.writes() + 1 + first;
            for write in first..first + failures {
                disk.fail_at(write, DiskFault::Full);
            }
            let began = Instant::now();
            let events = home.exchange(&cognition, "again, mai: 3").await;
            let case = format!("{failures} failures from write {first}");
            assert_eq!(said(&events), [said(&before), vec!["on it", "done"]].concat(), "{case}");
            let ended = events.iter().filter(|event| matches!(event, ChatEventBody::Ended { error: None, .. })).count();
            assert_eq!(ended, 2, "{case}");
            // One reply may be lost with the first failure. No model is asked while the disk is full.
            let asked = home.script.asked.lock().len();
            assert!((3..=3 + usize::from(failures > 0)).contains(&asked), "{case}: {asked}");
            // One for each turn, also if its outcome could not be stored at first.
            assert_eq!(judgements(&cognition, "mai"), [3, 3], "{case}");
            let took = began.elapsed();
            assert_eq!(took >= Duration::from_secs(1), failures > 0, "{case}: {took:?}");
            assert!(took < Duration::from_secs(60), "{case}: {took:?}");
            cognition.shutdown().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_ends_the_pause_and_a_stop_ends_the_worker() {
    let (home, disk) = (Home::new().await, SimulatedDisk::new(1));
    *home.script.decides.lock() = Some(|_| says("yes"));
    let cognition = home.open_on(Store::simulated(disk.clone()).unwrap()).await.unwrap();
    home.exchange(&cognition, "one").await;
    let full = |count: u64| {
        let first = disk.writes() + 1;
        (first..first + count).for_each(|write| disk.fail_at(write, DiskFault::Full));
    };
    full(1);
    let began = Instant::now();
    cognition.accept(home.owners("two", None).await).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    home.exchange(&cognition, "three").await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    full(10_000);
    cognition.accept(home.owners("four", None).await).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1_000)).await;
    let began = Instant::now();
    cognition.shutdown().await;
    assert!(began.elapsed() < Duration::from_secs(1));
    disk.heal();
    drop(cognition);
    // The next host answers.
    let next = home.open_on(Store::simulated(disk).unwrap()).await.unwrap();
    next.begin().unwrap();
    while next.idle().await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let history = next.history(&key(None), 100).unwrap();
    assert_eq!(history.iter().filter(|event| matches!(event.body, ChatEventBody::Said { .. })).count(), 4);
    next.shutdown().await;
}

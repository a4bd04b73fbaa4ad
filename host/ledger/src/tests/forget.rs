//! Forgetting: nothing about the peer stays but the note, which does not name it.

use base::RefusalCode;
use store::Table;

use super::*;

fn is_on_disk(world: &World, text: &str) -> bool {
    let contains = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    world.disk.records().iter().any(|(_, key, value)| contains(key) || contains(value))
}

#[tokio::test]
async fn a_forgotten_peer_leaves_a_note_without_its_name() {
    let world = World::new();
    let ledger = world.open();
    for id in ["npub-secret", "npub-other"] {
        ledger.record(&main(), &peer(id), exchange("canary-summary")).await.unwrap();
        ledger.record_assessment(&main(), judgement(id, 3, "canary-rationale")).await.unwrap();
    }
    world.clock.advance(DAY);
    let note = ledger.forget(&main(), &peer("npub-secret")).await.unwrap();
    assert_eq!((note.interactions, note.assessments), (2, 1));
    assert!(!is_on_disk(&world, "npub-secret"));
    assert!(is_on_disk(&world, "npub-other") && is_on_disk(&world, "canary-summary"));
    ledger.forget(&main(), &peer("npub-other")).await.unwrap();
    for text in ["npub-other", "canary-summary", "canary-rationale"] {
        assert!(!is_on_disk(&world, text), "{text}");
    }
    assert_eq!(ledger.forgotten(&main(), 10).unwrap().len(), 2);
    let refusal = ledger.report(&main(), &peer("npub-secret")).unwrap_err();
    assert_eq!(refusal.code, RefusalCode::NotFound);
    assert!(refusal.reason.ends_with("it was forgotten on 2027-01-16T08:00:00.000Z"), "{refusal}");
    assert!(!ledger.report(&main(), &peer("stranger")).unwrap_err().reason.contains("forgotten"));
    assert_eq!(ledger.forget(&main(), &peer("npub-secret")).await.unwrap_err().code, RefusalCode::NotFound);
}

#[tokio::test]
async fn a_peer_that_comes_back_begins_anew() {
    let world = World::new();
    let ledger = world.open();
    ledger.record(&main(), &peer("mai"), exchange("old")).await.unwrap();
    ledger.record_assessment(&main(), judgement("mai", 9, "old")).await.unwrap();
    ledger.forget(&main(), &peer("mai")).await.unwrap();
    let recorded = ledger.record(&main(), &peer("mai"), exchange("new")).await.unwrap();
    assert!(recorded.is_new && recorded.interactions == 2);
    let report = ledger.report(&main(), &peer("mai")).unwrap();
    assert_eq!((report.summary.trust, report.summary.assessments), (None, 0));
    assert!(report.recent_interactions.iter().all(|entry| entry.summary != "old"));
}

#[tokio::test]
async fn many_entries_are_deleted_in_steps_and_a_dead_host_leaves_the_rest_to_the_next() {
    let world = World::new();
    let ledger = world.open();
    for _ in 0..5 {
        let many = (0..1_000).map(|_| said(Direction::Incoming, "spam")).collect();
        ledger.record(&main(), &peer("busy"), many).await.unwrap();
    }
    // The head goes with the first write; the host dies at the second step of the rest.
    world.disk.fail_at(world.disk.writes() + 2, store::DiskFault::Crash { reached: false });
    ledger.forget(&main(), &peer("busy")).await.unwrap_err();
    drop(ledger);
    let ledger = world.open();
    assert!(!ledger.knows(&main(), &peer("busy")).unwrap());
    let left = || world.disk.records().iter().filter(|(table, ..)| *table == Table::Interactions).count();
    assert_eq!(left(), 3_000);
    ledger.record(&main(), &peer("busy"), exchange("new")).await.unwrap();
    assert_eq!(ledger.resume().await.unwrap(), 1);
    assert_eq!((left(), ledger.resume().await.unwrap()), (2, 0));
    assert_eq!(ledger.report(&main(), &peer("busy")).unwrap().summary.incoming, 1);
}

//! Forgetting: nothing about the peer stays but the note, which does not name it.

use std::collections::BTreeMap;

use base::{Refusal, RefusalCode};
use store::{Batch, Table};

use super::*;
use crate::{PeerIncarnation, StagedAssessments};

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

/// Stages nothing but the condition.
async fn stage(
    ledger: &Ledger,
    expected: &BTreeMap<PeerId, Option<PeerIncarnation>>,
) -> Result<StagedAssessments, Refusal> {
    ledger.stage_assessments_if(&mut Batch::new(), &main(), Vec::new(), expected).await
}

#[tokio::test]
async fn what_is_staged_about_a_peer_is_about_the_one_that_was_known_and_holds_up_its_forgetting() {
    let world = World::new();
    let ledger = world.open();
    ledger.record(&main(), &peer("mai"), exchange("old")).await.unwrap();
    let known = |id: &str| (peer(id), ledger.incarnation(&main(), &peer(id)).unwrap());
    let expected = BTreeMap::from([known("mai"), known("stranger")]);
    let staged = stage(&ledger, &expected).await.unwrap();
    let forgetting = tokio::spawn({
        let ledger = ledger.clone();
        async move { ledger.forget(&main(), &peer("mai")).await }
    });
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert!(!forgetting.is_finished() && ledger.knows(&main(), &peer("mai")).unwrap());
    ledger.commit(Batch::new(), staged).await.unwrap();
    forgetting.await.unwrap().unwrap();
    for returns in [false, true] {
        if returns {
            ledger.record(&main(), &peer("mai"), exchange("new")).await.unwrap();
        }
        let refusal = stage(&ledger, &expected).await.unwrap_err();
        assert_eq!(refusal.code, RefusalCode::NotFound);
        assert!(!refusal.reason.contains("mai"), "{refusal}");
    }
    let now = BTreeMap::from([known("mai")]);
    drop(stage(&ledger, &now).await.unwrap());
}

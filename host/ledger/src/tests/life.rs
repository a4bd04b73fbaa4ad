//! A peer's life: recorded, counted, judged, listed.

use base::RefusalCode;
use proptest::prelude::*;
use store::Batch;

use super::*;

#[tokio::test]
async fn the_examples_of_the_specification_are_counted_by_the_ledger() {
    for (days, expected) in [(21, 5), (15, 4)] {
        let world = World::new();
        let ledger = world.open();
        for request in 0..6 {
            if request > 0 {
                world.clock.advance(DAY * days / 5);
            }
            ledger.record(&main(), &peer("npub-7x9k"), exchange("extract the table")).await.unwrap();
        }
        let recorded = ledger.record_assessment(&main(), judgement("npub-7x9k", 4, "reliable")).await.unwrap();
        assert_eq!((recorded.info_score, recorded.trust, recorded.number), (expected, 4, 1));
        let listed = ledger.list(&main(), None, 10).unwrap();
        assert_eq!((listed[0].incoming, listed[0].outgoing, listed[0].info_score), (6, 6, expected));
    }
}

#[tokio::test]
async fn staged_interactions_last_exactly_if_their_batch_does() {
    let world = World::new();
    let ledger = world.open();
    let mut batch = Batch::new();
    drop(ledger.stage_interactions(&mut batch, &main(), &peer("mai"), exchange("a")).await.unwrap());
    drop(batch);
    assert!(!ledger.knows(&main(), &peer("mai")).unwrap());
    let mut batch = Batch::new();
    let staged = ledger.stage_interactions(&mut batch, &main(), &peer("mai"), exchange("b")).await.unwrap();
    assert!(staged.recorded().is_new);
    // Another one counts from it, and waits.
    let other = tokio::spawn({
        let ledger = ledger.clone();
        async move { ledger.record(&main(), &peer("mai"), exchange("c")).await }
    });
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(!other.is_finished());
    ledger.store().commit(batch).await.unwrap();
    drop(staged);
    let recorded = other.await.unwrap().unwrap();
    assert_eq!((recorded.is_new, recorded.interactions), (false, 4));
    let interactions = ledger.report(&main(), &peer("mai")).unwrap().recent_interactions;
    assert_eq!(interactions.iter().map(|entry| entry.summary.as_str()).collect::<Vec<_>>(), ["done", "c", "done", "b"]);
}

#[tokio::test]
async fn invalid_assessments_are_refused_and_change_nothing() {
    let world = World::new();
    let ledger = world.open();
    ledger.record(&main(), &peer("mai"), exchange("hello")).await.unwrap();
    let before = world.disk.records();
    for (assessment, code, reason) in [
        (judgement("unknown", 1, "r"), RefusalCode::NotFound, "knows no peer `unknown`"),
        (judgement("mai", 11, "r"), RefusalCode::InvalidRequest, "the trust 11 is out of range"),
        (judgement("mai", -11, "r"), RefusalCode::InvalidRequest, "out of range"),
        (judgement("mai", i64::MIN, "r"), RefusalCode::InvalidRequest, "out of range"),
        (judgement("mai", 1, " \n"), RefusalCode::InvalidRequest, "the rationale is empty"),
        (judgement("mai", 1, &"x".repeat(1_001)), RefusalCode::InvalidRequest, "more than 1000 characters"),
    ] {
        let refusal = ledger.record_assessment(&main(), assessment).await.unwrap_err();
        assert!(refusal.code == code && refusal.reason.contains(reason), "{refusal:?}");
        assert!(refusal.remedy.is_some(), "{refusal:?}");
    }
    let refusal = ledger.record(&main(), &peer("mai"), Vec::new()).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::InvalidRequest);
    assert_eq!(world.disk.records(), before);
    for trust in [-10, 10] {
        ledger.record_assessment(&main(), judgement("mai", trust, &"x".repeat(1_000))).await.unwrap();
    }
}

#[tokio::test]
async fn assessments_are_appended_and_the_head_keeps_a_trajectory() {
    let world = World::new();
    let ledger = world.open();
    ledger.record(&main(), &peer("mai"), exchange("hello")).await.unwrap();
    for trust in 0..25_i64 {
        world.clock.advance(DAY);
        let recorded = ledger.record_assessment(&main(), judgement("mai", trust % 11, "because")).await.unwrap();
        assert_eq!(recorded.number, u64::try_from(trust).unwrap() + 1);
    }
    drop(ledger);
    let report = world.open().report(&main(), &peer("mai")).unwrap();
    assert_eq!((report.summary.assessments, report.summary.trust), (25, Some(2)));
    assert_eq!(report.trajectory.iter().map(|point| point.trust).collect::<Vec<_>>(), [4, 5, 6, 7, 8, 9, 10, 0, 1, 2]);
    let numbers: Vec<u64> = report.recent_assessments.iter().map(|assessment| assessment.number).collect();
    assert_eq!(numbers, (6..=25).rev().collect::<Vec<_>>());
}

#[tokio::test]
async fn several_are_assessed_together_or_not_at_all() {
    let world = World::new();
    let ledger = world.open();
    for id in ["a", "b"] {
        ledger.record(&main(), &peer(id), exchange("hello")).await.unwrap();
    }
    let mut batch = store::Batch::new();
    let both = vec![judgement("a", 1, "r"), judgement("b", 2, "r")];
    let staged = ledger.stage_assessments(&mut batch, &main(), both).await.unwrap();
    assert_eq!(staged.assessments().len(), 2);
    assert_eq!(ledger.list(&main(), None, 9).unwrap()[0].trust, None);
    ledger.commit(batch, staged).await.unwrap();
    let trusts: Vec<_> = ledger.list(&main(), None, 9).unwrap().iter().map(|listed| listed.trust).collect();
    assert_eq!(trusts, [Some(1), Some(2)]);
    for twice in
        [vec![judgement("a", 3, "r"), judgement("a", 6, "r")], vec![judgement("a", 3, "r"), judgement("c", 1, "r")]]
    {
        ledger.stage_assessments(&mut store::Batch::new(), &main(), twice).await.unwrap_err();
    }
    // The locks are free again.
    ledger.record_assessment(&main(), judgement("a", 5, "r")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interactions_at_the_same_time_all_count_also_of_callers_that_went_away() {
    let home = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(LedgerParts {
        store: Store::open(&home.path().join("state")).unwrap(),
        clock: World::new().clock,
        random: Arc::new(Random::seeded(1)),
    });
    let recording = (0..60).map(|number| {
        let ledger = ledger.clone();
        tokio::spawn(async move { ledger.record(&main(), &peer(&format!("p{}", number % 3)), exchange("x")).await })
    });
    for task in recording.collect::<Vec<_>>() {
        task.await.unwrap().unwrap();
    }
    // A caller that is dropped at its first wait.
    for _ in 0..10 {
        let (agent, id) = (main(), peer("p0"));
        let mut gone = Box::pin(ledger.record(&agent, &id, exchange("x")));
        assert!(futures_poll(gone.as_mut()).is_none());
        drop(gone);
    }
    let last = ledger.record(&main(), &peer("p0"), exchange("x")).await.unwrap();
    assert!(last.interactions >= 42, "{last:?}");
    let report = ledger.report(&main(), &peer("p0")).unwrap();
    assert_eq!(report.summary.incoming + report.summary.outgoing, last.interactions);
    assert_eq!(report.summary.incoming, report.summary.outgoing);
    assert_eq!(ledger.report(&main(), &peer("p1")).unwrap().summary.incoming, 20);
}

/// Polls a future once, without a waker.
fn futures_poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}

#[tokio::test]
async fn agents_have_ledgers_of_their_own_and_lists_have_pages() {
    let world = World::new();
    let ledger = world.open();
    let other = AgentName::parse("main-2").unwrap();
    for number in 0..5 {
        ledger.record(&main(), &peer(&format!("p{number}")), exchange("x")).await.unwrap();
    }
    ledger.record(&other, &peer("p0"), exchange("theirs")).await.unwrap();
    let ids = |after: Option<&str>, limit| -> Vec<String> {
        let listed = ledger.list(&main(), after.map(peer).as_ref(), limit).unwrap();
        listed.into_iter().map(|listed| listed.peer.to_string()).collect()
    };
    assert_eq!(ids(None, 2), ["p0", "p1"]);
    assert_eq!(ids(Some("p1"), 2), ["p2", "p3"]);
    assert_eq!(ids(Some("p3"), 2), ["p4"]);
    assert!(ids(Some("p4"), 2).is_empty());
    assert_eq!(ledger.list(&other, None, 10).unwrap().len(), 1);
    ledger.record_assessment(&other, judgement("p0", 7, "theirs")).await.unwrap();
    assert_eq!(ledger.report(&main(), &peer("p0")).unwrap().summary.trust, None);
}

#[tokio::test]
async fn old_interactions_of_a_busy_peer_go_and_the_counts_stay() {
    let world = World::new();
    let ledger = world.open();
    for _ in 0..11 {
        let many = (0..1_000).map(|_| said(Direction::Incoming, "spam")).collect();
        ledger.record(&main(), &peer("busy"), many).await.unwrap();
    }
    assert_eq!(ledger.report(&main(), &peer("busy")).unwrap().summary.incoming, 11_000);
    let kept = world.disk.records().iter().filter(|(table, ..)| *table == store::Table::Interactions).count();
    assert_eq!(kept, 10_000);
}

#[tokio::test]
async fn a_clock_that_goes_back_does_not_lower_the_information_score() {
    let world = World::new();
    let ledger = world.open();
    ledger.record(&main(), &peer("mai"), exchange("x")).await.unwrap();
    world.clock.advance(DAY * 30);
    ledger.record(&main(), &peer("mai"), exchange("x")).await.unwrap();
    let before = ledger.list(&main(), None, 1).unwrap()[0].info_score;
    world.clock.jump(-i64::try_from((DAY * 60).as_millis()).unwrap());
    ledger.record(&main(), &peer("mai"), exchange("x")).await.unwrap();
    assert!(ledger.list(&main(), None, 1).unwrap()[0].info_score >= before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Trust that moves toward a value never moves further than it may, and never beyond its range.
    #[test]
    fn trust_moves_by_steps(moves in prop::collection::vec((any::<i8>(), 0..=10_u8), 1..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = World::new();
            let ledger = world.open();
            ledger.record(&main(), &peer("p"), exchange("x")).await.unwrap();
            let mut last = 0_i16;
            for (index, (trust, max_delta)) in moves.into_iter().enumerate() {
                let toward = TrustChange::Toward { trust, max_delta };
                let assessment = NewAssessment { trust: toward, ..judgement("p", 0, "r") };
                let now = i16::from(ledger.record_assessment(&main(), assessment).await.unwrap().trust);
                assert!((now - last).abs() <= max_delta.into() && (-10..=10).contains(&now));
                assert!(index > 0 || now.abs() <= 3);
                let target = i16::from(trust).clamp(-10, 10);
                assert!((target - now).abs() <= (target - last).abs());
                last = now;
            }
        });
    }
}

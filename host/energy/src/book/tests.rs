//! Levels over restarts, reordered commits and many drains at a time.

use base::TestClock;

use super::*;

struct Home {
    dir: tempfile::TempDir,
    clock: Arc<TestClock>,
    config: Config,
}

impl Home {
    fn new(config: Config) -> Self {
        let clock = Arc::new(TestClock::at(Timestamp::from_millis(1_800_000_000_000)));
        Self { dir: tempfile::tempdir().unwrap(), clock, config }
    }

    fn open(&self) -> (Store, EnergyBook) {
        let store = Store::open(&self.dir.path().join("state")).unwrap();
        (store.clone(), EnergyBook::open(store, self.clock.clone(), self.config.clone()))
    }
}

async fn drain(store: &Store, book: &EnergyBook, activity: Activity) -> Drained {
    let mut batch = Batch::new();
    let drained = book.stage_drain(&mut batch, &AgentName::default(), activity).await.unwrap();
    store.commit(batch).await.unwrap();
    drained
}

fn is(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
}

fn records(store: &Store) -> usize {
    store.scan::<Level>(Table::Energy, &Scan::all()).unwrap().len()
}

#[tokio::test]
async fn a_level_is_kept_per_agent_and_over_restarts() {
    let home = Home::new(Config::default());
    let other = AgentName::parse("mai").unwrap();
    let (store, book) = home.open();
    is(book.level(&AgentName::default()).unwrap(), 1.0);
    let drained = drain(&store, &book, Activity::Agentic { browser: true }).await;
    is(drained.cost, 0.2);
    is(drained.level, 0.8);
    is(drain(&store, &book, Activity::Iterations { count: 9, browser: true }).await.level, 0.72);
    is(book.level(&other).unwrap(), 1.0);
    drop((store, book));

    let (store, book) = home.open();
    is(book.level(&AgentName::default()).unwrap(), 0.72);
    is(book.level(&other).unwrap(), 1.0);
    home.clock.advance(Duration::from_secs(1_800));
    is(book.level(&AgentName::default()).unwrap(), 0.845);
    is(drain(&store, &book, Activity::Oneshot).await.level, 0.795);
    assert_eq!(records(&store), 1);
}

#[tokio::test]
async fn no_order_of_commits_forgets_a_drain() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
        let home = Home::new(Config::default());
        let (store, book) = home.open();
        drain(&store, &book, Activity::Agentic { browser: false }).await;
        let mut batches = Vec::new();
        for _ in 0..3 {
            let mut batch = Batch::new();
            book.stage_drain(&mut batch, &AgentName::default(), Activity::Oneshot).await.unwrap();
            batches.push(Some(batch));
        }
        for index in order {
            store.commit(batches[index].take().unwrap()).await.unwrap();
        }
        is(book.level(&AgentName::default()).unwrap(), 0.75);
        drop((store, book));
        let (store, book) = home.open();
        is(book.level(&AgentName::default()).unwrap(), 0.75);
        // What the other order left behind goes with the next drain.
        drain(&store, &book, Activity::Oneshot).await;
        assert_eq!(records(&store), 1);
    }
}

#[tokio::test]
async fn a_drain_that_was_never_committed_is_not_there_after_a_restart() {
    let home = Home::new(Config::default());
    let (store, book) = home.open();
    drain(&store, &book, Activity::Oneshot).await;
    book.stage_drain(&mut Batch::new(), &AgentName::default(), Activity::Oneshot).await.unwrap();
    is(book.level(&AgentName::default()).unwrap(), 0.9);
    drop((store, book));
    is(home.open().1.level(&AgentName::default()).unwrap(), 0.95);
}

#[tokio::test]
async fn drains_share_a_batch() {
    let home = Home::new(Config::default());
    let (store, book) = home.open();
    let mut batch = Batch::new();
    for activity in [Activity::Llm, Activity::Message] {
        book.stage_drain(&mut batch, &AgentName::default(), activity).await.unwrap();
    }
    store.commit(batch).await.unwrap();
    assert_eq!(records(&store), 1);
    drop((store, book));
    is(home.open().1.level(&AgentName::default()).unwrap(), 0.97);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drains_at_the_same_time_all_count() {
    let home = Home::new(Config::default());
    let (store, book) = home.open();
    let tasks = (0..60).map(|_| {
        let (store, book) = (store.clone(), book.clone());
        tokio::spawn(async move { drain(&store, &book, Activity::Message).await })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    is(book.level(&AgentName::default()).unwrap(), 0.4);
    drop((store, book));
    is(home.open().1.level(&AgentName::default()).unwrap(), 0.4);
}

#[tokio::test]
async fn the_floor_holds_and_a_refusal_says_when() {
    let home = Home::new(Config::default());
    let (store, book) = home.open();
    let agent = AgentName::default();
    let browser = Activity::Agentic { browser: true };
    book.check(&agent, browser).unwrap();
    let drained = drain(&store, &book, Activity::Iterations { count: 80, browser: false }).await;
    is(drained.level, 0.25);
    book.check(&agent, Activity::Oneshot).unwrap();
    let refusal = book.check(&agent, Activity::Agentic { browser: false }).unwrap_err();
    assert_eq!(refusal.code, RefusalCode::EnergyTooLow);
    assert_eq!(
        refusal.reason,
        "energy is 0.25, and an agentic run needs at least 0.30; \
         it will be enough at 2027-01-15T08:12:00.000Z (in 12 min)"
    );
    assert_eq!(refusal.remedy.unwrap(), "ask again in 12 min");
    home.clock.advance(Duration::from_secs(720));
    book.check(&agent, Activity::Agentic { browser: false }).unwrap();
    assert!(book.check(&agent, browser).unwrap_err().reason.contains("more than 0.50"));

    is(drain(&store, &book, Activity::Iterations { count: u32::MAX, browser: true }).await.level, 0.05);
    is(drain(&store, &book, Activity::Oneshot).await.level, 0.05);
    let refusal = book.check(&agent, Activity::Oneshot).unwrap_err();
    assert!(refusal.reason.starts_with("too tired to act: energy is 0.05, and a single act needs"), "{refusal}");
    for activity in [Activity::Llm, Activity::Message, Activity::Iterations { count: 9, browser: true }] {
        book.check(&agent, activity).unwrap();
    }
}

#[tokio::test]
async fn a_level_that_never_comes_back_is_said_to() {
    let home = Home::new(Config { recharge_per_hour: 0.0, ..Config::default() });
    let (store, book) = home.open();
    drain(&store, &book, Activity::Iterations { count: 80, browser: false }).await;
    let refusal = book.check(&AgentName::default(), Activity::NetworkOneshot).unwrap_err();
    assert!(refusal.reason.ends_with("it will not be enough within a year"), "{refusal}");
    assert!(refusal.remedy.unwrap().contains("energy.enabled = false"));
}

#[tokio::test]
async fn switched_off_it_costs_and_refuses_nothing() {
    let home = Home::new(Config::default());
    let (store, book) = home.open();
    drain(&store, &book, Activity::Iterations { count: u32::MAX, browser: true }).await;
    drop((store, book));
    let home = Home { config: Config { enabled: false, ..Config::default() }, ..home };
    let (store, book) = home.open();
    assert_eq!(drain(&store, &book, Activity::Agentic { browser: true }).await, Drained { cost: 0.0, level: 0.05 });
    book.check(&AgentName::default(), Activity::Agentic { browser: true }).unwrap();
}

#[tokio::test]
async fn a_record_of_a_newer_version_is_refused_not_taken_for_a_full_level() {
    let home = Home::new(Config::default());
    let (store, book) = home.open();
    let mut batch = Batch::new();
    batch.put(Table::Energy, record_key(&AgentName::default(), 1), &"another shape").unwrap();
    store.commit(batch).await.unwrap();
    assert!(matches!(book.level(&AgentName::default()), Err(StoreError::Record { table: Table::Energy, .. })));
    let refusal = book.check(&AgentName::default(), Activity::Oneshot).unwrap_err();
    assert_eq!(refusal.code, RefusalCode::StateUnusable);
}

#[test]
fn waits_are_rounded_up() {
    for (seconds, expected) in [(0, "1 min"), (60, "1 min"), (61, "2 min"), (3_600, "1 h"), (7_860, "2 h 11 min")] {
        assert_eq!(words_for(Duration::from_secs(seconds)), expected);
    }
}

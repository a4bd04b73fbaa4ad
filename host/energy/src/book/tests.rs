//! Levels over restarts, reordered commits and many drains at a time.

use base::TestClock;
use store::SimulatedDisk;

use super::*;

struct Home {
    dir: tempfile::TempDir,
    /// A disk in memory, for tests that write a lot.
    disk: Option<Arc<SimulatedDisk>>,
    clock: Arc<TestClock>,
    config: EnergyConfig,
}

impl Home {
    fn new(config: EnergyConfig) -> Self {
        let clock = Arc::new(TestClock::at(Timestamp::from_millis(1_800_000_000_000)));
        Self { dir: tempfile::tempdir().unwrap(), disk: None, clock, config }
    }

    fn in_memory() -> Self {
        Self { disk: Some(SimulatedDisk::new(1)), ..Self::new(EnergyConfig::default()) }
    }

    fn open(&self) -> (Store, EnergyBook) {
        let store = match &self.disk {
            Some(disk) => Store::simulated(disk.clone()).unwrap(),
            None => Store::open(&self.dir.path().join("state")).unwrap(),
        };
        (store.clone(), EnergyBook::open(store, self.clock.clone(), self.config.clone()))
    }
}

async fn drain(store: &Store, book: &EnergyBook, activity: Activity) -> DrainedEnergy {
    let mut batch = Batch::new();
    let drained = book.stage_drain(&mut batch, &AgentName::default(), activity).await.unwrap();
    store.commit(batch).await.unwrap();
    drained
}

fn is(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
}

fn records(store: &Store) -> usize {
    store.scan::<EnergyLevel>(Table::Energy, &Scan::all()).unwrap().len()
}

#[tokio::test]
async fn a_level_is_kept_per_agent_and_over_restarts() {
    let home = Home::new(EnergyConfig::default());
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
        let home = Home::new(EnergyConfig::default());
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
        // The record that the other order left goes with the next drain.
        drain(&store, &book, Activity::Oneshot).await;
        assert_eq!(records(&store), 1);
    }
}

#[tokio::test]
async fn a_drain_that_was_never_committed_is_not_there_after_a_restart() {
    let home = Home::new(EnergyConfig::default());
    let (store, book) = home.open();
    drain(&store, &book, Activity::Oneshot).await;
    book.stage_drain(&mut Batch::new(), &AgentName::default(), Activity::Oneshot).await.unwrap();
    is(book.level(&AgentName::default()).unwrap(), 0.9);
    drop((store, book));
    is(home.open().1.level(&AgentName::default()).unwrap(), 0.95);
}

#[tokio::test]
async fn drains_share_a_batch() {
    let home = Home::new(EnergyConfig::default());
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
    let home = Home::new(EnergyConfig::default());
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
    let home = Home::new(EnergyConfig::default());
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
    assert_eq!(book.check(&agent, browser).unwrap_err().code, RefusalCode::EnergyTooLow);

    is(drain(&store, &book, Activity::Iterations { count: u32::MAX, browser: true }).await.level, 0.05);
    is(drain(&store, &book, Activity::Oneshot).await.level, 0.05);
    let refusal = book.check(&agent, Activity::Oneshot).unwrap_err();
    assert!(refusal.reason.starts_with("too tired to act: energy is 0.05, and a single act needs"), "{refusal}");
    assert_eq!(book.check(&agent, Activity::Llm).unwrap_err().code, RefusalCode::EnergyTooLow);
    for activity in [Activity::Message, Activity::Iterations { count: 9, browser: true }] {
        book.check(&agent, activity).unwrap();
    }
}

/// A model that tries again and again: recovery while it tries must not pay for one more act each time.
#[tokio::test]
async fn acts_of_a_model_end_at_the_floor() {
    let home = Home::new(EnergyConfig::default());
    let (store, book) = home.open();
    let agent = AgentName::default();
    let mut begun = 0;
    for _ in 0..25 {
        home.clock.advance(Duration::from_secs(1));
        if book.check(&agent, Activity::Oneshot).is_ok() {
            begun += 1;
            drain(&store, &book, Activity::Oneshot).await;
        }
    }
    assert_eq!(begun, 20, "a full level and the floor pay for twenty");
    is(book.level(&agent).unwrap(), 0.05);
    // Over a restart too, and after a while one more act is possible.
    drop((store, book));
    let (store, book) = home.open();
    assert!(book.check(&agent, Activity::Oneshot).is_err());
    home.clock.advance(Duration::from_secs(800));
    book.check(&agent, Activity::Oneshot).unwrap();
    drain(&store, &book, Activity::Oneshot).await;
    assert!(book.check(&agent, Activity::Oneshot).is_err());
}

#[tokio::test]
async fn a_level_that_never_comes_back_is_said_to() {
    let home = Home::new(EnergyConfig { recharge_per_hour: 0.0, ..EnergyConfig::default() });
    let (store, book) = home.open();
    drain(&store, &book, Activity::Iterations { count: 80, browser: false }).await;
    let refusal = book.check(&AgentName::default(), Activity::NetworkOneshot).unwrap_err();
    assert!(refusal.reason.ends_with("it will not be enough within a year"), "{refusal}");
    assert!(refusal.remedy.unwrap().contains("energy.enabled = false"));
}

#[tokio::test]
async fn switched_off_it_costs_and_refuses_nothing() {
    let home = Home::new(EnergyConfig::default());
    let (store, book) = home.open();
    drain(&store, &book, Activity::Iterations { count: u32::MAX, browser: true }).await;
    drop((store, book));
    let home = Home { config: EnergyConfig { enabled: false, ..EnergyConfig::default() }, ..home };
    let (store, book) = home.open();
    assert_eq!(
        drain(&store, &book, Activity::Agentic { browser: true }).await,
        DrainedEnergy { cost: 0.0, level: 0.05 }
    );
    book.check(&AgentName::default(), Activity::Agentic { browser: true }).unwrap();
}

#[tokio::test]
async fn a_record_of_a_newer_version_is_refused_not_taken_for_a_full_level() {
    let home = Home::new(EnergyConfig::default());
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

#[tokio::test]
async fn a_clock_that_is_set_gives_and_takes_no_energy_while_the_host_lives() {
    let home = Home::new(EnergyConfig::default());
    let (store, book) = home.open();
    let agent = AgentName::default();
    for _ in 0..3 {
        drain(&store, &book, Activity::Agentic { browser: true }).await;
    }
    is(book.level(&agent).unwrap(), 0.4);
    for jump in [-3_600_000, 3_600_000, 36_000_000, -36_000_000, i64::from(i32::MAX), -i64::from(i32::MAX)] {
        home.clock.jump(jump);
        is(book.level(&agent).unwrap(), 0.4);
    }
    // Time that passes counts as ever.
    home.clock.jump(-3_600_000);
    home.clock.advance(Duration::from_secs(3_600));
    is(book.level(&agent).unwrap(), 0.65);
}

#[tokio::test]
async fn a_clock_that_goes_back_between_two_hosts_gives_no_hour_twice() {
    let home = Home::new(EnergyConfig::default());
    let agent = AgentName::default();
    let drained = async || {
        let (store, book) = home.open();
        drain(&store, &book, Activity::Oneshot).await.level
    };
    for _ in 0..10 {
        drained().await;
    }
    is(home.open().1.level(&agent).unwrap(), 0.5);
    home.clock.jump(-3_600_000);
    is(drained().await, 0.45);
    home.clock.jump(3_600_000);
    is(home.open().1.level(&agent).unwrap(), 0.45);
    // While a host lives it recharges, however far behind its clock is, and that is counted once.
    home.clock.jump(-7_200_000);
    let (store, book) = home.open();
    home.clock.advance(Duration::from_secs(3_600));
    is(drain(&store, &book, Activity::Oneshot).await.level, 0.65);
    drop((store, book));
    home.clock.jump(7_200_000);
    is(home.open().1.level(&agent).unwrap(), 0.65);
    // The time between two hosts is that of the wall clock.
    home.clock.advance(Duration::from_secs(3_600));
    is(home.open().1.level(&agent).unwrap(), 0.9);
    // A clock that was years ahead does not stop the recharging for years.
    home.clock.jump(1 << 40);
    is(drained().await, 0.95);
    home.clock.jump(-(1 << 40));
    is(drained().await, 0.9);
    home.clock.advance(Duration::from_secs(720));
    is(home.open().1.level(&agent).unwrap(), 0.95);
}

#[tokio::test]
async fn a_clock_that_is_set_forward_while_a_host_lives_gives_nothing_to_the_next_host() {
    let home = Home::new(EnergyConfig::default());
    let agent = AgentName::default();
    let (store, book) = home.open();
    for _ in 0..10 {
        drain(&store, &book, Activity::Oneshot).await;
    }
    home.clock.jump(3_600_000);
    is(drain(&store, &book, Activity::Oneshot).await.level, 0.45);
    drop((store, book));
    is(home.open().1.level(&agent).unwrap(), 0.45);
    // The jump back takes nothing, and time that passes during the next host counts at once.
    home.clock.jump(-3_600_000);
    let (store, book) = home.open();
    is(book.level(&agent).unwrap(), 0.45);
    home.clock.advance(Duration::from_secs(720));
    is(drain(&store, &book, Activity::Oneshot).await.level, 0.45);
    drop((store, book));
    is(home.open().1.level(&agent).unwrap(), 0.45);
}

/// An event in the life of a home.
#[derive(Debug, Clone)]
enum Happens {
    Passes(u32),
    Jumps(i32),
    Reopens,
    Drains,
}

fn happens() -> impl proptest::strategy::Strategy<Value = Vec<Happens>> {
    use proptest::prelude::*;
    let one = prop_oneof![
        (0..7_200_000_u32).prop_map(Happens::Passes),
        (-40_000_000..40_000_000_i32).prop_map(Happens::Jumps),
        Just(Happens::Reopens),
        Just(Happens::Drains),
    ];
    prop::collection::vec(one, 1..30)
}

proptest::proptest! {
    /// While one host lives, the level is that of a home whose clock was never set.
    #[test]
    fn jumps_make_no_difference_to_a_living_host(happens in happens()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (jumping, steady) = (Home::in_memory(), Home::in_memory());
        let ((a, jumped), (b, still)) = (jumping.open(), steady.open());
        for event in happens {
            match event {
                Happens::Passes(ms) => {
                    jumping.clock.advance(Duration::from_millis(ms.into()));
                    steady.clock.advance(Duration::from_millis(ms.into()));
                }
                Happens::Jumps(ms) => jumping.clock.jump(ms.into()),
                Happens::Reopens => {}
                Happens::Drains => runtime.block_on(async {
                    drain(&a, &jumped, Activity::Oneshot).await;
                    drain(&b, &still, Activity::Oneshot).await;
                }),
            }
            is(jumped.level(&AgentName::default()).unwrap(), still.level(&AgentName::default()).unwrap());
        }
    }

    /// Over restarts, a jump gives energy only to a host that finds its clock further ahead than any drain before it was stored.
    #[test]
    fn jumps_over_restarts_give_no_more_than_was_set_between_a_drain_and_a_start(happens in happens()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let home = Home::in_memory();
        let mut open = Some(home.open());
        // How far the clock had been set when the host started, and at the most by the drains that are stored.
        let (mut passed, mut set, mut started, mut given) = (0_u64, 0_i64, 0_i64, 0_i64);
        let mut noted: Option<i64> = None;
        let mut drained = 0.0;
        for event in happens {
            match event {
                Happens::Passes(ms) => {
                    passed += u64::from(ms);
                    home.clock.advance(Duration::from_millis(ms.into()));
                }
                Happens::Jumps(ms) => {
                    home.clock.jump(ms.into());
                    set += i64::from(ms);
                }
                Happens::Reopens => {
                    drop(open.take());
                    open = Some(home.open());
                    started = set;
                    // One that went back by more than a day is believed.
                    noted = noted.map(|noted| {
                        let is_behind = noted - started > MAX_BEHIND.as_millis() as i64;
                        if is_behind { started } else { noted }
                    });
                }
                Happens::Drains => {
                    let (store, book) = open.as_ref().unwrap();
                    let before = book.level(&AgentName::default()).unwrap();
                    let after = runtime.block_on(drain(store, book, Activity::Oneshot)).level;
                    drained += before - after;
                    given += noted.map_or(0, |noted| (started - noted).max(0));
                    noted = noted.max(Some(started)).max(Some(set));
                }
            }
        }
        let level = open.unwrap().1.level(&AgentName::default()).unwrap();
        given += noted.map_or(0, |noted| (started - noted).max(0));
        let hours = (passed as f64 + given as f64) / 3_600_000.0;
        assert!(level <= 1.0 - drained + 0.25 * hours + 1e-6, "{level}: {drained} drained, {hours} hours");
    }
}

//! Which runs are deleted and which stay, over the state of a host whose clock is set by hand.

use std::collections::BTreeMap;

use base::{Clock, Random, TestClock};
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::config::{Age, ByteSize, LoadedConfig};
use crate::{Host, HostOptions};

const DAY: Duration = Duration::from_secs(24 * 3_600);
const NEVER: RetentionConfig = RetentionConfig {
    age: Age(None),
    bytes: ByteSize(None),
    runs: 0,
    conversation_age: Age(None),
    conversation_bytes: ByteSize(None),
    conversations: 0,
};

/// A host that starts nothing by itself.
struct Fixture {
    _directory: TempDir,
    host: Host,
    clock: Arc<TestClock>,
}

impl Fixture {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::at(directory.path().join("home"));
        let env = crate::env::of_list(&[]);
        let clock = Arc::new(TestClock::at(Timestamp::from_millis(1_700_000_000_000)));
        let options = HostOptions {
            config: LoadedConfig::load(&home, None, &env, &[]).unwrap(),
            home,
            env,
            vault_variables: BTreeMap::new(),
            compile_worker: None,
            clock: clock.clone(),
            random: Arc::new(Random::seeded(7)),
        };
        Self { host: Host::open_idle(options, None).await.unwrap(), _directory: directory, clock }
    }

    fn pruner(&self, config: RetentionConfig) -> Pruner {
        Pruner { config, ..self.host.runs.pruner.clone() }
    }

    /// Stores a run that ended an hour ago, or waits since then, with a directory of some blocks.
    async fn put(&self, number: u64, status: &str) -> RunId {
        let id = RunId::parse(&format!("run_{number:016}")).unwrap();
        let at = self.clock.now().as_millis() - 3_600_000;
        let mut record = json!({
            "id": id, "agent": "main", "status": status, "task": "x", "tools": [], "settings": {},
            "maxIterations": 20, "timeoutMs": 600_000, "createdAt": at, "startedAt": at,
            "iterations": 0, "modelCalls": 0, "toolCalls": 0, "errors": 0, "inputTokens": 0, "outputTokens": 0,
            "energy": 0.1, "resumes": 0, "nextSequence": 1,
        });
        if status == "completed" {
            record["completedAt"] = json!(at);
        }
        let mut batch = Batch::new();
        batch.put(Table::Runs, id.as_str(), &record).unwrap();
        self.host.runs.store.commit(batch).await.unwrap();
        let workspace = self.host.home().run(&id).join("workspace");
        fs::create_dir_all(&workspace).unwrap();
        fs::write(workspace.join("a"), vec![b'x'; 1 << 16]).unwrap();
        id
    }

    /// The remaining runs, by index.
    fn left(&self, runs: &[RunId]) -> Vec<usize> {
        let is_left = |run: &RunId| {
            let has_files = self.host.home().run(run).exists();
            assert_eq!(self.host.runs.motor.has_record(run).unwrap(), has_files);
            has_files
        };
        (0..runs.len()).filter(|index| is_left(&runs[*index])).collect()
    }
}

#[tokio::test]
async fn runs_that_wait_do_not_count_against_those_that_are_over() {
    let home = Fixture::new().await;
    let mut runs = Vec::new();
    for number in 0..8 {
        runs.push(home.put(number, if number < 5 { "awaiting_input" } else { "completed" }).await);
    }
    let stop = CancellationToken::new();
    for config in [RetentionConfig { runs: 3, ..NEVER }, RetentionConfig { bytes: ByteSize(Some(1 << 18)), ..NEVER }] {
        home.pruner(config).prune(&stop).await.unwrap();
        assert_eq!(home.left(&runs), [0, 1, 2, 3, 4, 5, 6, 7], "{config:?}");
    }
    home.pruner(RetentionConfig { runs: 2, ..NEVER }).prune(&stop).await.unwrap();
    assert_eq!(home.left(&runs), [0, 1, 2, 3, 4, 6, 7]);
    home.pruner(RetentionConfig { bytes: ByteSize(Some(1 << 17)), ..NEVER }).prune(&stop).await.unwrap();
    assert_eq!(home.left(&runs), [0, 1, 2, 3, 4, 7]);
    home.host.shutdown().await;
}

#[tokio::test]
async fn a_run_that_a_consumer_has_yet_to_hear_of_stays() {
    let home = Fixture::new().await;
    let (told, yet) = (home.put(0, "completed").await, home.put(1, "completed").await);
    let inner = &home.host;
    for run in [&told, &yet] {
        let body = signals::MotorResult::new(run.clone(), signals::SignalStatus::Completed);
        let mut batch = Batch::new();
        let staged = inner.signals.stage(&mut batch, &base::AgentName::default(), body, signals::TTL).await.unwrap();
        inner.runs.store.commit(batch).await.unwrap();
        staged.deliver();
    }
    let position = async |after: u64| {
        let mut batch = Batch::new();
        batch.put(Table::Meta, "deliver/webhook", &json!({ "after": after })).unwrap();
        inner.runs.store.commit(batch).await.unwrap();
    };
    position(1).await;
    let config = RetentionConfig { age: Age(Some(Duration::ZERO)), ..NEVER };
    let pruner = Pruner { consumers: vec!["webhook"], ..home.pruner(config) };
    let stop = CancellationToken::new();
    let runs = [told, yet];
    pruner.prune(&stop).await.unwrap();
    assert_eq!(home.left(&runs), [1]);
    // Nor is it deleted for room.
    let for_room = RetentionConfig { bytes: ByteSize(Some(1)), ..NEVER };
    Pruner { config: for_room, ..pruner.clone() }.prune(&stop).await.unwrap();
    assert_eq!(home.left(&runs), [1]);
    position(2).await;
    pruner.prune(&stop).await.unwrap();
    assert_eq!(home.left(&runs), [0; 0]);
    home.host.shutdown().await;
}

#[tokio::test]
async fn a_clock_that_is_ahead_at_the_start_and_set_soon_after_deletes_nothing() {
    let home = Fixture::new().await;
    let runs = [home.put(0, "completed").await];
    let year = i64::try_from((DAY * 365).as_millis()).unwrap();
    home.clock.jump(year);
    let config = RetentionConfig { age: Age(Some(DAY * 30)), ..NEVER };
    let pruner = Pruner { time: HostTime::starting(home.clock.clone()), ..home.pruner(config) };
    let stop = CancellationToken::new();
    pruner.prune(&stop).await.unwrap();
    assert_eq!((home.left(&runs), pruner.pause()), (vec![0], SETTLED));
    home.clock.advance(SETTLED / 2);
    home.clock.jump(-year);
    home.clock.advance(SETTLED);
    pruner.prune(&stop).await.unwrap();
    assert_eq!((home.left(&runs), pruner.pause()), (vec![0], PAUSE));
    // Nor is one deleted after the clock is set ahead later.
    let pruner = Pruner { time: HostTime::starting(home.clock.clone()), ..pruner };
    home.clock.advance(SETTLED);
    home.clock.jump(year);
    pruner.prune(&stop).await.unwrap();
    assert_eq!(home.left(&runs), [0]);
    home.clock.advance(DAY * 30);
    pruner.prune(&stop).await.unwrap();
    assert_eq!(home.left(&runs), [0; 0]);
    home.host.shutdown().await;
}

#[tokio::test]
async fn a_pass_is_noted_for_the_hosts_of_the_next_hour() {
    let home = Fixture::new().await;
    let pruner = home.pruner(NEVER);
    assert!(pruner.is_due());
    pruner.prune(&CancellationToken::new()).await.unwrap();
    assert!(!pruner.is_due());
    home.clock.advance(PAUSE - Duration::from_millis(1));
    assert!(!home.pruner(NEVER).is_due());
    home.clock.advance(Duration::from_millis(1));
    assert!(home.pruner(NEVER).is_due());
    let (now, later) = (Timestamp::from_millis(1), Timestamp::from_millis(2));
    assert!(is_due(None, now) && is_due(Some(later), now) && !is_due(Some(now), later));
    home.host.shutdown().await;
}

#[tokio::test]
async fn who_stops_waits_for_no_more_directories() {
    let home = Fixture::new().await;
    let run = home.put(0, "completed").await;
    let (home_path, motor) = (home.host.home(), &home.host.runs.motor);
    let orphan = RunId::parse("run_0000000000000009").unwrap();
    fs::create_dir_all(home_path.run(&orphan)).unwrap();
    let much_later = SystemTime::now() + DAY;
    let sweep = |stop: &CancellationToken| sweep::sweep(home_path, motor, true, much_later, stop).unwrap();
    let (going, stopped) = (CancellationToken::new(), CancellationToken::new());
    stopped.cancel();
    assert_eq!((sweep(&stopped), measured(home_path, true, &stopped).len()), (0, 0));
    assert_eq!((measured(home_path, true, &going).len(), sweep(&going)), (2, 1));
    assert!(home_path.run(&run).exists() && !home_path.run(&orphan).exists());
    home.host.shutdown().await;
}

#[test]
fn only_as_many_go_as_are_too_much() {
    for (sizes, bytes, runs, expected) in [
        (&[5, 5, 5][..], Some(10), None, 1),
        (&[5, 5, 5], Some(15), Some(3), 0),
        (&[5, 5, 5], Some(14), Some(1), 2),
        (&[5, 5, 5], Some(0), None, 3),
        (&[5, 5, 5], None, None, 0),
        (&[], Some(0), Some(1), 0),
    ] {
        assert_eq!(surplus(sizes, bytes, runs), expected, "{sizes:?} {bytes:?} {runs:?}");
    }
}

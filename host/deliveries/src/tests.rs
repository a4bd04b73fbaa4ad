//! Deliveries against a real store, with a consumer that fails on demand.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::{AgentName, RunId, TestClock, Timestamp};
use parking_lot::Mutex;
use serde_json::{Value, json};
use signals::{MotorResult, Signal, SignalStatus, TTL};
use store::{Batch, Table};
use tokio::sync::mpsc;
use vault::VaultParts;

use super::*;
use crate::line::RetrySchedule;

/// A home that can be closed and opened again.
pub(crate) struct Fixture {
    directory: tempfile::TempDir,
    clock: Arc<TestClock>,
}

impl Fixture {
    pub fn new() -> Self {
        let clock = Arc::new(TestClock::at(Timestamp::from_millis(1_700_000_000_000)));
        Self { directory: tempfile::tempdir().unwrap(), clock }
    }

    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    pub fn open(&self) -> DeliverParts {
        self.open_with(SignalsConfig::default())
    }

    pub fn open_with(&self, config: SignalsConfig) -> DeliverParts {
        let store = Store::open(&self.path("state")).unwrap();
        let clock: Arc<dyn Clock> = self.clock.clone();
        let vault = Vault::open(VaultParts {
            store: store.clone(),
            clock: clock.clone(),
            directory: self.path("config"),
            key: None,
            keyring: false,
            variables: BTreeMap::from([("VAULT_HOOK_SECRET".to_owned(), "a secret of the hook".to_owned())]),
            config: vault::VaultConfig::default(),
        });
        let signals = SignalBus::open(store.clone(), clock.clone()).unwrap();
        let path = std::env::var("PATH").unwrap();
        DeliverParts {
            config,
            telemetry: TelemetryConfig::default(),
            traces: Arc::new(TestTraces),
            store,
            signals,
            clock,
            random: Arc::new(Random::seeded(7)),
            gate: Gate::new(&network::NetworkConfig::default()).unwrap(),
            vault,
            env: base::env_of_list(&[("PATH", &path), ("HOME", "/home/owner"), ("OPENAI_API_KEY", "sk-secret")]),
        }
    }

    /// The same open home for a second owner.
    pub fn open_again(&self, parts: &DeliverParts) -> DeliverParts {
        DeliverParts {
            config: parts.config.clone(),
            telemetry: parts.telemetry.clone(),
            traces: parts.traces.clone(),
            store: parts.store.clone(),
            signals: parts.signals.clone(),
            clock: parts.clock.clone(),
            random: parts.random.clone(),
            gate: parts.gate.clone(),
            vault: parts.vault.clone(),
            env: parts.env.clone(),
        }
    }
}

/// Traces that name their run. Odd runs are deleted.
struct TestTraces;

#[async_trait::async_trait]
impl TraceSource for TestTraces {
    async fn export(&self, run: &RunId) -> Result<Option<Value>, Refusal> {
        let is_deleted = run.as_str().ends_with(['1', '3', '5', '7', '9']);
        Ok((!is_deleted).then(|| json!({ "run": run, "text": "a secret of the hook" })))
    }
}

fn run_id(run: u64) -> RunId {
    RunId::parse(&format!("run_{run:016}")).unwrap()
}

/// Sends a signal as the motor does: with the head of its run in the same batch.
pub(crate) async fn send(parts: &DeliverParts, run: u64, status: SignalStatus) -> Signal {
    let body = MotorResult { question: Some("which?".to_owned()), ..MotorResult::new(run_id(run), status) };
    let mut batch = Batch::new();
    let staged = parts.signals.stage(&mut batch, &AgentName::default(), body, TTL).await.unwrap();
    head(&mut batch, run, status.is_waiting().then_some(staged.signal().id));
    parts.store.commit(batch).await.unwrap();
    staged.deliver()
}

fn head(batch: &mut Batch, run: u64, signal: Option<u64>) {
    let id = run_id(run);
    let record = signal.map_or_else(|| json!({ "id": id }), |signal| json!({ "id": id, "signal": signal }));
    batch.put(Table::Runs, id.as_str(), &record).unwrap();
    if signal.is_some() {
        batch.put(Table::Live, id.as_str(), &id).unwrap();
    } else {
        batch.delete(Table::Live, id.as_str());
    }
}

/// Answers the question of a run.
async fn answer(parts: &DeliverParts, run: u64) {
    let mut batch = Batch::new();
    head(&mut batch, run, None);
    batch.put(Table::Live, run_id(run).as_str(), &run_id(run)).unwrap();
    parts.store.commit(batch).await.unwrap();
}

fn waiting(parts: &DeliverParts) -> WaitingSignals {
    WaitingSignals { store: parts.store.clone(), signals: parts.signals.clone() }
}

/// The signals for a follower now: `w1` a waiting one, `o3` the end of the opening, `4` a signal.
fn there(follower: &mut Follower) -> Vec<String> {
    let mut found = Vec::new();
    while let Some(followed) = follower.next_ready().unwrap() {
        found.push(match followed {
            FollowStep::Waiting(signal) => format!("w{}", signal.id),
            FollowStep::Opened(after) => format!("o{after}"),
            FollowStep::Signal(signal) => signal.id.to_string(),
        });
    }
    found
}

#[tokio::test]
async fn who_has_no_position_hears_first_of_runs_that_still_wait_and_then_what_comes() {
    let home = Fixture::new();
    let parts = home.open();
    send(&parts, 1, SignalStatus::AwaitingInput).await;
    send(&parts, 2, SignalStatus::Completed).await;
    send(&parts, 3, SignalStatus::AwaitingApproval).await;
    send(&parts, 4, SignalStatus::AwaitingInput).await;
    // Answered and asking again: the newer one counts.
    answer(&parts, 4).await;
    send(&parts, 4, SignalStatus::AwaitingInput).await;
    send(&parts, 5, SignalStatus::AwaitingInput).await;
    answer(&parts, 5).await;
    assert_eq!(waiting(&parts).ids().unwrap(), [1, 3, 5]);

    let mut follower = Follower::from(waiting(&parts), None);
    let mut late = Follower::from(waiting(&parts), None);
    assert_eq!(there(&mut follower), ["w1", "w3", "w5", "o6"]);
    send(&parts, 6, SignalStatus::AwaitingInput).await;
    assert_eq!(there(&mut follower), ["7"]);
    // Signals answered while the follower reads are skipped, and newer ones follow the opening.
    assert!(matches!(late.next().await.unwrap(), FollowStep::Waiting(signal) if signal.id == 1));
    answer(&parts, 3).await;
    assert_eq!(there(&mut late), ["w5", "o6", "7"]);
    // With a position, the opening is skipped.
    for (after, expected) in [(0, vec!["1", "2", "3", "4", "5", "6", "7"]), (5, vec!["6", "7"]), (7, vec![])] {
        assert_eq!(there(&mut Follower::from(waiting(&parts), Some(after))), expected, "{after}");
    }
    let since = |after, limit| waiting(&parts).since(after, limit).unwrap().iter().map(|it| it.id).collect::<Vec<_>>();
    assert_eq!(
        (since(0, 10), since(1, 10), since(0, 2), since(7, 10)),
        (vec![1, 5, 7], vec![5, 7], vec![1, 5], vec![])
    );
}

/// Hears everything, and fails a set number of times.
struct Listener {
    name: &'static str,
    /// Number of upcoming attempts that fail.
    failures: AtomicUsize,
    most: Option<usize>,
    heard: mpsc::UnboundedSender<(u64, bool)>,
    timely: Mutex<BTreeMap<u64, bool>>,
}

impl Listener {
    fn new(failures: usize, most: Option<usize>) -> (Self, mpsc::UnboundedReceiver<(u64, bool)>) {
        let (heard, ears) = mpsc::unbounded_channel();
        let failures = AtomicUsize::new(failures);
        (Self { name: "test", failures, most, heard, timely: Mutex::default() }, ears)
    }
}

#[async_trait::async_trait]
impl Consumer for Listener {
    fn name(&self) -> &'static str {
        self.name
    }

    fn retries(&self) -> RetrySchedule {
        RetrySchedule { first: Duration::from_millis(2), longest: Duration::from_millis(4), most: self.most }
    }

    fn wants(&self, signal: &Signal, timely: bool) -> bool {
        self.timely.lock().insert(signal.id, timely);
        timely || self.name == "all"
    }

    async fn deliver(&self, signal: &Signal) -> Result<(), String> {
        let fails = self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        self.heard.send((signal.id, !fails)).ok();
        if fails { Err("it does not listen".to_owned()) } else { Ok(()) }
    }
}

/// Runs a listener until everything is delivered, and returns the signals it heard.
async fn tell_all(
    parts: &DeliverParts,
    listener: Listener,
    mut ears: mpsc::UnboundedReceiver<(u64, bool)>,
) -> Vec<(u64, bool)> {
    let line = Line::open(listener, parts).await;
    let (begin, stop) = (CancellationToken::new(), CancellationToken::new());
    begin.cancel();
    let task = tokio::spawn(line.run(begin, stop.clone()));
    let mut heard = Vec::new();
    let last = parts.signals.latest();
    while heard.last() != Some(&(last, true)) {
        let next = tokio::time::timeout(Duration::from_secs(20), ears.recv()).await;
        heard.extend(next.expect("the last signal comes"));
    }
    stop.cancel();
    task.await.unwrap();
    heard
}

pub(crate) fn position(parts: &DeliverParts, name: &str) -> Option<Value> {
    parts.store.get(Table::Meta, format!("deliver/{name}")).unwrap()
}

#[tokio::test]
async fn each_signal_is_told_in_order_until_it_is_taken_and_a_restart_goes_on() {
    let home = Fixture::new();
    let parts = home.open();
    send(&parts, 1, SignalStatus::AwaitingInput).await;
    send(&parts, 2, SignalStatus::Completed).await;
    // New here: it hears of the run that waits, and not of finished ones.
    let (listener, ears) = Listener::new(0, None);
    let line = Line::open(listener, &parts).await;
    assert_eq!(position(&parts, "test"), Some(json!({ "after": 2, "opening": 0 })));
    drop((line, ears));
    send(&parts, 3, SignalStatus::Completed).await;
    send(&parts, 4, SignalStatus::Failed).await;
    let (listener, ears) = Listener::new(2, None);
    let heard = tell_all(&parts, listener, ears).await;
    assert_eq!(heard, [(1, false), (1, false), (1, true), (3, true), (4, true)]);
    assert_eq!(position(&parts, "test"), Some(json!({ "after": 4 })));
    drop(parts);

    let parts = home.open();
    send(&parts, 5, SignalStatus::Completed).await;
    let (listener, ears) = Listener::new(0, None);
    assert_eq!(tell_all(&parts, listener, ears).await, [(5, true)]);
}

#[tokio::test]
async fn what_was_under_way_when_the_host_died_is_told_again() {
    let home = Fixture::new();
    let parts = home.open();
    let (listener, mut ears) = Listener::new(usize::MAX, None);
    let line = Line::open(listener, &parts).await;
    send(&parts, 1, SignalStatus::Completed).await;
    send(&parts, 2, SignalStatus::Completed).await;
    let task = tokio::spawn(line.run(CancellationToken::new(), CancellationToken::new()));
    assert_eq!(ears.recv().await, Some((1, false)));
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    let (listener, ears) = Listener::new(0, None);
    assert_eq!(tell_all(&parts, listener, ears).await, [(1, true), (2, true)]);
}

#[tokio::test]
async fn who_has_had_enough_attempts_is_not_asked_again() {
    let home = Fixture::new();
    let parts = home.open();
    let (listener, ears) = Listener::new(3, Some(2));
    drop(Line::open(Listener::new(0, None).0, &parts).await);
    send(&parts, 1, SignalStatus::Completed).await;
    send(&parts, 2, SignalStatus::Completed).await;
    assert_eq!(tell_all(&parts, listener, ears).await, [(1, false), (1, false), (1, false), (2, true)]);
    assert_eq!(position(&parts, "test"), Some(json!({ "after": 2 })));
}

#[tokio::test]
async fn what_is_old_is_timely_only_while_its_run_waits() {
    let home = Fixture::new();
    let parts = home.open();
    drop(Line::open(Listener::new(0, None).0, &parts).await);
    send(&parts, 1, SignalStatus::Completed).await;
    send(&parts, 2, SignalStatus::AwaitingInput).await;
    send(&parts, 3, SignalStatus::AwaitingApproval).await;
    answer(&parts, 3).await;
    home.clock.advance(TTL + Duration::from_millis(1));
    send(&parts, 4, SignalStatus::Completed).await;
    let (listener, ears) = Listener::new(0, None);
    assert_eq!(tell_all(&parts, listener, ears).await, [(2, true), (4, true)]);
    // A consumer that wants all signals gets them, late or not.
    let (listener, ears) = Listener::new(0, None);
    let mut batch = Batch::new();
    batch.put(Table::Meta, "deliver/all", &json!({ "after": 0 })).unwrap();
    parts.store.commit(batch).await.unwrap();
    let heard = tell_all(&parts, Listener { name: "all", ..listener }, ears).await;
    assert_eq!(heard, [(1, true), (2, true), (3, true), (4, true)]);
}

#[tokio::test]
async fn a_disk_that_takes_no_position_stops_no_delivery() {
    let home = Fixture::new();
    let parts = home.open();
    drop(Line::open(Listener::new(0, None).0, &parts).await);
    send(&parts, 1, SignalStatus::Completed).await;
    send(&parts, 2, SignalStatus::Completed).await;
    parts.store.close().await.unwrap();
    let (listener, ears) = Listener::new(1, None);
    assert_eq!(tell_all(&parts, listener, ears).await, [(1, false), (1, true), (2, true)]);
    assert_eq!(position(&parts, "test"), Some(json!({ "after": 0, "opening": 0 })));
}

#[tokio::test]
async fn a_host_that_only_answers_a_question_tells_nobody_anything() {
    let home = Fixture::new();
    let parts = home.open();
    drop(Line::open(Listener::new(0, None).0, &parts).await);
    send(&parts, 1, SignalStatus::Completed).await;
    let (listener, mut ears) = Listener::new(0, None);
    let stop = CancellationToken::new();
    let task = tokio::spawn(Line::open(listener, &parts).await.run(CancellationToken::new(), stop.clone()));
    stop.cancel();
    task.await.unwrap();
    assert_eq!(ears.recv().await, None);
    // A new signal is delivered after the remaining ones, even if the host ends at once.
    let (listener, mut ears) = Listener::new(0, None);
    let line = Line::open(listener, &parts).await;
    send(&parts, 2, SignalStatus::Completed).await;
    let stop = CancellationToken::new();
    stop.cancel();
    line.run(CancellationToken::new(), stop).await;
    assert_eq!((ears.recv().await, ears.recv().await, ears.recv().await), (Some((1, true)), Some((2, true)), None));
}

#[tokio::test]
async fn a_host_that_ends_does_not_wait_for_who_fails() {
    let home = Fixture::new();
    let parts = home.open();
    let (listener, mut ears) = Listener::new(usize::MAX, None);
    let line = Line::open(listener, &parts).await;
    send(&parts, 1, SignalStatus::Completed).await;
    let stop = CancellationToken::new();
    stop.cancel();
    line.run(CancellationToken::new(), stop).await;
    assert_eq!((ears.recv().await, ears.recv().await), (Some((1, false)), None));
}

pub(crate) fn webhook(url: &str, secret: &str) -> SignalsConfig {
    let secret = base::CredentialName::parse(secret).unwrap();
    let config = WebhookConfig { url: url.to_owned(), secret, timeout_seconds: 10, max_backoff_seconds: 1 };
    SignalsConfig { webhook: Some(config), hook: None }
}

#[tokio::test]
async fn settings_that_cannot_be_are_refused_by_name() {
    let hook = |command: &[&str]| {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        let statuses = vec![SignalStatus::Completed];
        SignalsConfig { webhook: None, hook: Some(HookConfig { command, timeout_seconds: 1, statuses }) }
    };
    for (config, says) in [
        (webhook("ftp://example.com", "s"), "signals.webhook.url"),
        (webhook("https://user:pass@example.com", "s"), "signals.webhook.url"),
        (hook(&[]), "signals.hook.command"),
        (hook(&["", "x"]), "signals.hook.command"),
        (hook(&["x", "a\0b"]), "signals.hook.command"),
    ] {
        let home = Fixture::new();
        let refusal = Deliveries::start(home.open_with(config)).await.err().expect(says);
        assert!(refusal.reason.contains(says) && refusal.remedy.is_some(), "{refusal:?}");
        assert!(!refusal.reason.contains("pass"), "{refusal:?}");
    }
    let home = Fixture::new();
    assert!(Deliveries::start(home.open_with(hook(&["true"]))).await.is_ok());
}

#[test]
fn pauses_grow_to_the_longest_and_half_of_each_is_chance() {
    let retries = |most| RetrySchedule { first: Duration::from_secs(1), longest: Duration::from_secs(8), most };
    let pauses = |seed| retries(None).pauses(seed).take(50).collect::<Vec<_>>();
    for (index, pause) in pauses(1).into_iter().enumerate() {
        let most = Duration::from_secs(1 << index.min(3));
        assert!(most / 2 <= pause && pause <= most, "{index}: {pause:?}");
    }
    assert_eq!(pauses(1), pauses(1));
    assert_ne!(pauses(1), pauses(2));
    assert_eq!(retries(Some(2)).pauses(1).count(), 2);
}

/// `cargo test -p deliveries -- --ignored --nocapture waiting_speed`
#[tokio::test]
#[ignore = "a measurement"]
async fn waiting_speed() {
    const RUNS: u64 = 10_000;
    let home = Fixture::new();
    let parts = home.open();
    let filler = "x".repeat(1_500);
    for run in 0..RUNS {
        let body = MotorResult::new(run_id(run), SignalStatus::AwaitingInput);
        let mut batch = Batch::new();
        let staged = parts.signals.stage(&mut batch, &AgentName::default(), body, TTL).await.unwrap();
        head(&mut batch, run, Some(staged.signal().id));
        let record = json!({ "id": run_id(run), "task": filler, "signal": staged.signal().id });
        batch.put(Table::Runs, run_id(run).as_str(), &record).unwrap();
        parts.store.commit(batch).await.unwrap();
        staged.deliver();
    }
    let begun = std::time::Instant::now();
    assert_eq!(waiting(&parts).ids().unwrap().len() as u64, RUNS);
    let ids = begun.elapsed();
    let begun = std::time::Instant::now();
    assert_eq!(there(&mut Follower::from(waiting(&parts), None)).len() as u64, RUNS + 1);
    println!("{RUNS} runs wait: their ids {ids:?}, all of them told {:?}", begun.elapsed());
}

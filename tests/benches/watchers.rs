//! A thousand clients that follow signals: the memory they take in the real program, and how late a signal reaches them.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use tests::binary::Motor;
use tests::model_server::ModelServer;
use tests::watching::{HostAddress, Watcher, raise_descriptors, resident_bytes};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::stats::{Aim, Times, line};

const WATCHERS: usize = 1_000;
/// Runs that end while they watch.
const RUNS: u64 = 20;

pub fn run(executor: &Runtime) -> Result<()> {
    raise_descriptors(WATCHERS as u64 + 500);
    let model = executor.block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done" }] })));
    let motor = Motor::with_model(&model).env("MOTOR_ENERGY_ENABLED", "false");
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let socket = HostAddress::Socket(motor.home().join("host.sock"));
    motor.stdout(&["act", "first"]);

    let mut one = executor.block_on(Watchers::open(&socket, 1, 1))?;
    let mut times = Times::default();
    for _ in 0..RUNS {
        motor.stdout(&["act", "x", "--detach"]);
        times.append(executor.block_on(one.next_signal())?);
    }
    line("a signal to the only SSE client, p50", times.p50(), "ms", Some(Aim::AtMost(20.0)));

    let before = resident_bytes(serving.id());
    let mut many = executor.block_on(Watchers::open(&socket, WATCHERS, 1 + RUNS))?;
    let (mut all, mut slowest) = (Times::default(), Times::default());
    for _ in 0..RUNS {
        motor.stdout(&["act", "x", "--detach"]);
        let times = executor.block_on(many.next_signal())?;
        slowest.add(times.longest());
        all.append(times);
    }
    let grown = resident_bytes(serving.id()).saturating_sub(before) as f64 / f64::from(1 << 20);
    line(&format!("memory of {WATCHERS} SSE clients"), grown, "MiB", Some(Aim::AtMost(100.0)));
    line(&format!("a signal to one of {WATCHERS}, p50"), all.p50(), "ms", Some(Aim::AtMost(20.0)));
    line("the same, to the last of them, p50", slowest.p50(), "ms", None);
    Ok(())
}

/// Clients that report when a signal reaches them.
struct Watchers {
    count: usize,
    /// How long after its creation a signal arrived: until its commit, and from there to the client.
    heard: mpsc::UnboundedReceiver<Duration>,
}

impl Watchers {
    async fn open(host: &HostAddress, count: usize, after: u64) -> Result<Self> {
        let (report, heard) = mpsc::unbounded_channel();
        let opening = (0..count).map(|_| Watcher::open(host, "/v1/signals/events", Some(after)));
        for mut watcher in try_join_all(opening).await? {
            let report = report.clone();
            tokio::spawn(async move {
                while let Ok(Some(event)) = watcher.next().await {
                    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                    let signal: Value = serde_json::from_str(&event.data).unwrap_or_default();
                    let created = Duration::from_millis(signal["createdAt"].as_u64().unwrap_or_default());
                    if report.send(now.saturating_sub(created)).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Self { count, heard })
    }

    /// Waits until all of them have heard the next signal.
    async fn next_signal(&mut self) -> Result<Times> {
        let mut times = Times::default();
        for _ in 0..self.count {
            times.add(self.heard.recv().await.context("all streams ended")?);
        }
        Ok(times)
    }
}

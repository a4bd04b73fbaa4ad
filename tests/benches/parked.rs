//! Ten thousand runs of ten thousand agents that wait for their users: a host's time to start with them, and its
//! memory.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tests::binary::{Motor, Running};
use tests::parked::Hosted;

use crate::stats::{Aim, Times, line};

const RUNS: usize = 10_000;
/// Starts of the real program.
const STARTS: usize = 9;
/// Restarts of the loop alone.
const RESTARTS: usize = 100;

pub fn run() -> Result<()> {
    println!("\n{RUNS} runs that wait");
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let directory = tempfile::tempdir_in(std::env::current_dir()?)?;
    let motor = Motor::new().env("MOTOR_KEYRING", "off");
    // Compiled code is kept from run to run, as it is at home.
    let cache = motor.home().join("cache");
    let home = directory.path().join("home");
    std::fs::create_dir(&home)?;
    std::os::unix::fs::symlink(std::fs::read_link(cache)?, home.join("cache"))?;
    let motor = motor.at(home.clone());

    let began = Instant::now();
    executor.block_on(async {
        let hosted = Hosted::open(&home);
        hosted.park(RUNS).await;
        hosted.close().await;
    });
    line("accepting and parking one", began.elapsed().as_secs_f64() * 1e3 / RUNS as f64, "ms", None);

    let mut restarts = executor.block_on(restart(&home))?;
    line("restart of the loop with them, p50", restarts.p50(), "ms", None);

    let (mut starts, mut memory) = (Times::default(), Vec::new());
    for round in 0..STARTS {
        let began = Instant::now();
        let serving = motor.start(&["serve"]);
        ready(&motor)?;
        // The first start also makes the rest of the home.
        if round > 0 {
            starts.add(began.elapsed());
            memory.push(resident_mib(&serving)?);
        }
        serving.kill();
    }
    memory.sort_by(f64::total_cmp);
    line("start to ready, p50", starts.p50(), "ms", Some(Aim::AtMost(1_000.0)));
    line("start to ready, the longest", starts.quantile(1.0), "ms", None);
    line(
        "memory when ready, p50",
        memory.get(memory.len() / 2).copied().unwrap_or_default(),
        "MiB",
        Some(Aim::AtMost(190.7)),
    );
    Ok(())
}

/// Opens the home and looks at its runs again and again; checks that no user is asked a second time.
async fn restart(home: &std::path::Path) -> Result<Times> {
    let mut times = Times::default();
    let mut before = None;
    for _ in 0..RESTARTS {
        let began = Instant::now();
        let hosted = Hosted::open(home);
        let resumed = hosted.motor.resume_all().await?;
        times.add(began.elapsed());
        ensure!(resumed.is_empty(), "{} runs were driven", resumed.len());
        ensure!(hosted.signals.latest() == RUNS as u64, "there are {} signals", hosted.signals.latest());
        let records = hosted.motor.list(motor::ListFilter { limit: RUNS, ..motor::ListFilter::default() })?;
        ensure!(
            records.len() == RUNS && *before.get_or_insert_with(|| records.clone()) == records,
            "a run has changed"
        );
        hosted.close().await;
    }
    Ok(times)
}

fn ready(motor: &Motor) -> Result<()> {
    let began = Instant::now();
    while motor.ask("/v1/host", None, &[]).is_err() {
        if began.elapsed() > Duration::from_secs(60) {
            bail!("the host does not start");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// The resident memory of the program, in MiB.
fn resident_mib(serving: &Running) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", serving.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1_024.0)
}

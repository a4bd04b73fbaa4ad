//! Many runs: durable steps a second over all of them, and the cost of a million past runs for later ones.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use base::{AgentName, Random, RunId, SystemClock, Timestamp};
use energy::EnergyBook;
use motor::{ListFilter, Motor, MotorParts, RunRecord, RunRequest};
use signals::SignalBus;
use store::{Batch, Store, Table};

use crate::stats::{Aim, Times, line};
use crate::step::{Instantaneous, STEPS};

/// Agents at work at the same time.
const AGENTS: usize = 96;
/// Runs that are over, at each point of the measurement.
const STORED: [u64; 3] = [1_000, 100_000, 1_000_000];
/// Records in one commit while the past is made.
const BATCH: u64 = 5_000;
const ROUNDS: usize = 20;

pub fn run() -> Result<()> {
    println!("\nmany runs");
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let directory = tempfile::tempdir_in(std::env::current_dir()?)?;
    executor.block_on(throughput(directory.path()))?;
    executor.block_on(growth(directory.path()))
}

fn motor(store: Store, environment: Arc<Instantaneous>) -> Result<Motor> {
    let clock = Arc::new(SystemClock::default());
    let config = energy::EnergyConfig { enabled: false, ..energy::EnergyConfig::default() };
    Ok(Motor::new(MotorParts {
        signals: SignalBus::open(store.clone(), clock.clone())?,
        energy: Arc::new(EnergyBook::open(store.clone(), clock.clone(), config)),
        store,
        clock,
        random: Arc::new(Random::seeded(1)),
        environment,
        config: motor::MotorConfig::default(),
    }))
}

fn request(agent: usize) -> Result<RunRequest> {
    Ok(RunRequest {
        agent: AgentName::parse(&format!("agent-{agent}"))?,
        task: "count".into(),
        tools: vec!["noop".into()],
        max_iterations: Some(50),
        timeout: None,
        grant: grants::Grant::default(),
        key: None,
        approval_required: false,
        may_ask: true,
        detached: false,
        settled: false,
        skill: None,
        web_sources: vec![],
        by_model: false,
        money: motor::RunMoney::default(),
    })
}

/// All agents at once, each with a model and a tool that answer at once.
async fn throughput(directory: &Path) -> Result<()> {
    let environment = Arc::new(Instantaneous::for_each_run());
    let motor = motor(Store::open(&directory.join("throughput"))?, environment.clone())?;
    let mut rates = Vec::new();
    for _ in 0..3 {
        let started = Instant::now();
        let mut ids = Vec::new();
        for agent in 0..AGENTS {
            ids.push(motor.start(motor.new_run_id(), request(agent)?).await?.id);
        }
        for id in &ids {
            motor.wait(id).await?;
        }
        rates.push((AGENTS * STEPS) as f64 / started.elapsed().as_secs_f64());
    }
    rates.sort_by(f64::total_cmp);
    let mut gaps = environment.gaps();
    line("durable steps of concurrent runs, median of 3", rates[1], "/s", Some(Aim::AtLeast(3_000.0)));
    line("host time of one of those steps, p50", gaps.p50(), "ms", None);
    line("host time of one of those steps, p99", gaps.p99(), "ms", None);
    // The cost of a step when the other runs leave the disk and the processors to it is in `step`.
    motor.shutdown().await;
    Ok(())
}

/// Lists and starts over more and more of the past.
async fn growth(directory: &Path) -> Result<()> {
    let directory = directory.join("growth");
    let environment = Arc::new(Instantaneous::for_each_run());
    let pattern = finish_run(&directory, environment.clone()).await?;
    let mut made = 0;
    for stored in STORED {
        let store = Store::open(&directory)?;
        while made < stored {
            store.commit(past(&pattern, made, (made + BATCH).min(stored))?).await?;
            made = (made + BATCH).min(stored);
        }
        store.close().await?;
        drop(store);
        let mut starts = Times::default();
        let mut lists = Times::default();
        for _ in 0..ROUNDS {
            let started = Instant::now();
            let motor = motor(Store::open(&directory)?, environment.clone())?;
            motor.resume_all().await?;
            starts.add(started.elapsed());
            let started = Instant::now();
            let listed = motor.list(ListFilter { limit: 20, ..ListFilter::default() })?;
            lists.add(started.elapsed());
            assert_eq!(listed.len(), 20);
            motor.shutdown().await;
        }
        line(&format!("start over {stored} stored runs, p50"), starts.p50(), "ms", None);
        line(&format!("`task list` over {stored} stored runs, p50"), lists.p50(), "ms", None);
    }
    Ok(())
}

/// The record of a run that is over.
pub async fn finished_run() -> Result<RunRecord> {
    let directory = tempfile::tempdir()?;
    finish_run(&directory.path().join("state"), Arc::new(Instantaneous::for_each_run())).await
}

async fn finish_run(state: &Path, environment: Arc<Instantaneous>) -> Result<RunRecord> {
    let motor = motor(Store::open(state)?, environment)?;
    let run = motor.start(motor.new_run_id(), request(0)?).await?.id;
    let record = motor.wait(&run).await?;
    motor.shutdown().await;
    Ok(record)
}

/// Runs that are over, as they are stored.
pub fn past(pattern: &RunRecord, from: u64, to: u64) -> Result<Batch> {
    let mut batch = Batch::new();
    for number in from..to {
        let at = Timestamp::from_millis(1_700_000_000_000 + number * 1_000);
        let id = RunId::new(at, &Random::seeded(number));
        let mut record = pattern.clone();
        record.id = id.clone();
        record.created_at = at;
        record.started_at = Some(at);
        record.completed_at = Some(at.after(Duration::from_secs(1)));
        batch.put(Table::Runs, id.as_str(), &record)?;
    }
    Ok(batch)
}

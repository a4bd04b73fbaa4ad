//! Start and memory of a host, each measured in a process of its own.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::config::LoadedConfig;
use agent::{Caller, ExecuteRequest, Home, Host, HostOptions};
use anyhow::{Context as _, Result};
use base::{Random, SystemClock};

use crate::limits::resident_mib;
use crate::stats::{Aim, Times, line};

pub fn run() -> Result<()> {
    println!("\nhost");
    let home = tempfile::tempdir()?;
    let path = home.path().to_str().context("a temporary path")?.to_owned();
    let (mut starts, mut idle, mut later) = (Times::default(), Times::default(), Vec::new());
    for round in 0..8 {
        let output = Command::new(std::env::current_exe()?).args(["measure-host", &path]).output()?;
        let text = String::from_utf8(output.stdout)?;
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let [start, before, after] = numbers[..] else { anyhow::bail!("the child said: {text}") };
        // The first start fills the cache.
        if round > 0 {
            starts.add(Duration::from_secs_f64(start / 1_000.0));
            idle.add(Duration::from_secs_f64(before / 1_000.0));
            later.push((after - before) / before * 100.0);
        }
    }
    line("start with a warm cache, to ready, p50", starts.p50(), "ms", Some(Aim::AtMost(50.0)));
    line("memory when idle, p50", idle.p50(), "MiB", Some(Aim::AtMost(60.0)));
    later.sort_by(f64::total_cmp);
    let growth = later.get(later.len() / 2).copied().unwrap_or_default();
    line("memory after 1,000 more code executions", growth, "% more", Some(Aim::AtMost(10.0)));
    Ok(())
}

/// In the child: opens a host on `home`, and prints the time to ready, memory when idle, and memory 1,000 executions on.
pub fn measure(home: Option<&str>) -> Result<()> {
    let home = Home::at(home.context("a home")?.into());
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    executor.block_on(async {
        let started = Instant::now();
        let env = agent::env::of_list(&[]);
        let options = HostOptions {
            config: LoadedConfig::load(&home, None, &env, &[("energy.enabled".into(), "false".into())])?,
            home,
            env,
            vault_variables: std::collections::BTreeMap::new(),
            compile_worker: None,
            clock: Arc::new(SystemClock::default()),
            random: Arc::new(Random::from_system()),
        };
        let host = Host::open(options).await?;
        let ready = started.elapsed();
        // Idle is a host that has done its first work: the engine for code is loaded by then.
        execute(&host).await?;
        let before = resident_mib()?;
        for _ in 0..1_000 {
            execute(&host).await?;
        }
        println!("{} {} {}", ready.as_secs_f64() * 1_000.0, before, resident_mib()?);
        host.shutdown().await;
        Ok(())
    })
}

async fn execute(host: &Host) -> Result<()> {
    let request = ExecuteRequest {
        code: "return [1, 2, 3].map(x => x * 2)".into(),
        language: Default::default(),
        purpose: None,
        timeout_ms: None,
        guard: None,
        agent: Default::default(),
        tier: Default::default(),
        seed: None,
    };
    let reply = host.programs.execute(request, Caller::Owner).await?;
    anyhow::ensure!(reply.ok, "{}", reply.output);
    Ok(())
}

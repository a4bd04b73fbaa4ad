//! How programs that would not end, end.

use std::time::Instant;

use anyhow::{Result, ensure};
use runtime::{CodeErrorCode, Limits};
use tokio_util::sync::CancellationToken;

use crate::code::{program, sandbox};
use crate::stats::{Aim, Times, line};

pub fn run() -> Result<()> {
    println!("\nlimits");
    let sandbox = sandbox()?;
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (limits, cancel) = (Limits::default(), CancellationToken::new());

    let endless = program("while (true) {}", 100);
    let mut ends = Times::default();
    for _ in 0..20 {
        let started = Instant::now();
        let report = executor.block_on(sandbox.execute(&endless, &limits, &cancel));
        ends.add(started.elapsed());
        ensure!(report.outcome.is_err_and(|error| error.code == CodeErrorCode::Timeout));
    }
    line("endless loop with a limit of 100 ms, p50", ends.p50(), "ms", Some(Aim::AtMost(103.0)));

    let bomb = program("const hoard = []; while (true) hoard.push(new Uint8Array(1 << 20).fill(1))", 5_000);
    let before = resident_mib()?;
    let mut ends = Times::default();
    for _ in 0..20 {
        let started = Instant::now();
        let report = executor.block_on(sandbox.execute(&bomb, &limits, &cancel));
        ends.add(started.elapsed());
        ensure!(report.outcome.is_err_and(|error| error.code == CodeErrorCode::Limit));
    }
    line("memory bomb against 64 MiB, p50", ends.p50(), "ms", None);
    line("memory of the host after 20 bombs, growth", resident_mib()? - before, "MiB", Some(Aim::AtMost(4.0)));
    Ok(())
}

/// Resident memory of this process.
pub fn resident_mib() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    Ok(kib.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
}

//! The code sandbox through the public Rust API: a fresh instance for each program.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use runtime::{CodeSandbox, Component, ComponentOrigin, EngineConfig, Limits, Program, Runtime};
use tokio_util::sync::CancellationToken;

use crate::peer::Peer;
use crate::stats::{Aim, Times, line};

/// How often Node runs each program; the sandbox runs it `FACTOR` times as often for the short ones.
const ROUNDS: usize = 15;

pub struct Workload {
    pub name: &'static str,
    pub code: String,
    /// Runs of the sandbox in each round.
    pub repeats: usize,
    /// How many times faster than the forked design it should be.
    ratio: f64,
}

pub fn workloads() -> Vec<Workload> {
    let regions = ["north", "south", "east"];
    let records: Vec<_> = (0..330)
        .map(|index| {
            let (name, region) = (format!("customer-{index}"), regions[index % 3]);
            serde_json::json!({ "id": index, "name": name, "region": region, "amount": index * 37 % 1000, "note": "abcdefghij" })
        })
        .collect();
    let json = serde_json::Value::from(records).to_string();
    let quoted = serde_json::Value::from(json.as_str()).to_string();
    vec![
        Workload { name: "one-liner", code: "return 10000*Math.pow(1.05, 10)".into(), repeats: 400, ratio: 1000.0 },
        Workload {
            name: "30 KB JSON transform",
            code: format!(
                "const rows = JSON.parse({quoted}), by = {{}};
                 for (const r of rows) (by[r.region] ??= []).push({{ ...r, amount: r.amount * 1.2 }});
                 return Object.entries(by).map(([region, rows]) => ({{ region, rows: rows.length, total: rows.reduce((a, r) => a + r.amount, 0) }}))"
            ),
            repeats: 20,
            ratio: 12.0,
        },
        Workload {
            name: "fib(27)",
            code: "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) } return fib(27)".into(),
            repeats: 2,
            ratio: 1.0,
        },
        Workload {
            name: "regexps over 100 KB",
            code: r#"const line = "2026-11-21T22:47:58Z host-17 GET /items/4711?q=abc&lang=de 200 1234 user@example.com\n";
                     let text = line.repeat(Math.ceil(100000 / line.length)), found = 0;
                     for (const re of [/\d{4}-\d{2}-\d{2}/g, /\b[\w.]+@[\w.]+\b/g, /GET (\/\S+)\?(\S+)/g, /(\d+) (\d+)/g, /host-\d+/g])
                       for (const m of text.matchAll(re)) found += m[0].length;
                     return found"#
                .into(),
            repeats: 2,
            ratio: 1.0,
        },
    ]
}

pub fn sandbox() -> Result<CodeSandbox> {
    let runtime = Runtime::new(EngineConfig { cache: Some(cache()), ..EngineConfig::default() })?;
    let executor = tokio::runtime::Builder::new_current_thread().build()?;
    let component =
        executor.block_on(Component::load(&runtime, &tests::bundled("code-js"), ComponentOrigin::Bundled))?;
    Ok(CodeSandbox::link(&runtime, &component)?)
}

pub fn cache() -> std::path::PathBuf {
    std::env::temp_dir().join("motor-bench-cache")
}

pub fn program(code: &str, timeout_ms: u64) -> Program {
    Program { source: code.to_owned(), timeout: Duration::from_millis(timeout_ms), guard: true, seed: 1, now_ms: 0 }
}

pub fn run() -> Result<()> {
    println!("\ncode sandbox, a fresh instance for each program");
    let sandbox = sandbox()?;
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut node = Peer::forked();
    if node.is_none() {
        println!("  no Node here: the forked design is not measured");
    }
    for workload in workloads() {
        measure(&executor, &sandbox, node.as_mut(), &workload)?;
    }
    throughput(&executor, &sandbox)
}

fn measure(
    executor: &tokio::runtime::Runtime,
    sandbox: &CodeSandbox,
    mut node: Option<&mut Peer>,
    workload: &Workload,
) -> Result<()> {
    let program = program(&workload.code, 5_000);
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    for round in 0..=ROUNDS {
        for _ in 0..workload.repeats {
            let started = Instant::now();
            let report = executor.block_on(sandbox.execute(&program, &limits, &cancel));
            // The first round warms both sides up.
            if round > 0 {
                ours.add(started.elapsed());
            }
            ensure!(report.outcome.is_ok(), "{}: {:?}", workload.name, report.outcome);
        }
        if let Some(node) = node.as_deref_mut() {
            let time = node.run(&workload.code)?;
            if round > 0 {
                theirs.add(time);
            }
        }
    }
    let (p50, p99) = (ours.p50(), ours.p99());
    let one_liner = workload.name == "one-liner";
    line(&format!("{} p50", workload.name), p50, "ms", one_liner.then_some(Aim::AtMost(0.04)));
    if one_liner {
        line("one-liner p99", p99, "ms", Some(Aim::AtMost(0.15)));
    }
    if node.is_some() {
        let forked = theirs.p50();
        line(&format!("{} p50, forked Node", workload.name), forked, "ms", None);
        line("  ratio", forked / p50, "x", Some(Aim::AtLeast(workload.ratio)));
    }
    Ok(())
}

fn throughput(executor: &tokio::runtime::Runtime, sandbox: &CodeSandbox) -> Result<()> {
    const PROGRAMS: u32 = 60_000;
    const TASKS: u32 = 8;
    let started = Instant::now();
    executor.block_on(async {
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| {
                let sandbox = sandbox.clone();
                tokio::spawn(async move {
                    let program = program("return 10000*Math.pow(1.05, 10)", 5_000);
                    let (limits, cancel) = (Limits::default(), CancellationToken::new());
                    for _ in 0..PROGRAMS / TASKS {
                        let report = sandbox.execute(&program, &limits, &cancel).await;
                        assert!(report.outcome.is_ok(), "{report:?}");
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await?;
        }
        anyhow::Ok(())
    })?;
    let each_second = f64::from(PROGRAMS) / started.elapsed().as_secs_f64();
    line("one-liners a second, two worker threads", each_second, "/s", Some(Aim::AtLeast(30_000.0)));
    Ok(())
}

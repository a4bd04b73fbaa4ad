//! A component of 20 MB that this host never saw: compiled once, then taken from the cache by each later start.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use runtime::{Component, ComponentOrigin, EngineConfig, Limits, Outcome, Runtime, ToolCall, ToolComponent};
use tokio_util::sync::CancellationToken;

use crate::stats::{Aim, Times, line};

/// Bytes of data, as an interpreter's snapshot has them; the rest of the 20 MB is code.
const DATA_BYTES: usize = 16 << 20;
/// Functions, and operations of each: about 4 MB.
const FUNCTIONS: usize = 4_000;
const OPERATIONS: usize = 110;
/// Starts with a warm cache.
const STARTS: usize = 10;

/// The program that compiles components from outside: it is beside this one.
pub fn compile_worker() -> Result<PathBuf> {
    let worker = std::env::current_exe()?.with_file_name("compile-worker");
    ensure!(worker.is_file(), "`{}` is missing: use `cargo xtask bench`", worker.display());
    Ok(worker)
}

pub fn run() -> Result<()> {
    println!("\na component of 20 MB");
    let worker = compile_worker()?;
    let bytes = wat::parse_str(text()?)?;
    line("size", bytes.len() as f64 / 1e6, "MB", None);
    let cache = tempfile::tempdir()?;
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let first = executor.block_on(load(cache.path(), &worker, &bytes))?;
    line("first start: inspecting and compiling", first.as_secs_f64() * 1_000.0, "ms", None);
    let mut warm = Times::default();
    for _ in 0..STARTS {
        warm.add(executor.block_on(load(cache.path(), &worker, &bytes))?);
    }
    line("later starts: inspecting and loading, p50", warm.p50(), "ms", Some(Aim::AtMost(130.0)));
    line("  compiling is dearer by", first.as_secs_f64() * 1_000.0 / warm.p50(), "x", None);
    Ok(())
}

/// Loads it in a runtime of its own, as a start of the host does, and calls it. The time of loading.
async fn load(cache: &Path, worker: &Path, bytes: &[u8]) -> Result<std::time::Duration> {
    let config = EngineConfig {
        cache: Some(cache.to_owned()),
        compile_worker: Some(worker.to_owned()),
        ..EngineConfig::default()
    };
    let runtime = Runtime::new(config)?;
    let started = Instant::now();
    let component = Component::load(&runtime, bytes, ComponentOrigin::Untrusted).await?;
    let component = ToolComponent::link(&runtime, &component)?;
    let took = started.elapsed();
    let described = component.describe(Limits::default()).await.outcome;
    let Outcome::Returned(tools) = described else { anyhow::bail!("{described:?}") };
    let call = ToolCall {
        name: &tools.first().context("a tool")?.name,
        arguments: r#"{"a":1,"b":2}"#,
        run_id: "",
        step: 0,
        idempotency_key: "",
        workspace: None,
        network: None,
        scripts: None,
        seeded: None,
        environment: Vec::new(),
        limits: Limits::default(),
        notes: Arc::new(|_| ()),
        cancel: CancellationToken::new(),
    };
    let finished = component.call(call).await;
    ensure!(matches!(&finished.outcome, Outcome::Returned(sum) if sum == "3"), "{:?}", finished.outcome);
    Ok(took)
}

/// The component as text: a function that adds, many that do not run, and data.
fn text() -> Result<String> {
    let mut text = String::from("(component (core module $m (memory (export \"memory\") 300)\n");
    text.push_str("(func (export \"add\") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add)\n");
    for function in 0..FUNCTIONS {
        text.push_str("(func (param i32) (result i32)");
        for operation in 0..OPERATIONS {
            // Each function differs, so that none is compiled for another.
            write!(text, " local.get 0 i32.const {} i32.add local.set 0", 100_000 + function * OPERATIONS + operation)?;
        }
        text.push_str(" local.get 0)\n");
    }
    text.push_str("(data (i32.const 65536) \"");
    text.extend((0..DATA_BYTES).map(|at| char::from(b'a' + (at % 23) as u8)));
    text.push_str("\"))\n(core instance $i (instantiate $m))\n");
    text.push_str(
        "(func (export \"add\") (param \"a\" s32) (param \"b\" s32) (result s32) (canon lift (core func $i \"add\"))))",
    );
    Ok(text)
}

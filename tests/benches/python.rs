//! Programs and scripts in Python, a fresh instance each, against the interpreter of this machine: a process each, without
//! isolation.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use runtime::{
    CodeSandbox, EngineConfig, Language, Limits, Outcome, Program, Runtime, ScriptEngine, ScriptSandbox, ToolCall,
};
use tokio_util::sync::CancellationToken;
use toolbox::{CompileTurn, SandboxPool};

use crate::code::cache;
use crate::stats::{Aim, Times, line};

const ONE_LINER: &str = "sum(n * n for n in range(10))";
const ROUNDS: usize = 20;
/// Runs of the sandbox in each round; the machine's interpreter runs it once.
const REPEATS: usize = 20;

pub fn run() -> Result<()> {
    println!("\nPython, a fresh instance for each program");
    let config = EngineConfig { cache: Some(cache()), ..EngineConfig::default() };
    let pool = Arc::new(SandboxPool::new(Runtime::new(config)?, Vec::new()));
    if pool.python(false).is_none() || pool.python(true).is_none() {
        println!("  the engines are not built (`cargo xtask python`): not measured");
        return Ok(());
    }
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let loaded = executor.block_on(pool.code(Language::Python, false, CompileTurn::ONLY));
    let sandbox = loaded.map_err(|refusal| anyhow!(refusal.reason))?.clone();
    let interpreter = interpreter();
    if interpreter.is_none() {
        println!("  no `python3` here: the other side is not measured");
    }
    programs(&executor, &sandbox, interpreter.as_deref())?;
    throughput(&executor, &sandbox)?;
    scripts(&executor, &pool, interpreter.as_deref())
}

fn program() -> Program {
    Program { source: ONE_LINER.into(), timeout: Duration::from_secs(5), guard: true, seed: 1, now_ms: 0 }
}

/// The machine's interpreter itself: `python3` may be a script that looks for it, which takes longer than the program.
fn interpreter() -> Option<PathBuf> {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
    output.status.success().then(|| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// A process of the machine's interpreter.
fn forked(interpreter: &Path) -> Result<Duration> {
    let started = Instant::now();
    let output = Command::new(interpreter).args(["-c", &format!("print({ONE_LINER})")]).output().context("python3")?;
    ensure!(output.stdout == b"285\n", "python3 said {output:?}");
    Ok(started.elapsed())
}

/// The promises about a program; a script passes through the shell besides, and has none.
struct Aims {
    p50: Aim,
    p99: Aim,
    ratio: Aim,
}

fn compare(what: &str, [ours, theirs]: [&mut Times; 2], interpreter: Option<&Path>, aims: Option<Aims>) {
    let (p50, p99, ratio) = match aims {
        Some(aims) => (Some(aims.p50), Some(aims.p99), Some(aims.ratio)),
        None => (None, None, None),
    };
    line(&format!("{what} p50"), ours.p50(), "ms", p50);
    line("  p99", ours.p99(), "ms", p99);
    if interpreter.is_some() {
        line("  a process of `python3 -c`, p50", theirs.p50(), "ms", None);
        line("  ratio", theirs.p50() / ours.p50(), "x", ratio);
    }
}

fn programs(executor: &tokio::runtime::Runtime, sandbox: &CodeSandbox, interpreter: Option<&Path>) -> Result<()> {
    let (program, limits, cancel) = (program(), Limits::default(), CancellationToken::new());
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    for round in 0..=ROUNDS {
        for _ in 0..REPEATS {
            let started = Instant::now();
            let report = executor.block_on(sandbox.execute(&program, &limits, &cancel));
            // The first round warms both sides up.
            if round > 0 {
                ours.add(started.elapsed());
            }
            ensure!(report.outcome.as_ref().is_ok_and(|value| value.json == "285"), "{:?}", report.outcome);
        }
        if let Some(interpreter) = interpreter {
            let time = forked(interpreter)?;
            if round > 0 {
                theirs.add(time);
            }
        }
    }
    let aims = Aims { p50: Aim::AtMost(1.0), p99: Aim::AtMost(4.0), ratio: Aim::AtLeast(30.0) };
    compare("one-liner", [&mut ours, &mut theirs], interpreter, Some(aims));
    Ok(())
}

fn throughput(executor: &tokio::runtime::Runtime, sandbox: &CodeSandbox) -> Result<()> {
    const PROGRAMS: u32 = 400;
    const TASKS: u32 = 2;
    let started = Instant::now();
    executor.block_on(async {
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| {
                let sandbox = sandbox.clone();
                tokio::spawn(async move {
                    let (program, limits, cancel) = (program(), Limits::default(), CancellationToken::new());
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
    let rate = f64::from(PROGRAMS) / started.elapsed().as_secs_f64();
    line("one-liners a second, two at a time", rate, "/s", Some(Aim::AtLeast(1_500.0)));
    Ok(())
}

/// `python3 -c` in the shell of a run: an instance of the shell, and one of the engine within it.
fn scripts(executor: &tokio::runtime::Runtime, pool: &Arc<SandboxPool>, interpreter: Option<&Path>) -> Result<()> {
    let owned = pool.clone();
    let engine = ScriptEngine::new(1, 0, move || {
        let pool = owned.clone();
        async move {
            let loaded =
                pool.code(Language::Python, true, CompileTurn::ONLY).await.map_err(|refusal| refusal.reason)?;
            Ok(ScriptSandbox { sandbox: loaded.clone(), component: loaded.component().hash() })
        }
    });
    let workspace = tempfile::tempdir()?;
    let script = serde_json::json!({ "script": format!("python3 -c 'print({ONE_LINER})'") }).to_string();
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    for round in 0..=ROUNDS {
        for _ in 0..REPEATS / 4 {
            let started = Instant::now();
            let finished = executor.block_on(async {
                let toolset = pool.tools("bash", CompileTurn::ONLY).await.map_err(|refusal| anyhow!(refusal.reason))?;
                let call = ToolCall {
                    name: "bash",
                    arguments: &script,
                    run_id: "",
                    step: 0,
                    idempotency_key: "",
                    workspace: Some(workspace.path().to_owned().into()),
                    network: None,
                    scripts: Some(engine.clone()),
                    seeded: None,
                    environment: Vec::new(),
                    limits: Limits::default(),
                    notes: Arc::new(|_| ()),
                    cancel: CancellationToken::new(),
                };
                anyhow::Ok(toolset.component.call(call).await)
            })?;
            if round > 0 {
                ours.add(started.elapsed());
            }
            ensure!(matches!(&finished.outcome, Outcome::Returned(text) if text == "285\n"), "{:?}", finished.outcome);
        }
        if let Some(interpreter) = interpreter {
            let time = forked(interpreter)?;
            if round > 0 {
                theirs.add(time);
            }
        }
    }
    compare("`python3 -c` in the shell of a run", [&mut ours, &mut theirs], interpreter, None);
    Ok(())
}

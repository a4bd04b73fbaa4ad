//! Runs on a directory of the owner: start, reading through the layer, search, review, landing (SPEC LAND-1 to LAND-4).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, ensure};
use layer::{Layer, SourceRequest};
use runtime::{Component, ComponentOrigin, EngineConfig, Limits, Outcome, Runtime, ToolCall, ToolComponent, Workspace};
use serde_json::json;
use tests::binary::Motor;
use tests::obedient;
use tokio_util::sync::CancellationToken;

use crate::code::cache;
use crate::stats::{Aim, Times, line};

/// Files of the large tree, of the tree that is searched, and changed ones.
const LARGE: usize = 50_000;
const SEARCHED: usize = 5_000;
const CHANGED: usize = 1_000;
const ROUNDS: usize = 9;

pub fn run() -> Result<()> {
    println!("\na directory of the owner");
    let place = tempfile::tempdir_in(std::env::current_dir()?)?;
    start(place.path())?;
    search(place.path())?;
    review(place.path())
}

/// Small source files in directories of 50.
fn plant(root: &Path, files: usize) -> Result<()> {
    for index in 0..files {
        let directory = root.join(format!("d{}/e{}", index / 2_500, index / 50));
        fs::create_dir_all(&directory)?;
        let text: String = (0..40).map(|line| format!("let value_{index}_{line} = {};\n", index * line)).collect();
        fs::write(directory.join(format!("f{index}.rs")), text)?;
    }
    // A layer takes a file that changed a moment ago for a change during the run.
    std::thread::sleep(Duration::from_millis(50));
    Ok(())
}

fn layered(place: &Path, directory: &Path) -> Result<Layer> {
    let run = place.join("run");
    fs::create_dir_all(run.join("workspace"))?;
    let source =
        SourceRequest { prefix: String::new(), directory: directory.to_owned(), writable: true, shown: Vec::new() };
    let layer = Layer::create(&run, vec![source], SystemTime::now());
    layer.context("the layer")
}

fn start(place: &Path) -> Result<()> {
    let directory = place.join("large");
    plant(&directory, LARGE)?;
    let mut times = Times::default();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let layer = layered(place, &directory)?;
        times.add(begun.elapsed());
        drop(layer);
        fs::remove_dir_all(place.join("run"))?;
    }
    line("begin on 50,000 files", times.p50(), "ms", Some(Aim::AtMost(100.0)));
    Ok(())
}

/// A bundled component, called over a workspace.
struct Tools {
    executor: tokio::runtime::Runtime,
    component: ToolComponent,
}

impl Tools {
    fn new(component: &str) -> Result<Self> {
        let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let runtime = Runtime::new(EngineConfig { cache: Some(cache()), ..EngineConfig::default() })?;
        let bytes = tests::bundled(component);
        let component = executor.block_on(Component::load(&runtime, &bytes, ComponentOrigin::Bundled))?;
        Ok(Self { component: ToolComponent::link(&runtime, &component)?, executor })
    }

    fn call(&self, workspace: Workspace, name: &str, arguments: &serde_json::Value) -> Result<(Duration, String)> {
        let begun = Instant::now();
        let arguments = arguments.to_string();
        let call = self.component.call(ToolCall {
            name,
            arguments: &arguments,
            run_id: "run_bench",
            step: 1,
            idempotency_key: "key",
            workspace: Some(workspace),
            network: None,
            scripts: None,
            environment: Vec::new(),
            seeded: None,
            limits: Limits { deadline_ms: 60_000, ..Limits::default() },
            notes: Arc::new(|_| ()),
            cancel: CancellationToken::new(),
        });
        let finished = self.executor.block_on(call);
        let took = begun.elapsed();
        match finished.outcome {
            Outcome::Returned(text) => Ok((took, text)),
            other => anyhow::bail!("{arguments}: {other:?} {}", finished.stdio),
        }
    }
}

fn search(place: &Path) -> Result<()> {
    let directory = place.join("searched");
    plant(&directory, SEARCHED)?;
    let layer = Arc::new(layered(place, &directory)?);
    let over = || Workspace::Layered {
        call: layer.call("call", 1),
        layer: layer.clone(),
        directory: place.join("run/workspace"),
    };
    let plain = || Workspace::Directory(PathBuf::from(&directory));
    let (shell, files) = (Tools::new("bash")?, Tools::new("files")?);
    let read = json!({ "script": "cat d*/e*/*.rs | wc -c" });
    let scripted = json!({ "script": "grep -rl value_4999_39 . | wc -l" });
    let pattern = json!({ "pattern": "value_4999_39" });
    let (mut read_plain, mut read_over) = (Times::default(), Times::default());
    let (mut tool_plain, mut tool_over) = (Times::default(), Times::default());
    let (mut grep_plain, mut grep_over, mut ripgrep) = (Times::default(), Times::default(), Times::default());
    for _ in 0..ROUNDS {
        let (took, one) = shell.call(plain(), "bash", &read)?;
        read_plain.add(took);
        let (took, other) = shell.call(over(), "bash", &read)?;
        read_over.add(took);
        ensure!(one == other, "{one} {other}");
        let (took, one) = files.call(plain(), "grep", &pattern)?;
        tool_plain.add(took);
        let (took, other) = files.call(over(), "grep", &pattern)?;
        tool_over.add(took);
        ensure!(one == other && one.contains("f4999.rs:40:"), "{one} {other}");
        grep_plain.add(shell.call(plain(), "bash", &scripted)?.0);
        let (took, found) = shell.call(over(), "bash", &scripted)?;
        ensure!(found.trim() == "1", "{found}");
        grep_over.add(took);
        let begun = Instant::now();
        let command = Command::new("rg").args(["-j1", "value_4999_39", "."]).current_dir(&directory).output();
        if command.is_ok() {
            ripgrep.add(begun.elapsed());
        }
    }
    line("read 5,000 files in the shell, no layer", read_plain.p50(), "ms", None);
    line("read them through the layer", read_over.p50(), "ms", None);
    line("ratio", read_over.p50() / read_plain.p50(), "x", Some(Aim::AtMost(1.10)));
    line("the tool grep over 5,000 files, no layer", tool_plain.p50(), "ms", None);
    line("the tool grep through the layer", tool_over.p50(), "ms", None);
    line("grep -r in the shell, no layer", grep_plain.p50(), "ms", None);
    line("grep -r in the shell, through the layer", grep_over.p50(), "ms", None);
    if ripgrep.p50() > 0.0 {
        line("rg -j1 over the same", ripgrep.p50(), "ms", None);
        line("ratio of the tool", tool_over.p50() / ripgrep.p50(), "x", Some(Aim::AtMost(2.0)));
        line("ratio of the shell", grep_over.p50() / ripgrep.p50(), "x", Some(Aim::AtMost(2.0)));
    } else {
        println!("  ripgrep is not installed: no comparison");
    }
    fs::remove_dir_all(place.join("run"))?;
    Ok(())
}

/// Review and landing of many files, as whole commands at a running host.
fn review(place: &Path) -> Result<()> {
    let directory = place.join("changed");
    plant(&directory, CHANGED)?;
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let model = executor.block_on(obedient::start());
    let motor = Motor::with_model(&model).unattended();
    let task = obedient::task(&["for f in $(find . -name '*.rs'); do sed -i 's/let value/let changed/' $f; done"]);
    let on = directory.to_string_lossy();
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let run = motor.json(&["act", "--on", &on, &task])["runId"].as_str().context("a run")?.to_owned();
    let mut diff = Times::default();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let changes = motor.ask(&format!("/v1/tasks/{run}/changes"), None, &[])?.1;
        diff.add(begun.elapsed());
        let files = changes["files"].as_array().map_or(0, Vec::len);
        ensure!(files == CHANGED, "{files} files");
    }
    line("changes of 1,000 files, over the socket", diff.p50(), "ms", Some(Aim::AtMost(200.0)));
    let (mut land, mut undo) = (Times::default(), Times::default());
    for _ in 0..3 {
        let begun = Instant::now();
        motor.stdout(&["land", &run]);
        land.add(begun.elapsed());
        let begun = Instant::now();
        motor.stdout(&["undo", &run]);
        undo.add(begun.elapsed());
    }
    line("motor land of 1,000 files, the whole command", land.p50(), "ms", Some(Aim::AtMost(1_000.0)));
    line("motor undo of them", undo.p50(), "ms", None);
    Ok(())
}

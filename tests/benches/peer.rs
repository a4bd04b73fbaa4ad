//! Other sandboxes as opponents, each a process that takes a program a line: `benches/{forked.js, quickjs.js, monty.py}`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

pub struct Peer {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Peer {
    /// A Node parent that forks a child for each program; `None` if there is no Node.
    pub fn forked() -> Option<Self> {
        Self::start(Command::new("node").arg(script("forked.js")))
    }

    /// A context of quickjs-emscripten for each program; `None` if it cannot be had.
    pub fn quickjs() -> Option<Self> {
        let place = packages("npm")?;
        let install = ["install", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1"];
        let mut npm = Command::new("npm");
        installed(&place, npm.args(install).arg("--prefix").arg(&place).arg("quickjs-emscripten@0.32.0"))?;
        Self::start(Command::new("node").arg(script("quickjs.js")).env("NODE_PATH", place.join("node_modules")))
    }

    /// A session of Monty for each program, in Python; `None` if it cannot be had.
    pub fn monty() -> Option<Self> {
        let place = packages("pip")?;
        let mut pip = Command::new("python3");
        let install = ["-m", "pip", "install", "--quiet", "--retries", "1", "--target"];
        installed(&place, pip.args(install).arg(&place).arg("pydantic-monty==1.4.0"))?;
        let worker = place.join("bin/monty");
        Self::start(Command::new("python3").arg(script("monty.py")).env("PYTHONPATH", &place).env("MONTY_BIN", worker))
    }

    fn start(command: &mut Command) -> Option<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let (stdin, stdout) = (child.stdin.take()?, child.stdout.take()?);
        Some(Self { child, stdin, stdout: BufReader::new(stdout) })
    }

    /// Runs one program; the time is the other side's own, from a fresh sandbox to the result.
    pub fn run(&mut self, code: &str) -> Result<Duration> {
        writeln!(self.stdin, "{}", serde_json::json!({ "code": code }))?;
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        let answer: serde_json::Value = serde_json::from_str(&line).context("the opponent's answer")?;
        ensure!(answer["ok"] == true, "the opponent failed: {line}");
        let ms = answer["ms"].as_f64().context("ms")?;
        Ok(Duration::from_secs_f64(ms / 1_000.0))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches").join(name)
}

/// Where opponents from package registries are installed once.
fn packages(manager: &str) -> Option<PathBuf> {
    let place = tests::target_directory().join("bench-packages").join(manager);
    std::fs::create_dir_all(&place).ok()?;
    Some(place)
}

/// Runs an installer unless it succeeded before.
fn installed(place: &Path, installer: &mut Command) -> Option<()> {
    let done = place.join("installed");
    if !done.exists() {
        installer.stdout(Stdio::null()).status().ok().filter(std::process::ExitStatus::success)?;
        std::fs::write(done, "").ok()?;
    }
    Some(())
}

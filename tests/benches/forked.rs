//! The forked Node design as an opponent: a Node parent that forks a child for each program.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

pub struct Forked {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Forked {
    /// Starts the parent; `None` if there is no Node.
    pub fn start() -> Option<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/forked.js");
        let mut child = Command::new("node").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let (stdin, stdout) = (child.stdin.take()?, child.stdout.take()?);
        Some(Self { child, stdin, stdout: BufReader::new(stdout) })
    }

    /// Runs one program; the time is the parent's own, from fork to message.
    pub fn run(&mut self, code: &str) -> Result<Duration> {
        writeln!(self.stdin, "{}", serde_json::json!({ "code": code }))?;
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        let answer: serde_json::Value = serde_json::from_str(&line).context("node's answer")?;
        ensure!(answer["ok"] == true, "node failed: {line}");
        let ms = answer["ms"].as_f64().context("ms")?;
        Ok(Duration::from_secs_f64(ms / 1_000.0))
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

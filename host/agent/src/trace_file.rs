//! Traces as files: `logs/motor-runs/<id>.json` (SPEC OBS-1), for reading without the host. The store is authoritative.
//!
//! While a run lives, each step is one write: the new steps and the end of the file replace the old end of the file. So
//! it is valid JSON except at the moment of that write, and a step of a long run costs no more than one of a short run.
//! The end of the run replaces the file. One thread writes all files, in the order of hand-over: a run's loop never
//! waits for a step's file, and a late step never replaces the end. If a file is changed or removed by others, the next
//! step writes it whole.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;

use base::RunId;
use motor::RunTrace;
use parking_lot::Mutex;
use rustix::fs::OFlags;
use tokio::sync::oneshot;

/// A write to the file of a run.
struct TraceWrite {
    run: RunId,
    content: TraceContent,
    done: Option<oneshot::Sender<()>>,
}

enum TraceContent {
    /// A whole file that replaces the existing one.
    Whole(Vec<u8>),
    /// Bytes from `at` to the end of a file of `length` bytes.
    Tail { at: u64, length: u64, bytes: Vec<u8> },
    /// No file: the next step writes it whole.
    Nothing,
}

/// How much of a live run's file is written.
#[derive(Debug, Clone, Copy, Default)]
struct TraceState {
    /// Number of steps that will not change.
    settled: usize,
    /// Offset of their end in bytes.
    at: u64,
    length: u64,
}

type Files = Arc<Mutex<HashMap<RunId, TraceState>>>;

/// Writes trace files for as long as it lives.
pub(crate) struct TraceWriter {
    orders: mpsc::Sender<TraceWrite>,
    files: Files,
}

impl TraceWriter {
    /// Starts the thread; files go to `logs`.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start(logs: PathBuf) -> io::Result<Self> {
        let (sender, orders) = mpsc::channel::<TraceWrite>();
        let files = Files::default();
        let writer = Self { orders: sender, files: files.clone() };
        thread::Builder::new().name("trace-writer".to_owned()).spawn(move || {
            for TraceWrite { run, content, done } in orders {
                // A copy for people: failing to write it never fails a run.
                if let Err(error) = write(&logs.join(format!("{run}.json")), &content) {
                    tracing::warn!(%run, %error, "cannot write the run's trace file");
                    // The next step begins the file again.
                    files.lock().remove(&run);
                }
                // The caller may have stopped waiting.
                done.map(|done| done.send(()).ok());
            }
        })?;
        Ok(writer)
    }

    /// Hands over the new steps since the last call, and all parts other than the steps.
    pub fn write(&self, trace: &RunTrace) {
        let mut files = self.files.lock();
        let written = files.entry(trace.run_id.clone()).or_default();
        match next(written, trace) {
            Ok(content) => self.send(TraceWrite { run: trace.run_id.clone(), content, done: None }),
            Err(error) => tracing::warn!(run = %trace.run_id, %error, "a trace cannot be written as JSON"),
        }
    }

    /// Hands over a trace that is complete and waits until it is written.
    pub async fn write_and_wait(&self, trace: &RunTrace) {
        match serde_json::to_vec_pretty(trace) {
            Ok(mut bytes) => {
                bytes.push(b'\n');
                self.replace(&trace.run_id, TraceContent::Whole(bytes)).await;
            }
            Err(error) => tracing::warn!(run = %trace.run_id, %error, "a trace cannot be written as JSON"),
        }
    }

    /// Removes the file of a run, with all steps that were handed over, and waits until it is gone.
    pub async fn remove_and_wait(&self, run: &RunId) {
        self.replace(run, TraceContent::Nothing).await;
    }

    async fn replace(&self, run: &RunId, content: TraceContent) {
        let (done, written) = oneshot::channel();
        self.files.lock().remove(run);
        self.send(TraceWrite { run: run.clone(), content, done: Some(done) });
        written.await.ok();
    }

    fn send(&self, order: TraceWrite) {
        if self.orders.send(order).is_err() {
            tracing::warn!("the thread that writes traces has ended");
        }
    }
}

/// The content that updates a file from the state `written` to `trace`: `{"steps":[`, a line for each step, `],` and
/// the rest. Only the last step can still change.
fn next(written: &mut TraceState, trace: &RunTrace) -> serde_json::Result<TraceContent> {
    let before = *written;
    let mut bytes = if before.at == 0 { b"{\"steps\":[\n".to_vec() } else { Vec::new() };
    let mut settled = bytes.len();
    for (index, step) in trace.steps.iter().enumerate().skip(before.settled) {
        settled = bytes.len();
        if index > 0 {
            bytes.extend(b",\n");
        }
        serde_json::to_writer(&mut bytes, step)?;
    }
    bytes.extend(b"\n],\n");
    let mut rest = serde_json::to_value(trace.without_steps())?;
    if let Some(rest) = rest.as_object_mut() {
        rest.remove("steps");
    }
    // Its opening brace is that of the file.
    let rest = serde_json::to_vec(&rest)?;
    bytes.extend(rest.strip_prefix(b"{").unwrap_or(&rest));
    bytes.push(b'\n');
    *written = TraceState {
        settled: trace.steps.len().saturating_sub(1),
        at: before.at + settled as u64,
        length: before.at + bytes.len() as u64,
    };
    Ok(match before.at {
        0 => TraceContent::Whole(bytes),
        at => TraceContent::Tail { at, length: before.length, bytes },
    })
}

fn write(path: &Path, content: &TraceContent) -> io::Result<()> {
    match content {
        TraceContent::Nothing => match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        },
        // A reader sees the old file or the new one, never half of one.
        TraceContent::Whole(bytes) => {
            let logs = path.parent().unwrap_or(Path::new("."));
            let mut file = tempfile::Builder::new().prefix(".trace-").tempfile_in(logs)?;
            file.write_all(bytes)?;
            file.persist(path)?;
        }
        TraceContent::Tail { at, length, bytes } => {
            // A link or device put in its place is not written to.
            let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
            let file = OpenOptions::new().write(true).custom_flags(flags.bits().cast_signed()).open(path)?;
            let metadata = file.metadata()?;
            if !metadata.is_file() || metadata.len() != *length {
                return Err(io::Error::other("the file was changed by another program"));
            }
            file.write_all_at(bytes, *at)?;
            let end = at + bytes.len() as u64;
            if end < *length {
                file.set_len(end)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn trace(steps: usize) -> RunTrace {
        let step = |index: usize| {
            json!({ "iteration": index + 1, "timestamp": 5, "llmModel": "m", "text": "x".repeat(1_000), "toolCalls": [],
                "usage": { "input_tokens": 1, "output_tokens": 1 }, "durationMs": 1, "retries": 0, "recoveredCall": false })
        };
        serde_json::from_value(json!({
            "runId": "run_1", "agent": "main", "task": "the \"task\"", "tools": [], "status": "running", "createdAt": 1,
            "steps": (0..steps).map(step).collect::<Vec<_>>(), "transitions": [], "totalIterations": steps,
            "totalDurationMs": 1, "totalEnergyCost": 0.0, "totalUsage": { "input_tokens": 1, "output_tokens": 1 },
            "llmCalls": 0, "toolCalls": 0, "errors": 0,
        }))
        .unwrap()
    }

    struct Logs {
        directory: tempfile::TempDir,
        written: TraceState,
    }

    impl Logs {
        fn new() -> Self {
            Self { directory: tempfile::tempdir().unwrap(), written: TraceState::default() }
        }

        fn path(&self) -> PathBuf {
            self.directory.path().join("run_1.json")
        }

        /// The bytes that a step wrote.
        fn step(&mut self, trace: &RunTrace) -> io::Result<usize> {
            let content = next(&mut self.written, trace).unwrap();
            write(&self.path(), &content)?;
            Ok(match content {
                TraceContent::Whole(bytes) | TraceContent::Tail { bytes, .. } => bytes.len(),
                TraceContent::Nothing => 0,
            })
        }

        fn check(&self, expected: &RunTrace) {
            let bytes = std::fs::read(self.path()).unwrap();
            assert_eq!(bytes.len() as u64, self.written.length);
            let value: Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(value, serde_json::to_value(expected).unwrap());
        }
    }

    #[test]
    fn each_step_is_appended_and_the_file_is_whole_after_it() {
        let mut logs = Logs::new();
        for steps in 0..50 {
            let mut now = trace(steps);
            // The last step first has no result and then has one; the part after the steps gets longer and shorter.
            now.task = "t".repeat(if steps % 3 == 0 { 5_000 } else { 10 });
            let wrote = logs.step(&now).unwrap();
            logs.check(&now);
            assert!(wrote < 10_000, "{steps}: {wrote}");
            if let Some(last) = now.steps.last_mut() {
                last.host_messages.push("a message".repeat(steps));
            }
            logs.step(&now).unwrap();
            logs.check(&now);
            logs.step(&trace(steps)).unwrap();
            logs.check(&trace(steps));
        }
    }

    #[test]
    fn a_file_that_was_changed_is_not_written_into() {
        for spoil in [
            |path: &Path| std::fs::remove_file(path).unwrap(),
            |path: &Path| std::fs::write(path, "{}").unwrap(),
            |path: &Path| {
                std::fs::remove_file(path).unwrap();
                std::fs::write(path.with_extension("other"), "the other").unwrap();
                std::os::unix::fs::symlink(path.with_extension("other"), path).unwrap();
            },
        ] {
            let mut logs = Logs::new();
            logs.step(&trace(3)).unwrap();
            spoil(&logs.path());
            logs.step(&trace(4)).unwrap_err();
            let other = logs.path().with_extension("other");
            assert!(!other.exists() || std::fs::read(other).unwrap() == b"the other");
            // As the thread does after an error.
            logs.written = TraceState::default();
            logs.step(&trace(5)).unwrap();
            logs.check(&trace(5));
        }
    }

    #[tokio::test]
    async fn the_end_replaces_the_file_and_a_step_after_it_begins_anew() {
        let logs = tempfile::tempdir().unwrap();
        let writer = TraceWriter::start(logs.path().to_owned()).unwrap();
        for steps in 1..10 {
            writer.write(&trace(steps));
        }
        writer.write_and_wait(&trace(10)).await;
        let read = || std::fs::read_to_string(logs.path().join("run_1.json")).unwrap();
        let whole = serde_json::to_string_pretty(&trace(10)).unwrap() + "\n";
        assert_eq!(read(), whole);
        assert!(writer.files.lock().is_empty());
        writer.write(&trace(11));
        writer.write_and_wait(&trace(12)).await;
        assert_eq!(serde_json::from_str::<RunTrace>(&read()).unwrap(), trace(12));
        assert_eq!(std::fs::read_dir(logs.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn a_removed_file_is_gone_with_the_steps_before_it_and_comes_back_whole() {
        let logs = tempfile::tempdir().unwrap();
        let path = logs.path().join("run_1.json");
        let writer = TraceWriter::start(logs.path().to_owned()).unwrap();
        writer.write(&trace(3));
        writer.remove_and_wait(&trace(3).run_id).await;
        assert!(!path.exists());
        writer.remove_and_wait(&trace(3).run_id).await;
        writer.write(&trace(4));
        // Orders are carried out in turn.
        writer.remove_and_wait(&RunId::parse("run_2").unwrap()).await;
        let whole: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(whole["steps"].as_array().unwrap().len(), 4);
    }
}

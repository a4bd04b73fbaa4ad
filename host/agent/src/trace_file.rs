//! Traces as files: `logs/motor-runs/<id>.json` (SPEC OBS-1), for reading without the host. The store has the truth.
//!
//! One thread writes them all, in the order they were handed over: a run's loop never waits for a step's file, and a
//! late step never replaces the end.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use motor::RunTrace;
use tokio::sync::oneshot;

struct Order {
    trace: RunTrace,
    done: Option<oneshot::Sender<()>>,
}

/// Writes trace files for as long as it lives.
pub(crate) struct TraceWriter(mpsc::Sender<Order>);

impl TraceWriter {
    /// Starts the thread; files go to `logs`.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(logs: PathBuf) -> std::io::Result<Self> {
        let (sender, orders) = mpsc::channel::<Order>();
        thread::Builder::new().name("trace-writer".to_owned()).spawn(move || {
            for Order { trace, done } in orders {
                // A copy for people: failing to write it never fails a run.
                if let Err(error) = write(&logs, &trace) {
                    tracing::warn!(%error, "cannot write the run's trace file");
                }
                // Nobody may be waiting any more.
                done.map(|done| done.send(()).ok());
            }
        })?;
        Ok(Self(sender))
    }

    /// Hands a trace over.
    pub fn write(&self, trace: &RunTrace) {
        self.send(Order { trace: trace.clone(), done: None });
    }

    /// Hands a trace over and waits until it is written.
    pub async fn write_and_wait(&self, trace: &RunTrace) {
        let (done, written) = oneshot::channel();
        self.send(Order { trace: trace.clone(), done: Some(done) });
        written.await.ok();
    }

    fn send(&self, order: Order) {
        if self.0.send(order).is_err() {
            tracing::warn!("the thread that writes traces has ended");
        }
    }
}

/// Writes or replaces a run's trace file. A reader sees the old one or the new one, never half of one.
fn write(logs: &Path, trace: &RunTrace) -> std::io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(".trace-").tempfile_in(logs)?;
    serde_json::to_writer_pretty(&mut file, trace)?;
    file.write_all(b"\n")?;
    file.persist(logs.join(format!("{}.json", trace.run_id)))?;
    Ok(())
}

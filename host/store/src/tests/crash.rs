//! `kill -9` at a random instant, on a real process: every acknowledged batch is there, and every batch found is
//! complete.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base::Random;

use crate::{Batch, Scan, Store, Table};

const DIR: &str = "STORE_CRASH_DIR";
const LANES: u64 = 4;

/// Starts this test binary again, to run one ignored test with a directory.
pub(super) fn child(test: &str, dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]).env(DIR, dir);
    command
}

pub(super) fn child_dir() -> Option<std::path::PathBuf> {
    std::env::var_os(DIR).map(Into::into)
}

/// Commits forever, in lanes, and prints acknowledged numbers. Each batch spans two tables and rewrites a counter.
#[test]
#[ignore = "started by the crash test"]
fn committing_child() {
    let Some(dir) = child_dir() else { return };
    let store = Store::open(&dir).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let mut lanes = tokio::task::JoinSet::new();
        for lane in 0..LANES {
            let store = store.clone();
            lanes.spawn(async move {
                let counter = format!("{lane}");
                let mut next = store.get::<u64>(Table::Live, &counter).unwrap().map_or(0, |last| last + 1);
                loop {
                    let mut batch = Batch::new();
                    let body = "x".repeat(1 + (next as usize * 701) % 9_000);
                    batch.put(Table::Events, format!("{lane}/{next:09}"), &(next, body)).unwrap();
                    batch.put(Table::Live, counter.as_str(), &next).unwrap();
                    store.commit(batch).await.unwrap();
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "ack {lane} {next}").and_then(|()| out.flush()).unwrap();
                    next += 1;
                }
            });
        }
        lanes.join_next().await
    });
}

/// Kills the child after `delay`, and returns the last acknowledged number of each lane.
fn kill_after(mut child: Child, delay: Duration) -> Vec<Option<u64>> {
    let out = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut last = vec![None; LANES as usize];
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            // The harness prints its own lines; the number in a line that the kill cut short cannot be trusted.
            let Some((_, ack)) = line.split_once("ack ") else { continue };
            let Some((lane, number)) = ack.split_once(' ') else { continue };
            if let (Ok(lane), Ok(number)) = (lane.parse::<usize>(), number.parse::<u64>()) {
                last[lane] = last[lane].max(Some(number));
            }
        }
        last
    });
    std::thread::sleep(delay);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

/// Every lane is without gaps up to its counter, which is not behind the acknowledged number.
fn check(dir: &Path, acknowledged: &[Option<u64>]) {
    let store = Store::open(dir).unwrap();
    for (lane, acknowledged) in acknowledged.iter().enumerate() {
        let counter = store.get::<u64>(Table::Live, format!("{lane}")).unwrap();
        assert!(counter >= *acknowledged, "lane {lane}: {counter:?} stored, {acknowledged:?} acknowledged");
        let events = store.scan::<(u64, String)>(Table::Events, &Scan::prefix(format!("{lane}/"))).unwrap();
        let numbers: Vec<u64> = events.iter().map(|(_, (number, _))| *number).collect();
        assert_eq!(numbers, (0..counter.map_or(0, |counter| counter + 1)).collect::<Vec<_>>());
        assert!(events.iter().all(|(_, (number, body))| body.len() == 1 + (*number as usize * 701) % 9_000));
    }
}

#[test]
fn nothing_acknowledged_is_lost_to_kill() {
    let home = tempfile::tempdir().unwrap();
    let random = Random::from_system();
    let mut total = 0;
    let mut dir = home.path().join("0");
    for round in 0..24_u64 {
        // Sometimes a fresh home, to be killed while it is created.
        if round % 6 == 0 {
            dir = home.path().join(format!("{round}"));
        }
        let longest = if round % 6 == 0 { 25_000 } else { 250_000 };
        let delay = Duration::from_micros(random.next_u64() % longest);
        let child = child("tests::crash::committing_child", &dir).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let acknowledged = kill_after(child.unwrap(), delay);
        total += acknowledged.iter().flatten().count();
        check(&dir, &acknowledged);
    }
    assert!(total > 20, "the children were killed before they did anything");
}

/// Ends the process at a commit of its choice.
#[derive(Debug)]
struct Abort(std::sync::atomic::AtomicUsize);

impl crate::Faults for Abort {
    fn after_sync(&self) {
        if self.0.fetch_sub(1, std::sync::atomic::Ordering::SeqCst) == 0 {
            std::process::abort();
        }
    }
}

#[test]
#[ignore = "started by the test below"]
fn aborting_child() {
    let Some(dir) = child_dir() else { return };
    let store = Store::open_with(&dir, std::sync::Arc::new(Abort(2.into()))).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for n in 0..10 {
        runtime.block_on(store.commit(super::commit::put(Table::Runs, &format!("{n}"), n))).unwrap();
    }
}

#[test]
fn a_commit_may_be_durable_before_anyone_is_told() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("state");
    let status =
        child("tests::crash::aborting_child", &dir).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(!status.success());
    let store = Store::open(&dir).unwrap();
    let found = store.scan::<u64>(Table::Runs, &Scan::all()).unwrap();
    assert_eq!(found.into_iter().map(|(_, n)| n).collect::<Vec<_>>(), [0, 1, 2]);
}

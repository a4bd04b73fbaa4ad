//! Commits: atomic, grouped, ordered, refused after a failure.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Batch, DiskFault, Faults, Scan, SimulatedDisk, Store, StoreError, Table};

use super::backend::Backend;

/// Fails the n-th write or sync (from 0), counts syncs, and makes each slow enough for commits to gather.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) writes: AtomicUsize,
    pub(super) syncs: AtomicUsize,
    pub(super) fail_write: Option<usize>,
    pub(super) fail_sync: Option<usize>,
    pub(super) errno: i32,
    pub(super) pause_ms: u64,
}

impl Default for Script {
    fn default() -> Self {
        let errno = rustix::io::Errno::IO.raw_os_error();
        Self { writes: 0.into(), syncs: 0.into(), fail_write: None, fail_sync: None, errno, pause_ms: 0 }
    }
}

impl Faults for Script {
    fn before_write(&self) -> io::Result<()> {
        let write = self.writes.fetch_add(1, Ordering::SeqCst);
        if Some(write) == self.fail_write { Err(io::Error::from_raw_os_error(self.errno)) } else { Ok(()) }
    }

    fn before_sync(&self) -> io::Result<()> {
        let sync = self.syncs.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(self.pause_ms));
        if Some(sync) == self.fail_sync { Err(io::Error::from_raw_os_error(self.errno)) } else { Ok(()) }
    }
}

pub(super) fn put(table: Table, key: &str, value: u64) -> Batch {
    let mut batch = Batch::new();
    batch.put(table, key, &value).unwrap();
    batch
}

#[tokio::test]
async fn a_batch_is_there_after_reopening() {
    for backend in Backend::both() {
        let store = backend.open().unwrap();
        let mut batch = put(Table::Runs, "a", 1);
        batch.put(Table::Events, "a/1", &vec!["x"]).unwrap();
        batch.put(Table::Live, "a", &()).unwrap();
        store.commit(batch).await.unwrap();
        let mut batch = Batch::new();
        batch.delete(Table::Live, "a");
        batch.delete(Table::Live, "never there");
        store.commit(batch).await.unwrap();
        let check = |store: &Store| {
            assert_eq!(store.get::<u64>(Table::Runs, "a").unwrap(), Some(1));
            assert_eq!(store.get::<Vec<String>>(Table::Events, "a/1").unwrap().unwrap(), ["x"]);
            assert_eq!(store.get::<()>(Table::Live, "a").unwrap(), None);
            assert_eq!(store.get::<u64>(Table::Signals, "a").unwrap(), None);
            assert_eq!(store.get::<u64>(Table::Signals, "").unwrap(), None);
        };
        check(&store);
        store.close().await.unwrap();
        drop(store);
        check(&backend.open().unwrap());
    }
}

#[tokio::test]
async fn waiting_commits_share_a_sync() {
    let home = tempfile::tempdir().unwrap();
    let script = Arc::new(Script { pause_ms: 5, ..Script::default() });
    let store = Store::open_with(&home.path().join("state"), script.clone()).unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..400_u64 {
        let store = store.clone();
        tasks.spawn(async move {
            let mut batch = put(Table::Runs, &format!("own/{n:03}"), n);
            batch.put(Table::Runs, "shared", &n).unwrap();
            store.commit(batch).await
        });
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap().unwrap();
    }
    let found = store.scan::<u64>(Table::Runs, &Scan::prefix("own/")).unwrap();
    assert_eq!(found.into_iter().map(|(_, n)| n).collect::<Vec<_>>(), (0..400).collect::<Vec<_>>());
    let syncs = script.syncs.load(Ordering::SeqCst);
    assert!((1..100).contains(&syncs), "{syncs} syncs for 400 commits");
    assert_eq!(syncs, script.writes.load(Ordering::SeqCst));
}

#[tokio::test]
async fn commits_alone_are_synced_one_by_one() {
    let home = tempfile::tempdir().unwrap();
    let script = Arc::new(Script::default());
    let store = Store::open_with(&home.path().join("state"), script.clone()).unwrap();
    for n in 0..5 {
        store.commit(put(Table::Runs, "k", n)).await.unwrap();
        assert_eq!(store.get::<u64>(Table::Runs, "k").unwrap(), Some(n));
    }
    store.commit(Batch::new()).await.unwrap();
    assert_eq!(script.syncs.load(Ordering::SeqCst), 5);
}

/// The first commits succeed; then one fails; then none is acknowledged until the store is opened again.
async fn check_failure(open: impl Fn(bool) -> Store, is_expected: fn(&StoreError) -> bool) {
    let store = open(true);
    store.commit(put(Table::Runs, "before", 1)).await.unwrap();
    let error = store.commit(put(Table::Runs, "failed", 1)).await.unwrap_err();
    assert!(is_expected(&error), "{error:?}");
    assert_eq!(store.get::<u64>(Table::Runs, "failed").unwrap(), None);
    for _ in 0..2 {
        let error = store.commit(put(Table::Runs, "after", 1)).await.unwrap_err();
        assert!(matches!(error, StoreError::Poisoned), "{error:?}");
    }
    assert_eq!(store.get::<u64>(Table::Runs, "before").unwrap(), Some(1));
    drop(store);
    let store = open(false);
    store.commit(put(Table::Runs, "after", 2)).await.unwrap();
    assert_eq!(store.get::<u64>(Table::Runs, "before").unwrap(), Some(1));
    assert_eq!(store.get::<u64>(Table::Runs, "after").unwrap(), Some(2));
}

async fn check_script(script: impl Fn() -> Script, is_expected: fn(&StoreError) -> bool) {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("state");
    let open = |fails| {
        let script = if fails { script() } else { Script::default() };
        Store::open_with(&dir, Arc::new(script)).unwrap()
    };
    check_failure(open, is_expected).await;
}

#[tokio::test]
async fn a_failed_write_poisons() {
    let is_expected =
        |error: &StoreError| matches!(error, StoreError::Io { source, .. } if source.raw_os_error() == Some(5));
    check_script(|| Script { fail_write: Some(1), ..Script::default() }, is_expected).await;
    for reached in [false, true] {
        let disk = SimulatedDisk::new(1);
        disk.fail_at(1, DiskFault::Io { reached });
        check_failure(|_| Store::simulated(disk.clone()).unwrap(), is_expected).await;
        let store = Store::simulated(disk).unwrap();
        assert_eq!(store.get::<u64>(Table::Runs, "failed").unwrap().is_some(), reached);
    }
}

#[tokio::test]
async fn a_failed_sync_poisons() {
    let script = || Script { fail_sync: Some(1), ..Script::default() };
    check_script(script, |error| matches!(error, StoreError::Io { .. })).await;
    let errno = rustix::io::Errno::NOSPC.raw_os_error();
    let script = move || Script { fail_sync: Some(1), errno, ..Script::default() };
    check_script(script, |error| matches!(error, StoreError::Full)).await;
}

#[tokio::test]
async fn all_of_a_group_learn_of_its_failure() {
    let home = tempfile::tempdir().unwrap();
    let script = Arc::new(Script { fail_sync: Some(0), pause_ms: 20, ..Script::default() });
    let store = Store::open_with(&home.path().join("state"), script).unwrap();
    let commits = (0..20).map(|n| {
        let store = store.clone();
        tokio::spawn(async move { store.commit(put(Table::Runs, &format!("{n:02}"), n)).await })
    });
    let mut told_why = 0;
    for commit in commits.collect::<Vec<_>>() {
        match commit.await.unwrap() {
            Err(StoreError::Io { .. }) => told_why += 1,
            Err(StoreError::Poisoned) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(told_why > 0);
    assert!(store.scan::<u64>(Table::Runs, &Scan::all()).unwrap().is_empty());
}

#[tokio::test]
async fn a_closed_store_reads_and_does_not_write() {
    for backend in Backend::both() {
        let store = backend.open().unwrap();
        store.commit(put(Table::Runs, "a", 1)).await.unwrap();
        store.close().await.unwrap();
        store.close().await.unwrap();
        assert_eq!(store.get::<u64>(Table::Runs, "a").unwrap(), Some(1));
        assert!(matches!(store.commit(put(Table::Runs, "b", 1)).await, Err(StoreError::Closed)));
    }
}

#[tokio::test]
async fn one_process_or_handle_opens_a_state() {
    for backend in Backend::both() {
        let store = backend.open().unwrap();
        assert!(matches!(backend.open(), Err(StoreError::HomeInUse { owner_pid: None })));
        drop(store);
        backend.open().unwrap();
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    for backend in Backend::both() {
        let store = backend.open().unwrap();
        let mut batch = Batch::new();
        let newer = crate::schema::Schema { version: crate::SCHEMA_VERSION + 6 };
        batch.put(Table::Meta, crate::schema::SCHEMA_KEY, &newer).unwrap();
        store.commit(batch).await.unwrap();
        drop(store);
        for _ in 0..2 {
            match backend.open() {
                Err(StoreError::NewerSchema { found, supported }) => {
                    assert_eq!((found, supported), (crate::SCHEMA_VERSION + 6, crate::SCHEMA_VERSION));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

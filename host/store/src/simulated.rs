//! A disk in memory, for tests and simulations: the same guarantees as the real one, no thread, no file, no chance.
//!
//! Architecture invariant: its behaviour depends on the seed and on the order of the calls, never on time or threads,
//! so that a simulation with tokio's paused clock is reproducible byte for byte. Records pass through the same
//! encoding, keys through the same checks. It must not know fjall. It can simulate the end of the process at a chosen
//! write, a write that reached the disk unacknowledged, a full disk and a failing one.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock};

use base::Random;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};

use crate::batch::BatchChanges;
use crate::scan::Each;
use crate::schema::{self, SCHEMA_KEY, Schema};
use crate::{Batch, Scan, StoreError, Table, record};

/// Upper bound of the yields of a commit before it is written: commits made in between share its write.
const MAX_PAUSES: u64 = 3;

/// A fault at one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiskFault {
    /// The process ends during the write: it fails and so does every later one, until the disk is opened again.
    Crash {
        /// Whether the next opening finds the written data.
        reached: bool,
    },
    /// There is no room, which is seen before anything is written: a later commit may succeed.
    Full,
    /// The write or its sync fails (`EIO`): nothing is acknowledged until the disk is opened again.
    Io {
        /// Whether the next opening finds the written data.
        reached: bool,
    },
}

/// A disk in memory that outlives the stores over it: see [`Store::simulated`](crate::Store::simulated).
///
/// Writes are numbered from 0 over the whole life of the disk. Each is a group of one or more commits, and has one
/// fault at most.
pub struct SimulatedDisk {
    state: Mutex<SimulatedState>,
    random: Random,
    crashed: Notify,
}

#[derive(Default)]
struct SimulatedState {
    stored: BTreeMap<Table, BTreeMap<Vec<u8>, Vec<u8>>>,
    /// Written to the disk, but not readable before the next opening.
    unseen: BatchChanges,
    faults: BTreeMap<u64, DiskFault>,
    writes: u64,
    /// How often it was opened: the number of the newest store.
    opened: u64,
    /// Whether the newest store is in use.
    is_open: bool,
    is_crashed: bool,
}

impl SimulatedDisk {
    /// Creates an empty disk. The seed decides how concurrent commits are grouped.
    #[must_use]
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), random: Random::seeded(seed), crashed: Notify::new() })
    }

    /// Schedules `fault` for the write of this number, replacing an earlier one.
    pub fn fail_at(&self, write: u64, fault: DiskFault) {
        self.state.lock().faults.insert(write, fault);
    }

    /// Removes every fault that has not happened yet.
    pub fn heal(&self) {
        self.state.lock().faults.clear();
    }

    /// Number of writes so far, including failed ones: the number of the next one.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.state.lock().writes
    }

    /// Ends the process that has the disk open, between two writes. Does nothing if no process has.
    pub fn crash(&self) {
        let mut state = self.state.lock();
        if state.is_open {
            state.end_process();
            self.crashed.notify_waiters();
        }
    }

    /// Whether the process that last had the disk open has ended without closing it.
    #[must_use]
    pub fn is_crashed(&self) -> bool {
        self.state.lock().is_crashed
    }

    /// Waits until [`SimulatedDisk::is_crashed`] is true.
    pub async fn crashed(&self) {
        loop {
            let crashed = self.crashed.notified();
            if self.is_crashed() {
                return;
            }
            crashed.await;
        }
    }

    /// Every readable record: its table, its key and its bytes as they are stored, in order.
    #[must_use]
    pub fn records(&self) -> Vec<(Table, Vec<u8>, Vec<u8>)> {
        let state = self.state.lock();
        let of = |(table, records): (&Table, &BTreeMap<Vec<u8>, Vec<u8>>)| {
            let table = *table;
            records.iter().map(move |(key, value)| (table, key.clone(), value.clone())).collect::<Vec<_>>()
        };
        state.stored.iter().flat_map(of).collect()
    }

    fn write(&self, opening: u64, changes: BatchChanges) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        if state.opened != opening || !state.is_open {
            return Err(failed(io::Error::other("the process is no more")));
        }
        let write = state.writes;
        state.writes += 1;
        let (reached, error) = match state.faults.remove(&write) {
            None => {
                state.apply(changes);
                return Ok(());
            }
            Some(DiskFault::Full) => return Err(StoreError::Full),
            Some(DiskFault::Io { reached }) => {
                (reached, io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error()))
            }
            Some(DiskFault::Crash { reached }) => {
                state.end_process();
                self.crashed.notify_waiters();
                (reached, io::Error::other("the process is no more"))
            }
        };
        if reached {
            state.unseen = changes;
        }
        Err(failed(error))
    }
}

impl std::fmt::Debug for SimulatedDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SimulatedDisk")
    }
}

impl SimulatedState {
    fn apply(&mut self, changes: BatchChanges) {
        for ((table, key), value) in changes {
            let records = self.stored.entry(table).or_default();
            match value {
                Some(value) => records.insert(key, value),
                None => records.remove(&key),
            };
        }
    }

    fn end_process(&mut self) {
        self.is_open = false;
        self.is_crashed = true;
    }
}

fn failed(source: io::Error) -> StoreError {
    StoreError::io("writing the journal", source)
}

/// A store over a simulated disk, as opened by one process.
pub(crate) struct SimulatedStore {
    disk: Arc<SimulatedDisk>,
    opening: u64,
    writer: Mutex<SimulatedWriter>,
}

#[derive(Default)]
struct SimulatedWriter {
    changes: BatchChanges,
    answers: Vec<SimulatedAnswer>,
    is_poisoned: watch::Sender<bool>,
    is_closed: bool,
}

/// Filled when the commit was written or has failed.
type SimulatedAnswer = Arc<OnceLock<Result<(), StoreError>>>;

impl SimulatedStore {
    pub(crate) fn open(disk: Arc<SimulatedDisk>) -> Result<Self, StoreError> {
        let mut state = disk.state.lock();
        if state.is_open {
            return Err(StoreError::HomeInUse { owner_pid: None });
        }
        let unseen = std::mem::take(&mut state.unseen);
        state.apply(unseen);
        if state.stored.is_empty() {
            let mut batch = Batch::new();
            batch.put(Table::Meta, SCHEMA_KEY, &Schema::CURRENT)?;
            state.apply(batch.into_changes());
        }
        let found = state.stored.get(&Table::Meta).and_then(|meta| meta.get(SCHEMA_KEY.as_bytes()));
        let found = found.map(|bytes| record::decode(Table::Meta, SCHEMA_KEY.as_bytes(), bytes)).transpose()?;
        schema::checked(found)?;
        state.opened += 1;
        state.is_open = true;
        state.is_crashed = false;
        let opening = state.opened;
        drop(state);
        Ok(Self { disk, opening, writer: Mutex::default() })
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, table: Table, key: &[u8]) -> Result<Option<T>, StoreError> {
        let state = self.disk.state.lock();
        let found = state.stored.get(&table).and_then(|records| records.get(key));
        found.map(|bytes| record::decode(table, key, bytes)).transpose()
    }

    pub(crate) fn scan_each<T: DeserializeOwned>(&self, table: Table, scan: &Scan) -> Each<T> {
        let Some(range) = scan.range() else { return Vec::new() };
        let state = self.disk.state.lock();
        let Some(records) = state.stored.get(&table) else { return Vec::new() };
        let entries = records.range(range);
        let read = |(key, bytes): (&Vec<u8>, &Vec<u8>)| (key.clone(), record::decode(table, key, bytes));
        if scan.newest_first {
            entries.rev().take(scan.limit).map(read).collect()
        } else {
            entries.take(scan.limit).map(read).collect()
        }
    }

    pub(crate) async fn commit(&self, changes: BatchChanges) -> Result<(), StoreError> {
        let answer = self.accept(changes)?;
        // Written even if its caller goes away: dropping the future does not undo the commit.
        let accepted = AcceptedCommit(self);
        for _ in 0..=self.disk.random.next_u64() % MAX_PAUSES {
            tokio::task::yield_now().await;
            if answer.get().is_some() {
                break;
            }
        }
        drop(accepted);
        answer.get().cloned().unwrap_or(Err(StoreError::Poisoned))
    }

    pub(crate) fn close(&self) -> Result<(), StoreError> {
        self.writer.lock().is_closed = true;
        self.write()
    }

    pub(crate) fn poisoned(&self) -> watch::Receiver<bool> {
        self.writer.lock().is_poisoned.subscribe()
    }

    fn accept(&self, changes: BatchChanges) -> Result<SimulatedAnswer, StoreError> {
        let mut writer = self.writer.lock();
        if writer.is_closed {
            return Err(StoreError::Closed);
        }
        // In the order of arrival: the later change to a key wins.
        writer.changes.extend(changes);
        let answer = SimulatedAnswer::default();
        writer.answers.push(answer.clone());
        Ok(answer)
    }

    /// Writes the waiting commits as one group, and answers each.
    fn write(&self) -> Result<(), StoreError> {
        let mut writer = self.writer.lock();
        let (changes, answers) = (std::mem::take(&mut writer.changes), std::mem::take(&mut writer.answers));
        if answers.is_empty() {
            return Ok(());
        }
        let result = if *writer.is_poisoned.borrow() {
            Err(StoreError::Poisoned)
        } else {
            self.disk.write(self.opening, changes)
        };
        if matches!(&result, Err(error) if !matches!(error, StoreError::Full)) {
            writer.is_poisoned.send_replace(true);
        }
        for answer in answers {
            // This is the only place that fills it.
            answer.set(result.clone()).ok();
        }
        result
    }
}

impl Drop for SimulatedStore {
    fn drop(&mut self) {
        let mut state = self.disk.state.lock();
        if state.opened == self.opening {
            state.is_open = false;
        }
    }
}

/// An accepted commit: written when this is dropped, unless it was before.
struct AcceptedCommit<'a>(&'a SimulatedStore);

impl Drop for AcceptedCommit<'_> {
    fn drop(&mut self) {
        // Waiting callers receive the result through their answer.
        self.0.write().ok();
    }
}

//! The store's handle: opening, reading, committing, closing.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::layout::{self, FoundLayout};
use crate::schema::{self, SCHEMA_KEY, Schema};
use crate::simulated::{SimulatedDisk, SimulatedStore};
use crate::tables::Tables;
use crate::watermark::{self, COMMITS_KEY, UNCOUNTED_KEY, Watermark};
use crate::writer::{CommitWriter, Committer, RESERVE_BYTES};
use crate::{Batch, Each, Faults, NoFaults, Scan, StoreError, Table};

/// The state of a home. Cheap to clone; dropping the last clone closes it.
#[derive(Clone)]
pub struct Store {
    inner: Arc<StoreInner>,
}

enum StoreInner {
    // Dropped in this order: the writer ends before its tables are closed.
    Files { writer: CommitWriter, tables: Tables, was_counted: bool },
    Simulated(SimulatedStore),
}

/// Settings that differ between production and tests.
pub(crate) struct Options {
    pub(crate) faults: Arc<dyn Faults>,
    pub(crate) reserve_bytes: u64,
}

impl Store {
    /// Opens the state in `dir`, which is created if it is missing or empty; an older schema is migrated forwards.
    ///
    /// # Errors
    /// [`StoreError::NewerSchema`] or [`StoreError::Corrupt`] if the state cannot be used, with nothing in it changed;
    /// [`StoreError::Behind`] or [`StoreError::Unmarked`] if a part of it is lost, or a loss would go unnoticed;
    /// [`StoreError::HomeInUse`] if another process has it open; [`StoreError::Full`] or [`StoreError::Io`] if the disk
    /// fails.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_with(dir, Arc::new(NoFaults))
    }

    /// Opens the state on storage that fails at the points a test chooses.
    ///
    /// # Errors
    /// As [`Store::open`]. Creating and migrating the state does not pass through `faults`.
    pub fn open_with(dir: &Path, faults: Arc<dyn Faults>) -> Result<Self, StoreError> {
        Self::open_as(dir, Options { faults, reserve_bytes: RESERVE_BYTES })
    }

    pub(crate) fn open_as(dir: &Path, options: Options) -> Result<Self, StoreError> {
        let mut marked = watermark::read(dir)?;
        if layout::prepare(dir)? == FoundLayout::Nothing {
            check_mark(dir, 0, marked.or(Some(0)))?;
            // Written before the state, so that every state has a mark.
            watermark::write(dir, 0)?;
            marked = Some(0);
            layout::create(dir, write_new_state)?;
        }
        let tables = Tables::open(dir)?;
        let commits: Option<u64> = tables.get(Table::Meta, COMMITS_KEY.as_bytes())?;
        if commits.is_none() && marked.is_none() {
            // A state that was never counted: it is from here on.
            watermark::write(dir, 0)?;
        } else {
            check_mark(dir, commits.unwrap_or(0), marked)?;
        }
        schema::migrate(&tables)?;
        let was_counted = tables.get::<bool>(Table::Meta, UNCOUNTED_KEY.as_bytes())?.is_none();
        let writer = CommitWriter::spawn(Committer {
            tables: tables.clone(),
            directory: File::open(dir).map_err(|source| StoreError::io("opening the state", source))?,
            reserve_bytes: options.reserve_bytes,
            commits: commits.unwrap_or(0),
            mark: Watermark::open(dir, commits.unwrap_or(0))?,
            marked: commits.unwrap_or(0),
            faults: options.faults,
            is_poisoned: watch::Sender::new(false),
        })?;
        Ok(Self { inner: Arc::new(StoreInner::Files { writer, tables, was_counted }) })
    }

    /// Opens the state on a disk in memory, for tests and simulations. It has no thread: a commit is written by a task
    /// that waits for it, after yielding to others, and takes no time.
    ///
    /// # Errors
    /// [`StoreError::HomeInUse`] while another store over the disk is open that was neither dropped nor ended by a
    /// crash; [`StoreError::NewerSchema`] or [`StoreError::Corrupt`] as [`Store::open`].
    pub fn simulated(disk: Arc<SimulatedDisk>) -> Result<Self, StoreError> {
        Ok(Self { inner: Arc::new(StoreInner::Simulated(SimulatedStore::open(disk)?)) })
    }

    /// Whether a loss from the state would always have been noticed. A state made by an earlier version had no mark at
    /// first.
    #[must_use]
    pub fn was_counted(&self) -> bool {
        match &*self.inner {
            StoreInner::Files { was_counted, .. } => *was_counted,
            StoreInner::Simulated(_) => true,
        }
    }

    /// How many groups of commits this state has taken since it was made; 0 for a disk in memory.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub fn commits(&self) -> Result<u64, StoreError> {
        Ok(self.get(Table::Meta, COMMITS_KEY)?.unwrap_or(0))
    }

    /// The record under `key`, if it exists. Reads see only durable records.
    ///
    /// # Errors
    /// [`StoreError::Record`] if it cannot be read as a `T` of this version; [`StoreError::Io`] or
    /// [`StoreError::Corrupt`] if the disk fails.
    pub fn get<T: DeserializeOwned>(&self, table: Table, key: impl AsRef<[u8]>) -> Result<Option<T>, StoreError> {
        match &*self.inner {
            StoreInner::Files { tables, .. } => tables.get(table, key.as_ref()),
            StoreInner::Simulated(store) => store.get(table, key.as_ref()),
        }
    }

    /// A snapshot of the keys and records that `scan` selects.
    ///
    /// # Errors
    /// As [`Store::get`]: a record that cannot be read fails the scan, it is never left out.
    pub fn scan<T: DeserializeOwned>(&self, table: Table, scan: &Scan) -> Result<Vec<(Vec<u8>, T)>, StoreError> {
        self.scan_each(table, scan)?.into_iter().map(|(key, value)| Ok((key, value?))).collect()
    }

    /// As [`Store::scan`], but an unreadable record affects its own key only: each key comes with its record or with
    /// the error.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn scan_each<T: DeserializeOwned>(&self, table: Table, scan: &Scan) -> Result<Each<T>, StoreError> {
        match &*self.inner {
            StoreInner::Files { tables, .. } => tables.scan_each(table, scan),
            StoreInner::Simulated(store) => Ok(store.scan_each(table, scan)),
        }
    }

    /// Commits `batch`: returns when all of it is on the disk. Commits become visible and durable in the order in which
    /// they were made; many at a time share one sync. Dropping the future does not undo the commit.
    ///
    /// # Errors
    /// [`StoreError::Full`] if there is no room, after which a commit may be tried again. [`StoreError::Io`] if the
    /// disk failed, and [`StoreError::Poisoned`] ever after; a later opening finds all of the failed batch or none of
    /// it. [`StoreError::Closed`] after [`Store::close`].
    pub async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        if batch.is_empty() {
            return Ok(());
        }
        match &*self.inner {
            StoreInner::Files { writer, .. } => writer.commit(batch.into_changes()).await,
            StoreInner::Simulated(store) => store.commit(batch.into_changes()).await,
        }
    }

    /// Becomes true after a failed write or sync: nothing more is acknowledged until the state is opened again.
    #[must_use]
    pub fn poisoned(&self) -> watch::Receiver<bool> {
        match &*self.inner {
            StoreInner::Files { writer, .. } => writer.is_poisoned.clone(),
            StoreInner::Simulated(store) => store.poisoned(),
        }
    }

    /// Refuses further commits, and returns when the earlier ones are on the disk. Reads continue to work; the files
    /// are closed with the last clone of the handle.
    ///
    /// # Errors
    /// If a commit that was still waiting failed. Its own caller gets the same error.
    pub async fn close(&self) -> Result<(), StoreError> {
        match &*self.inner {
            StoreInner::Files { writer, .. } => writer.close().await,
            StoreInner::Simulated(store) => store.close(),
        }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

/// Whether `dir` has a state or the mark of one: then none is created there.
#[must_use]
pub fn exists(dir: &Path) -> bool {
    let is_empty = match std::fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    !is_empty || !matches!(watermark::read(dir), Ok(None))
}

/// Refuses a state that is behind its mark, or has no mark.
fn check_mark(dir: &Path, found: u64, marked: Option<u64>) -> Result<(), StoreError> {
    let mark = watermark::name(dir);
    match marked {
        None => Err(StoreError::Unmarked { mark, reason: "missing" }),
        Some(marked) if marked > found => Err(StoreError::Behind { found, marked, mark }),
        Some(_) => Ok(()),
    }
}

/// Creates every table and the schema version, in a directory that is not visible yet.
fn write_new_state(dir: &Path) -> Result<(), StoreError> {
    let mut batch = Batch::new();
    batch.put(Table::Meta, SCHEMA_KEY, &Schema::CURRENT)?;
    batch.put(Table::Meta, COMMITS_KEY, &0_u64)?;
    Tables::create(dir)?.write(batch.into_changes())
}

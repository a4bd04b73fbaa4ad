//! The engine, sized for a host that idles in little memory, and its keyspace for each table: reading, and writing
//! synced. It must not know who may write when: the writer decides that.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable as _};
use serde::de::DeserializeOwned;

use crate::batch::BatchChanges;
use crate::scan::Each;
use crate::schema::{self, SCHEMA_KEY};
use crate::{Scan, StoreError, Table, layout, record};

/// Size of the cache for blocks of all tables.
const CACHE_BYTES: u64 = 8 << 20;
/// Table files held open: well below the customary limit of 1,024, which sockets and guests share.
const OPEN_FILES: usize = 128;
/// Size at which journals are dropped once the tables hold their content; this is the least that the engine allows.
const JOURNAL_BYTES: u64 = 64 << 20;
/// Size at which a table in memory is written to a table file. The journal of runs gets most of the writes.
const MEMTABLE_BYTES: u64 = 2 << 20;
const EVENTS_MEMTABLE_BYTES: u64 = 8 << 20;

/// The keyspace of each table, in an open engine.
#[derive(Clone)]
pub(crate) struct Tables {
    database: Database,
    meta: Keyspace,
    runs: Keyspace,
    events: Keyspace,
    live: Keyspace,
    places: Keyspace,
    signals: Keyspace,
    energy: Keyspace,
    vault: Keyspace,
    skills: Keyspace,
    staged: Keyspace,
    peers: Keyspace,
    interactions: Keyspace,
    assessments: Keyspace,
    reflections: Keyspace,
    conversations: Keyspace,
}

impl Tables {
    /// Opens the state in `dir`. Every table of its schema version must exist; those of later versions are created.
    pub(crate) fn open(dir: &Path) -> Result<Self, StoreError> {
        let database = open_database(dir)?;
        let missing: Vec<Table> =
            Table::ALL.into_iter().filter(|table| !database.keyspace_exists(table.name())).collect();
        if missing.is_empty() {
            return Self::of_database(database);
        }
        let damage = |table: &Table| StoreError::corrupt(format!("its table `{table}` is missing"));
        if let Some(table) = missing.iter().find(|table| table.since() == 1) {
            return Err(damage(table));
        }
        let meta = open_table(&database, Table::Meta)?;
        let found = database.snapshot().get(&meta, SCHEMA_KEY).map_err(reading)?;
        let found = found.map(|bytes| record::decode(Table::Meta, SCHEMA_KEY.as_bytes(), &bytes)).transpose()?;
        let version = schema::checked(found)?;
        match missing.iter().find(|table| table.since() <= version) {
            Some(table) => Err(damage(table)),
            None => layout::grow(dir, || Self::of_database(database)),
        }
    }

    /// Creates the files of a state without records in the empty directory `dir`.
    pub(crate) fn create(dir: &Path) -> Result<Self, StoreError> {
        Self::of_database(open_database(dir)?)
    }

    fn of_database(database: Database) -> Result<Self, StoreError> {
        let open = |table: Table| open_table(&database, table);
        Ok(Self {
            meta: open(Table::Meta)?,
            runs: open(Table::Runs)?,
            events: open(Table::Events)?,
            live: open(Table::Live)?,
            places: open(Table::Places)?,
            signals: open(Table::Signals)?,
            energy: open(Table::Energy)?,
            vault: open(Table::Vault)?,
            skills: open(Table::Skills)?,
            staged: open(Table::Staged)?,
            peers: open(Table::Peers)?,
            interactions: open(Table::Interactions)?,
            assessments: open(Table::Assessments)?,
            reflections: open(Table::Reflections)?,
            conversations: open(Table::Conversations)?,
            database,
        })
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, table: Table, key: &[u8]) -> Result<Option<T>, StoreError> {
        if key.is_empty() {
            return Ok(None);
        }
        // A snapshot sees a batch completely or not at all, and nothing that is not synced.
        let found = self.database.snapshot().get(self.of(table), key).map_err(reading)?;
        found.map(|bytes| record::decode(table, key, &bytes)).transpose()
    }

    pub(crate) fn scan_each<T: DeserializeOwned>(&self, table: Table, scan: &Scan) -> Result<Each<T>, StoreError> {
        let Some(range) = scan.range() else { return Ok(Vec::new()) };
        let entries = self.database.snapshot().range(self.of(table), range);
        let read = |entry: fjall::Guard| {
            let (key, bytes) = entry.into_inner().map_err(reading)?;
            let value = record::decode(table, &key, &bytes);
            Ok((key.to_vec(), value))
        };
        if scan.newest_first {
            entries.rev().take(scan.limit).map(read).collect()
        } else {
            entries.take(scan.limit).map(read).collect()
        }
    }

    /// Writes all of `changes` or nothing, and returns when it is on the disk.
    pub(crate) fn write(&self, changes: BatchChanges) -> Result<(), StoreError> {
        // The engine's default leaves a batch in the system's buffers. Within its commit the sync comes before the
        // records can be read. `fdatasync` also writes the length of the file, which is all the metadata that counts.
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for ((table, key), value) in changes {
            match value {
                Some(value) => batch.insert(self.of(table), key, value),
                None => batch.remove(self.of(table), key),
            }
        }
        let action = "writing the journal";
        batch.commit().map_err(|error| match StoreError::engine(action, error) {
            // Room is checked before. A write that ran out of it may have reached the disk in part or completely.
            StoreError::Full => StoreError::Io { action, source: Arc::new(io::ErrorKind::StorageFull.into()) },
            other => other,
        })
    }

    fn of(&self, table: Table) -> &Keyspace {
        match table {
            Table::Meta => &self.meta,
            Table::Runs => &self.runs,
            Table::Events => &self.events,
            Table::Live => &self.live,
            Table::Places => &self.places,
            Table::Signals => &self.signals,
            Table::Energy => &self.energy,
            Table::Vault => &self.vault,
            Table::Skills => &self.skills,
            Table::Staged => &self.staged,
            Table::Peers => &self.peers,
            Table::Interactions => &self.interactions,
            Table::Assessments => &self.assessments,
            Table::Reflections => &self.reflections,
            Table::Conversations => &self.conversations,
        }
    }
}

/// Opens the engine in `dir`, and creates its files if there are none.
fn open_database(dir: &Path) -> Result<Database, StoreError> {
    let open = || {
        Database::builder(dir)
            .cache_size(CACHE_BYTES)
            .max_cached_files(Some(OPEN_FILES))
            .max_journaling_size(JOURNAL_BYTES)
            // Background work is flushing and compacting small tables: one thread keeps up, and costs little when idle.
            .worker_threads(1)
            .open()
    };
    // The engine asserts its expectations of files; for a host a damaged file must be an error, not a panic.
    catch_unwind(AssertUnwindSafe(open))
        .map_err(|_| StoreError::corrupt("its files are not what the storage engine expects"))?
        .map_err(|error| StoreError::engine("opening the state", error))
}

/// The keyspace of a table, which is created if it is missing.
fn open_table(database: &Database, table: Table) -> Result<Keyspace, StoreError> {
    let memtable = if table == Table::Events { EVENTS_MEMTABLE_BYTES } else { MEMTABLE_BYTES };
    database
        .keyspace(table.name(), || KeyspaceCreateOptions::default().max_memtable_size(memtable))
        .map_err(|error| StoreError::engine("opening a table", error))
}

fn reading(error: fjall::Error) -> StoreError {
    StoreError::engine("reading the state", error)
}

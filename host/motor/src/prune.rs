//! Taking runs that are over out of the store: record, history, orders and keys, in one commit.
//!
//! The idempotency key of a run stays for a while: the same command given again must not become another run. It must
//! not know files: those of a run go after its record, so that a crash in between leaves files without a record, never a record
//! without files. It survives a retry that is given at the same time, because both need the admission.

use std::time::Duration;

use base::{Refusal, RefusalCode, RunId, Timestamp};
use serde::de::IgnoredAny;
use store::{Batch, Scan, Table};

use crate::config::HEARING;
use crate::event::{RunEvent, StoredEvent, event_key, event_prefix};
use crate::journal::{JournalError, RunStore, command_key, order_prefix};
use crate::motor::Motor;
use crate::record::RunRecord;

/// How long the idempotency key of a deleted run is remembered.
pub const KEY_MEMORY: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Before a key that is to be forgotten, and the time from which on.
const FORGOTTEN: &str = "forgotten/";

/// Runs that may be deleted for their age.
#[derive(Debug, Default)]
pub struct ExpiredRun {
    /// The runs, the oldest first.
    pub runs: Vec<RunId>,
    /// Where to go on; none: there are no more.
    pub next: Option<RunId>,
}

impl Motor {
    /// Deletes a run that is over, with its history and its commands. Durable when this returns; its files are the
    /// caller's.
    ///
    /// # Errors
    /// `NotFound`; `IllegalState` when it is not over; or an error of the store.
    pub async fn delete(&self, id: &RunId) -> Result<(), Refusal> {
        let inner = &self.inner;
        check_over(&inner.books.record(id)?)?;
        if let Some(progress) = inner.drivers.progress(id) {
            // Its driver may still tell the environment of its end.
            tokio::time::timeout(HEARING * 2, progress.gone()).await.ok();
        }
        let _admitted = inner.admission.lock().await;
        let record = inner.books.record(id)?;
        check_over(&record)?;
        if inner.drivers.progress(id).is_some() {
            let refusal = Refusal::new(RefusalCode::TryLater, format!("run `{id}` has only just ended"));
            return Err(refusal.with_remedy("delete it again in a moment"));
        }
        Ok(inner.books.delete(&record).await?)
    }

    /// Whether the store has a record of this run, readable or not.
    ///
    /// # Errors
    /// If the store fails.
    pub fn has_record(&self, id: &RunId) -> Result<bool, Refusal> {
        Ok(self.inner.books.store.get::<IgnoredAny>(Table::Runs, id.as_str())?.is_some())
    }

    /// Runs that ended before `cutoff`, behind `after`. Looks at `limit` records at most; one that cannot be read is left alone.
    ///
    /// # Errors
    /// If the store fails.
    pub fn expired(&self, cutoff: Timestamp, after: Option<&RunId>, limit: usize) -> Result<ExpiredRun, Refusal> {
        let mut scan = Scan::all().limit(limit);
        if let Some(after) = after {
            scan = scan.after(after.as_str());
        }
        let page = self.inner.books.store.scan_each::<RunRecord>(Table::Runs, &scan)?;
        let is_full = page.len() == limit;
        let mut expired = ExpiredRun::default();
        for (key, record) in page {
            let Some(id) = String::from_utf8(key).ok().and_then(|key| RunId::parse(&key).ok()) else { continue };
            if let Ok(record) = record {
                if record.created_at >= cutoff {
                    // Ids sort by the time of their runs.
                    return Ok(ExpiredRun { next: None, ..expired });
                }
                if record.status.is_terminal() && record.completed_at.is_some_and(|at| at < cutoff) {
                    expired.runs.push(id.clone());
                }
            }
            expired.next = Some(id).filter(|_| is_full);
        }
        Ok(expired)
    }

    /// Forgets the idempotency keys of runs that were deleted longer ago than [`KEY_MEMORY`], `limit` at most; returns how
    /// many. They are noted by the latest possible time and forgotten by the earliest, so that setting the clock does
    /// not forget one too early.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn forget_keys(&self, limit: usize) -> Result<usize, Refusal> {
        let now = self.inner.books.time.earliest();
        let store = &self.inner.books.store;
        let mut batch = Batch::new();
        let mut forgotten = 0;
        for (key, command) in store.scan::<String>(Table::Places, &Scan::prefix(FORGOTTEN).limit(limit))? {
            let (at, run) = forgotten_at(&key).unwrap_or((Timestamp::from_millis(0), None));
            if now.since(at) < KEY_MEMORY {
                break;
            }
            // The key may stand for another run by now.
            if store.get::<RunId>(Table::Places, &command)? == run {
                batch.delete(Table::Places, command);
            }
            batch.delete(Table::Places, key);
            forgotten += 1;
        }
        store.commit(batch).await?;
        Ok(forgotten)
    }
}

fn check_over(record: &RunRecord) -> Result<(), Refusal> {
    if record.status.is_terminal() {
        return Ok(());
    }
    let reason = format!("run `{}` is {} and cannot be deleted before it is over", record.id, record.status);
    let remedy = format!("`motor task cancel {}` ends it", record.id);
    Err(Refusal::new(RefusalCode::IllegalState, reason).with_remedy(remedy))
}

impl RunStore {
    async fn delete(&self, record: &RunRecord) -> Result<(), JournalError> {
        let run = &record.id;
        let mut batch = Batch::new();
        // A history that cannot be read hides its key, and is deleted all the same.
        if let Ok(Some(StoredEvent { event: RunEvent::Created { agent, key: Some(key), .. }, .. })) =
            self.store.get(Table::Events, event_key(run, 0))
        {
            batch.put(Table::Places, forgotten_key(self.time.latest(), run), &command_key(&agent, &key))?;
        }
        for sequence in 0..record.next_sequence {
            batch.delete(Table::Events, event_key(run, sequence));
        }
        for (order, _) in self.store.scan_each::<IgnoredAny>(Table::Places, &Scan::prefix(order_prefix(run)))? {
            batch.delete(Table::Places, order);
        }
        for (key, _) in self.store.scan_each::<IgnoredAny>(Table::Staged, &Scan::prefix(event_prefix(run)))? {
            batch.delete(Table::Staged, key);
        }
        batch.delete(Table::Runs, run.as_str());
        self.store.commit(batch).await.map_err(JournalError::of_commit)
    }
}

/// The storage key of a forgotten key; it sorts by time.
fn forgotten_key(at: Timestamp, run: &RunId) -> String {
    format!("{FORGOTTEN}{:020}/{run}", at.as_millis())
}

fn forgotten_at(key: &[u8]) -> Option<(Timestamp, Option<RunId>)> {
    let (at, run) = std::str::from_utf8(key).ok()?.strip_prefix(FORGOTTEN)?.split_once('/')?;
    Some((Timestamp::from_millis(at.parse().ok()?), RunId::parse(run).ok()))
}

//! The book of trust: answers where bytes stand.
//!
//! Changes go through [`changes`]. It must not believe a directory. It survives a table that cannot be read: then
//! nothing is trusted.

mod changes;

use std::collections::HashMap;
use std::sync::Arc;

use base::{Clock, ContentHash, Timestamp};
use serde::{Deserialize, Serialize};
use store::{Store, StoreError, Table};
use tokio::sync::{Mutex, watch};

use super::known::{Cache, KnownRecords};
use super::record::{self, Records, Unnameable};
use super::standing::{self, is_in_force, judge};
use super::{Standing, TrustRecord};
use crate::{SkillError, SkillName, SkillPlace};

/// All trust records of a store. Cheap to clone; clones share a lock and caches, so there is one for a store.
#[derive(Clone)]
pub struct TrustBook {
    store: Store,
    clock: Arc<dyn Clock>,
    /// Held from the reading that a change rests on until the change is on the disk.
    writing: Arc<Mutex<()>>,
    known: Arc<Cache<KnownRecords>>,
    uses: Arc<Cache<HashMap<(SkillName, SkillPlace), Timestamp>>>,
    changes: watch::Sender<u64>,
}

#[derive(Serialize, Deserialize)]
struct UsedMark {
    at: Timestamp,
}

impl TrustBook {
    /// The trust records of a store.
    #[must_use]
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        let (known, uses, changes) = (Arc::default(), Arc::default(), watch::Sender::default());
        Self { store, clock, writing: Arc::default(), known, uses, changes }
    }

    /// Counter that grows whenever a decision about a skill was stored. A use of a skill does not count.
    #[must_use]
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Where these bytes stand. Every surface that shows or uses a skill has to ask this function.
    ///
    /// It never errs towards trust: an unreadable table or record, or one about anything else, is `needs_reapproval`
    /// with a one-sentence reason.
    #[must_use]
    pub fn standing(&self, name: &SkillName, place: &SkillPlace, hash: ContentHash, modes: ContentHash) -> Standing {
        let around = match self.around(place) {
            Ok(around) => around,
            Err(SkillError::Store(error)) => return standing::unreadable(&error),
            Err(_) => return standing::unnameable(Unnameable),
        };
        match record::key(name, place, hash) {
            Ok(key) => judge(&around, &key, modes),
            Err(error) => standing::unnameable(error),
        }
    }

    /// [`TrustBook::standing`] of many, in their order: name, place, hash, permission bits. The table is read once, and
    /// kept in memory until the next change; the first call after one takes longer.
    #[must_use]
    pub fn standings(&self, asked: &[(SkillName, SkillPlace, ContentHash, ContentHash)]) -> Vec<Standing> {
        let known = match self.known.read(|| Ok(KnownRecords::of(record::all(&self.store)?))) {
            Ok(known) => known,
            Err(error) => return asked.iter().map(|_| standing::unreadable(&error)).collect(),
        };
        let of = |(name, place, hash, modes): &(SkillName, SkillPlace, ContentHash, ContentHash)| match (
            record::prefix(place),
            record::key(name, place, *hash),
        ) {
            (Ok(prefix), Ok(key)) => judge(known.about(&prefix), &key, *modes),
            (Err(error), _) | (_, Err(error)) => standing::unnameable(error),
        };
        asked.iter().map(of).collect()
    }

    /// The record about one version, trusted or not ([`TrustBook::standing`] decides); `None` if missing or damaged.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn get(
        &self,
        name: &SkillName,
        place: &SkillPlace,
        hash: ContentHash,
    ) -> Result<Option<TrustRecord>, StoreError> {
        let (Ok(prefix), Ok(key)) = (record::prefix(place), record::key(name, place, hash)) else { return Ok(None) };
        let around = record::at(&self.store, prefix)?;
        Ok(around.into_iter().find(|(found, _)| *found == key).and_then(|(_, held)| held.ok()))
    }

    /// Every record about a name, in all places, newest first.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn of_name(&self, name: &SkillName) -> Result<Vec<TrustRecord>, StoreError> {
        let records = record::all(&self.store)?;
        Ok(newest_first(records.into_iter().filter_map(|(_, held)| held.ok()).filter(|record| record.name == *name)))
    }

    /// Every record about a place, under all names, newest first.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn of_place(&self, place: &SkillPlace) -> Result<Vec<TrustRecord>, StoreError> {
        let Ok(prefix) = record::prefix(place) else { return Ok(Vec::new()) };
        let records = record::at(&self.store, prefix)?;
        Ok(newest_first(records.into_iter().filter_map(|(_, held)| held.ok())))
    }

    /// The version of a skill that the owner approved for a place, if one is in force. The files there may differ.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn approved(&self, name: &SkillName, place: &SkillPlace) -> Result<Option<TrustRecord>, StoreError> {
        Ok(self.of_place(place)?.into_iter().find(|record| record.name == *name && is_in_force(record)))
    }

    /// When a skill was last used, if that is known.
    #[must_use]
    pub fn last_used(&self, name: &SkillName, place: &SkillPlace) -> Option<Timestamp> {
        let key = record::used_key(name, place).ok()?;
        self.store.get::<UsedMark>(Table::Skills, &key).ok().flatten().map(|used| used.at)
    }

    /// When each skill was last used. Read once, and kept until the next use.
    #[must_use]
    pub fn last_uses(&self) -> Arc<HashMap<(SkillName, SkillPlace), Timestamp>> {
        let read = || {
            let found = self.store.scan_each::<UsedMark>(Table::Skills, &record::all_used())?;
            Ok(found.into_iter().filter_map(|(key, used)| Some((record::used_subject(&key)?, used.ok()?.at))).collect())
        };
        self.uses.read(read).unwrap_or_default()
    }

    fn around(&self, place: &SkillPlace) -> Result<Records, SkillError> {
        Ok(record::at(&self.store, record::prefix(place).map_err(invalid)?)?)
    }
}

impl std::fmt::Debug for TrustBook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TrustBook")
    }
}

fn newest_first(records: impl Iterator<Item = TrustRecord>) -> Vec<TrustRecord> {
    let mut records: Vec<_> = records.collect();
    records.sort_by_key(|record| std::cmp::Reverse(record.changed_at));
    records
}

fn invalid(error: Unnameable) -> SkillError {
    SkillError::Invalid { reason: error.to_string() }
}

//! All records, decoded once and kept for lists until the next change.
//!
//! It must not be asked by the gate, which reads the table itself each time. It survives a read that overlaps a change:
//! a result from before the change is never kept beyond it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use store::StoreError;

use super::record::{self, Records, StoredTrust};

/// Every record of the table as it was at one moment.
pub(super) struct KnownRecords {
    records: Records,
    /// Index ranges of each place's records, by key prefix.
    places: HashMap<Vec<u8>, Range<usize>>,
}

impl KnownRecords {
    pub(super) fn of(records: Records) -> Self {
        let mut places: HashMap<Vec<u8>, Range<usize>> = HashMap::with_capacity(records.len());
        for (index, (key, _)) in records.iter().enumerate() {
            let place = record::place_in(key);
            match places.get_mut(place) {
                Some(range) => range.end = index + 1,
                None => drop(places.insert(place.to_owned(), index..index + 1)),
            }
        }
        Self { records, places }
    }

    /// The records about the place with this key prefix.
    pub(super) fn about(&self, prefix: &[u8]) -> &[(Vec<u8>, StoredTrust)] {
        let range = self.places.get(prefix).cloned().unwrap_or_default();
        self.records.get(range).unwrap_or_default()
    }
}

/// A value read from the table, kept until the next change.
pub(super) struct Cache<T> {
    state: Mutex<KnownState<T>>,
}

struct KnownState<T> {
    /// How many changes have begun or ended.
    changes: u64,
    read: Option<Arc<T>>,
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self { state: Mutex::new(KnownState { changes: 0, read: None }) }
    }
}

impl<T> Cache<T> {
    /// The kept value if nothing has changed since it was read, otherwise the result of `read`.
    pub(super) fn read(&self, read: impl FnOnce() -> Result<T, StoreError>) -> Result<Arc<T>, StoreError> {
        let changes = {
            let state = self.state.lock();
            if let Some(known) = &state.read {
                return Ok(known.clone());
            }
            state.changes
        };
        let known = Arc::new(read()?);
        let mut state = self.state.lock();
        if state.changes == changes {
            state.read = Some(known.clone());
        }
        Ok(known)
    }

    /// Begins a change, which ends when the returned guard is dropped. Values read before either moment are not kept.
    pub(super) fn changing(self: &Arc<Self>) -> Changing<T> {
        self.forget();
        Changing(self.clone())
    }

    fn forget(&self) {
        let mut state = self.state.lock();
        state.changes += 1;
        state.read = None;
    }
}

pub(super) struct Changing<T>(Arc<Cache<T>>);

impl<T> Drop for Changing<T> {
    fn drop(&mut self) {
        self.0.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_before_a_change_or_during_it_is_not_kept() {
        let cache = Arc::new(Cache::default());
        let read = |value: u32| *cache.read(|| Ok(value)).unwrap();
        assert_eq!((read(1), read(2)), (1, 1));
        let change = cache.changing();
        assert_eq!((read(3), read(4)), (3, 3), "as it is while the change goes on");
        drop(change);
        assert_eq!((read(5), read(6)), (5, 5));
        drop(cache.changing());
        // A reading that overlaps the beginning or the end of a change answers for itself alone.
        let overlapping = cache.read(|| {
            drop(cache.changing());
            Ok(7)
        });
        assert_eq!((*overlapping.unwrap(), read(8)), (7, 8));
        assert!(cache.changing().0.read(|| Err(StoreError::Closed)).is_err());
        assert_eq!(read(9), 9);
    }
}

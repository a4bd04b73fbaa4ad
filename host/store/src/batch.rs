//! A batch: changes that become durable together or not at all.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{StoreError, Table, record};

/// Keys may have at most this many bytes (the storage engine's own limit).
const MAX_KEY_BYTES: usize = u16::MAX as usize;

/// Changes by key: a new value, or `None` to remove it.
pub(crate) type BatchChanges = BTreeMap<(Table, Vec<u8>), Option<Vec<u8>>>;

/// Changes to commit together. The last change to a key wins.
#[derive(Debug, Default)]
pub struct Batch {
    // One entry for each key: the engine gives a whole batch one sequence number, so two changes to a key within it
    // would have no order.
    changes: BatchChanges,
}

impl Batch {
    /// Creates a batch without changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores `value` under `key`, replacing an existing value.
    ///
    /// # Errors
    /// If the value cannot be encoded as JSON or is over 16 MiB, or the key is empty or over 65,535 bytes. The batch is
    /// then unchanged.
    pub fn put<T: Serialize>(&mut self, table: Table, key: impl Into<Vec<u8>>, value: &T) -> Result<(), StoreError> {
        let key = key.into();
        if !is_possible_key(&key) {
            return Err(StoreError::Key { table, bytes: key.len() });
        }
        let bytes = record::encode(table, value)?;
        self.changes.insert((table, key), Some(bytes));
        Ok(())
    }

    /// Removes `key`; does nothing if it does not exist.
    pub fn delete(&mut self, table: Table, key: impl Into<Vec<u8>>) {
        let key = key.into();
        // A key that could not be stored does not exist.
        if is_possible_key(&key) {
            self.changes.insert((table, key), None);
        }
    }

    /// Whether there is nothing to commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub(crate) fn into_changes(self) -> BatchChanges {
        self.changes
    }
}

fn is_possible_key(key: &[u8]) -> bool {
    !key.is_empty() && key.len() <= MAX_KEY_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_checked_before_the_engine_sees_them() {
        let mut batch = Batch::new();
        assert!(matches!(batch.put(Table::Runs, "", &1), Err(StoreError::Key { bytes: 0, .. })));
        assert!(matches!(batch.put(Table::Runs, vec![b'k'; 65_536], &1), Err(StoreError::Key { .. })));
        batch.delete(Table::Runs, "");
        assert!(batch.is_empty());
        batch.put(Table::Runs, vec![b'k'; 65_535], &1).unwrap();
        assert!(!batch.is_empty());
    }

    #[test]
    fn the_last_change_to_a_key_counts() {
        let mut batch = Batch::new();
        batch.put(Table::Runs, "k", &1).unwrap();
        batch.delete(Table::Runs, "k");
        batch.put(Table::Live, "k", &1).unwrap();
        batch.put(Table::Live, "k", &2).unwrap();
        let changes: Vec<_> = batch.into_changes().into_iter().collect();
        assert_eq!(
            changes,
            [((Table::Runs, b"k".to_vec()), None), ((Table::Live, b"k".to_vec()), Some(br#"{"v":1,"d":2}"#.to_vec())),]
        );
    }
}

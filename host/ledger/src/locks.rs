//! Locks by key: changes of one peer follow one another, changes of different peers mostly do not wait for each other.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};
use xxhash_rust::xxh3::xxh3_64;

/// Number of locks. Peers that share one only wait for each other.
const LOCKS: usize = 64;

/// A fixed number of locks, chosen by the hash of a key.
#[derive(Debug)]
pub(crate) struct KeyLocks([Arc<Mutex<()>>; LOCKS]);

/// Holds the locks of some keys.
#[derive(Debug)]
pub(crate) struct KeyGuards(#[expect(dead_code, reason = "held, not read")] Vec<OwnedMutexGuard<()>>);

impl Default for KeyLocks {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Arc::default()))
    }
}

impl KeyLocks {
    /// Locks all of these keys. The locks are taken in one order, so two callers cannot wait for each other.
    pub(crate) async fn lock(&self, keys: impl IntoIterator<Item = impl AsRef<[u8]>>) -> KeyGuards {
        let places: BTreeSet<usize> = keys.into_iter().map(|key| place(key.as_ref())).collect();
        let mut guards = Vec::with_capacity(places.len());
        for place in places {
            if let Some(lock) = self.0.get(place) {
                guards.push(Arc::clone(lock).lock_owned().await);
            }
        }
        KeyGuards(guards)
    }
}

fn place(key: &[u8]) -> usize {
    usize::try_from(xxh3_64(key) % LOCKS as u64).unwrap_or_default()
}

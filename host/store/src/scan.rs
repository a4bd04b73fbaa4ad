//! Selects records and their order: a prefix, a key to continue after, a limit, a direction.

use std::ops::Bound;

use crate::StoreError;

/// A read of a table in key order. Bytes compare as unsigned numbers, so numbers in keys are big-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    prefix: Vec<u8>,
    after: Option<Vec<u8>>,
    pub(crate) limit: usize,
    pub(crate) newest_first: bool,
}

/// Keys, each with its record or the error of reading it.
pub type Each<T> = Vec<(Vec<u8>, Result<T, StoreError>)>;

/// Lower and upper bound in ascending order.
pub(crate) type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

impl Scan {
    /// Selects every record of the table.
    #[must_use]
    pub fn all() -> Self {
        Self::prefix([])
    }

    /// Selects the records whose keys begin with `prefix`.
    #[must_use]
    pub fn prefix(prefix: impl Into<Vec<u8>>) -> Self {
        Self { prefix: prefix.into(), after: None, limit: usize::MAX, newest_first: false }
    }

    /// Continues after `key` in the direction of the scan; `key` itself is not read and need not exist.
    #[must_use]
    pub fn after(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.after = Some(key.into());
        self
    }

    /// Reads at most this many records.
    #[must_use]
    pub fn limit(mut self, records: usize) -> Self {
        self.limit = records;
        self
    }

    /// Reads from the greatest key to the least.
    #[must_use]
    pub fn newest_first(mut self) -> Self {
        self.newest_first = true;
        self
    }

    /// The keys to read, or `None` if there cannot be any: the engine panics on a range that ends before it begins.
    pub(crate) fn range(&self) -> Option<Range> {
        let mut from = Bound::Included(self.prefix.clone());
        let mut to = successor(&self.prefix).map_or(Bound::Unbounded, Bound::Excluded);
        if let Some(after) = &self.after {
            if self.newest_first {
                if is_before(after, &to) {
                    to = Bound::Excluded(after.clone());
                }
            } else if *after >= self.prefix {
                from = Bound::Excluded(after.clone());
            }
        }
        let possible = match (&from, &to) {
            (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to)) => from < to,
            _ => true,
        };
        possible.then_some((from, to))
    }
}

fn is_before(key: &[u8], end: &Bound<Vec<u8>>) -> bool {
    match end {
        Bound::Excluded(end) => key < end.as_slice(),
        _ => true,
    }
}

/// The least key that is greater than every key with this prefix.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut key = prefix.to_vec();
    while let Some(last) = key.pop() {
        if let Some(next) = last.checked_add(1) {
            key.push(next);
            return Some(key);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_its_successor_begins() {
        assert_eq!(successor(b""), None);
        assert_eq!(successor(b"a"), Some(b"b".to_vec()));
        assert_eq!(successor(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(successor(b"\xff\xff"), None);
    }

    #[test]
    fn impossible_ranges_are_empty() {
        assert!(Scan::prefix("b").after("c").range().is_none());
        assert!(Scan::prefix("b").after("a").newest_first().range().is_none());
        assert!(Scan::all().after("").newest_first().range().is_none());
        assert!(Scan::prefix("b").after("a").range().is_some());
        assert!(Scan::prefix("b").after("c").newest_first().range().is_some());
    }
}

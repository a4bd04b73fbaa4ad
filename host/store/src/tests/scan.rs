//! Scans against a model: a sorted map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::{Batch, Scan, StoreError, Table};

use super::backend::Backend;

/// Keys of few different bytes, so that prefixes and neighbours are common; 255 has no successor.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0_u8, 1, 97, 255]), 1..4)
}

fn part() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0_u8, 1, 97, 255]), 0..4)
}

fn expected(
    model: &BTreeMap<Vec<u8>, u32>,
    prefix: &[u8],
    after: Option<&[u8]>,
    limit: usize,
    newest_first: bool,
) -> Vec<(Vec<u8>, u32)> {
    let mut found: Vec<_> =
        model.iter().filter(|(key, _)| key.starts_with(prefix)).map(|(k, v)| (k.clone(), *v)).collect();
    if newest_first {
        found.reverse();
    }
    found.retain(|(key, _)| {
        after.is_none_or(|after| if newest_first { key.as_slice() < after } else { key.as_slice() > after })
    });
    found.truncate(limit);
    found
}

#[test]
fn scans_agree_with_a_sorted_map() {
    let stores = Backend::both().map(|backend| (backend.open().unwrap(), backend));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let model = std::cell::RefCell::new(BTreeMap::new());
    let change = (key(), prop::option::weighted(0.8, any::<u32>()));
    let scan = (part(), prop::option::of(part()), 0_usize..6, any::<bool>());
    proptest!(ProptestConfig::with_cases(300), |(changes in prop::collection::vec(change, 0..5), (prefix, after, limit, newest_first) in scan)| {
        for (store, _) in &stores {
            let mut batch = Batch::new();
            for (key, value) in changes.clone() {
                if let Some(value) = value {
                    batch.put(Table::Runs, key.clone(), &value).unwrap();
                    model.borrow_mut().insert(key, value);
                } else {
                    batch.delete(Table::Runs, key.clone());
                    model.borrow_mut().remove(&key);
                }
            }
            runtime.block_on(store.commit(batch)).unwrap();
        }
        let mut scan = Scan::prefix(prefix.clone()).limit(limit);
        if let Some(after) = &after {
            scan = scan.after(after.clone());
        }
        if newest_first {
            scan = scan.newest_first();
        }
        let expected = expected(&model.borrow(), &prefix, after.as_deref(), limit, newest_first);
        for (store, _) in &stores {
            prop_assert_eq!(store.scan::<u32>(Table::Runs, &scan).unwrap(), &expected[..]);
        }
    });
}

#[tokio::test]
async fn a_record_that_cannot_be_read_fails_the_scan() {
    for backend in Backend::both() {
        let store = backend.open().unwrap();
        let mut batch = Batch::new();
        batch.put(Table::Runs, "a", &1).unwrap();
        batch.put(Table::Runs, "b", &"two").unwrap();
        batch.put(Table::Runs, "c", &3).unwrap();
        store.commit(batch).await.unwrap();
        match store.scan::<u32>(Table::Runs, &Scan::all()) {
            Err(StoreError::Record { table: Table::Runs, key, .. }) => assert_eq!(key, "b"),
            other => panic!("{other:?}"),
        }
        assert_eq!(store.scan::<u32>(Table::Runs, &Scan::prefix("c")).unwrap(), [(b"c".to_vec(), 3)]);
    }
}

/// An unreadable record fails a scan, but affects only its own key in `scan_each`.
#[tokio::test]
async fn a_record_that_cannot_be_read_is_told_apart_where_that_is_asked_for() {
    for backend in Backend::both() {
        let store = backend.open().unwrap();
        let mut batch = Batch::new();
        batch.put(Table::Skills, "a", &1_u64).unwrap();
        batch.put(Table::Skills, "b", &"not a number").unwrap();
        batch.put(Table::Skills, "c", &3_u64).unwrap();
        store.commit(batch).await.unwrap();
        assert!(
            matches!(store.scan::<u64>(Table::Skills, &Scan::all()), Err(StoreError::Record { key, .. }) if key == "b")
        );
        let each = store.scan_each::<u64>(Table::Skills, &Scan::all().newest_first()).unwrap();
        let each: Vec<_> = each.into_iter().map(|(key, value)| (key, value.ok())).collect();
        assert_eq!(each, [(b"c".to_vec(), Some(3)), (b"b".to_vec(), None), (b"a".to_vec(), Some(1))]);
        assert_eq!(store.scan_each::<u64>(Table::Skills, &Scan::prefix("c")).unwrap().len(), 1);
    }
}

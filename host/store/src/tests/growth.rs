//! Homes from before a table was added: opened with all of their records, however often adding it is interrupted.

use std::fs;
use std::path::Path;

use crate::schema::{SCHEMA_KEY, Schema};
use crate::{Batch, SCHEMA_VERSION, Store, StoreError, Table};

/// A state of schema 1 with records, as written by a version before the table `vault`.
fn old_state(dir: &Path) {
    state_of(1, dir);
}

/// A state of that schema with a record in each of its tables.
fn state_of(schema: u32, dir: &Path) {
    let database = fjall::Database::builder(dir).worker_threads(1).open().unwrap();
    let record = |table: Table, key: &str, value: &[u8]| {
        let options = fjall::KeyspaceCreateOptions::default;
        database.keyspace(table.name(), options).unwrap().insert(key, value).unwrap();
    };
    for table in Table::ALL.into_iter().filter(|table| table.since() <= schema) {
        record(table, "k", br#"{"v":1,"d":7}"#);
    }
    record(Table::Meta, SCHEMA_KEY, format!(r#"{{"v":1,"d":{{"version":{schema}}}}}"#).as_bytes());
    database.persist(fjall::PersistMode::SyncAll).unwrap();
}

async fn check_grown(dir: &Path) {
    check_grown_from(1, dir).await;
}

async fn check_grown_from(schema: u32, dir: &Path) {
    for value in [1_u64, 2] {
        let store = Store::open(dir).unwrap();
        for table in Table::ALL {
            let expected = (table.since() <= schema).then_some(7);
            assert_eq!(store.get::<u64>(table, "k").unwrap(), expected, "{table}");
        }
        assert_eq!(store.get::<Schema>(Table::Meta, SCHEMA_KEY).unwrap().unwrap().version, SCHEMA_VERSION);
        let mut batch = Batch::new();
        for table in [Table::Vault, Table::Skills] {
            assert_eq!(store.get::<u64>(table, "new").unwrap(), (value > 1).then(|| value - 1));
            batch.put(table, "new", &value).unwrap();
        }
        store.commit(batch).await.unwrap();
        store.close().await.unwrap();
    }
    assert!(!dir.with_file_name("state.growing").exists());
}

#[tokio::test]
async fn a_home_of_every_older_schema_gets_the_tables_it_lacks() {
    for schema in 1..=SCHEMA_VERSION {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("state");
        state_of(schema, &dir);
        check_grown_from(schema, &dir).await;
    }
}

#[tokio::test]
async fn a_half_made_table_is_made_again() {
    // The leftovers of an interrupted creation: the note alone, a directory, files of a table, all but the version.
    for stage in 0..5 {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("state");
        old_state(&dir);
        let known: Vec<String> = fs::read_dir(dir.join("keyspaces"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let half = dir.join("keyspaces").join(known.len().to_string());
        fs::write(home.path().join("state.growing"), known.join("\n")).unwrap();
        match stage {
            0 => fs::write(home.path().join("state.growing.incomplete"), "0").unwrap(),
            1 => fs::create_dir(&half).unwrap(),
            2 => {
                fs::create_dir_all(half.join("tables")).unwrap();
                fs::write(half.join("v0"), "half").unwrap();
            }
            3 => {
                fs::create_dir(&half).unwrap();
                fs::write(half.join("current"), "ha").unwrap();
            }
            _ => drop(crate::tables::Tables::create(&dir).unwrap()),
        }
        check_grown(&dir).await;
    }
}

#[test]
fn damage_is_not_taken_for_a_half_made_table() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("state");
    old_state(&dir);
    // Without the note, an incomplete table was in use.
    fs::create_dir(dir.join("keyspaces/99")).unwrap();
    assert!(matches!(Store::open(&dir), Err(StoreError::Corrupt { .. })));
    assert!(dir.join("keyspaces/99").exists());
    fs::remove_dir(dir.join("keyspaces/99")).unwrap();
    // With it, an earlier table still was.
    fs::write(home.path().join("state.growing"), "0\n1\n2\n3\n4\n5\n6\n7\n").unwrap();
    fs::write(dir.join("keyspaces/2/current"), "").unwrap();
    assert!(matches!(Store::open(&dir), Err(StoreError::Corrupt { .. })));
    assert!(dir.join("keyspaces/2").exists());
}

#[tokio::test]
async fn a_table_that_should_be_there_is_damage() {
    // The existing tables are those of `tables`, the recorded schema version is `claimed`.
    for (tables, claimed, missing) in [(1, 2, "vault"), (1, 4, "vault"), (2, 4, "skills"), (3, 4, "skills")] {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("state");
        state_of(tables, &dir);
        let database = fjall::Database::builder(&dir).open().unwrap();
        let meta = database.keyspace(Table::Meta.name(), fjall::KeyspaceCreateOptions::default).unwrap();
        meta.insert(SCHEMA_KEY, format!(r#"{{"v":1,"d":{{"version":{claimed}}}}}"#)).unwrap();
        database.persist(fjall::PersistMode::SyncAll).unwrap();
        drop((meta, database));
        match Store::open(&dir) {
            Err(StoreError::Corrupt { detail }) => {
                assert!(detail.contains(&format!("`{missing}` is missing")), "{detail}");
            }
            other => panic!("{other:?}"),
        }
    }
}

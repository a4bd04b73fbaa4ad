//! The version of the tables' meaning, and the migration from each version to the next (SPEC CONF-4).

use serde::{Deserialize, Serialize};

use crate::tables::Tables;
use crate::watermark::{COMMITS_KEY, UNCOUNTED_KEY};
use crate::{Batch, StoreError, Table};

/// The schema that this build reads and writes.
pub const SCHEMA_VERSION: u32 = 8;

/// The key of the schema version, in [`Table::Meta`].
pub(crate) const SCHEMA_KEY: &str = "schema";

/// Adds to the batch the changes that turn the state into that of the next version. It is committed together with the
/// new version, so a crash leaves the old state or the new.
type Migration = fn(&Tables, &mut Batch) -> Result<(), StoreError>;

/// The step from version `n` to `n + 1` is at index `n - 1`.
const MIGRATIONS: [Migration; SCHEMA_VERSION as usize - 1] = [
    // 2: adds the table of credentials, which opening the tables has created.
    |_, _| Ok(()),
    // 3: runs wait, are answered and tried again. Stored records stay as they are; an older program, which would take
    // the new events for damage, refuses the home by this number.
    |_, _| Ok(()),
    // 4: adds the table of skills, empty: no skill of an older home was ever approved.
    |_, _| Ok(()),
    // 5: commits are counted, and events have notices. Earlier losses cannot be known.
    |_, batch| {
        batch.put(Table::Meta, COMMITS_KEY, &0_u64)?;
        batch.put(Table::Meta, UNCOUNTED_KEY, &true)
    },
    // 6: adds the table of staged writes, empty. An older program, which would send the writes of a staged run, refuses the
    // home by this number.
    |_, _| Ok(()),
    // 7: adds the tables of peers and reflections, empty.
    |_, _| Ok(()),
    // 8: adds the table of conversations, empty.
    |_, _| Ok(()),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Schema {
    pub(crate) version: u32,
}

impl Schema {
    pub(crate) const CURRENT: Self = Self { version: SCHEMA_VERSION };
}

/// Migrates an existing state to the current version.
pub(crate) fn migrate(tables: &Tables) -> Result<(), StoreError> {
    let version = checked(tables.get(Table::Meta, SCHEMA_KEY.as_bytes())?)?;
    for (step, next) in pending(version)? {
        let mut batch = Batch::new();
        step(tables, &mut batch)?;
        batch.put(Table::Meta, SCHEMA_KEY, &Schema { version: next })?;
        tables.write(batch.into_changes())?;
        tracing::info!(version = next, "state migrated");
    }
    Ok(())
}

/// The version found, if this build can use it.
pub(crate) fn checked(found: Option<Schema>) -> Result<u32, StoreError> {
    let version = found.ok_or_else(|| StoreError::corrupt("its schema version is missing"))?.version;
    pending(version).map(|_| version)
}

/// The steps from `version` to the current one, each with the version it leads to.
fn pending(version: u32) -> Result<impl Iterator<Item = (&'static Migration, u32)>, StoreError> {
    if version > SCHEMA_VERSION {
        return Err(StoreError::NewerSchema { found: version, supported: SCHEMA_VERSION });
    }
    if version == 0 {
        return Err(StoreError::corrupt("its schema version is 0"));
    }
    Ok(MIGRATIONS.iter().zip(2..).skip(version as usize - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_has_its_way_forward() {
        for version in 1..=SCHEMA_VERSION {
            let steps: Vec<u32> = pending(version).unwrap().map(|(_, next)| next).collect();
            assert_eq!(steps, (version + 1..=SCHEMA_VERSION).collect::<Vec<_>>());
        }
        assert!(matches!(pending(0).map(drop), Err(StoreError::Corrupt { .. })));
        assert!(matches!(
            pending(SCHEMA_VERSION + 1).map(drop),
            Err(StoreError::NewerSchema { found, supported: SCHEMA_VERSION }) if found == SCHEMA_VERSION + 1
        ));
    }
}

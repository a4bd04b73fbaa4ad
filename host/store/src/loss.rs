//! Recovery of a state that lost data: go on with the rest, by the owner's command only.

use std::fs;
use std::path::Path;

use serde::de::IgnoredAny;

use crate::layout::{self, FoundLayout, sync_parent};
use crate::schema::{self, SCHEMA_KEY};
use crate::tables::Tables;
use crate::watermark::{self, COMMITS_KEY};
use crate::{Store, StoreError, Table};

/// The outcome of [`accept_loss`].
#[derive(Debug, Clone, Default)]
pub struct Loss {
    /// The error of the refused state; `None` if it was not refused, and nothing was changed.
    pub reason: Option<StoreError>,
    /// Whether nothing could be kept, so that the next opening begins with an empty state.
    pub is_new: bool,
}

/// Makes a state usable that was refused for a loss or for damage. A readable state is kept as it is; an unreadable one
/// is moved into the directory `aside`, which must exist. `set_aside_rest` does the same with everything that has no
/// record, which its argument can test. Nothing is deleted. Only the last step accepts the loss: after a crash the
/// state is still refused.
///
/// # Errors
/// If the state is refused for another reason, such as a newer schema, or the disk fails; and those of
/// `set_aside_rest`.
pub fn accept_loss<E: From<StoreError>>(
    dir: &Path,
    aside: &Path,
    set_aside_rest: impl FnOnce(&dyn Fn(Table, &str) -> bool) -> Result<(), E>,
) -> Result<Loss, E> {
    let reason = match Store::open(dir) {
        Ok(_) => return Ok(Loss::default()),
        Err(error) if error.is_loss() => error,
        Err(error) => return Err(error.into()),
    };
    let left = match Left::open(dir) {
        Ok(left) => left,
        Err(error) if error.is_loss() => {
            set_aside(dir, aside)?;
            None
        }
        Err(error) => return Err(error.into()),
    };
    set_aside_rest(&|table, key| left.as_ref().is_some_and(|left| left.has(table, key)))?;
    let (commits, is_new) = (left.as_ref().map_or(0, |left| left.commits), left.is_none());
    // Dropped first, because the engine locks its files.
    drop(left);
    set_aside(&watermark::path(dir), aside)?;
    watermark::write(dir, commits)?;
    Ok(Loss { reason: Some(reason), is_new })
}

/// The part of a state that can still be read.
struct Left {
    tables: Tables,
    commits: u64,
}

impl Left {
    /// Opens the state without regard to its mark; `None` if the directory is empty or missing.
    fn open(dir: &Path) -> Result<Option<Self>, StoreError> {
        if layout::prepare(dir)? == FoundLayout::Nothing {
            return Ok(None);
        }
        let tables = Tables::open(dir)?;
        schema::checked(tables.get(Table::Meta, SCHEMA_KEY.as_bytes())?)?;
        let commits = tables.get(Table::Meta, COMMITS_KEY.as_bytes())?.unwrap_or(0);
        Ok(Some(Self { tables, commits }))
    }

    /// Whether there is a record, readable or not.
    fn has(&self, table: Table, key: &str) -> bool {
        !matches!(self.tables.get::<IgnoredAny>(table, key.as_bytes()), Ok(None))
    }
}

fn set_aside(path: &Path, aside: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::io("setting the state aside", source);
    let name = path.file_name().unwrap_or_default();
    match fs::rename(path, aside.join(name)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        renamed => renamed.and_then(|()| sync_parent(path)).map_err(failed),
    }
}

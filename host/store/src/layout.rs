//! The state directory: made as a whole or not at all, and checked before the engine may touch it.
//!
//! The engine heals what it takes for an interrupted creation by deleting: without the file `current` of a table it
//! drops the table, without its list of tables it drops them all, without a journal it begins a new one. Here a state
//! directory appears under its name complete, by one rename, so anything missing later is damage, and is refused with
//! everything left in place. A table that a later version adds is noted beside the state while it is made.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::{Links, StoreError, first_special, journal, manifest, read_regular};

/// The note of tables has a number of a few digits for each.
const MAX_NOTE_BYTES: u64 = 4 << 10;

/// What [`prepare`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// A state directory that looks complete.
    State,
    /// Nothing yet.
    Nothing,
}

/// Looks at `dir` without changing it, but for a torn write at the journal's end that nobody was told of.
pub(crate) fn prepare(dir: &Path) -> Result<Found, StoreError> {
    let io = |source| StoreError::io("reading the state directory", source);
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return Err(StoreError::corrupt("it is not a directory"));
        }
        Err(error) => return Err(io(error)),
    };
    let mut journals = Vec::new();
    let mut is_empty = true;
    for entry in entries {
        let entry = entry.map_err(io)?;
        is_empty = false;
        let name = entry.file_name();
        if Path::new(&name).extension().is_some_and(|extension| extension == "jnl") {
            let number = name.to_str().and_then(|name| name.strip_suffix(".jnl")?.parse::<u64>().ok());
            let number = number.ok_or_else(|| StoreError::corrupt("a journal in it has no number"))?;
            journals.push((number, entry.path()));
        }
    }
    if is_empty {
        return Ok(Found::Nothing);
    }
    check_kinds(dir)?;
    if !dir.join("version").is_file() {
        return Err(StoreError::corrupt("the file `version` in it is missing"));
    }
    let known = tables_before_growing(dir)?;
    check_tables(&dir.join("keyspaces"), known.as_ref())?;
    if known.is_some() {
        end_growing(dir)?;
    }
    journals.sort();
    let Some((number, active)) = journals.pop() else { return Err(StoreError::corrupt("its journal is missing")) };
    for (number, sealed) in &journals {
        journal::check_sealed(sealed, *number)?;
    }
    journal::check_active(&active, number)?;
    Ok(Found::State)
}

/// The engine opens each file by its name: a pipe would keep it waiting, and a device never ends.
fn check_kinds(dir: &Path) -> Result<(), StoreError> {
    let special = first_special(dir, u64::MAX, Links::Refused)
        .map_err(|source| StoreError::io("reading the state directory", source))?;
    special.map_or(Ok(()), |(path, kind)| {
        let name = path.strip_prefix(dir.parent().unwrap_or(dir)).unwrap_or(&path);
        Err(StoreError::corrupt(format!("`{}` is {kind}, not a regular file", name.display())))
    })
}

/// `known` are the tables there were before some were added, when that was interrupted: a half-made one beside them was
/// never used, and goes.
fn check_tables(dir: &Path, known: Option<&BTreeSet<u64>>) -> Result<(), StoreError> {
    let entries = fs::read_dir(dir).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => StoreError::corrupt("its tables are missing"),
        _ => StoreError::io("reading the state directory", error),
    })?;
    let mut has_list = false;
    for entry in entries {
        let entry = entry.map_err(|source| StoreError::io("reading the state directory", source))?;
        let number = entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok());
        let Some(number) = number else { return Err(StoreError::corrupt("there is a foreign file among its tables")) };
        match manifest::check(&entry.path(), number) {
            Err(StoreError::Corrupt { .. }) if known.is_some_and(|known| !known.contains(&number)) => {
                fs::remove_dir_all(entry.path()).map_err(growing)?;
            }
            checked => checked?,
        }
        has_list |= number == 0;
    }
    if has_list { Ok(()) } else { Err(StoreError::corrupt("its list of tables is missing")) }
}

/// Makes a state directory: `fill` does so under another name, and only what is complete and synced gets the name.
pub(crate) fn create(dir: &Path, fill: impl FnOnce(&Path) -> Result<(), StoreError>) -> Result<(), StoreError> {
    let io = |source| StoreError::io("making the state directory", source);
    let staging = beside(dir, ".incomplete");
    match fs::remove_dir_all(&staging) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
        _ => {}
    }
    DirBuilder::new().recursive(true).mode(0o700).create(&staging).map_err(io)?;
    fill(&staging)?;
    sync_tree(&staging).map_err(io)?;
    fs::rename(&staging, dir).map_err(io)?;
    // The name itself, and that of the directory around it, which may be as new.
    for parent in dir.ancestors().skip(1).take(2).filter(|parent| !parent.as_os_str().is_empty()) {
        File::open(parent).and_then(|parent| parent.sync_all()).map_err(io)?;
    }
    Ok(())
}

/// Adds tables to a state: `add` does so, and returns with all of them made. The engine makes a table file by file; the note
/// beside the state says which tables were there before, so that after a crash what is half made can be told from damage.
pub(crate) fn grow<T>(dir: &Path, add: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let mut known = String::new();
    for entry in fs::read_dir(dir.join("keyspaces")).map_err(growing)? {
        known.push_str(&entry.map_err(growing)?.file_name().to_string_lossy());
        known.push('\n');
    }
    let note = beside(dir, ".growing");
    let draft = beside(dir, ".growing.incomplete");
    fs::write(&draft, known).and_then(|()| File::open(&draft)?.sync_all()).map_err(growing)?;
    fs::rename(&draft, &note).and_then(|()| sync_parent(dir)).map_err(growing)?;
    let added = add()?;
    sync_tree(dir).map_err(growing)?;
    end_growing(dir)?;
    Ok(added)
}

/// The tables there were before an addition that was interrupted; none when none was.
fn tables_before_growing(dir: &Path) -> Result<Option<BTreeSet<u64>>, StoreError> {
    match read_regular(&beside(dir, ".growing"), Links::Refused, MAX_NOTE_BYTES) {
        Ok(known) => {
            let known = String::from_utf8_lossy(&known);
            Ok(Some(known.lines().filter_map(|line| line.parse().ok()).collect()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(growing(error)),
    }
}

/// Durable, because with the note a table that is damaged later would be taken for a half-made one.
fn end_growing(dir: &Path) -> Result<(), StoreError> {
    fs::remove_file(beside(dir, ".growing")).and_then(|()| sync_parent(dir)).map_err(growing)
}

fn growing(source: io::Error) -> StoreError {
    StoreError::io("adding tables to the state", source)
}

pub(crate) fn sync_parent(dir: &Path) -> io::Result<()> {
    match dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => File::open(parent)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

pub(crate) fn beside(dir: &Path, suffix: &str) -> PathBuf {
    let mut name = dir.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    dir.with_file_name(name)
}

/// The engine syncs its files but not every directory that names them. While it runs it removes files it has replaced, so an
/// entry that is gone by now needs no sync.
fn sync_tree(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        let synced = match entry.file_type() {
            Ok(kind) if kind.is_dir() => sync_tree(&path),
            _ => File::open(&path).and_then(|file| file.sync_all()),
        };
        match synced {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            synced => synced?,
        }
    }
    File::open(dir)?.sync_all()
}

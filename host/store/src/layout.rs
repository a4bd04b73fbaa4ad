//! The state directory: created completely or not at all, and checked before the engine may touch it.
//!
//! The engine repairs an apparently interrupted creation by deleting: without the file `current` of a table it drops
//! the table, without its list of tables it drops them all, without a journal it begins a new one. Here a complete
//! state directory appears under its name by one rename, so anything missing later is damage, and is refused with
//! everything left in place. A table that a later version adds is noted next to the state while it is created.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read as _, Seek as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use tempfile::TempDir;

use crate::{Links, StoreError, first_special, journal, manifest, read_regular};

/// A directory in memory, where there is one.
pub(crate) const MEMORY: &str = "/dev/shm";
/// The beginning of the names of new states there.
pub(crate) const IN_MEMORY: &str = "motor-state-";
/// The age at which a state there is one of a killed process: a living one has finished it within seconds.
pub(crate) const MAX_AGE_IN_MEMORY: Duration = Duration::from_secs(60 * 60);
/// Size limit of the note of tables, which has a few digits for each.
const MAX_NOTE_BYTES: u64 = 4 << 10;

/// The kind of directory that [`prepare`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FoundLayout {
    /// A state directory that looks complete.
    State,
    /// No state directory exists yet.
    Nothing,
}

/// Checks `dir` without changing it, except for a torn, unacknowledged write at the journal's end.
pub(crate) fn prepare(dir: &Path) -> Result<FoundLayout, StoreError> {
    let io = |source| StoreError::io("reading the state directory", source);
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FoundLayout::Nothing),
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
        return Ok(FoundLayout::Nothing);
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
    Ok(FoundLayout::State)
}

/// The engine opens each file by its name: a pipe would block it, and a device never ends.
fn check_kinds(dir: &Path) -> Result<(), StoreError> {
    let special = first_special(dir, u64::MAX, Links::Refused)
        .map_err(|source| StoreError::io("reading the state directory", source))?;
    special.map_or(Ok(()), |(path, kind)| {
        let name = path.strip_prefix(dir.parent().unwrap_or(dir)).unwrap_or(&path);
        Err(StoreError::corrupt(format!("`{}` is {kind}, not a regular file", name.display())))
    })
}

/// `known` are the tables that existed before an interrupted addition of others: an incomplete table not among them was
/// never used, and is removed.
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

/// Creates a state directory: `fill` does so under another name, and the name is given only to a complete and synced
/// directory.
pub(crate) fn create(dir: &Path, fill: impl Fn(&Path) -> Result<(), StoreError>) -> Result<(), StoreError> {
    let io = |source| StoreError::io("making the state directory", source);
    let staging = beside(dir, ".incomplete");
    match fs::remove_dir_all(&staging) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
        _ => {}
    }
    DirBuilder::new().recursive(true).mode(0o700).create(&staging).map_err(io)?;
    match filled_in_memory(&fill) {
        Some(filled) => copy_tree(filled.path(), &staging).map_err(io)?,
        None => fill(&staging)?,
    }
    sync_tree(&staging).map_err(io)?;
    fs::rename(&staging, dir).map_err(io)?;
    // Syncs the name itself, and that of the parent directory, which may be just as new.
    for parent in dir.ancestors().skip(1).take(2).filter(|parent| !parent.as_os_str().is_empty()) {
        File::open(parent).and_then(|parent| parent.sync_all()).map_err(io)?;
    }
    Ok(())
}

/// A new state in memory, on systems that have such a directory: the engine syncs hundreds of times while it makes one, and a disk
/// takes up to milliseconds for each. The copy on the disk is synced once, when all of it is there.
fn filled_in_memory(fill: impl Fn(&Path) -> Result<(), StoreError>) -> Option<TempDir> {
    let owner_only = Permissions::from_mode(0o700);
    let directory = tempfile::Builder::new().prefix(IN_MEMORY).permissions(owner_only).tempdir_in(MEMORY).ok()?;
    // The time by the clock that stamps files.
    remove_leftovers(directory.path().metadata().and_then(|made| made.modified()).ok()?);
    fill(directory.path()).ok()?;
    Some(directory)
}

/// Removes the states in memory of processes that were killed while they made them.
pub(crate) fn remove_leftovers(now: SystemTime) {
    for entry in fs::read_dir(MEMORY).into_iter().flatten().flatten() {
        let age =
            entry.metadata().and_then(|found| found.modified()).ok().and_then(|time| now.duration_since(time).ok());
        let is_state = entry.file_name().as_encoded_bytes().starts_with(IN_MEMORY.as_bytes());
        if is_state && age.is_some_and(|age| age > MAX_AGE_IN_MEMORY) {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

pub(crate) fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let copy = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir(&copy)?;
            copy_tree(&entry.path(), &copy)?;
        } else {
            copy_file(&entry.path(), &copy)?;
        }
    }
    Ok(())
}

/// Copies a file without its holes: the engine reserves 64 MiB for a journal, and `fs::copy` would write them.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let (mut from, mut to) = (File::open(from)?, File::create_new(to)?);
    let mut at = 0;
    loop {
        at = match seek(&from, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => return to.set_len(from.metadata()?.len()),
            Err(error) => return Err(error.into()),
        };
        let hole = seek(&from, SeekFrom::Hole(at))?;
        from.seek(io::SeekFrom::Start(at))?;
        to.seek(io::SeekFrom::Start(at))?;
        io::copy(&mut from.by_ref().take(hole.saturating_sub(at)), &mut to)?;
        at = hole;
    }
}

/// Adds tables to a state: `add` does so, and returns after creating all of them. The engine creates a table file by
/// file; a note next to the state lists the earlier tables, so that after a crash an incomplete table is distinguished
/// from a damaged one.
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

/// The tables before an interrupted addition; `None` if there was no such interruption.
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

/// Durable, because with the note a table that is damaged later would be taken for an incomplete one.
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

/// The engine syncs its files but not every directory that names them. While it runs it removes files it has replaced,
/// so a vanished entry needs no sync.
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

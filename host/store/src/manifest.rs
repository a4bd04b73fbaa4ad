//! Checks the list of files of a table before the engine reads it. It must not know the content of the list.
//!
//! The engine stores a checksum of each list and does not compare it. It would trust a damaged list: leave out table
//! files, and with them records, or panic where unwinding ends the process.

use std::fs;
use std::io;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use crate::StoreError;

/// Checks the table in `dir`: its file `current` holds the number of the current list (eight bytes), the checksum of
/// that list (sixteen), both little-endian, and a zero for the kind of checksum; the list is the file `v<number>`. The
/// table files are in the directory `tables`.
pub(crate) fn check(dir: &Path, table: u64) -> Result<(), StoreError> {
    let damaged = || StoreError::corrupt(format!("its table `keyspaces/{table}` is incomplete or damaged"));
    let read = |name: &str| match fs::read(dir.join(name)) {
        Ok(bytes) => Ok(bytes),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => Err(damaged()),
            _ => Err(StoreError::io("reading the state directory", error)),
        },
    };
    let current = read("current")?;
    let Some((number, rest)) = current.split_first_chunk() else { return Err(damaged()) };
    let Some((checksum, [0])) = rest.split_first_chunk() else { return Err(damaged()) };
    let list = read(&format!("v{}", u64::from_le_bytes(*number)))?;
    // The engine asserts that table files are not directories; an empty directory may be lost in a copy.
    let entries = match fs::read_dir(dir.join("tables")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        entries => Some(entries.map_err(|_| damaged())?),
    };
    let is_file =
        |entry: io::Result<fs::DirEntry>| entry.and_then(|entry| entry.file_type()).is_ok_and(|kind| kind.is_file());
    if entries.into_iter().flatten().all(is_file) && xxh3_128(&list) == u128::from_le_bytes(*checksum) {
        Ok(())
    } else {
        Err(damaged())
    }
}

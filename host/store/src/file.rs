//! Small files next to the state: complete or absent, readable by their owner only. Existing files are replaced only on
//! request.
//!
//! They are here because no other crate may sync a file that state depends on.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::StoreError;

/// The result of creating a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creation {
    /// The file was created and is durable.
    Created,
    /// A file of that name existed already and was left as it is.
    Existed,
}

/// Creates the file `name` in `dir`, which is created if it is missing. Durable when this returns.
///
/// # Errors
/// [`StoreError::Full`] or [`StoreError::Io`] if the disk fails.
pub fn create_file(dir: &Path, name: &str, content: &[u8]) -> Result<Creation, StoreError> {
    write(dir, name, content).map_err(|source| StoreError::io("making a file of the home", source))
}

/// Writes `content` to the file `name` in `dir`, replacing an existing file. After a crash the file is the old or the
/// new one. Durable when this returns.
///
/// # Errors
/// [`StoreError::Full`] or [`StoreError::Io`] if the disk fails.
pub fn replace_file(dir: &Path, name: &str, content: &[u8]) -> Result<(), StoreError> {
    replace(dir, name, content).map_err(|source| StoreError::io("replacing a file of the home", source))
}

/// Makes the content of an open file, or the entries of an open directory, durable.
///
/// # Errors
/// [`StoreError::Full`] or [`StoreError::Io`] if the disk fails.
pub fn sync(file: &File) -> Result<(), StoreError> {
    file.sync_all().map_err(|source| StoreError::io("syncing a file of the home", source))
}

fn replace(dir: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let draft = draft(dir, name, content)?;
    if let Err(error) = fs::rename(&draft, dir.join(name)) {
        fs::remove_file(&draft)?;
        return Err(error);
    }
    File::open(dir)?.sync_all()
}

/// Writes `content` to a draft in the same directory.
fn draft(dir: &Path, name: &str, content: &[u8]) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let draft = dir.join(format!(".{name}.incomplete"));
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    if let Err(error) = file.write_all(content).and_then(|()| file.sync_all()) {
        fs::remove_file(&draft)?;
        return Err(error);
    }
    Ok(draft)
}

fn write(dir: &Path, name: &str, content: &[u8]) -> io::Result<Creation> {
    let draft = draft(dir, name, content)?;
    // Unlike a rename, a link does not replace an existing file.
    let linked = fs::hard_link(&draft, dir.join(name));
    fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(Creation::Existed),
        linked => linked?,
    }
    File::open(dir)?.sync_all()?;
    Ok(Creation::Created)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_made_once_and_for_its_owner() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("config");
        fs::create_dir(&dir).unwrap();
        // The leftover of a crash.
        fs::write(dir.join(".key.incomplete"), "half").unwrap();
        assert_eq!(create_file(&dir, "key", b"one").unwrap(), Creation::Created);
        assert_eq!(create_file(&dir, "key", b"two").unwrap(), Creation::Existed);
        assert_eq!(fs::read(dir.join("key")).unwrap(), b"one");
        assert_eq!(fs::metadata(dir.join("key")).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        assert!(create_file(&dir.join("key"), "x", b"").is_err());
    }

    #[test]
    fn a_file_is_replaced_only_where_that_is_asked_for() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("config");
        replace_file(&dir, "token", b"one").unwrap();
        fs::set_permissions(dir.join("token"), fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(dir.join(".token.incomplete"), "half").unwrap();
        replace_file(&dir, "token", b"two").unwrap();
        assert_eq!(fs::read(dir.join("token")).unwrap(), b"two");
        assert_eq!(fs::metadata(dir.join("token")).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        // A directory of that name stays, and no draft is left.
        fs::create_dir(dir.join("taken")).unwrap();
        assert!(replace_file(&dir, "taken", b"x").is_err());
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 2);
    }
}

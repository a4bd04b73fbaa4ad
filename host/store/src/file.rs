//! A small file that is written once: there as a whole or not at all, never replaced, for its owner's eyes only.
//!
//! It is here because nobody else may sync a file that state depends on.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::StoreError;

/// What became of a file that was to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creation {
    /// It is there, and durable.
    Created,
    /// There was one of that name already, which was left as it is.
    Existed,
}

/// Makes the file `name` in `dir`, which is made when it is missing. Durable when this returns.
///
/// # Errors
/// [`StoreError::Full`] or [`StoreError::Io`] when the disk fails.
pub fn create_file(dir: &Path, name: &str, content: &[u8]) -> Result<Creation, StoreError> {
    write(dir, name, content).map_err(|source| StoreError::io("making a file of the home", source))
}

fn write(dir: &Path, name: &str, content: &[u8]) -> io::Result<Creation> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let draft = dir.join(format!(".{name}.incomplete"));
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    // Unlike a rename, a link does not replace what is there.
    let linked = written.and_then(|()| fs::hard_link(&draft, dir.join(name)));
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
        // What a crash leaves.
        fs::write(dir.join(".key.incomplete"), "half").unwrap();
        assert_eq!(create_file(&dir, "key", b"one").unwrap(), Creation::Created);
        assert_eq!(create_file(&dir, "key", b"two").unwrap(), Creation::Existed);
        assert_eq!(fs::read(dir.join("key")).unwrap(), b"one");
        assert_eq!(fs::metadata(dir.join("key")).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        assert!(create_file(&dir.join("key"), "x", b"").is_err());
    }
}

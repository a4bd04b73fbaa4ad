//! The lock of a home: one host owns it (SPEC CONF-4). The kernel releases it when the owner dies for any reason.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::StoreError;
use crate::regular::{Links, check, flags};

/// The locked file in the home. It is never removed: otherwise two hosts could lock two files of one name.
const LOCK_FILE: &str = "host.lock";

/// Owns a home until it is dropped.
#[derive(Debug)]
pub struct HomeLock {
    file: File,
}

impl HomeLock {
    /// Locks the home at `home`, which is created if it is missing, readable by its owner only.
    ///
    /// # Errors
    /// [`StoreError::HomeInUse`] if another host owns it; [`StoreError::Io`] if the directory cannot be used.
    pub fn acquire(home: &Path) -> Result<Self, StoreError> {
        let io = |source| StoreError::io("locking the home", source);
        DirBuilder::new().recursive(true).mode(0o700).create(home).map_err(io)?;
        let mut options = OpenOptions::new();
        // Not truncated: until the lock is held the content is the owner's.
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags(Links::Refused));
        let locking = |source| StoreError::io("opening `host.lock` of the home", source);
        let path = home.join(LOCK_FILE);
        // An existing file is checked before it is opened: a link is not followed, and a device not touched.
        if let Ok(found) = path.symlink_metadata() {
            check(found.file_type()).map_err(locking)?;
        }
        let mut file = options.open(path).map_err(locking)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::HomeInUse { owner_pid: read_pid(&mut file) }),
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        // The process id only informs a refused host; a full disk must not keep a host from starting.
        file.set_len(0).and_then(|()| file.write_all(std::process::id().to_string().as_bytes())).ok();
        Ok(Self { file })
    }
}

impl Drop for HomeLock {
    fn drop(&mut self) {
        // A leftover process id would be shown as the owner's in the instant before the next owner writes its own.
        // Closing the file releases the lock whether or not this works.
        self.file.set_len(0).ok();
    }
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(16).read_to_string(&mut text).ok()?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_owner_at_a_time() {
        let home = tempfile::tempdir().unwrap();
        let nested = home.path().join("a/b");
        let lock = HomeLock::acquire(&nested).unwrap();
        for _ in 0..2 {
            match HomeLock::acquire(&nested) {
                Err(StoreError::HomeInUse { owner_pid }) => assert_eq!(owner_pid, Some(std::process::id())),
                other => panic!("{other:?}"),
            }
        }
        drop(lock);
        HomeLock::acquire(&nested).unwrap();
    }

    #[test]
    fn a_lock_file_of_any_content_is_taken_over() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(LOCK_FILE), [0xff; 100]).unwrap();
        let _lock = HomeLock::acquire(home.path()).unwrap();
        let text = std::fs::read_to_string(home.path().join(LOCK_FILE)).unwrap();
        assert_eq!(text, std::process::id().to_string());
    }

    #[test]
    fn a_lock_that_is_a_link_is_refused_and_its_target_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let precious = home.path().join("precious");
        std::fs::write(&precious, "content").unwrap();
        std::os::unix::fs::symlink(&precious, home.path().join(LOCK_FILE)).unwrap();
        let error = HomeLock::acquire(home.path()).unwrap_err();
        assert!(std::error::Error::source(&error).unwrap().to_string().contains("a symbolic link"), "{error}");
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "content");
    }

    #[test]
    fn a_home_that_cannot_be_made_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("file"), "").unwrap();
        assert!(matches!(HomeLock::acquire(&home.path().join("file/home")), Err(StoreError::Io { .. })));
    }
}

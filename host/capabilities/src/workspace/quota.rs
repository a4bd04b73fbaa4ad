//! The amount that a call may write into the workspace.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use wasmtime_wasi::p2::{DynOutputStream, OutputStream, Pollable, StreamError};

use crate::limit::CallCounter;
use crate::{Limit, LimitExceeded};

/// The usage of a directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuotaUsage {
    /// Total size of its files in bytes.
    pub bytes: u64,
    /// Number of files and directories below it.
    pub files: u64,
}

impl QuotaUsage {
    /// Measures the entries below `directory`. `None` if there are more than `most_files`, or if an entry cannot be
    /// measured: a path that is too long for the host, a directory that may not be read.
    #[must_use]
    pub fn of(directory: &Path, most_files: u64) -> Option<Self> {
        let mut usage = Self::default();
        let mut pending = vec![directory.to_owned()];
        while let Some(directory) = pending.pop() {
            for entry in std::fs::read_dir(&directory).ok()? {
                let entry = entry.ok()?;
                usage.files += 1;
                if usage.files > most_files {
                    return None;
                }
                // Metadata of the entry itself: a symlink is never followed.
                let metadata = entry.metadata().ok()?;
                if metadata.is_dir() {
                    pending.push(entry.path());
                } else {
                    usage.bytes = usage.bytes.checked_add(metadata.len())?;
                }
            }
        }
        Some(usage)
    }
}

/// A limit on bytes and files below a directory. The default allows nothing.
#[derive(Debug, Clone, Default)]
pub struct Quota {
    state: Arc<Mutex<QuotaState>>,
}

#[derive(Debug, Default)]
struct QuotaState {
    directory: PathBuf,
    most: QuotaUsage,
    /// Measured when the call first writes: most calls only read, and measuring walks the directory.
    budgets: Option<(CallCounter, CallCounter)>,
}

impl Quota {
    /// Allows at most `most` below `directory`.
    #[must_use]
    pub fn new(directory: &Path, most: QuotaUsage) -> Self {
        Self { state: Arc::new(Mutex::new(QuotaState { directory: directory.to_owned(), most, budgets: None })) }
    }

    pub(super) fn spend_bytes(&self, bytes: u64) -> Result<(), LimitExceeded> {
        self.with_budgets(|budgets| budgets.0.spend(bytes))
    }

    pub(super) fn spend_file(&self) -> Result<(), LimitExceeded> {
        self.with_budgets(|budgets| budgets.1.spend(1))
    }

    pub(super) fn meter(&self, inner: DynOutputStream) -> MeteredStream {
        MeteredStream { inner, quota: self.clone() }
    }

    fn with_budgets<T>(
        &self,
        use_them: impl FnOnce(&mut (CallCounter, CallCounter)) -> Result<T, LimitExceeded>,
    ) -> Result<T, LimitExceeded> {
        let mut state = self.state.lock();
        let QuotaState { directory, most, budgets } = &mut *state;
        let budgets = budgets.get_or_insert_with(|| {
            let used = QuotaUsage::of(directory, most.files);
            let mut bytes = CallCounter::new(Limit::WorkspaceBytes, most.bytes);
            let mut files = CallCounter::new(Limit::WorkspaceFiles, most.files);
            // A directory that is over its quota, or cannot be measured, leaves empty budgets: the next write is
            // refused.
            bytes.spend(used.map_or(u64::MAX, |used| used.bytes)).ok();
            files.spend(used.map_or(u64::MAX, |used| used.files)).ok();
            (bytes, files)
        });
        use_them(budgets)
    }
}

/// A stream whose bytes count against a quota.
pub(super) struct MeteredStream {
    inner: DynOutputStream,
    quota: Quota,
}

#[wasmtime_wasi::async_trait]
impl OutputStream for MeteredStream {
    fn write(&mut self, bytes: bytes::Bytes) -> Result<(), StreamError> {
        self.quota.spend_bytes(bytes.len() as u64).map_err(|error| StreamError::Trap(error.into()))?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> Result<(), StreamError> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> Result<usize, StreamError> {
        self.inner.check_write()
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for MeteredStream {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_is_there_and_what_comes() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("sub")).unwrap();
        std::fs::write(directory.path().join("sub/file"), [0; 60]).unwrap();
        assert_eq!(QuotaUsage::of(directory.path(), 100), Some(QuotaUsage { bytes: 60, files: 2 }));

        let quota = Quota::new(directory.path(), QuotaUsage { bytes: 100, files: 3 });
        quota.spend_bytes(40).unwrap();
        assert_eq!(quota.spend_bytes(1).unwrap_err().limit, Limit::WorkspaceBytes);
        quota.spend_file().unwrap();
        assert_eq!(quota.spend_file().unwrap_err().limit, Limit::WorkspaceFiles);
    }

    #[test]
    fn a_full_directory_takes_nothing_more() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("file"), [0; 60]).unwrap();
        let quota = Quota::new(directory.path(), QuotaUsage { bytes: 10, files: 0 });
        assert!(quota.spend_bytes(1).is_err());
        assert!(quota.spend_file().is_err());
        assert!(Quota::default().spend_bytes(1).is_err());
    }

    #[test]
    fn what_cannot_be_measured_takes_nothing_more() {
        let directory = tempfile::tempdir().unwrap();
        let quota = Quota::new(&directory.path().join("missing"), QuotaUsage { bytes: 100, files: 100 });
        assert_eq!(quota.spend_bytes(1).unwrap_err().limit, Limit::WorkspaceBytes);
        assert_eq!(quota.spend_file().unwrap_err().limit, Limit::WorkspaceFiles);
    }
}

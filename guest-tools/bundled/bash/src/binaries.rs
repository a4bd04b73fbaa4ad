//! `/bin` and `/usr/bin`: one small file for each command, so that `/bin/cat`, `#!/usr/bin/env bash` and
//! `which jq` work. A file only names its command: the interpreter looks that up like any other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bashkit::time::SystemTime;
use bashkit::{DirEntry, FileType, FsBackend, Metadata, Result, async_trait};

use crate::workspace::fault;

/// The directory of commands: it is read, never written.
#[derive(Debug, Clone)]
pub(crate) struct Binaries {
    names: Arc<[&'static str]>,
    /// The time of all files: the begin of the call.
    time: SystemTime,
}

impl Binaries {
    pub(crate) fn new(names: impl Iterator<Item = &'static str>, time: SystemTime) -> Self {
        Self { names: names.collect(), time }
    }

    fn find(&self, path: &Path) -> Option<&'static str> {
        let wanted = path.to_str()?.trim_start_matches('/');
        self.names.iter().copied().find(|name| *name == wanted)
    }

    fn metadata(&self, file_type: FileType, size: u64) -> Metadata {
        Metadata { file_type, size, mode: 0o755, modified: self.time, created: self.time }
    }
}

/// The form in which the interpreter knows such a file.
fn stub(name: &str) -> Vec<u8> {
    format!("#!/bin/sh\n# bashkit builtin: {name}\nexec {name} \"$@\"\n").into_bytes()
}

fn read_only<T>() -> Result<T> {
    Err(fault(std::io::ErrorKind::PermissionDenied, "Permission denied"))
}

fn missing<T>() -> Result<T> {
    Err(fault(std::io::ErrorKind::NotFound, "No such file or directory"))
}

#[async_trait]
impl FsBackend for Binaries {
    async fn read(&self, path: &Path) -> Result<Vec<u8>> {
        self.find(path).map_or_else(missing, |name| Ok(stub(name)))
    }

    async fn write(&self, _path: &Path, _content: &[u8]) -> Result<()> {
        read_only()
    }

    async fn append(&self, _path: &Path, _content: &[u8]) -> Result<()> {
        read_only()
    }

    async fn mkdir(&self, _path: &Path, _recursive: bool) -> Result<()> {
        read_only()
    }

    async fn remove(&self, _path: &Path, _recursive: bool) -> Result<()> {
        read_only()
    }

    async fn stat(&self, path: &Path) -> Result<Metadata> {
        if path == Path::new("/") {
            return Ok(self.metadata(FileType::Directory, 0));
        }
        let size = |name: &str| u64::try_from(stub(name).len()).unwrap_or_default();
        self.find(path).map_or_else(missing, |name| Ok(self.metadata(FileType::File, size(name))))
    }

    async fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        if path != Path::new("/") {
            return missing();
        }
        let entry = |name: &&str| DirEntry { name: (*name).to_owned(), metadata: self.metadata(FileType::File, 0) };
        Ok(self.names.iter().map(entry).collect())
    }

    async fn exists(&self, path: &Path) -> Result<bool> {
        Ok(path == Path::new("/") || self.find(path).is_some())
    }

    async fn rename(&self, _from: &Path, _to: &Path) -> Result<()> {
        read_only()
    }

    async fn copy(&self, _from: &Path, _to: &Path) -> Result<()> {
        read_only()
    }

    async fn symlink(&self, _target: &Path, _link: &Path) -> Result<()> {
        read_only()
    }

    async fn read_link(&self, _path: &Path) -> Result<PathBuf> {
        missing()
    }

    async fn chmod(&self, _path: &Path, _mode: u32) -> Result<()> {
        read_only()
    }
}

//! The file system of a call: `/workspace` is real, `/tmp` and `/dev` are in memory, `/bin` names the commands, and
//! there is nothing else.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bashkit::time::SystemTime;
use bashkit::{
    DirEntry, FileSystem, FileSystemExt, FsLimits, FsUsage, InMemoryFs, Metadata, MountableFs, PosixFs, Result,
    async_trait,
};

use crate::binaries::Binaries;
use crate::limits;
use crate::workspace::{Workspace, fault};

/// Where in memory a script may write: elsewhere its files would be gone without a word.
const WRITABLE: [&str; 2] = ["/tmp", "/dev"];

/// The directories in memory that are shown; the others are not.
const SHOWN: [&str; 3] = ["/", "/tmp", "/dev"];

/// Puts the file system together.
pub(crate) fn file_system(workspace: Workspace, binaries: &Binaries) -> Result<Arc<dyn FileSystem>> {
    let mounts = MountableFs::new(Arc::new(Memory { inner: InMemoryFs::with_limits(limits::temporary()) }));
    mounts.mount(crate::ROOT, Arc::new(PosixFs::new(workspace)))?;
    mounts.mount("/bin", Arc::new(PosixFs::new(binaries.clone())))?;
    mounts.mount("/usr/bin", Arc::new(PosixFs::new(binaries.clone())))?;
    Ok(Arc::new(mounts))
}

/// The files in memory, for the time of a call.
struct Memory {
    inner: InMemoryFs,
}

impl Memory {
    fn shown(path: &Path) -> Result<()> {
        let known = SHOWN.iter().any(|shown| path == Path::new(shown))
            || WRITABLE.iter().any(|writable| path.starts_with(writable));
        if known {
            return Ok(());
        }
        Err(fault(ErrorKind::NotFound, "No such file or directory: a script sees `/workspace` and `/tmp` only"))
    }

    fn writable(path: &Path) -> Result<()> {
        if WRITABLE.iter().any(|writable| path.starts_with(writable)) {
            return Ok(());
        }
        Err(fault(ErrorKind::PermissionDenied, "Permission denied: write in `/workspace` or `/tmp`"))
    }
}

#[async_trait]
impl FileSystem for Memory {
    async fn read_file(&self, path: &Path) -> Result<Vec<u8>> {
        Self::shown(path)?;
        self.inner.read_file(path).await
    }

    async fn write_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        Self::writable(path)?;
        self.inner.write_file(path, content).await
    }

    async fn append_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        Self::writable(path)?;
        self.inner.append_file(path, content).await
    }

    async fn mkdir(&self, path: &Path, recursive: bool) -> Result<()> {
        if recursive && SHOWN.iter().any(|shown| path == Path::new(shown)) {
            return Ok(());
        }
        Self::writable(path)?;
        self.inner.mkdir(path, recursive).await
    }

    async fn remove(&self, path: &Path, recursive: bool) -> Result<()> {
        Self::writable(path)?;
        self.inner.remove(path, recursive).await
    }

    async fn stat(&self, path: &Path) -> Result<Metadata> {
        Self::shown(path)?;
        self.inner.stat(path).await
    }

    async fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        Self::shown(path)?;
        let mut entries = self.inner.read_dir(path).await?;
        entries.retain(|entry| Self::shown(&path.join(&entry.name)).is_ok());
        Ok(entries)
    }

    async fn exists(&self, path: &Path) -> Result<bool> {
        Ok(Self::shown(path).is_ok() && self.inner.exists(path).await?)
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        Self::writable(from)?;
        Self::writable(to)?;
        self.inner.rename(from, to).await
    }

    async fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        Self::shown(from)?;
        Self::writable(to)?;
        self.inner.copy(from, to).await
    }

    async fn symlink(&self, target: &Path, link: &Path) -> Result<()> {
        Self::writable(link)?;
        self.inner.symlink(target, link).await
    }

    async fn read_link(&self, path: &Path) -> Result<PathBuf> {
        Self::shown(path)?;
        self.inner.read_link(path).await
    }

    async fn chmod(&self, path: &Path, mode: u32) -> Result<()> {
        Self::writable(path)?;
        self.inner.chmod(path, mode).await
    }

    async fn set_modified_time(&self, path: &Path, time: SystemTime) -> Result<()> {
        Self::writable(path)?;
        self.inner.set_modified_time(path, time).await
    }
}

#[async_trait]
impl FileSystemExt for Memory {
    fn usage(&self) -> FsUsage {
        self.inner.usage()
    }

    /// The files in memory have limits of their own. These are the interpreter's, which cuts the matches of a pattern
    /// short at its number of files, without a word.
    fn limits(&self) -> FsLimits {
        FsLimits { max_file_count: limits::MATCHES, ..self.inner.limits() }
    }

    async fn mkfifo(&self, path: &Path, mode: u32) -> Result<()> {
        Self::writable(path)?;
        self.inner.mkfifo(path, mode).await
    }
}

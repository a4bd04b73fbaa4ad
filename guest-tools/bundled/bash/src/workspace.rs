//! `/workspace` as the interpreter sees it: the directory that the host opened, through the standard library.
//!
//! It must not know where that directory is outside. It survives symbolic links, which are never followed here: an
//! operation whose path passes through one fails, and the interpreter then resolves the link among the paths that a
//! script can name, so no link leads out; and files too big for memory, which are refused before they are read.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{Error as IoError, ErrorKind, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bashkit::time::SystemTime;
use bashkit::{DirEntry, FileType, FsBackend, Metadata, Result, async_trait};
use direct::{Facts, Kind};

use crate::limits::READ_BYTES;

/// The directory of the host, where it puts output that was too long (SPEC RUN-9).
pub(crate) const HOST_DIRECTORY: &str = ".motor-output";

/// Directories that are remembered to be no links: most trees have fewer.
const MAX_PLAIN: usize = 10_000;

/// An error as commands print it.
pub(crate) fn fault(kind: ErrorKind, message: impl Into<String>) -> bashkit::Error {
    IoError::new(kind, message.into()).into()
}

/// The workspace. Paths are those below `/workspace`, absolute and without `.` and `..`.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
    /// The modes set by `chmod`, for the time of this call: the sandbox's file systems know no permissions.
    modes: Modes,
    /// Directories that were found to be no links. A script cannot make links, only move them.
    plain: Mutex<HashSet<OsString>>,
}

/// The modes set by `chmod`, by path below `/workspace`.
pub(crate) type Modes = Arc<Mutex<BTreeMap<PathBuf, u32>>>;

impl Workspace {
    pub(crate) fn at(root: impl Into<PathBuf>, modes: Modes) -> Self {
        Self { root: root.into(), modes, plain: Mutex::default() }
    }

    /// Where a path is for the standard library.
    ///
    /// # Errors
    /// If it passes through a symbolic link.
    fn place(&self, path: &Path) -> Result<PathBuf> {
        let mut place = self.root.clone();
        let mut names = path.components().filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            _ => None,
        });
        let Some(mut name) = names.next() else { return Ok(place) };
        let mut plain = self.plain();
        for next in names {
            place.push(name);
            name = next;
            if plain.contains(place.as_os_str()) {
                continue;
            }
            match direct::facts(&place) {
                Ok(facts) if facts.kind == Kind::Link => {
                    return Err(fault(ErrorKind::NotFound, "No such file or directory"));
                }
                Ok(_) if plain.len() < MAX_PLAIN => {
                    plain.insert(place.clone().into_os_string());
                }
                _ => {}
            }
        }
        place.push(name);
        Ok(place)
    }

    /// The place of a path that is to be changed.
    fn writable(&self, path: &Path) -> Result<PathBuf> {
        match path.components().find(|component| *component != Component::RootDir) {
            None => Err(fault(ErrorKind::ResourceBusy, "Device or resource busy")),
            Some(Component::Normal(name)) if name == HOST_DIRECTORY => Err(fault(
                ErrorKind::PermissionDenied,
                format!("`{HOST_DIRECTORY}` belongs to the host and can only be read"),
            )),
            Some(_) => self.place(path),
        }
    }

    fn plain(&self) -> MutexGuard<'_, HashSet<OsString>> {
        self.plain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn modes(&self) -> MutexGuard<'_, BTreeMap<PathBuf, u32>> {
        self.modes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn metadata(&self, path: &Path, facts: &Facts) -> Metadata {
        let (file_type, mode) = match facts.kind {
            Kind::Directory => (FileType::Directory, 0o755),
            Kind::Link => (FileType::Symlink, 0o777),
            Kind::File | Kind::Other => (FileType::File, 0o644),
        };
        let modified = facts.modified.unwrap_or(SystemTime::UNIX_EPOCH);
        Metadata {
            file_type,
            size: if facts.kind == Kind::Directory { 0 } else { facts.size },
            mode: self.modes().get(path).copied().unwrap_or(mode),
            modified,
            created: facts.changed.unwrap_or(modified),
        }
    }
}

#[async_trait]
impl FsBackend for Workspace {
    async fn read(&self, path: &Path) -> Result<Vec<u8>> {
        let place = self.place(path)?;
        let Facts { size, kind, .. } = direct::facts(&place)?;
        if kind == Kind::Directory {
            return Err(fault(ErrorKind::IsADirectory, "Is a directory"));
        }
        if size <= READ_BYTES {
            let most = usize::try_from(READ_BYTES).unwrap_or(usize::MAX);
            let bytes = direct::beginning(&place, most.saturating_add(1))?;
            // It may have grown.
            if bytes.len() <= most {
                return Ok(bytes);
            }
        }
        Err(fault(
            ErrorKind::FileTooLarge,
            format!("File too large: {size} bytes, a command here reads at most {READ_BYTES}"),
        ))
    }

    async fn write(&self, path: &Path, content: &[u8]) -> Result<()> {
        let place = self.writable(path)?;
        Ok(fs::write(place, content)?)
    }

    async fn append(&self, path: &Path, content: &[u8]) -> Result<()> {
        let place = self.writable(path)?;
        Ok(OpenOptions::new().append(true).create(true).open(place)?.write_all(content)?)
    }

    async fn mkdir(&self, path: &Path, recursive: bool) -> Result<()> {
        let place = self.writable(path)?;
        let made = if recursive { fs::create_dir_all(place) } else { fs::create_dir(place) };
        Ok(made?)
    }

    async fn remove(&self, path: &Path, recursive: bool) -> Result<()> {
        let place = self.writable(path)?;
        let metadata = fs::symlink_metadata(&place)?;
        match (metadata.is_dir(), recursive) {
            (true, true) => fs::remove_dir_all(place)?,
            (true, false) => fs::remove_dir(place)?,
            (false, _) => fs::remove_file(place)?,
        }
        self.plain().clear();
        self.modes().retain(|known, _| !known.starts_with(path));
        Ok(())
    }

    async fn stat(&self, path: &Path) -> Result<Metadata> {
        Ok(self.metadata(path, &direct::facts(&self.place(path)?)?))
    }

    async fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        let place = self.place(path)?;
        let mut entries = Vec::new();
        for entry in direct::list(&place)? {
            let (name, _) = entry?;
            let metadata = self.metadata(&path.join(&name), &direct::facts(&place.join(&name))?);
            entries.push(DirEntry { name, metadata });
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    async fn exists(&self, path: &Path) -> Result<bool> {
        Ok(direct::facts(&self.place(path)?).is_ok())
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let (source, target) = (self.writable(from)?, self.writable(to)?);
        fs::rename(source, target)?;
        self.plain().clear();
        let mut modes = self.modes();
        modes.retain(|known, _| !known.starts_with(to));
        if let Some(mode) = modes.remove(from) {
            modes.insert(to.to_owned(), mode);
        }
        Ok(())
    }

    async fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let (source, target) = (self.place(from)?, self.writable(to)?);
        if fs::symlink_metadata(&source)?.is_symlink() {
            return Err(no_links());
        }
        fs::copy(source, target)?;
        let mode = self.modes().get(from).copied();
        if let Some(mode) = mode {
            self.modes().insert(to.to_owned(), mode);
        }
        Ok(())
    }

    async fn symlink(&self, _target: &Path, _link: &Path) -> Result<()> {
        Err(no_links())
    }

    async fn read_link(&self, path: &Path) -> Result<PathBuf> {
        Ok(fs::read_link(self.place(path)?)?)
    }

    async fn chmod(&self, path: &Path, mode: u32) -> Result<()> {
        fs::symlink_metadata(self.writable(path)?)?;
        self.modes().insert(path.to_owned(), mode & 0o7777);
        Ok(())
    }

    async fn set_modified_time(&self, path: &Path, time: SystemTime) -> Result<()> {
        let place = self.writable(path)?;
        let directory = fs::symlink_metadata(&place)?.is_dir();
        Ok(OpenOptions::new().read(directory).write(!directory).open(place)?.set_modified(time)?)
    }
}

fn no_links() -> bashkit::Error {
    fault(ErrorKind::PermissionDenied, "links cannot be made in `/workspace`")
}

//! The directories of the owner that a layer lies over, as they were named when the run began.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::{LayerError, Result};
use crate::handles::Handles;
use crate::path;
use crate::rules::Rules;
use crate::tree::{FileKind, Stat, Tree, read_in, stat_in, stat_of};

/// A directory that a run is to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceRequest {
    /// Its path below `/workspace`, one name; empty: it is `/workspace` itself.
    pub prefix: String,
    /// Its absolute path on this machine.
    pub directory: PathBuf,
    /// Whether the run may change it, in its layer.
    pub writable: bool,
    /// Paths in it that the run sees although a rule keeps them out.
    pub shown: Vec<String>,
}

/// A directory that a run sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Source {
    /// Its path below `/workspace`; empty: it is `/workspace` itself.
    pub prefix: String,
    /// Its absolute path on this machine.
    pub directory: PathBuf,
    /// The device that it is on.
    pub device: u64,
    /// Its number there: another directory at the same path is not the same.
    pub inode: u64,
    /// Whether the run may change it, in its layer.
    pub writable: bool,
    /// Paths in it that the run sees although a rule keeps them out.
    pub shown: Vec<String>,
}

/// The content of `sources.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sources {
    /// The version of this form.
    pub version: u32,
    /// Nanoseconds since 1970, by the clock that stamps files.
    began: u64,
    pub sources: Vec<Source>,
}

/// The version of the form of a layer on the disk.
pub const VERSION: u32 = 1;

impl Sources {
    pub fn of(requests: Vec<SourceRequest>, began: SystemTime) -> Result<Self> {
        let sources = requests.into_iter().map(source).collect::<Result<_>>()?;
        let since = began.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self { version: VERSION, began: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX), sources })
    }

    pub fn began(&self) -> SystemTime {
        UNIX_EPOCH.checked_add(Duration::from_nanos(self.began)).unwrap_or(UNIX_EPOCH)
    }
}

fn source(request: SourceRequest) -> Result<Source> {
    let SourceRequest { prefix, directory, writable, shown } = request;
    let found = stat_of(Tree::open(&directory)?.handle())?;
    if found.kind != FileKind::Directory {
        return Err(LayerError::NotDirectory);
    }
    Ok(Source { prefix, directory, device: found.device, inode: found.inode, writable, shown })
}

/// A source with its open directory.
#[derive(Debug)]
pub struct Lower {
    pub source: Source,
    pub tree: Tree,
    pub rules: Rules,
    /// The directories that the call under way has looked into.
    pub handles: Handles,
}

impl Lower {
    /// Opens a source again.
    pub fn open(source: Source) -> Result<Self> {
        let replaced = || LayerError::Replaced(shown(&source.directory));
        let tree = Tree::open(&source.directory).map_err(|_| replaced())?;
        let found = stat_of(tree.handle())?;
        if (found.device, found.inode) != (source.device, source.inode) {
            return Err(replaced());
        }
        let rules = Rules::new(&source.shown);
        Ok(Self { source, tree, rules, handles: Handles::default() })
    }

    /// The rest of a path of the run in this source.
    pub fn below<'a>(&self, at: &'a str) -> Option<&'a str> {
        path::below(at, &self.source.prefix)
    }

    /// The facts of the entry at a path in the source; a link is not followed.
    ///
    /// # Errors
    /// [`Errno::LOOP`] if a part before the last is a link.
    pub fn stat(&self, below: &str) -> Result<Stat, Errno> {
        match path::split(below) {
            Some((above, name)) => stat_in(&self.handles.get(&self.tree, above)?, name),
            None => stat_of(self.tree.handle()),
        }
    }

    /// Opens a file of the source for reading.
    ///
    /// # Errors
    /// As `open` has them.
    pub fn read(&self, below: &str) -> Result<File, Errno> {
        let (above, name) = path::split(below).ok_or(Errno::ISDIR)?;
        read_in(&self.handles.get(&self.tree, above)?, name)
    }
}

fn shown(path: &Path) -> String {
    format!("`{}`", base::text::Foreign(&path.to_string_lossy()).escaped(200))
}

//! One repository: its place, its configuration, and the call that looks at it.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::{ErrorKind, Read as _};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;

use crate::Invocation;
use crate::config::Config;
use crate::error::{Fault, Result};
use crate::index::Index;
use crate::limits::{MAX_PARENT_DIRECTORIES, MAX_SMALL_FILE_BYTES, MAX_TREE_DEPTH};
use crate::network::Network;
use crate::objects::{Budget, Objects};
use crate::refs::Refs;

/// The directory of a repository in its working tree.
const GIT: &str = ".git";

/// An open repository, with its place.
pub(crate) struct Repository {
    /// The top of the working tree, on this machine.
    pub worktree: PathBuf,
    /// The working tree's name for the caller.
    pub shown: PathBuf,
    /// The repository's own directory, on this machine.
    pub git: PathBuf,
    /// The caller's directory in the working tree: empty, or with a `/` at its end.
    pub prefix: BString,
    pub config: Config,
    pub objects: Objects,
    pub refs: Refs,
    pub environment: HashMap<String, String>,
    pub input: Vec<u8>,
    pub now: SystemTime,
    /// Permissions set in the caller's call, by its paths.
    pub modes: BTreeMap<PathBuf, u32>,
    pub network: Option<Network>,
    /// The path at the top of the working tree that belongs to the caller.
    reserved: Option<BString>,
    /// Directories of the working tree that were seen to be no links. Only this call changes them meanwhile.
    pub directories: RefCell<HashSet<BString>>,
    /// Commits whose parents were not cloned.
    pub shallow: OnceCell<HashSet<ObjectId>>,
}

impl Repository {
    /// Finds the repository of the caller's directory.
    pub(crate) fn discover(call: &Invocation) -> Result<Self> {
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"] {
            if call.environment.contains_key(name) {
                return Err(Fault::unsupported(format_args!("the variable {name}; use `git -C DIRECTORY`")));
            }
        }
        let below = below(&call.shown, &call.directory)?;
        for (steps, directory) in below.ancestors().enumerate() {
            if steps > MAX_PARENT_DIRECTORIES {
                break;
            }
            let worktree = call.root.join(directory);
            let git = worktree.join(GIT);
            let Ok(metadata) = fs::symlink_metadata(&git) else { continue };
            if metadata.is_symlink() {
                return Err(Fault::unsupported("`.git` is a symbolic link"));
            }
            if metadata.is_file() {
                return Err(Fault::unsupported(
                    "`.git` is a file: a submodule or a linked working tree, whose repository is elsewhere",
                ));
            }
            if !looks_like_a_repository(&git) {
                continue;
            }
            let shown: PathBuf = call.shown.join(directory).components().collect();
            let within = below.strip_prefix(directory).unwrap_or(Path::new(""));
            let mut prefix = <[u8]>::from_path(within).map(BString::from).unwrap_or_default();
            if !prefix.is_empty() {
                prefix.push(b'/');
            }
            return Self::open(call, worktree, shown, git, prefix);
        }
        Err(Fault::fatal("not a git repository (or any of the parent directories): .git"))
    }

    fn open(call: &Invocation, worktree: PathBuf, shown: PathBuf, git: PathBuf, prefix: BString) -> Result<Self> {
        let config = Config::read(&git)?;
        config.check_format()?;
        if git.join("commondir").exists() {
            return Err(Fault::unsupported("a linked working tree"));
        }
        let at_top = worktree == call.root || worktree == call.root.join("");
        let budget = Rc::new(Budget::until(call.deadline));
        Ok(Self {
            objects: Objects::open(&git, &call.root, &call.shown, budget)?,
            refs: Refs::at(&git),
            worktree,
            shown,
            git,
            prefix,
            config,
            environment: call.environment.clone(),
            input: call.input.clone(),
            now: call.now,
            modes: call.modes.clone(),
            network: call.network.clone(),
            reserved: call.reserved.clone().filter(|_| at_top).map(BString::from),
            directories: RefCell::default(),
            shallow: OnceCell::new(),
        })
    }

    /// The index as it is now.
    pub(crate) fn index(&self) -> Result<Index> {
        Index::read(&self.git.join("index"))
    }

    /// Where a path of the repository is on this machine. Paths of trees and of the index are hostile: one that leads out of
    /// the working tree, or into `.git`, has no place.
    pub(crate) fn place(&self, path: &BStr) -> Result<PathBuf> {
        check_path(path)?;
        if self.is_reserved(path) {
            return Err(Fault::fatal(format_args!("'{path}' belongs to the host")));
        }
        let path =
            path.to_path().map_err(|_| Fault::unsupported(format_args!("`{path}`: a name that is not UTF-8")))?;
        Ok(self.worktree.join(path))
    }

    /// Whether a path is the caller's own, or below.
    pub(crate) fn is_reserved(&self, path: &BStr) -> bool {
        let Some(reserved) = &self.reserved else { return false };
        path.strip_prefix(reserved.as_bytes()).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    }

    /// Whether a directory above the path is a symbolic link (or a file): then the path is not in this working tree.
    pub(crate) fn beyond_link(&self, path: &BStr) -> bool {
        let mut end = 0;
        while let Some(next) = path.get(end..).and_then(|rest| rest.find_byte(b'/')) {
            let stop = end + next;
            let known = path.get(..stop).unwrap_or_default().as_bstr();
            if self.directories.borrow().contains(known) {
                end = stop + 1;
                continue;
            }
            let Ok(parent) = known.to_path() else { return true };
            match fs::symlink_metadata(self.worktree.join(parent)) {
                Ok(metadata) if metadata.is_dir() => {
                    self.directories.borrow_mut().insert(known.to_owned());
                }
                Ok(_) => return true,
                Err(_) => return false,
            }
            end = stop + 1;
        }
        false
    }

    /// Whether the permission to execute is read from files. WASI has no permissions, so the guest trusts the index instead.
    pub(crate) fn trusts_modes(&self) -> bool {
        cfg!(unix) && self.config.boolean("core.fileMode", true)
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str)
    }
}

/// The caller's directory below the workspace.
pub(crate) fn below(shown: &Path, directory: &Path) -> Result<PathBuf> {
    let rest = directory
        .strip_prefix(shown)
        .map_err(|_| Fault::fatal("not a git repository (or any of the parent directories): .git"))?;
    let mut below = PathBuf::new();
    for component in rest.components() {
        match component {
            Component::Normal(name) => below.push(name),
            Component::CurDir => {}
            _ => return Err(Fault::fatal("not a git repository (or any of the parent directories): .git")),
        }
    }
    Ok(below)
}

fn looks_like_a_repository(git: &Path) -> bool {
    let is_directory = |name: &str| fs::symlink_metadata(git.join(name)).is_ok_and(|metadata| metadata.is_dir());
    is_directory("objects")
        && (is_directory("refs") || git.join("packed-refs").is_file())
        && fs::symlink_metadata(git.join("HEAD")).is_ok_and(|metadata| metadata.is_file())
}

/// Refuses paths that a working tree cannot have.
pub(crate) fn check_path(path: &BStr) -> Result<()> {
    let options =
        gix_validate::path::component::Options { protect_windows: false, protect_hfs: true, protect_ntfs: true };
    let mut depth: usize = 0;
    for component in path.split_str("/") {
        depth = depth.saturating_add(1);
        if depth > MAX_TREE_DEPTH {
            return Err(Fault::limit(format_args!("a path has more than {MAX_TREE_DEPTH} directories")));
        }
        if let Err(error) = gix_validate::path::component(component.as_bstr(), None, options) {
            return Err(Fault::fatal(format_args!("invalid path '{}': {error}", crate::quote::name(path))));
        }
        if component.contains(&0) {
            return Err(Fault::fatal("invalid path: it has a zero byte"));
        }
    }
    Ok(())
}

/// Reads a file of limited size; `None` if it does not exist.
pub(crate) fn read_small(place: &Path, most: u64) -> Result<Option<Vec<u8>>> {
    let name = || place.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let metadata = match fs::symlink_metadata(place) {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(Fault::fatal(format_args!("cannot read `{}`: {error}", name()))),
    };
    if !metadata.is_file() {
        return Ok(None);
    }
    if metadata.len() > most {
        return Err(Fault::limit(format_args!(
            "`{}` has {} bytes, and at most {most} are read",
            name(),
            metadata.len()
        )));
    }
    let mut bytes = Vec::new();
    let file =
        fs::File::open(place).map_err(|error| Fault::fatal(format_args!("cannot read `{}`: {error}", name())))?;
    file.take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| Fault::fatal(format_args!("cannot read `{}`: {error}", name())))?;
    Ok(Some(bytes))
}

/// Reads an optional file with patterns or the like.
pub(crate) fn read_patterns(place: &Path) -> Result<Option<Vec<u8>>> {
    read_small(place, MAX_SMALL_FILE_BYTES)
}

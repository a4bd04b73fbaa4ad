//! The working tree: whether files are as the index says, which files it does not know, and writing files there.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::SystemTime;

use bstr::{BStr, BString, ByteSlice as _, ByteVec as _};
use gix_hash::ObjectId;
use gix_object::Kind;

use crate::error::{Fault, Result};
use crate::ignore::Ignored;
use crate::index::{Entry, Index, mode, stat};
use crate::limits::{MAX_FILES, MAX_TREE_DEPTH};
use crate::objects::{HASH, hash};
use crate::pathspec::Pathspec;
use crate::repository::Repository;

/// A file in the working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub mode: u32,
    pub bytes: u64,
    pub modified: Option<SystemTime>,
    /// Whether the permission to execute is known.
    pub mode_known: bool,
}

/// How a file differs from its entry in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Same,
    Deleted,
    /// Another content, mode or type: the mode and content now.
    Changed {
        mode: u32,
        id: ObjectId,
    },
}

/// Looks at a path; `None` when there is no file or link. A directory with a repository of its own is a submodule.
pub(crate) fn look(repository: &Repository, path: &BStr) -> Result<Option<Found>> {
    repository.objects.budget().object()?;
    let place = repository.place(path)?;
    let Ok(metadata) = fs::symlink_metadata(&place) else { return Ok(None) };
    if repository.beyond_link(path) {
        return Ok(None);
    }
    let shown = path.to_path().map(|path| repository.shown.join(path)).unwrap_or_default();
    let known = repository.modes.get(&shown).copied();
    let set = known.unwrap_or(0);
    let mode = if metadata.is_symlink() {
        mode::LINK
    } else if metadata.is_file() {
        if repository.trusts_modes() && executable(&metadata) || set & 0o100 != 0 {
            mode::EXECUTABLE
        } else {
            mode::FILE
        }
    } else if metadata.is_dir() && fs::symlink_metadata(place.join(".git")).is_ok() {
        mode::SUBMODULE
    } else {
        return Ok(None);
    };
    let mode_known = repository.trusts_modes() || known.is_some();
    Ok(Some(Found { mode, bytes: metadata.len(), modified: metadata.modified().ok(), mode_known }))
}

#[cfg(unix)]
fn executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn executable(_metadata: &fs::Metadata) -> bool {
    false
}

/// Compares a file with its entry: by size and time where these tell, else by content.
pub(crate) fn compare(repository: &Repository, index: &Index, entry: &Entry) -> Result<Change> {
    if entry.unwatched {
        return Ok(Change::Same);
    }
    if entry.mode == mode::SUBMODULE {
        return submodule(repository, entry);
    }
    let Some(found) = look(repository, entry.path.as_bstr())? else { return Ok(Change::Deleted) };
    if found.mode == mode::SUBMODULE {
        return Ok(Change::Deleted);
    }
    let mode = mode_of(&found, Some(entry.mode));
    if mode == entry.mode && !entry.intended && fresh(index, entry, &found) {
        return Ok(Change::Same);
    }
    let id = hash_file(repository, entry.path.as_bstr(), &found)?;
    if id == entry.id && mode == entry.mode && !entry.intended {
        return Ok(Change::Same);
    }
    Ok(Change::Changed { mode, id })
}

/// The mode that a file has for the index. Where permissions are not known, the index knows better.
pub(crate) fn mode_of(found: &Found, known: Option<u32>) -> u32 {
    match known {
        Some(known) if mode::is_file(found.mode) && mode::is_file(known) && !found.mode_known => known,
        _ => found.mode,
    }
}

/// Whether size and time show that a file is unchanged.
pub(crate) fn fresh(index: &Index, entry: &Entry, found: &Found) -> bool {
    let now = stat(found.bytes, found.modified);
    // Written in the same moment as the index, a file may have changed after it.
    let racy = match (index.written, found.modified) {
        (Some(written), Some(modified)) => modified >= written,
        _ => true,
    };
    !racy && entry.stat.size == now.size && entry.stat.mtime == now.mtime && entry.stat.mtime.secs != 0
}

/// A submodule is only compared by the commit that its `HEAD` names.
fn submodule(repository: &Repository, entry: &Entry) -> Result<Change> {
    let place = repository.place(entry.path.as_bstr())?;
    match fs::symlink_metadata(&place) {
        Ok(metadata) if metadata.is_dir() => Ok(Change::Same),
        Ok(_) => Ok(Change::Deleted),
        Err(_) => Ok(Change::Deleted),
    }
}

/// The name that a file's content would have as an object. The file is read in pieces.
pub(crate) fn hash_file(repository: &Repository, path: &BStr, found: &Found) -> Result<ObjectId> {
    let place = repository.place(path)?;
    if found.mode == mode::LINK {
        return hash(Kind::Blob, &link_target(&place, path)?);
    }
    let unreadable =
        |error: std::io::Error| Fault::error(format_args!("open(\"{}\"): {error}", crate::quote::name(path)));
    let mut file = File::open(place).map_err(unreadable)?;
    let mut hasher = gix_hash::hasher(HASH);
    hasher.update(&gix_object::encode::loose_header(Kind::Blob, found.bytes));
    let mut buffer = vec![0; 64 << 10];
    let mut left = found.bytes;
    while left > 0 {
        let read = file.read(&mut buffer).map_err(unreadable)?;
        let piece = buffer.get(..read).unwrap_or_default();
        if piece.is_empty() {
            break;
        }
        repository.objects.budget().inflate(u64::try_from(read).unwrap_or(0))?;
        left = left.saturating_sub(u64::try_from(read).unwrap_or(u64::MAX));
        hasher.update(piece);
    }
    hasher.try_finalize().map_err(Fault::fatal)
}

/// Reads a file or link of at most `most` bytes; `None` when it is larger.
pub(crate) fn read(repository: &Repository, path: &BStr, most: u64) -> Result<Option<Vec<u8>>> {
    let place = repository.place(path)?;
    let unreadable =
        |error: std::io::Error| Fault::error(format_args!("open(\"{}\"): {error}", crate::quote::name(path)));
    let metadata = fs::symlink_metadata(&place).map_err(unreadable)?;
    if metadata.is_symlink() {
        return link_target(&place, path).map(Some);
    }
    if metadata.len() > most {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    File::open(place).and_then(|file| file.take(most).read_to_end(&mut bytes)).map_err(unreadable)?;
    Ok(Some(bytes))
}

pub(crate) fn link_target(place: &Path, path: &BStr) -> Result<Vec<u8>> {
    let target = fs::read_link(place)
        .map_err(|error| Fault::error(format_args!("readlink(\"{}\"): {error}", crate::quote::name(path))))?;
    Vec::from_path_buf(target).map_err(|_| Fault::unsupported("a link to a name that is not UTF-8"))
}

/// How untracked directories are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Untracked {
    None,
    /// A directory without a tracked file as one.
    Normal,
    /// Every file of the directory.
    All,
}

/// Files that the index does not know.
#[derive(Debug, Default)]
pub(crate) struct Unknown {
    pub untracked: Vec<BString>,
    pub ignored: Vec<BString>,
}

/// Walks over the working tree.
pub(crate) fn unknown(repository: &Repository, index: &Index, paths: &Pathspec, how: Untracked) -> Result<Unknown> {
    let mut walk = Walk {
        repository,
        index,
        paths,
        how,
        ignored: Ignored::open(repository)?,
        found: Unknown::default(),
        seen: 0,
        inside_ignored: false,
    };
    if how != Untracked::None {
        walk.directory(BStr::new(""), 0)?;
    }
    walk.found.untracked.sort();
    walk.found.ignored.sort();
    Ok(walk.found)
}

struct Walk<'a> {
    repository: &'a Repository,
    index: &'a Index,
    paths: &'a Pathspec,
    how: Untracked,
    ignored: Ignored,
    found: Unknown,
    seen: usize,
    /// In a directory that is ignored and has tracked files nevertheless.
    inside_ignored: bool,
}

impl Walk<'_> {
    fn directory(&mut self, path: &BStr, depth: usize) -> Result<()> {
        let names = self.names(path, depth)?;
        self.ignored.enter(self.repository, path)?;
        for (name, is_directory) in names {
            let mut child = path.to_owned();
            if !child.is_empty() {
                child.push(b'/');
            }
            child.extend_from_slice(&name);
            if is_directory {
                self.subdirectory(child, depth)?;
            } else if !self.index.has(child.as_bstr()) && self.paths.matches(child.as_bstr(), false) {
                if self.inside_ignored || self.ignored.is_ignored(child.as_bstr(), false) {
                    self.found.ignored.push(child);
                } else {
                    self.found.untracked.push(child);
                }
            }
        }
        self.ignored.leave();
        Ok(())
    }

    fn subdirectory(&mut self, path: BString, depth: usize) -> Result<()> {
        if !self.paths.may_match_below(path.as_bstr()) {
            return Ok(());
        }
        let tracked = self.index.has_below(path.as_bstr());
        let mut shown = path.clone();
        shown.push(b'/');
        if self.inside_ignored || self.ignored.is_ignored(path.as_bstr(), true) {
            // Files of an ignored directory are ignored; tracked ones are looked at through the index.
            if !tracked {
                self.found.ignored.push(shown);
                return Ok(());
            }
            let outer = std::mem::replace(&mut self.inside_ignored, true);
            let walked = self.directory(path.as_bstr(), depth.saturating_add(1));
            self.inside_ignored = outer;
            return walked;
        }
        if self.index.get(path.as_bstr()).is_some_and(|entry| entry.mode == mode::SUBMODULE) {
            return Ok(());
        }
        if tracked {
            return self.directory(path.as_bstr(), depth.saturating_add(1));
        }
        // A repository in the working tree is one untracked directory.
        if fs::symlink_metadata(self.repository.place(path.as_bstr())?.join(".git")).is_ok() {
            self.found.untracked.push(shown);
            return Ok(());
        }
        if self.how == Untracked::All {
            return self.directory(path.as_bstr(), depth.saturating_add(1));
        }
        let before = (self.found.untracked.len(), self.found.ignored.len());
        self.directory(path.as_bstr(), depth.saturating_add(1))?;
        if self.found.untracked.len() > before.0 && self.paths.matches(path.as_bstr(), true) {
            self.found.untracked.truncate(before.0);
            self.found.untracked.push(shown);
        } else if self.found.untracked.len() == before.0 && self.found.ignored.len() > before.1 {
            self.found.ignored.truncate(before.1);
            self.found.ignored.push(shown);
        }
        Ok(())
    }

    /// The names in a directory, sorted, with whether each is a directory. The repository's own is left out.
    fn names(&mut self, path: &BStr, depth: usize) -> Result<Vec<(BString, bool)>> {
        if depth > MAX_TREE_DEPTH {
            return Err(Fault::limit(format_args!("the working tree has more than {MAX_TREE_DEPTH} levels")));
        }
        let place = if path.is_empty() { self.repository.worktree.clone() } else { self.repository.place(path)? };
        let mut names = Vec::new();
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            self.repository.objects.budget().object()?;
            self.seen = self.seen.saturating_add(1);
            if self.seen > MAX_FILES {
                return Err(Fault::limit(format_args!("the working tree has more than {MAX_FILES} files")));
            }
            let Ok(name) = Vec::from_os_string(entry.file_name()) else { continue };
            let Ok(kind) = entry.file_type() else { continue };
            if name.eq_ignore_ascii_case(b".git")
                || path.is_empty() && self.repository.is_reserved(name.as_bstr())
                || !(kind.is_dir() || kind.is_file() || kind.is_symlink())
            {
                continue;
            }
            names.push((BString::from(name), kind.is_dir()));
        }
        names.sort();
        Ok(names)
    }
}

/// Writes a file as the index has it, and returns the facts that are to be remembered of it.
pub(crate) fn write(repository: &Repository, path: &BStr, mode: u32, content: &[u8]) -> Result<gix_index::entry::Stat> {
    let failed =
        |error: std::io::Error| Fault::error(format_args!("unable to write '{}': {error}", crate::quote::name(path)));
    let place = repository.place(path)?;
    if repository.beyond_link(path) {
        return Err(Fault::error(format_args!("'{}' is beyond a symbolic link", crate::quote::name(path))));
    }
    match mode {
        mode if mode::is_file(mode) => {}
        mode::LINK => {
            return Err(Fault::unsupported(format_args!("'{path}' is a symbolic link, which cannot be made here")));
        }
        _ => return Err(Fault::unsupported(format_args!("'{path}' is a submodule"))),
    }
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    // An existing entry is replaced, never written through: it may be a link.
    match fs::symlink_metadata(&place) {
        Ok(metadata) if metadata.is_dir() => {
            return Err(Fault::error(format_args!("'{}' is a directory", crate::quote::name(path))));
        }
        Ok(metadata) if metadata.is_symlink() => fs::remove_file(&place).map_err(failed)?,
        _ => {}
    }
    let mut file = File::create(&place).map_err(failed)?;
    file.write_all(content).map_err(failed)?;
    set_executable(&file, mode == mode::EXECUTABLE).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    Ok(stat(metadata.len(), metadata.modified().ok()))
}

#[cfg(unix)]
fn set_executable(file: &File, executable: bool) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut permissions = file.metadata()?.permissions();
    let mode = permissions.mode();
    permissions.set_mode(if executable { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 });
    file.set_permissions(permissions)
}

#[cfg(not(unix))]
fn set_executable(_file: &File, _executable: bool) -> std::io::Result<()> {
    Ok(())
}

/// Removes a file, and the directories that are empty without it.
pub(crate) fn remove(repository: &Repository, path: &BStr) -> Result<()> {
    let place = repository.place(path)?;
    if repository.beyond_link(path) {
        return Ok(());
    }
    if fs::symlink_metadata(&place).is_ok_and(|metadata| !metadata.is_dir()) {
        fs::remove_file(&place)
            .map_err(|error| Fault::error(format_args!("unable to remove '{}': {error}", crate::quote::name(path))))?;
    }
    repository.directories.borrow_mut().clear();
    let mut parent = place.parent();
    while let Some(directory) = parent.filter(|directory| **directory != *repository.worktree) {
        if fs::remove_dir(directory).is_err() {
            break;
        }
        parent = directory.parent();
    }
    Ok(())
}

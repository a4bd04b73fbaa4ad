//! The commit as it would be: everything is looked at, and nothing is written.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use base::ContentHash;
use gix::ObjectId;
use gix::bstr::{BStr, ByteSlice as _};
use gix::index::entry::{Flags, Mode};
use gix::objs::tree::EntryKind;

use crate::error::{CommitError, Result};
use crate::intent::{BRANCHES, Blob, EntryChange};
use crate::open::Repository;

/// The largest file of a commit, in bytes: it is held in memory.
pub(crate) const MAX_FILE_BYTES: u64 = 256 << 20;

/// The branch of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The branch that is checked out, or `HEAD` itself if it is detached.
    Head,
    /// A new branch of this name.
    Branch(String),
}

/// The change of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The path in the working tree, `/` between the parts.
    pub path: String,
    /// The entry that is to be there.
    pub after: Content,
}

/// The entry at a path of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// There is no entry.
    Missing,
    /// The entry is a file.
    File {
        /// Absolute path of a copy.
        content: PathBuf,
        /// The hash of the copy.
        hash: Option<ContentHash>,
        /// Whether it can be executed.
        executable: bool,
    },
    /// The entry is a symbolic link to this path.
    Symlink(String),
}

/// A commit that can be written.
#[derive(Debug)]
pub struct Draft {
    pub(crate) reference: String,
    pub(crate) is_head: bool,
    pub(crate) parent: Option<ObjectId>,
    /// The author's name and address.
    pub(crate) who: (String, String),
    pub(crate) changes: Vec<Drafted>,
    left_out: Vec<String>,
    own: Vec<String>,
}

/// A change with its place in the index.
#[derive(Debug)]
pub(crate) struct Drafted {
    pub entry: EntryChange,
    pub after: Content,
}

impl Draft {
    /// The name of the branch; `HEAD` if it is detached.
    #[must_use]
    pub fn branch(&self) -> &str {
        self.reference.strip_prefix(BRANCHES).unwrap_or(&self.reference)
    }

    /// Whether it is on the branch that is checked out.
    #[must_use]
    pub fn is_head(&self) -> bool {
        self.is_head
    }

    /// The parent's id, in hexadecimal.
    #[must_use]
    pub fn parent(&self) -> Option<String> {
        self.parent.map(|id| id.to_hex().to_string())
    }

    /// The author, as git writes it.
    #[must_use]
    pub fn author(&self) -> String {
        format!("{} <{}>", self.who.0, self.who.1)
    }

    /// Number of changed paths.
    #[must_use]
    pub fn paths(&self) -> usize {
        self.changes.len()
    }

    /// The paths that git ignores: they are not part of the commit.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// The paths whose files had changes before that are not committed: these become part of the commit.
    #[must_use]
    pub fn own(&self) -> &[String] {
        &self.own
    }
}

/// The repository as it is while a draft is made.
struct Present<'a> {
    repository: &'a Repository,
    tree: gix::Tree<'a>,
    index: gix::worktree::IndexPersistedOrInMemory,
    /// The ignore rules, once they are needed.
    rules: Option<gix::AttributeStack<'a>>,
    /// Directories that are known to be of this repository.
    inside: HashSet<String>,
}

impl Repository {
    /// The commit of these changes on top of `HEAD`.
    ///
    /// # Errors
    /// If there is nothing to commit, or it cannot be committed.
    pub fn draft(&self, place: &Place, changes: Vec<Change>) -> Result<Draft> {
        let who = self.identity()?;
        let failed = CommitError::failed::<gix::Error>;
        let mut head = self.repo.head().map_err(failed("HEAD cannot be read"))?;
        let name = head.referent_name().map(|name| name.as_bstr().to_string());
        let parent = match head.is_unborn() {
            true => None,
            false => Some(head.peel_to_commit().map_err(failed("HEAD cannot be read"))?.id),
        };
        let tree = match parent {
            Some(id) => self.repo.find_commit(id).and_then(|commit| commit.tree()),
            None => Ok(self.repo.empty_tree()),
        };
        let tree = tree.map_err(failed("the tree of HEAD cannot be read"))?;
        let index = self.repo.index_or_load_from_head_or_empty().map_err(failed("the index cannot be read"))?;
        if index.is_sparse() {
            return Err(CommitError::Unsupported("has a sparse index"));
        }
        let (reference, is_head) = match place {
            Place::Head => {
                self.check_still(&index)?;
                (name.unwrap_or_else(|| "HEAD".to_owned()), true)
            }
            Place::Branch(name) => (self.new_branch(name)?, false),
        };
        let mut present = Present { repository: self, tree, index, rules: None, inside: HashSet::new() };
        let mut draft = Draft {
            reference,
            is_head,
            parent,
            who,
            changes: Vec::with_capacity(changes.len()),
            left_out: Vec::new(),
            own: Vec::new(),
        };
        let removed: HashSet<String> = changes
            .iter()
            .filter(|change| change.after == Content::Missing)
            .map(|change| change.path.clone())
            .collect();
        for change in changes {
            present.add(change, &removed, &mut draft)?;
        }
        if draft.changes.is_empty() {
            return Err(CommitError::Empty);
        }
        Ok(draft)
    }

    fn identity(&self) -> Result<(String, String)> {
        let config = self.repo.config_snapshot();
        let of = |key: &str| {
            let value = config.string(key)?.to_str_lossy().into_owned();
            // These would end the name in the commit.
            let kept: String = value.chars().filter(|c| !matches!(c, '<' | '>') && !c.is_control()).collect();
            let kept = base::text::cut(kept.trim(), 200);
            (!kept.is_empty()).then_some(kept)
        };
        of("user.name").zip(of("user.email")).ok_or(CommitError::Identity)
    }

    /// Refuses a repository in the middle of an operation, whose commit would not be the owner's.
    fn check_still(&self, index: &gix::index::State) -> Result<()> {
        use gix::state::InProgress;
        if let Some(state) = self.repo.state() {
            return Err(CommitError::InProgress(match state {
                InProgress::ApplyMailbox | InProgress::ApplyMailboxRebase => "`git am`",
                InProgress::Bisect => "a bisection",
                InProgress::CherryPick | InProgress::CherryPickSequence => "a cherry-pick",
                InProgress::Merge => "a merge",
                InProgress::Rebase | InProgress::RebaseInteractive => "a rebase",
                InProgress::Revert | InProgress::RevertSequence => "a revert",
            }));
        }
        match index.entries().iter().any(|entry| entry.stage_raw() != 0) {
            true => Err(CommitError::Unmerged),
            false => Ok(()),
        }
    }

    /// The full name of a branch that is not there yet.
    fn new_branch(&self, name: &str) -> Result<String> {
        let full = format!("{BRANCHES}{name}");
        // git refuses such names on its command line, too.
        let valid = !name.starts_with('-') && name != "HEAD" && name.len() <= 200;
        if !valid || gix::validate::reference::branch_name(BStr::new(&full)).is_err() {
            return Err(CommitError::BranchName(name.to_owned()));
        }
        match self.value(&full)? {
            Some(_) => Err(CommitError::BranchExists(name.to_owned())),
            None => Ok(full),
        }
    }
}

impl Present<'_> {
    fn add(&mut self, change: Change, removed: &HashSet<String>, draft: &mut Draft) -> Result<()> {
        let repository = self.repository;
        let path = change.path;
        self.check_inside(&path)?;
        let failed = CommitError::failed::<gix::Error>("the tree of HEAD cannot be read");
        let committed = self.tree.lookup_entry_by_path(&path).map_err(failed)?;
        let committed = committed.filter(|entry| !entry.mode().is_tree());
        let committed = committed.map(|entry| (entry.mode().kind(), entry.object_id()));
        let staged = self.index.entry_by_path(BStr::new(&path));
        let staged = staged.filter(|entry| !entry.flags.contains(Flags::INTENT_TO_ADD));
        let staged = staged.map(|entry| Blob::of(entry.mode, entry.id));
        if committed.is_none() && staged.is_none() {
            let missing = change.after == Content::Missing;
            if missing {
                // git never knew of it.
                return Ok(());
            }
            if self.is_ignored(&path)? {
                draft.left_out.push(path);
                return Ok(());
            }
        }
        let known = committed.is_some_and(|(kind, _)| kind == EntryKind::BlobExecutable);
        let to = match &change.after {
            Content::Missing => None,
            Content::Symlink(target) => Some(Blob::of(Mode::SYMLINK, hash(target.as_bytes())?)),
            Content::File { content, executable, .. } => {
                let executable = if self.has_modes() || committed.is_none() { *executable } else { known };
                let mode = if executable { Mode::FILE_EXECUTABLE } else { Mode::FILE };
                Some(Blob::of(mode, hash(&read(content, &path)?)?))
            }
        };
        let then = committed.and_then(|(kind, id)| Some(Blob::of(mode_of(kind)?, id)));
        if to == then && (to == staged || !draft.is_head) {
            // It is committed already.
            return Ok(());
        }
        if to.is_some() {
            self.check_free(&path, removed)?;
            if let Ok(now) = read(&repository.root.join(&path), &path)
                && Some(hash(&now)?.to_hex().to_string()) != then.map(|then| then.id)
            {
                draft.own.push(path.clone());
            }
        }
        draft.changes.push(Drafted { entry: EntryChange { path, from: staged, to }, after: change.after });
        Ok(())
    }

    /// Whether modes of files mean something here.
    fn has_modes(&self) -> bool {
        self.repository.repo.config_snapshot().boolean("core.fileMode").unwrap_or(true)
    }

    fn is_ignored(&mut self, path: &str) -> Result<bool> {
        let failed = || CommitError::failed::<gix::Error>("the ignore rules cannot be read");
        let rules = match &mut self.rules {
            Some(rules) => rules,
            None => {
                let source = gix::worktree::stack::state::ignore::Source::WorktreeThenIdMappingIfNotSkipped;
                let rules = self.repository.repo.excludes(&self.index, None, source).map_err(failed())?;
                self.rules.insert(rules)
            }
        };
        Ok(rules.at_entry(BStr::new(path), Some(Mode::FILE)).map_err(failed())?.is_excluded())
    }

    /// Refuses a path in a submodule or in another repository within the working tree.
    fn check_inside(&mut self, path: &str) -> Result<()> {
        let nested = || CommitError::Nested(path.to_owned());
        // From the top: the tree of a submodule is not among the objects of this repository.
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        for at in ends.filter_map(|end| path.get(..end)) {
            if self.inside.contains(at) {
                continue;
            }
            let link = self.index.entry_by_path(BStr::new(at)).is_some_and(|entry| entry.mode == Mode::COMMIT);
            let failed = CommitError::failed::<gix::Error>("the tree of HEAD cannot be read");
            let entry = self.tree.lookup_entry_by_path(at).map_err(failed)?;
            if link || entry.is_some_and(|entry| entry.mode().is_commit()) {
                return Err(nested());
            }
            if at.len() < path.len() {
                if fs::symlink_metadata(self.repository.root.join(at).join(".git")).is_ok() {
                    return Err(nested());
                }
                self.inside.insert(at.to_owned());
            }
        }
        Ok(())
    }

    /// Refuses a file at the path of a directory of the index, or below a file of it.
    fn check_free(&self, path: &str, removed: &HashSet<String>) -> Result<()> {
        let stays = |path: &str| !removed.contains(path);
        let below = format!("{path}/");
        let below = self.index.prefixed_entries(BStr::new(&below)).unwrap_or_default();
        let mut taken = below.iter().any(|entry| stays(&entry.path(&self.index).to_str_lossy()));
        let mut above = path;
        while let Some((next, _)) = above.rsplit_once('/') {
            above = next;
            taken |= self.index.entry_by_path(BStr::new(above)).is_some() && stays(above);
        }
        if taken { Err(CommitError::Blocked(path.to_owned())) } else { Ok(()) }
    }
}

pub(crate) fn mode_of(kind: EntryKind) -> Option<Mode> {
    match kind {
        EntryKind::Blob => Some(Mode::FILE),
        EntryKind::BlobExecutable => Some(Mode::FILE_EXECUTABLE),
        EntryKind::Link => Some(Mode::SYMLINK),
        EntryKind::Tree | EntryKind::Commit => None,
    }
}

pub(crate) fn hash(bytes: &[u8]) -> Result<ObjectId> {
    let hashed = gix::objs::compute_hash(gix::hash::Kind::Sha1, gix::objs::Kind::Blob, bytes);
    hashed.map_err(CommitError::failed("the object cannot be hashed"))
}

/// The content of a file, or the target of a link.
pub(crate) fn read(file: &Path, path: &str) -> Result<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt as _;
    let failed = || CommitError::failed::<std::io::Error>("a file cannot be read");
    let found = fs::symlink_metadata(file).map_err(failed())?;
    if found.is_symlink() {
        return Ok(fs::read_link(file).map_err(failed())?.as_os_str().as_bytes().to_owned());
    }
    // Opening a pipe would wait for a writer.
    if !found.is_file() {
        return Err(CommitError::Changed(path.to_owned()));
    }
    let mut bytes = Vec::new();
    let file = File::open(file).map_err(failed())?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed())?;
    match bytes.len() as u64 > MAX_FILE_BYTES {
        true => Err(CommitError::TooLarge(path.to_owned(), MAX_FILE_BYTES)),
        false => Ok(bytes),
    }
}

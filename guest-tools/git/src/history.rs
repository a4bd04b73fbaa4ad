//! Commits and walks over them.

mod missing;
mod simplify;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::{ObjectId, oid};
use gix_object::{CommitRef, Kind};

use crate::error::{Fault, Result};
use crate::ident::Signature;
use crate::limits::{MAX_COMMITS, MAX_PARENTS, MAX_SMALL_FILE_BYTES};
use crate::objects::HASH;
use crate::repository::{Repository, read_small};

pub(crate) use missing::missing;
pub(crate) use simplify::interesting_parents;

/// A commit, as far as it is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    pub id: ObjectId,
    pub tree: ObjectId,
    pub parents: Vec<ObjectId>,
    pub author: Signature,
    pub committer: Signature,
    pub message: BString,
    pub encoding: Option<BString>,
}

impl Commit {
    pub(crate) fn read(repository: &Repository, id: &oid) -> Result<Self> {
        let data = repository.objects.read_as(id, Kind::Commit)?;
        let mut commit = Self::parse(id, &data)?;
        if repository.is_shallow(id)? {
            commit.parents.clear();
        }
        Ok(commit)
    }

    pub(crate) fn parse(id: &oid, data: &[u8]) -> Result<Self> {
        let commit = CommitRef::from_bytes(data, HASH)
            .map_err(|_| Fault::corrupt(format_args!("the commit {id} cannot be read")))?;
        if commit.parents.len() > MAX_PARENTS {
            return Err(Fault::limit(format_args!("the commit {id} has more than {MAX_PARENTS} parents")));
        }
        Ok(Self {
            id: id.to_owned(),
            tree: commit.tree(),
            parents: commit.parents().collect(),
            author: Signature::parse(commit.author),
            committer: Signature::parse(commit.committer),
            message: commit.message.to_owned(),
            encoding: commit.encoding.map(ToOwned::to_owned),
        })
    }

    /// The first paragraph in one line.
    pub(crate) fn subject(&self) -> BString {
        let lines = self.message.lines().skip_while(|line| line.trim().is_empty());
        let first: Vec<&[u8]> = lines.take_while(|line| !line.trim().is_empty()).map(<[u8]>::trim_end).collect();
        first.join(&b' ').into()
    }

    /// The text behind the first paragraph.
    pub(crate) fn body(&self) -> BString {
        let text = self.message.trim_start_with(|letter| letter == '\n');
        match text.find("\n\n") {
            Some(end) => text.get(end..).unwrap_or_default().trim_start_with(|letter| letter == '\n').into(),
            None => BString::default(),
        }
    }
}

impl Repository {
    /// Whether the history was cut at this commit when the repository was cloned.
    pub(crate) fn is_shallow(&self, id: &oid) -> Result<bool> {
        if let Some(shallow) = self.shallow.get() {
            return Ok(shallow.contains(id));
        }
        let bytes = read_small(&self.git.join("shallow"), MAX_SMALL_FILE_BYTES)?.unwrap_or_default();
        let shallow: HashSet<ObjectId> = bytes.lines().filter_map(|line| ObjectId::from_hex(line).ok()).collect();
        Ok(self.shallow.get_or_init(|| shallow).contains(id))
    }
}

/// A walk from commits to their parents, the newest first.
pub(crate) struct Walk<'a> {
    repository: &'a Repository,
    waiting: BinaryHeap<(i64, Reverse<usize>, ObjectId)>,
    seen: HashSet<ObjectId>,
    hidden: HashSet<ObjectId>,
    first_parent: bool,
}

impl<'a> Walk<'a> {
    /// Begins at `shown`; `hidden` commits and everything they lead to are left out.
    pub(crate) fn new(
        repository: &'a Repository,
        shown: &[ObjectId],
        hidden: &[ObjectId],
        first_parent: bool,
    ) -> Result<Self> {
        let hidden = ancestors(repository, hidden)?;
        let mut walk = Self { repository, waiting: BinaryHeap::new(), seen: HashSet::new(), hidden, first_parent };
        for id in shown {
            walk.push(id)?;
        }
        Ok(walk)
    }

    fn push(&mut self, id: &ObjectId) -> Result<()> {
        if self.hidden.contains(id) || !self.seen.insert(*id) {
            return Ok(());
        }
        if self.seen.len() > MAX_COMMITS {
            return Err(too_many());
        }
        let time = Commit::read(self.repository, id)?.committer.time.seconds;
        let order = self.seen.len();
        self.waiting.push((time, Reverse(order), *id));
        Ok(())
    }

    /// The next commit. Its parents follow only when they are given to [`Walk::follow`].
    pub(crate) fn next(&mut self) -> Result<Option<Commit>> {
        match self.waiting.pop() {
            Some((_, _, id)) => Commit::read(self.repository, &id).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn follow(&mut self, parents: &[ObjectId]) -> Result<()> {
        let most = if self.first_parent { 1 } else { usize::MAX };
        parents.iter().take(most).try_for_each(|parent| self.push(parent))
    }
}

/// Commits and everything they lead to.
fn ancestors(repository: &Repository, from: &[ObjectId]) -> Result<HashSet<ObjectId>> {
    let mut found: HashSet<ObjectId> = HashSet::new();
    let mut waiting = from.to_vec();
    while let Some(id) = waiting.pop() {
        if found.insert(id) {
            waiting.extend(Commit::read(repository, &id)?.parents);
        }
        if found.len() > MAX_COMMITS {
            return Err(too_many());
        }
    }
    Ok(found)
}

/// The number of commits that only one of two leads to: those of the first, those of the second.
pub(crate) fn ahead_behind(repository: &Repository, ours: ObjectId, theirs: ObjectId) -> Result<(usize, usize)> {
    if ours == theirs {
        return Ok((0, 0));
    }
    let (ours, theirs) = (ancestors(repository, &[ours])?, ancestors(repository, &[theirs])?);
    Ok((ours.difference(&theirs).count(), theirs.difference(&ours).count()))
}

/// The best common ancestor of two commits, if they have one.
pub(crate) fn merge_base(repository: &Repository, one: ObjectId, other: ObjectId) -> Result<Option<ObjectId>> {
    let common = ancestors(repository, &[one])?;
    let mut walk = Walk::new(repository, &[other], &[], false)?;
    while let Some(commit) = walk.next()? {
        if common.contains(&commit.id) {
            return Ok(Some(commit.id));
        }
        walk.follow(&commit.parents)?;
    }
    Ok(None)
}

/// The remote-tracking branch that a branch follows.
pub(crate) fn upstream(repository: &Repository, branch: &BStr) -> Result<Option<BString>> {
    let Some(short) = branch.strip_prefix(b"refs/heads/") else { return Ok(None) };
    let value = |key: &str| repository.config.string_in("branch", short.as_bstr(), key);
    let (Some(remote), Some(merge)) = (value("remote"), value("merge")) else { return Ok(None) };
    if remote == "." {
        return Ok(Some(merge));
    }
    let Some(name) = merge.strip_prefix(b"refs/heads/") else { return Ok(None) };
    Ok(Some([b"refs/remotes/", remote.as_bytes(), b"/", name].concat().into()))
}

fn too_many() -> Fault {
    Fault::limit(format_args!("the history has more than {MAX_COMMITS} commits; limit it with a range such as `A..B`"))
}

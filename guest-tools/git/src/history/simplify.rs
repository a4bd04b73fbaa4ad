//! History of paths: commits that change nothing there are passed over, as git does by default.

use gix_hash::ObjectId;

use super::Commit;
use crate::diff::differs;
use crate::error::Result;
use crate::pathspec::Pathspec;
use crate::repository::Repository;

/// Whether a commit is shown for these paths, and the parents that the walk goes on with. A commit that is the same as
/// one of its parents is not shown, and only that parent is followed: the others contributed nothing.
pub(crate) fn interesting_parents(
    repository: &Repository,
    commit: &Commit,
    paths: &Pathspec,
) -> Result<(bool, Vec<ObjectId>)> {
    if paths.is_empty() {
        return Ok((true, commit.parents.clone()));
    }
    if commit.parents.is_empty() {
        return Ok((differs(repository, None, Some(commit.tree), paths)?, Vec::new()));
    }
    for parent in &commit.parents {
        let tree = Commit::read(repository, parent)?.tree;
        if !differs(repository, Some(tree), Some(commit.tree), paths)? {
            return Ok((false, vec![*parent]));
        }
    }
    Ok((true, commit.parents.clone()))
}

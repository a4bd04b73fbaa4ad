//! How a branch stands to the one that it follows.

use bstr::{BStr, BString, ByteSlice as _};

use crate::error::Result;
use crate::history::{ahead_behind, upstream};
use crate::refs::Head;
use crate::repository::Repository;

/// A branch and the one that it follows.
pub(super) struct Tracking {
    /// As people say it: `origin/main`.
    pub upstream: BString,
    /// Commits that only this branch has, and that only the other has; `None` when the other is gone.
    pub apart: Option<(usize, usize)>,
}

/// Compares a branch with its upstream, if it has one.
pub(super) fn tracking(repository: &Repository, head: &Head) -> Result<Option<Tracking>> {
    let Some(branch) = &head.branch else { return Ok(None) };
    let Some(full) = upstream(repository, branch.as_bstr())? else { return Ok(None) };
    let short = short_name(full.as_bstr()).to_owned();
    let apart = match (head.id, repository.refs.resolve(full.as_bstr())?) {
        (Some(ours), Some(theirs)) => Some(ahead_behind(repository, ours, theirs)?),
        _ => None,
    };
    Ok(Some(Tracking { upstream: short, apart }))
}

/// A reference without the directory of its kind.
pub(super) fn short_name(full: &BStr) -> &BStr {
    let kinds: [&[u8]; 3] = [b"refs/heads/", b"refs/remotes/", b"refs/tags/"];
    kinds.iter().find_map(|kind| full.strip_prefix(*kind)).unwrap_or(full).as_bstr()
}

impl Tracking {
    /// `[ahead 1, behind 2]`, without brackets.
    pub(super) fn brief(&self) -> String {
        match self.apart {
            None => "gone".to_owned(),
            Some((0, 0)) => String::new(),
            Some((ahead, 0)) => format!("ahead {ahead}"),
            Some((0, behind)) => format!("behind {behind}"),
            Some((ahead, behind)) => format!("ahead {ahead}, behind {behind}"),
        }
    }

    /// The sentences of `git status`.
    pub(super) fn sentences(&self) -> String {
        let upstream = &self.upstream;
        let commits = |count: usize| format!("{count} commit{}", if count == 1 { "" } else { "s" });
        match self.apart {
            None => format!(
                "Your branch is based on '{upstream}', but the upstream is gone.\n  (use \"git branch --unset-upstream\" to \
                 fixup)\n"
            ),
            Some((0, 0)) => format!("Your branch is up to date with '{upstream}'.\n"),
            Some((ahead, 0)) => format!(
                "Your branch is ahead of '{upstream}' by {}.\n  (use \"git push\" to publish your local commits)\n",
                commits(ahead)
            ),
            Some((0, behind)) => format!(
                "Your branch is behind '{upstream}' by {}, and can be fast-forwarded.\n  (use \"git pull\" to update your \
                 local branch)\n",
                commits(behind)
            ),
            Some((ahead, behind)) => format!(
                "Your branch and '{upstream}' have diverged,\nand have {ahead} and {behind} different commits each, \
                 respectively.\n  (use \"git pull\" if you want to integrate the remote branch with yours)\n"
            ),
        }
    }
}

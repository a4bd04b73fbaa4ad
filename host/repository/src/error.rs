//! Why a commit is not made.

use std::path::Path;

use base::text::Foreign;

/// Why a commit is not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The directory is in no repository.
    #[error("`{0}` is not in a git repository")]
    NoRepository(String),
    /// The repository is another user's.
    #[error("the git repository of `{0}` belongs to another user")]
    Foreign(String),
    /// The repository has a form that this crate does not write.
    #[error("the git repository {0}, which is not supported")]
    Unsupported(&'static str),
    /// There is no name or address for the commit.
    #[error("git does not know who you are")]
    Identity,
    /// Another operation of git is not finished.
    #[error("{0} is in progress in the git repository")]
    InProgress(&'static str),
    /// The index has entries of a conflict.
    #[error("the git repository has unmerged files")]
    Unmerged,
    /// The new branch is there already.
    #[error("there is a branch `{0}` already")]
    BranchExists(String),
    /// The name is not one of a branch.
    #[error("`{}` is not a valid name of a branch", Foreign(.0).escaped(200))]
    BranchName(String),
    /// The path belongs to another repository.
    #[error("`{}` lies in a repository within the repository", Foreign(.0).escaped(200))]
    Nested(String),
    /// The path cannot be in the index together with an entry that is there.
    #[error("`{}` is in the way of a file that you have staged or that is committed", Foreign(.0).escaped(200))]
    Blocked(String),
    /// The path cannot be in a repository.
    #[error("`{}` cannot be a path in a git repository", Foreign(.0).escaped(200))]
    Path(String),
    /// The commit would be that of its parent.
    #[error("git has nothing to commit: the changes are of ignored files, or committed already")]
    Empty,
    /// A file is too large for a commit.
    #[error("`{}` is larger than {} MiB", Foreign(.0).escaped(200), .1 >> 20)]
    TooLarge(String, u64),
    /// A file is another one than when it was looked at.
    #[error("`{}` was changed in the meantime", Foreign(.0).escaped(200))]
    Changed(String),
    /// The record of a commit cannot be understood.
    #[error("the record of the commit is damaged")]
    Damaged,
    /// The operation cannot be done in the repository.
    #[error("{what}: {source}")]
    Failed {
        /// The operation that failed.
        what: &'static str,
        /// The error of the library or the system.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl CommitError {
    pub(crate) fn failed<E: Into<Box<dyn std::error::Error + Send + Sync>>>(what: &'static str) -> impl Fn(E) -> Self {
        move |error| Self::Failed { what, source: error.into() }
    }

    /// The step that helps the owner, if there is one.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::NoRepository(_) | Self::Unsupported(_) | Self::Nested(_) | Self::Path(_) | Self::TooLarge(..) => {
                Some("land without `--commit` and `--branch`, and commit yourself")
            }
            Self::Foreign(_) => Some("run the host as the owner of the repository, or land without a commit"),
            Self::Identity => Some("`git config --global user.name \"…\"` and `git config --global user.email \"…\"`"),
            Self::InProgress(_) | Self::Unmerged => {
                Some("finish or abort it with git first, or land without `--commit`")
            }
            Self::BranchExists(_) | Self::BranchName(_) => Some("choose another name"),
            Self::Blocked(_) => Some("commit or unstage your own change first, or land without a commit"),
            Self::Empty => Some("land without `--commit` and `--branch`"),
            Self::Changed(_) | Self::Damaged | Self::Failed { .. } => None,
        }
    }
}

pub(crate) fn shown(path: &Path) -> String {
    Foreign(&path.to_string_lossy()).escaped(200)
}

pub(crate) type Result<T, E = CommitError> = std::result::Result<T, E>;

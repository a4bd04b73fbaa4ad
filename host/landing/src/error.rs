//! Why a landing fails. Unless the error says otherwise, the directories are then as they were.

use std::io;

use base::text::Foreign;
use rustix::io::Errno;

/// Why a landing fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LandError {
    /// The plan has conflicts: it cannot be landed as a whole.
    #[error("{0} conflicts: leave these paths out, or resolve them in the directory")]
    Conflicts(usize),
    /// The owner changed a file between the plan and the landing.
    #[error("`{}` was changed in the meantime; nothing was applied", Foreign(.0).escaped(200))]
    Changed(String),
    /// The directory is another one now.
    #[error("{0} is not the directory that the run worked on")]
    Replaced(String),
    /// A path that selects nothing.
    #[error("the run changed nothing at `{}`", Foreign(.0).escaped(200))]
    Unselected(String),
    /// The landing is in a state in which this is not possible.
    #[error("the landing is {0}")]
    State(&'static str),
    /// A file of the landing cannot be understood.
    #[error("the landing's `{0}` is damaged")]
    Damaged(&'static str),
    /// The changes cannot become a commit.
    #[error(transparent)]
    Commit(#[from] repository::CommitError),
    /// The changes are of several repositories.
    #[error("the changes are of several git repositories")]
    Repositories,
    /// The operating system refuses the operation.
    #[error("{what}: {source}")]
    Io {
        /// The failed operation or its path.
        what: String,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The process ended here, in a test.
    #[cfg(test)]
    #[error("killed")]
    Killed,
}

impl LandError {
    /// An error of the system at a path of the owner's.
    pub(crate) fn at(path: &str) -> impl Fn(Errno) -> Self + '_ {
        move |error| Self::Io { what: format!("`{}`", Foreign(path).escaped(200)), source: error.into() }
    }

    /// An error of the system in the landing's own directory.
    pub(crate) fn journal(source: io::Error) -> Self {
        Self::Io { what: "the landing's journal".to_owned(), source }
    }
}

pub(crate) type Result<T, E = LandError> = std::result::Result<T, E>;

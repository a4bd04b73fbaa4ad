//! Why a skill's bytes cannot be read: one exact reason, with paths relative to the skill and never the host's.

use std::io;

use base::text::Foreign;

use crate::SkillError;

/// Why a skill cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Nothing exists at the path.
    #[error("there is nothing there any more")]
    Missing,
    /// A file that is neither an archive nor a component.
    #[error("it is no skill: a skill is a directory, a `.zip` or `.skill` archive, or a `.wasm` component")]
    NotASkill,
    /// There is no `SKILL.md`.
    #[error("it has no `SKILL.md`")]
    NoManifest,
    /// It is or has a symbolic link.
    #[error("{} is a link: put the file itself there", named(path))]
    Link {
        /// Path within the skill; empty: the skill itself.
        path: String,
    },
    /// A file has a second name, under which it can be changed.
    #[error("{} is a hard link: put a copy of its own there", named(path))]
    HardLink {
        /// Path within the skill; empty: the skill itself.
        path: String,
    },
    /// It has a pipe, a device or a socket.
    #[error("{} is neither a file nor a directory", named(path))]
    Special {
        /// Path within the skill; empty: the skill itself.
        path: String,
    },
    /// A path that is not valid on every system, or that leads out of the skill.
    #[error("`{path}` {fault}")]
    Path {
        /// The path, its control characters escaped.
        path: String,
        /// The fault, as the end of a sentence.
        fault: &'static str,
    },
    /// Two paths that are the same where case or normalisation does not count.
    #[error("`{one}` and `{other}` are the same name on some systems")]
    Twins {
        /// The path that was found first.
        one: String,
        /// The path that collides with it.
        other: String,
    },
    /// The same path occurs twice.
    #[error("`{path}` is there twice")]
    Twice {
        /// The path, escaped for display.
        path: String,
    },
    /// A path that is a file and has files below it.
    #[error("`{path}` is a file and a directory")]
    FileAndDirectory {
        /// The path, escaped for display.
        path: String,
    },
    /// A file is too large.
    #[error("{} is larger than {}", named(path), size(*limit))]
    TooLarge {
        /// Path within the skill; empty: the skill itself.
        path: String,
        /// The most bytes it may have.
        limit: u64,
    },
    /// The files together are too large.
    #[error("its {what} are more than {}", size(*limit))]
    TooMuch {
        /// The files that are too large together, in words.
        what: &'static str,
        /// The most bytes they may have.
        limit: u64,
    },
    /// It has too many files and directories.
    #[error("it has more than {limit} files and directories")]
    TooMany {
        /// The most files and directories it may have.
        limit: u64,
    },
    /// It was changed while it was read.
    #[error("{} changed while it was read: try again when it is written", named(path))]
    Changed {
        /// Path within the skill; empty: the skill itself.
        path: String,
    },
    /// The archive is damaged, ambiguous or not supported.
    #[error("the archive {fault}")]
    Archive {
        /// The fault, as the end of a sentence.
        fault: String,
    },
    /// The operating system returned an error.
    #[error("{} cannot be read: {}", named(path), source.kind())]
    Io {
        /// Path within the skill; empty: the skill itself.
        path: String,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
}

impl SnapshotError {
    pub(super) fn path(path: &str, fault: &'static str) -> Self {
        Self::Path { path: shown(path), fault }
    }

    pub(super) fn archive(fault: impl Into<String>) -> Self {
        Self::Archive { fault: fault.into() }
    }
}

impl From<SnapshotError> for SkillError {
    fn from(error: SnapshotError) -> Self {
        Self::Unreadable { reason: error.to_string() }
    }
}

fn named(path: &str) -> String {
    if path.is_empty() { "it".to_owned() } else { format!("`{}`", shown(path)) }
}

/// A path fit for a message: nothing invisible, and not a page long.
pub(super) fn shown(path: &str) -> String {
    Foreign(path).escaped(200)
}

fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}

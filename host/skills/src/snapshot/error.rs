//! Why a skill's bytes cannot be had: one exact reason, with paths relative to the skill and never the host's.

use std::io;

use base::text::cut;

use crate::SkillError;

/// Why a skill cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// There is nothing there.
    #[error("there is nothing there any more")]
    Missing,
    /// It is a file that no skill is made of.
    #[error("it is no skill: a skill is a directory, a `.zip` or `.skill` archive, or a `.wasm` component")]
    NotASkill,
    /// There is no `SKILL.md`.
    #[error("it has no `SKILL.md`")]
    NoManifest,
    /// It has a link.
    #[error("{} is a link: put the file itself there", named(path))]
    Link {
        /// Where; empty: the skill itself.
        path: String,
    },
    /// A file has a second name, under which it can be changed.
    #[error("{} is a hard link: put a copy of its own there", named(path))]
    HardLink {
        /// Where; empty: the skill itself.
        path: String,
    },
    /// It has a pipe, a device or a socket.
    #[error("{} is neither a file nor a directory", named(path))]
    Special {
        /// Where; empty: the skill itself.
        path: String,
    },
    /// A path that cannot be one on every system, or that leads out of the skill.
    #[error("`{path}` {fault}")]
    Path {
        /// The path, its control characters written out.
        path: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// Two paths that are one where case or the way of writing letters does not count.
    #[error("`{one}` and `{other}` are the same name on some systems")]
    Twins {
        /// The first.
        one: String,
        /// The second.
        other: String,
    },
    /// One path twice.
    #[error("`{path}` is there twice")]
    Twice {
        /// The path.
        path: String,
    },
    /// A path that is a file and has files below it.
    #[error("`{path}` is a file and a directory")]
    FileAndDirectory {
        /// The path.
        path: String,
    },
    /// A file is too large.
    #[error("{} is larger than {}", named(path), size(*limit))]
    TooLarge {
        /// Where; empty: the skill itself.
        path: String,
        /// Bytes that are possible.
        limit: u64,
    },
    /// All together is too much.
    #[error("its {what} are more than {}", size(*limit))]
    TooMuch {
        /// Of what.
        what: &'static str,
        /// Bytes that are possible.
        limit: u64,
    },
    /// There are too many of them.
    #[error("it has more than {limit} files and directories")]
    TooMany {
        /// How many are possible.
        limit: u64,
    },
    /// It was changed while it was read.
    #[error("{} changed while it was read: try again when it is written", named(path))]
    Changed {
        /// Where; empty: the skill itself.
        path: String,
    },
    /// The archive is not one that can be trusted to be what it seems.
    #[error("the archive {fault}")]
    Archive {
        /// What is wrong with it.
        fault: String,
    },
    /// The system says no.
    #[error("{} cannot be read: {}", named(path), source.kind())]
    Io {
        /// Where; empty: the skill itself.
        path: String,
        /// Why.
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

/// A path as a message may have it: nothing invisible, and not a page long.
pub(super) fn shown(path: &str) -> String {
    cut(path, 200).chars().flat_map(char::escape_debug).collect()
}

fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}

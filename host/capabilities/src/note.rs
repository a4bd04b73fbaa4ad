//! Notes of a guest while it works: log lines and progress. Notes are for people, never for decisions.

use std::sync::Arc;

/// A note from a guest.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// A line for the run's log.
    Log {
        /// `debug`, `info`, `warn` or `error`.
        level: &'static str,
        /// The line, as the guest wrote it.
        message: String,
    },
    /// A report of progress from long work.
    Progress {
        /// The current activity, in the guest's words.
        message: String,
        /// Completed fraction from 0 to 1, if known.
        fraction: Option<f32>,
    },
}

/// Receiver of notes. Called from the guest's call: it must not block.
pub type NoteSink = Arc<dyn Fn(Note) + Send + Sync>;

/// A sink that discards all notes.
#[must_use]
pub fn ignore() -> NoteSink {
    Arc::new(|_| ())
}

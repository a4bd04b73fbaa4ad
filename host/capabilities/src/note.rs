//! What a guest says while it works: log lines and progress. Notes are for people, never for decisions.

use std::sync::Arc;

/// A line from a guest.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// A log line.
    Log {
        /// `debug`, `info`, `warn` or `error`.
        level: &'static str,
        /// The line, as the guest wrote it.
        message: String,
    },
    /// A sign of life.
    Progress {
        /// What is being done.
        message: String,
        /// How far it is, from 0 to 1, when known.
        fraction: Option<f32>,
    },
}

/// Where notes go. Called from the guest's call: it must not block.
pub type NoteSink = Arc<dyn Fn(Note) + Send + Sync>;

/// A sink that forgets.
#[must_use]
pub fn ignore() -> NoteSink {
    Arc::new(|_| ())
}

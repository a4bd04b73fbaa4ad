//! Why a command ended: git's exit code and the text for standard error.

use std::fmt::Display;

/// The result of everything that can end a command.
pub(crate) type Result<T> = std::result::Result<T, Fault>;

/// The end of a command before its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub code: i32,
    /// The text, prefix included; no line end.
    pub message: String,
}

impl Fault {
    /// git's `fatal:`, with code 128.
    pub(crate) fn fatal(message: impl Display) -> Self {
        Self { code: 128, message: format!("fatal: {message}") }
    }

    /// git's `error:`, with code 1.
    pub(crate) fn error(message: impl Display) -> Self {
        Self { code: 1, message: format!("error: {message}") }
    }

    /// As [`Fault::error`], behind another fault.
    pub(crate) fn error_after(first: &Self, message: impl Display) -> Self {
        Self { code: 1, message: format!("{}\nerror: {message}", first.message) }
    }

    /// A command line that git would answer with its usage, with code 129.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self { code: 129, message: format!("error: {message}") }
    }

    /// Something that git could do and this implementation does not.
    pub(crate) fn unsupported(message: impl Display) -> Self {
        Self { code: 128, message: format!("fatal: not supported here: {message}") }
    }

    /// Bytes of the repository that are damaged or hostile.
    pub(crate) fn corrupt(message: impl Display) -> Self {
        Self { code: 128, message: format!("fatal: the repository is damaged: {message}") }
    }

    /// An answer of a server that is no answer of git's protocol.
    pub(crate) fn protocol(message: impl Display) -> Self {
        Self { code: 128, message: format!("fatal: protocol error: {message}") }
    }

    /// A limit of [`crate::limits`].
    pub(crate) fn limit(message: impl Display) -> Self {
        Self { code: 128, message: format!("fatal: too much for one call: {message}") }
    }
}

//! Every limit of these tools, with its unit and reason. The host's own limits lie above all of them.

/// Bytes of one answer: below the 32 KiB at which a result is put aside in a file (SPEC HOST-5, RUN-9), since a page
/// that had to be read from another file would be no help.
pub(crate) const ANSWER_BYTES: usize = 30_000;

/// Lines of one answer, the note about omissions included: over 2,000 the host puts it aside (SPEC RUN-9).
pub(crate) const ANSWER_LINES: usize = 2_000;

/// Characters of one line that `read` shows: minified files have lines of megabytes.
pub(crate) const LINE_CHARS: usize = 2_000;

/// Characters of one line that `grep` shows.
pub(crate) const MATCH_CHARS: usize = 300;

/// Bytes of one line that `grep` searches: the rest of a longer line is not looked at.
pub(crate) const SEARCHED_LINE_BYTES: usize = 1024 * 1024;

/// Matches that `grep` shows (SPEC TOOL-1).
pub(crate) const MATCHES: usize = 100;

/// Lines around a match that may be asked for.
pub(crate) const CONTEXT_LINES: usize = 20;

/// Bytes of a file that `patch` takes: it holds the file three times, and a call has 64 MiB.
pub(crate) const PATCHED_BYTES: u64 = 8 * 1024 * 1024;

/// Bytes at the start of a file that decide whether it is text.
pub(crate) const SNIFFED_BYTES: usize = 8 * 1024;

/// Entries that a walk looks at, over all directories: a tree of millions would outlive the call.
pub(crate) const WALKED_ENTRIES: usize = 100_000;

/// Directories below the start that a walk goes into.
pub(crate) const WALKED_DEPTH: usize = 64;

/// Paths that `glob` and `list` show.
pub(crate) const SHOWN_PATHS: usize = 1_000;

/// Bytes of a path, as most systems have it.
pub(crate) const PATH_BYTES: usize = 4_096;

/// Characters of a pattern, so that compiling it stays quick.
pub(crate) const PATTERN_CHARS: usize = 1_000;

/// Symbolic links that one path may pass through, as Linux has it; more are taken for a circle.
pub(crate) const LINKS: usize = 40;

/// Bytes that compiling a pattern may take; repetitions such as `(a{1000}){1000}` need far more.
pub(crate) const PATTERN_BYTES: usize = 2 * 1024 * 1024;

//! The limits of one call of the shell. Time and memory as such are the host's limits; these end a script before it
//! gets there, so that its output so far comes back.

use std::time::Duration;

use bashkit::{ExecutionLimits, FsLimits, MemoryLimits};

/// Bytes of a script. 1 MiB: a parsed script takes many times its length.
pub(crate) const SCRIPT_BYTES: usize = 1 << 20;

/// Bytes of standard output that come back. 1 MiB; a run shows a model far less (SPEC RUN-9).
pub(crate) const STDOUT_BYTES: usize = 1 << 20;

/// Bytes of standard error that come back. 64 KiB: messages, not data.
pub(crate) const STDERR_BYTES: usize = 64 << 10;

/// Bytes of a file that one command may read. 8 MiB: a command holds its input whole, and often its output too.
pub(crate) const READ_BYTES: u64 = 8 << 20;

/// Milliseconds of a call without a `timeout_ms` and without a deadline from the host (SPEC TOOL-3).
pub(crate) const TIMEOUT_MS: u64 = 60_000;

/// How much earlier than the host's deadline a script ends, so that its output can still be handed over: a tenth, within these
/// bounds. The interpreter itself may be up to 100 ms late.
const MARGIN_MS: (u64, u64) = (150, 1_000);

/// Milliseconds that a script has, of those the host gives and those that were asked for.
pub(crate) fn timeout_ms(asked: Option<u64>, deadline_ms: u64) -> u64 {
    let host = if deadline_ms == 0 { TIMEOUT_MS } else { deadline_ms };
    let host = host.saturating_sub((host / 10).clamp(MARGIN_MS.0, MARGIN_MS.1)).max(1);
    asked.unwrap_or(host).clamp(1, host)
}

/// The interpreter's own limits.
pub(crate) fn execution(timeout_ms: u64) -> ExecutionLimits {
    ExecutionLimits {
        // Far more than the deadline leaves time for: work that is cheap each time is bounded by time.
        max_work_units: 10_000_000_000,
        max_aggregate_input_bytes: 1 << 30,
        max_live_intermediate_bytes: 24 << 20,
        max_commands: 1_000_000,
        max_loop_iterations: 1_000_000,
        max_total_loop_iterations: 2_000_000,
        timeout: Duration::from_millis(timeout_ms),
        parser_timeout: Duration::from_millis(timeout_ms),
        max_input_bytes: SCRIPT_BYTES,
        max_parser_operations: 1_000_000,
        max_stdout_bytes: STDOUT_BYTES,
        max_stderr_bytes: STDERR_BYTES,
        max_background_jobs: 16,
        max_file_descriptors: 64,
        // The history of a shell that lives for one call is never read.
        max_history_entries: 100,
        max_history_bytes: 64 << 10,
        ..ExecutionLimits::default()
    }
}

/// Limits of variables, arrays and functions.
pub(crate) fn memory() -> MemoryLimits {
    MemoryLimits { max_total_variable_bytes: 8 << 20, max_array_entries: 100_000, ..MemoryLimits::default() }
}

/// Files that a pattern such as `*.txt` may match. More than the memory of a call holds, so none is left out in silence.
pub(crate) const MATCHES: u64 = 1_000_000;

/// `/tmp`, which is in memory.
pub(crate) fn temporary() -> FsLimits {
    FsLimits { max_total_bytes: 8 << 20, max_file_size: 4 << 20, max_file_count: 1_000, ..FsLimits::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_ends_before_the_host_ends_it() {
        for (asked, deadline, expected) in [
            (None, 60_000, 59_000),
            (None, 5_000, 4_500),
            (None, 1_000, 850),
            (None, 100, 1),
            (None, 0, 59_000),
            (Some(2_000), 60_000, 2_000),
            (Some(90_000), 60_000, 59_000),
            (Some(0), 60_000, 1),
        ] {
            assert_eq!(timeout_ms(asked, deadline), expected, "{asked:?} of {deadline}");
        }
    }
}

//! The names of all limits, and the error that names the exceeded one.

use std::fmt;

/// A limit on one guest call (SPEC HOST-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// Units of work of a guest.
    Fuel,
    /// Wall-clock time in milliseconds.
    DeadlineMs,
    /// Bytes over all linear memories.
    MemoryBytes,
    /// Elements over all tables.
    TableElements,
    /// Linear memories, tables or core instances in one call.
    Instances,
    /// Bytes of call stack.
    StackBytes,
    /// Bytes a guest hands to the host in one host call or as its result.
    HostcallBytes,
    /// Open handles: files, streams, pollables.
    Handles,
    /// Bytes of randomness in one call.
    RandomBytes,
    /// Bytes of a tool's result.
    OutputBytes,
    /// Bytes written to standard output and error together.
    StdioBytes,
    /// Log lines and progress reports.
    LogLines,
    /// Bytes of log lines and progress reports.
    LogBytes,
    /// Calls of the guest into the host.
    HostCalls,
    /// Bytes of files in the workspace.
    WorkspaceBytes,
    /// Files and directories in the workspace.
    WorkspaceFiles,
    /// Requests to the network.
    OutgoingRequests,
    /// Bytes of request bodies and headers together.
    RequestBytes,
    /// Bytes of response bodies together.
    ResponseBytes,
    /// Bytes of one set of HTTP header fields.
    HttpHeaderBytes,
}

impl Limit {
    /// The name of the limit as it is configured and shown.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fuel => "fuel",
            Self::DeadlineMs => "deadline_ms",
            Self::MemoryBytes => "memory_bytes",
            Self::TableElements => "table_elements",
            Self::Instances => "instances",
            Self::StackBytes => "stack_bytes",
            Self::HostcallBytes => "hostcall_bytes",
            Self::Handles => "handles",
            Self::RandomBytes => "random_bytes",
            Self::OutputBytes => "output_bytes",
            Self::StdioBytes => "stdio_bytes",
            Self::LogLines => "log_lines",
            Self::LogBytes => "log_bytes",
            Self::HostCalls => "host_calls",
            Self::WorkspaceBytes => "workspace_bytes",
            Self::WorkspaceFiles => "workspace_files",
            Self::OutgoingRequests => "outgoing_requests",
            Self::RequestBytes => "request_bytes",
            Self::ResponseBytes => "response_bytes",
            Self::HttpHeaderBytes => "http_header_bytes",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A guest exceeded a limit. A host function that returns this ends the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`{limit}` is limited to {value}")]
pub struct LimitExceeded {
    /// The limit that was exceeded.
    pub limit: Limit,
    /// The limit's value in its unit.
    pub value: u64,
}

/// A consumable amount: the rest, and the limit to name when it is exhausted.
#[derive(Debug, Clone, Copy)]
pub struct CallCounter {
    limit: Limit,
    value: u64,
    left: u64,
}

impl CallCounter {
    /// Creates a budget of `value` units.
    #[must_use]
    pub const fn new(limit: Limit, value: u64) -> Self {
        Self { limit, value, left: value }
    }

    /// Consumes `amount` of the budget.
    ///
    /// # Errors
    /// If less than that is left; the budget is then empty.
    pub fn spend(&mut self, amount: u64) -> Result<(), LimitExceeded> {
        match self.left.checked_sub(amount) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(LimitExceeded { limit: self.limit, value: self.value })
            }
        }
    }

    /// The amount consumed so far.
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.value - self.left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_spent_exactly_once() {
        let mut budget = CallCounter::new(Limit::LogLines, 3);
        budget.spend(2).unwrap();
        budget.spend(1).unwrap();
        let error = budget.spend(1).unwrap_err();
        assert_eq!(error.to_string(), "`log_lines` is limited to 3");
        assert!(CallCounter::new(Limit::LogBytes, 10).spend(u64::MAX).is_err());
    }
}

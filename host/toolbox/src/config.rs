//! The sections `[code]` and `[tools]` of the configuration.

use std::time::Duration;

use runtime::code::{MAX_TIMEOUT, MAX_TIMEOUT_IN_RUN, MIN_TIMEOUT};
use serde::{Deserialize, Serialize};

/// `[code]`: the sandbox for code a model wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CodeConfig {
    /// Milliseconds a program gets by default. Default 5,000.
    pub timeout_ms: u64,
    /// Refuse plain attempts to leave the sandbox before running (SPEC CODE-4). Default on.
    pub guard: bool,
}

impl Default for CodeConfig {
    fn default() -> Self {
        Self { timeout_ms: 5_000, guard: true }
    }
}

impl CodeConfig {
    /// The time a program gets outside a run: clamped to 100..=5000 ms, never refused (SPEC CODE-2).
    #[must_use]
    pub fn timeout(&self, asked_ms: Option<u64>) -> Duration {
        Duration::from_millis(asked_ms.unwrap_or(self.timeout_ms)).clamp(MIN_TIMEOUT, MAX_TIMEOUT)
    }

    /// The time a program gets inside a run: clamped to 100..=30000 ms.
    #[must_use]
    pub fn timeout_in_run(&self, asked_ms: Option<u64>) -> Duration {
        Duration::from_millis(asked_ms.unwrap_or(self.timeout_ms)).clamp(MIN_TIMEOUT, MAX_TIMEOUT_IN_RUN)
    }
}

/// `[tools]`: wall-clock times of the tools that have their own (SPEC TOOL-3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolsConfig {
    /// Milliseconds a script of `bash` may take. Default 60,000.
    pub bash_timeout_ms: u64,
    /// Milliseconds a `fetch` may take, redirects included. Default 30,000.
    pub fetch_timeout_ms: u64,
}

impl Default for ToolsConfig {
    fn default() -> Self {
        Self { bash_timeout_ms: 60_000, fetch_timeout_ms: 30_000 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_clamped_never_refused() {
        let code = CodeConfig::default();
        for (asked, outside, inside) in
            [(Some(1), 100, 100), (Some(250), 250, 250), (Some(60_000), 5_000, 30_000), (None, 5_000, 5_000)]
        {
            assert_eq!(code.timeout(asked).as_millis(), outside);
            assert_eq!(code.timeout_in_run(asked).as_millis(), inside);
        }
    }
}

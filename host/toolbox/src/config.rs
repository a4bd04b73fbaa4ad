//! The sections `[code]` and `[tools]` of the configuration.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// `[code]`: the sandbox for code a model wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CodeConfig {
    /// Milliseconds a program gets by default. 1 to 600,000. Default 5,000.
    pub timeout_ms: u64,
    /// The fewest milliseconds that a program outside a run gets. 1 to 30,000. Default 100 (SPEC CODE-2).
    pub min_timeout_ms: u64,
    /// The most milliseconds that an isolated program outside a run gets. 100 to 600,000. Default 5,000 (SPEC CODE-2).
    pub max_timeout_ms: u64,
    /// The most milliseconds that a program with the network gets outside a run. 100 to 600,000. Default 30,000 (SPEC
    /// CODE-2).
    pub max_network_timeout_ms: u64,
    /// Refuse plain attempts to leave the sandbox before running (SPEC CODE-4). Default on.
    pub guard: bool,
}

impl Default for CodeConfig {
    fn default() -> Self {
        Self {
            timeout_ms: 5_000,
            min_timeout_ms: 100,
            max_timeout_ms: 5_000,
            max_network_timeout_ms: 30_000,
            guard: true,
        }
    }
}

impl CodeConfig {
    /// The time of an isolated program outside a run: clamped, never refused (SPEC CODE-2).
    #[must_use]
    pub fn timeout(&self, asked_ms: Option<u64>) -> Duration {
        self.clamped(asked_ms, self.max_timeout_ms)
    }

    /// The time of a program with the network outside a run: clamped, never refused.
    #[must_use]
    pub fn network_timeout(&self, asked_ms: Option<u64>) -> Duration {
        self.clamped(asked_ms, self.max_network_timeout_ms)
    }

    fn clamped(&self, asked_ms: Option<u64>, most: u64) -> Duration {
        Duration::from_millis(asked_ms.unwrap_or(self.timeout_ms).max(self.min_timeout_ms).min(most))
    }

    /// Checks that every number is within its range.
    ///
    /// # Errors
    /// With the first that is not, in words that name the key and its range.
    pub fn check(&self) -> Result<(), String> {
        let ranges = [
            ("timeout_ms", self.timeout_ms, 1..=600_000),
            ("min_timeout_ms", self.min_timeout_ms, 1..=30_000),
            ("max_timeout_ms", self.max_timeout_ms, 100..=600_000),
            ("max_network_timeout_ms", self.max_network_timeout_ms, 100..=600_000),
        ];
        let outside = ranges.into_iter().find(|(_, value, range)| !range.contains(value));
        outside.map_or(Ok(()), |(key, value, range)| {
            let (least, most) = range.into_inner();
            Err(format!("`code.{key}` is {value}: use a whole number from {least} to {most}"))
        })
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
        for (asked, outside, connected) in
            [(Some(1), 100, 100), (Some(250), 250, 250), (Some(60_000), 5_000, 30_000), (None, 5_000, 5_000)]
        {
            assert_eq!(code.timeout(asked).as_millis(), outside);
            assert_eq!(code.network_timeout(asked).as_millis(), connected);
        }
        let wide = CodeConfig { max_timeout_ms: 60_000, ..CodeConfig::default() };
        assert_eq!(wide.timeout(Some(60_000)).as_millis(), 60_000);
    }

    #[test]
    fn times_of_programs_have_ranges() {
        assert_eq!(CodeConfig::default().check(), Ok(()));
        let error = CodeConfig { max_timeout_ms: 99, ..CodeConfig::default() }.check().unwrap_err();
        assert_eq!(error, "`code.max_timeout_ms` is 99: use a whole number from 100 to 600000");
    }
}

//! The sections that belong to no other crate's domain.

use std::path::PathBuf;
use std::time::Duration;

use runtime::EngineConfig;
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

/// `[engine]`: how components are run and compiled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineSettings {
    /// Guests that may run at the same time; more wait. Default 64.
    pub sandboxes: u32,
    /// Bytes of call stack a guest has. Default 512 KiB: about 680 frames of JavaScript.
    pub stack_bytes: usize,
    /// Bytes of each slot that stay resident between calls. Default 256 KiB.
    pub keep_resident_bytes: usize,
    /// Largest component that is loaded. Default 64 MiB.
    pub component_bytes: u64,
    /// Seconds of two processors that compiling an untrusted component may take. Default 60.
    pub compile_seconds: u64,
    /// Bytes of memory that compiling one may take. Default 2 GiB.
    pub compile_memory_bytes: u64,
    /// Seconds of two processors that inspecting an untrusted component may take. Default 10.
    pub inspect_seconds: u64,
    /// Bytes of memory that inspecting one may take. Default 512 MiB.
    pub inspect_memory_bytes: u64,
}

impl Default for EngineSettings {
    fn default() -> Self {
        let engine = EngineConfig::default();
        Self {
            sandboxes: engine.sandboxes,
            stack_bytes: engine.stack_bytes,
            keep_resident_bytes: engine.keep_resident_bytes,
            component_bytes: engine.component_bytes,
            compile_seconds: engine.compile_seconds,
            compile_memory_bytes: engine.compile_memory_bytes,
            inspect_seconds: engine.inspect_seconds,
            inspect_memory_bytes: engine.inspect_memory_bytes,
        }
    }
}

impl EngineSettings {
    /// The engine's configuration with these settings.
    #[must_use]
    pub fn engine(&self, memory_bytes: u64, cache: Option<PathBuf>, compile_worker: Option<PathBuf>) -> EngineConfig {
        EngineConfig {
            sandboxes: self.sandboxes,
            stack_bytes: self.stack_bytes,
            memory_bytes,
            keep_resident_bytes: self.keep_resident_bytes,
            component_bytes: self.component_bytes,
            cache,
            compile_worker,
            compile_seconds: self.compile_seconds,
            compile_memory_bytes: self.compile_memory_bytes,
            inspect_seconds: self.inspect_seconds,
            inspect_memory_bytes: self.inspect_memory_bytes,
        }
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

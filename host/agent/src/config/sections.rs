//! The sections that belong to no other crate's domain.

use std::path::PathBuf;

use runtime::EngineConfig;
use serde::{Deserialize, Serialize};

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

//! The engines: their configuration, and the pool of their instances.
//!
//! Pooled slots so that a fresh instance costs microseconds. There are two engines with different metering (`compiler`).

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use wasmtime::{Cache, CacheConfig, Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::compiler;
use crate::load_error::ComponentOrigin;
use crate::verdict::{Refusals, Verdicts};

/// Untrusted components that are compiled at the same time, in the quick and in the slow lane: each may take the memory
/// of the compile limit.
const MAX_COMPILING: [usize; 2] = [1, 2];

/// Untrusted components that are inspected at the same time, in the quick and in the slow lane.
const MAX_INSPECTING: [usize; 2] = [2, 2];

/// Core instances of one component. componentize-py makes 14 to 38 of them, jco 11; a slot costs a few bytes.
const MAX_CORE_INSTANCES: u32 = 64;

/// Linear memories of one component: a composed component has one for each of its parts. A slot reserves address space
/// only; the call's `memory_bytes` counts all of them together.
const MAX_MEMORIES: u32 = 8;

/// Tables of one component: each part of a composed component brings a few.
const MAX_TABLES: u32 = 32;

/// Host stack below a guest's, for a host function that is called from the deepest guest frame.
const HOST_STACK_BYTES: usize = 512 * 1024;

/// Places for scripts that a call hands to another engine: it keeps its own place meanwhile, so those must be others. A
/// quarter of `sandboxes`; further scripts wait.
const fn script_places(sandboxes: u32) -> u32 {
    sandboxes.div_ceil(4)
}

/// Places for calls in the background, which may hold theirs for long on a busy machine.
const BACKGROUND_PLACES: u32 = 2;

/// Configuration of the engines of a process: the section `[engine]`, and the settings that come from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineConfig {
    /// Guests that may run at the same time; more wait. Default 64. Each reserves 32 GiB of address space, no memory.
    pub sandboxes: u32,
    /// Upper bound of any call's `memory_bytes`. Default 64 MiB (SPEC HOST-5).
    #[serde(skip)]
    pub memory_bytes: u64,
    /// Bytes of call stack of a guest. Default 512 KiB (SPEC HOST-5): about 680 frames of JavaScript. One
    /// size per engine, not per call, because stacks are pooled.
    pub stack_bytes: usize,
    /// Bytes of each slot that stay resident between calls. Default 256 KiB: the memory that a short call touches.
    pub keep_resident_bytes: usize,
    /// Largest component that is loaded. Default 64 MiB (SPEC HOST-4).
    pub component_bytes: u64,
    /// Cache directory for compiled code; if `None`, nothing is cached.
    #[serde(skip)]
    pub cache: Option<PathBuf>,
    /// The program that compiles untrusted components, when called with the argument `compile-worker`. Without it such
    /// components are refused.
    #[serde(skip)]
    pub compile_worker: Option<PathBuf>,
    /// Seconds of two processors for compiling an untrusted component; the wall-clock limit is ten times as long.
    /// Default 60.
    pub compile_seconds: u64,
    /// Bytes of memory that compiling an untrusted component may take. Default 2 GiB.
    pub compile_memory_bytes: u64,
    /// The same for inspecting one: validating it and reading its imports, exports and types. Default 10.
    pub inspect_seconds: u64,
    /// Bytes of memory that inspecting an untrusted component may take. Default 512 MiB.
    pub inspect_memory_bytes: u64,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            sandboxes: 64,
            memory_bytes: 64 << 20,
            stack_bytes: 512 << 10,
            keep_resident_bytes: 256 << 10,
            component_bytes: 64 << 20,
            cache: None,
            compile_worker: None,
            compile_seconds: 60,
            compile_memory_bytes: 2 << 30,
            inspect_seconds: 10,
            inspect_memory_bytes: 512 << 20,
        }
    }
}

/// The engines with their configuration, semaphores and caches. Cheap to clone.
#[derive(Clone)]
pub struct Runtime(Arc<RuntimeInner>);

struct RuntimeInner {
    bundled: Engine,
    /// Created when the first untrusted component is loaded: most processes never load one.
    untrusted: OnceLock<Engine>,
    config: EngineConfig,
    places: Arc<Semaphore>,
    scripts: Arc<Semaphore>,
    background: Arc<Semaphore>,
    compiling: Lanes,
    inspecting: Lanes,
    verdicts: Verdicts,
    refusals: Refusals,
}

/// The queues of one kind of job. A slow job leaves the quick lane, so that components crafted to be slow delay the
/// others by seconds only, however many of them there are.
pub(crate) struct Lanes {
    pub quick: Semaphore,
    pub slow: Semaphore,
}

impl Lanes {
    pub(crate) fn new([quick, slow]: [usize; 2]) -> Self {
        Self { quick: Semaphore::new(quick), slow: Semaphore::new(slow) }
    }
}

impl Runtime {
    /// Creates the engine for bundled components.
    ///
    /// # Errors
    /// If the cache directory cannot be used or the machine lacks a feature that the engine needs.
    pub fn new(config: EngineConfig) -> wasmtime::Result<Self> {
        Ok(Self(Arc::new(RuntimeInner {
            bundled: pooled(&config, ComponentOrigin::Bundled)?,
            untrusted: OnceLock::new(),
            places: Arc::new(Semaphore::new(config.sandboxes as usize)),
            scripts: Arc::new(Semaphore::new(script_places(config.sandboxes) as usize)),
            background: Arc::new(Semaphore::new(BACKGROUND_PLACES as usize)),
            compiling: Lanes::new(MAX_COMPILING),
            inspecting: Lanes::new(MAX_INSPECTING),
            verdicts: Verdicts::default(),
            refusals: Refusals::default(),
            config,
        })))
    }

    pub(crate) fn engine(&self, origin: ComponentOrigin) -> wasmtime::Result<&Engine> {
        match origin {
            ComponentOrigin::Bundled => Ok(&self.0.bundled),
            ComponentOrigin::Untrusted => match self.0.untrusted.get() {
                Some(engine) => Ok(engine),
                None => {
                    let engine = pooled(&self.0.config, origin)?;
                    Ok(self.0.untrusted.get_or_init(|| engine))
                }
            },
        }
    }

    pub(crate) fn config(&self) -> &EngineConfig {
        &self.0.config
    }

    pub(crate) fn places(&self) -> &Arc<Semaphore> {
        &self.0.places
    }

    pub(crate) fn scripts(&self) -> &Arc<Semaphore> {
        &self.0.scripts
    }

    pub(crate) fn background(&self) -> &Arc<Semaphore> {
        &self.0.background
    }

    pub(crate) fn compiling(&self) -> &Lanes {
        &self.0.compiling
    }

    pub(crate) fn inspecting(&self) -> &Lanes {
        &self.0.inspecting
    }

    pub(crate) fn verdicts(&self) -> &Verdicts {
        &self.0.verdicts
    }

    pub(crate) fn refusals(&self) -> &Refusals {
        &self.0.refusals
    }

    /// Largest component that is loaded, in bytes.
    #[must_use]
    pub fn most_component_bytes(&self) -> u64 {
        self.0.config.component_bytes
    }
}

/// Whether the kernel can report the pages a guest touched (`PAGEMAP_SCAN`, Linux 6.7). Without it each call pays for
/// extra page faults.
#[must_use]
pub fn pagemap_scan() -> bool {
    PoolingAllocationConfig::is_pagemap_scan_available()
}

fn pooled(config: &EngineConfig, origin: ComponentOrigin) -> wasmtime::Result<Engine> {
    let mut engine = common_config(origin, config.cache.as_deref())?;
    engine.max_wasm_stack(config.stack_bytes).async_stack_size(config.stack_bytes + HOST_STACK_BYTES);
    engine.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(config)));
    Engine::new(&engine)
}

/// Settings on which the host and its compile worker must agree, or the host could not load the worker's code.
pub(crate) fn common_config(origin: ComponentOrigin, cache: Option<&Path>) -> wasmtime::Result<Config> {
    let mut config = match origin {
        ComponentOrigin::Bundled => compiler::for_bundled(),
        ComponentOrigin::Untrusted => compiler::for_untrusted(),
    };
    if let Some(directory) = cache {
        let mut settings = CacheConfig::new();
        settings.with_directory(directory);
        config.cache(Some(Cache::new(settings)?));
    }
    Ok(config)
}

fn pool(config: &EngineConfig) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    let sandboxes = config.sandboxes.saturating_add(script_places(config.sandboxes)).saturating_add(BACKGROUND_PLACES);
    // No component may take more than its slot's share of the pool, or other slots would run short.
    pool.total_component_instances(sandboxes)
        .total_core_instances(sandboxes * MAX_CORE_INSTANCES)
        .total_memories(sandboxes * MAX_MEMORIES)
        .total_tables(sandboxes * MAX_TABLES)
        .total_stacks(sandboxes)
        .max_core_instances_per_component(MAX_CORE_INSTANCES)
        .max_memories_per_component(MAX_MEMORIES)
        .max_tables_per_component(MAX_TABLES)
        .max_memories_per_module(MAX_MEMORIES)
        .max_tables_per_module(4)
        .table_elements(20_000)
        .max_memory_size(usize::try_from(config.memory_bytes).unwrap_or(usize::MAX))
        .linear_memory_keep_resident(config.keep_resident_bytes)
        .table_keep_resident(64 << 10)
        .async_stack_keep_resident(64 << 10)
        .pagemap_scan(Enabled::Auto);
    pool
}

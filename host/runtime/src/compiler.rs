//! The settings of wasmtime's compiler: the one place of them.
//!
//! Copy-on-write memory images, fuel as the only metering, and every proposal that no component toolchain emits switched
//! off. Bundled components are metered at their branches, which is cheap and sufficient for code we built; an untrusted
//! component pays for every instruction, or it could put a second of work between two branches and outrun its deadline.
//!
//! The program `precompile` of `xtask/preinit` includes this file by its path, so that it is built without the runtime: it
//! must use nothing of this crate.

use wasmtime::{Config, OperatorCost};

/// The settings for components that are part of the program.
pub(crate) fn for_bundled() -> Config {
    let mut config = for_untrusted();
    config.operator_cost(branches_only());
    config
}

/// The settings for all other components.
pub(crate) fn for_untrusted() -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .memory_init_cow(true)
        .concurrency_support(false)
        .wasm_backtrace_max_frames(None)
        .native_unwind_info(false)
        .generate_address_map(false)
        .wasm_relaxed_simd(false)
        .wasm_tail_call(false)
        // wasmtime's own adapters between the parts of a composed component use several memories.
        .wasm_multi_memory(true)
        .wasm_memory64(false)
        // componentize-py and jco emit it for position-independent code.
        .wasm_extended_const(true)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false)
        .wasm_stack_switching(false);
    config
}

/// One unit for each branch; function entries cost one of themselves. Every loop goes through a branch and every
/// recursion through an entry, so nothing runs forever free of charge, and straight-line code costs no instruction to
/// meter. Bulk operations keep the engine's charge by length. For bundled components only: the author of a component
/// decides how much work lies between two branches.
fn branches_only() -> OperatorCost {
    macro_rules! free {
        ($( @$proposal:ident $op:ident $({ $($arg:ident: $argty:ty),* })? => $visit:ident ($($ann:tt)*) )*) => {
            OperatorCost { $($op: 0,)* variable: OperatorCost::new().variable }
        };
    }
    let mut cost = wasmparser::for_each_operator!(free);
    for branch in [
        &mut cost.Br,
        &mut cost.BrIf,
        &mut cost.BrTable,
        &mut cost.BrOnNull,
        &mut cost.BrOnNonNull,
        &mut cost.BrOnCast,
        &mut cost.BrOnCastFail,
    ] {
        *branch = 1;
    }
    cost
}

//! The only place where WIT becomes Rust: imports generated once, guest worlds share them.
//!
//! Architecture invariant: only generated code and names for it. `capabilities` implements the interfaces; `runtime`
//! loads and calls components.
#![allow(missing_docs, clippy::all, reason = "generated code is documented in `wit/`")]

/// The version of `motor:host` this host speaks.
pub const HOST_VERSION: &str = "0.1.2";

mod imports {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "host-imports",
        imports: {
            // A guest decides how long these compute: they yield in between.
            "motor:host/credentials.hmac-sha256": async | trappable,
            "motor:host/credentials.sign": async | trappable,
            default: trappable,
        },
        require_store_data_send: true,
    });
}

pub use imports::motor::host::{credentials, log, outbound, progress, scripts, types};

/// A component that offers tools.
pub mod tool {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "tool",
        exports: { default: async },
        require_store_data_send: true,
        with: {
            "motor:host/types": crate::imports::motor::host::types,
            "motor:host/log": crate::imports::motor::host::log,
            "motor:host/progress": crate::imports::motor::host::progress,
            "motor:host/outbound": crate::imports::motor::host::outbound,
            "motor:host/credentials": crate::imports::motor::host::credentials,
        },
    });
}

/// A component that describes itself.
pub mod skill {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "skill",
        exports: { default: async },
        require_store_data_send: true,
        with: {
            "motor:host/types": crate::imports::motor::host::types,
            "motor:host/log": crate::imports::motor::host::log,
            "motor:host/progress": crate::imports::motor::host::progress,
            "motor:host/outbound": crate::imports::motor::host::outbound,
            "motor:host/credentials": crate::imports::motor::host::credentials,
        },
    });
}

/// An engine for model-written code.
pub mod code {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "code",
        exports: { default: async },
        require_store_data_send: true,
    });
}

/// The part of a cortex that builds prompts and reads replies.
pub mod reflector {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "reflector",
        exports: { default: async },
        require_store_data_send: true,
        with: {
            "motor:host/log": crate::imports::motor::host::log,
        },
    });
}

/// The same part of a cortex, which also reads guidance in replies.
pub mod guiding_reflector {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "guiding-reflector",
        exports: { default: async },
        require_store_data_send: true,
        with: {
            "motor:host/log": crate::imports::motor::host::log,
        },
    });
}

/// A neuron: signals in, signals out, and nothing else.
pub mod neuron {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "neuron",
        exports: { default: async },
        require_store_data_send: true,
    });
}

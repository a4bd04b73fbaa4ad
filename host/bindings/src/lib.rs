//! The only place where WIT becomes Rust: imports generated once, guest worlds share them.
//!
//! Architecture invariant: nothing but generated code and names for it. What an interface *does* is in `capabilities`;
//! how a component is loaded and called is in `runtime`.
#![allow(missing_docs, clippy::all, reason = "generated code is documented in `wit/`")]

/// The version of `motor:host` this host speaks.
pub const HOST_VERSION: &str = "0.1.1";

mod imports {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "host-imports",
        imports: {
            // These compute for as long as a guest likes to ask: they give way in between.
            "motor:host/credentials.hmac-sha256": async | trappable,
            "motor:host/credentials.sign": async | trappable,
            default: trappable,
        },
        require_store_data_send: true,
    });
}

pub use imports::motor::host::{credentials, log, outbound, progress, types};

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

/// A component that says what it is.
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

/// An engine for code a model wrote.
pub mod code {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "code",
        exports: { default: async },
        require_store_data_send: true,
    });
}

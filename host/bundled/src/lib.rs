//! The guests that are part of the program: built by `cargo xtask guests`, embedded here.
//!
//! A crate of its own because it is where build products enter: nothing else depends on how guests are built.

/// The JavaScript engine, of the world `code`; pre-initialised.
pub const CODE_JS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/code-js.wasm"));

/// The JavaScript engine with `fetch` and `workspace`, for programs that were granted them; pre-initialised.
pub const CODE_JS_CONNECTED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/code-js-connected.wasm"));

/// The tool `fetch`, of the world `tool`.
pub const FETCH: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/fetch.wasm"));

/// The tool `bash`, of the world `tool`.
pub const BASH: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bash.wasm"));

/// The file tools, of the world `tool`.
pub const FILES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/files.wasm"));

//! The guests that are part of the program: built by `cargo xtask guests`, embedded here.
//!
//! A separate crate because build products enter here: nothing else depends on how guests are built. The bytes are
//! statics and not constants, and behind a static of their own: every use of a constant, and every constant expression
//! that reads through a static's reference, would embed a further copy.

/// A bundled component. The array itself is the static that all uses refer to.
macro_rules! component {
    ($(#[$docs:meta])* $name:ident = $file:literal) => {
        $(#[$docs])*
        pub static $name: &[u8] = {
            const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/", $file));
            static ONLY: [u8; BYTES.len()] = *include_bytes!(concat!(env!("OUT_DIR"), "/", $file));
            &ONLY
        };
    };
}

component!(
    /// The JavaScript engine, of the world `code`; pre-initialised.
    CODE_JS = "code-js.wasm"
);
component!(
    /// The JavaScript engine with `fetch` and `workspace`, for programs that were granted them; pre-initialised.
    CODE_JS_CONNECTED = "code-js-connected.wasm"
);
component!(
    /// The tool `fetch`, of the world `tool`.
    FETCH = "fetch.wasm"
);
component!(
    /// The tool `bash`, of the world `tool`.
    BASH = "bash.wasm"
);
component!(
    /// The file tools, of the world `tool`.
    FILES = "files.wasm"
);

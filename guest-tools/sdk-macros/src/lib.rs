//! `#[tool]`, which `motor-sdk` re-exports and documents.
//!
//! It must not know the host. A function that cannot be a tool is a compile error at the place of the fault, with the
//! fix; the checks here are those of the host that can be done without running anything.

mod effects;
mod expand;
mod options;
mod text;

use proc_macro::TokenStream;

/// Makes a function a tool of its name. See `motor_sdk::tool`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, function: TokenStream) -> TokenStream {
    expand::tool(options.into(), function.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}

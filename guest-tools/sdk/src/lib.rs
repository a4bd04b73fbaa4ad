//! Writing a tool for Motor Cortex in Rust: typed arguments, a handler, one line to export.
//!
//! ```
//! use motor_sdk::{Context, Tool, ToolError};
//!
//! motor_sdk::arguments! {
//!     struct Double {
//!         /// The number to double.
//!         number: f64,
//!     }
//! }
//!
//! fn double(arguments: Double, _context: &Context) -> Result<String, ToolError> {
//!     Ok((arguments.number * 2.0).to_string())
//! }
//!
//! fn tools() -> Vec<Tool> {
//!     vec![Tool::new("double", "Doubles a number.", double).read_only()]
//! }
//!
//! motor_sdk::export!(tools);
//! # fn main() {}
//! ```
//!
//! It must not know any particular tool, nor promise anything the host enforces: a component written without it, in
//! any language, has the same rights and the same limits. What it survives is a model's arguments: whatever the JSON,
//! the answer is a handler's result or a `bad-input` that names the argument and what would be right.

mod arguments;
mod error;
pub mod http;
pub mod log;
mod nearest;
pub mod progress;
mod schema;
mod tool;

pub use schemars;
pub use serde;
pub use serde_json;

pub use bindings::motor::host::types::{CallContext as Context, Effects, Failure, ToolDescription, ToolError};
pub use nearest::nearest;
pub use tool::{Tool, Toolset, call};

/// What the WIT world `tool` generates, for the few who need more than this crate wraps.
#[allow(missing_docs, unsafe_code, clippy::all, clippy::restriction)]
pub mod bindings {
    wit_bindgen::generate!({ world: "tool", path: "../../wit", pub_export_macro: true });
}

/// Declares the arguments of tools: structs whose fields are the arguments, and the types those use. Doc comments of
/// fields are what a model reads; an `Option` may be left out. `#[serde(..)]` and `#[schemars(..)]` work as ever.
#[macro_export]
macro_rules! arguments {
    ($($type:item)+) => {
        $(
            #[derive($crate::serde::Deserialize, $crate::schemars::JsonSchema)]
            #[serde(crate = "motor_sdk::serde")]
            #[schemars(crate = "motor_sdk::schemars")]
            $type
        )+
    };
}

/// Exports the tools that a function `fn() -> Vec<Tool>` offers: `motor_sdk::export!(tools);`, once in a component.
#[macro_export]
macro_rules! export {
    ($tools:path) => {
        // The exports have fixed foreign names, which the language counts as unsafe; nothing an author wrote is.
        #[allow(unsafe_code)]
        const _: () = {
            struct Component;
            impl $crate::Toolset for Component {
                fn tools() -> ::std::vec::Vec<$crate::Tool> {
                    $tools()
                }
            }
    $crate::bindings::export!(Component with_types_in $crate::bindings);
        };
    };
}

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
//! A whole skill in one file, which can be dropped in and used, describes itself beside its tools: [`skill!`]
//! instead of [`export!`], in a component of the world `skill`.
//!
//! ```
//! # use motor_sdk::{Context, Tool, ToolError};
//! # motor_sdk::arguments! {
//! #     struct Double {
//! #         number: f64,
//! #     }
//! # }
//! # fn double(arguments: Double, _context: &Context) -> Result<String, ToolError> {
//! #     Ok((arguments.number * 2.0).to_string())
//! # }
//! # fn tools() -> Vec<Tool> {
//! #     vec![Tool::new("double", "Doubles a number.", double).read_only()]
//! # }
//! motor_sdk::skill! {
//!     name: "doubling",
//!     description: "Doubles numbers. Use it whenever something is to be doubled.",
//!     // Markdown that a model reads when the skill is used; `include_str!` keeps a long one in a file of its own.
//!     instructions: "Call `double` with the number. Do not double in your head.",
//!     tools: tools,
//! }
//! # fn main() {}
//! ```
//!
//! It must not know any particular tool, nor promise anything the host enforces: a component written without it, in
//! any language, has the same rights and the same limits. It survives a model's arguments: for any JSON,
//! the answer is a handler's result or a `bad-input` that names the argument and the right form.

mod arguments;
mod error;
pub mod http;
pub mod log;
mod nearest;
pub mod progress;
mod schema;
pub mod testing;
mod tool;

pub use schemars;
pub use serde;
pub use serde_json;

pub use bindings::motor::host::types::{CallContext as Context, Effects, Failure, ToolDescription, ToolError};
pub use nearest::nearest;
pub use tool::{Tool, Toolset, call};

/// Generated from the WIT world `tool`, for the few who need more than this crate wraps.
#[allow(missing_docs, unsafe_code, clippy::all, clippy::restriction)]
pub mod bindings {
    wit_bindgen::generate!({ world: "tool", path: "../../wit", pub_export_macro: true });
}

/// Generated from the WIT interface `about`; a world of its own: a component without [`skill!`] must not export it.
#[doc(hidden)]
#[allow(missing_docs, unsafe_code, clippy::all, clippy::restriction)]
pub mod about {
    wit_bindgen::generate!({
        inline: "package motor:sdk; world described { export motor:host/about@0.1.1; }",
        path: "../../wit",
        world: "motor:sdk/described",
        pub_export_macro: true,
    });
}

/// Declares the arguments of tools: structs whose fields are the arguments, and the types those use. Doc comments of
/// fields are for the model; an `Option` may be left out. `#[serde(..)]` and `#[schemars(..)]` work as ever.
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

/// Exports a whole skill, once in a component: its texts, and the tools that a function `fn() -> Vec<Tool>` offers. The
/// name is `[a-z][a-z0-9-]*[a-z0-9]`, at most 64 characters without `--`; the description says its purpose and when to
/// use it, in at most 1024 characters; the instructions are Markdown, at most 64 KiB.
///
/// It takes the place of [`export!`]. Its texts grant nothing: the owner who approves the skill reads them.
#[macro_export]
macro_rules! skill {
    (name: $name:expr, description: $description:expr, instructions: $instructions:expr, tools: $tools:path $(,)?) => {
        $crate::export!($tools);
        #[allow(unsafe_code)]
        const _: () = {
            struct Described;
            impl $crate::about::exports::motor::host::about::Guest for Described {
                fn describe() -> $crate::about::exports::motor::host::about::Description {
                    $crate::about::exports::motor::host::about::Description {
                        name: ::std::string::String::from($name),
                        description: ::std::string::String::from($description),
                        instructions: ::std::string::String::from($instructions),
                    }
                }
            }
    $crate::about::export!(Described with_types_in $crate::about);
        };
    };
}

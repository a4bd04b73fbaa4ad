//! Writing a tool for Motor Cortex in Rust: typed arguments, a handler, one line to export.
//!
//! ```
//! use motor_sdk::{ToolError, tool};
//!
//! /// Doubles a number.
//! #[tool(effects = "read")]
//! fn double(
//!     /// The number to double.
//!     number: f64,
//! ) -> Result<String, ToolError> {
//!     Ok((number * 2.0).to_string())
//! }
//!
//! motor_sdk::export!([double]);
//! # fn main() {}
//! ```
//!
//! A whole skill in one file, which can be dropped in and used, describes itself beside its tools: [`skill!`]
//! instead of [`export!`], in a component of the world `skill`.
//!
//! ```
//! # use motor_sdk::{ToolError, tool};
//! # /// Doubles a number.
//! # #[tool(effects = "read")]
//! # fn double(number: f64) -> Result<String, ToolError> {
//! #     Ok((number * 2.0).to_string())
//! # }
//! motor_sdk::skill! {
//!     name: "doubling",
//!     description: "Doubles numbers. Use it whenever something is to be doubled.",
//!     // Markdown that a model reads when the skill is used; `include_str!` keeps a long one in a file of its own.
//!     instructions: "Call `double` with the number. Do not double in your head.",
//!     tools: [double],
//! }
//! # fn main() {}
//! ```
//!
//! A tool that is made of parts, such as a handler that is given its way out for tests, is built by hand with [`Tool`];
//! then `export!(tools)` takes a function `fn() -> Vec<Tool>`.
//!
//! It must not know any particular tool, nor promise anything the host enforces: a component written without it, in
//! any language, has the same rights and the same limits. It survives a model's arguments: for any JSON,
//! the answer is a handler's result or a `bad-input` that names the argument and the right form.

// The attribute writes `::motor_sdk`, in this crate's own tests too.
extern crate self as motor_sdk;

mod arguments;
pub mod credentials;
mod error;
pub mod http;
pub mod log;
mod nearest;
pub mod progress;
mod schema;
pub mod testing;
mod tool;
pub mod workspace;

pub use schemars;
pub use serde;
pub use serde_json;

pub use bindings::motor::host::types::{CallContext as Context, Effects, Failure, ToolDescription, ToolError};
pub use nearest::nearest;
pub use tool::{Tool, ToolFunction, Toolset, call};

/// Makes a function a tool: its name is the tool's, its doc comment the description, its parameters the arguments.
///
/// - A parameter is of any type with `Deserialize` and `JsonSchema` ([`arguments!`] derives both for types of your own). Its doc
///   comment is for the model, and an `Option` may be left out; `#[serde(..)]` and `#[schemars(..)]` work as on a field.
///   `&Context` is no argument: the host's word about the call, for a tool that wants it.
/// - It returns `Result<T, E>`. A `String` is text; any other `T` with `Serialize` and `JsonSchema` is JSON, with its schema
///   in the description. `E` is [`ToolError`], or converts into it with `From`.
/// - `effects = ".."` is `read`, `write` or `destructive`, and after it `idempotent` or `open-world` where they hold. `read` is
///   idempotent too. Without it the host takes the worst case.
/// - `name = ".."` is the tool's name where it is not the function's.
///
/// The function stays as it is, and can be called in tests. [`export!`], [`skill!`] and [`tools!`] take it by its name.
///
/// ```
/// # use motor_sdk::{Context, ToolError, tool};
/// /// Says how long a call may take.
/// #[tool(effects = "read")]
/// fn deadline(context: &Context) -> Result<String, ToolError> {
///     Ok(format!("{} ms", context.deadline_ms))
/// }
/// let tools = motor_sdk::tools![deadline];
/// assert_eq!(motor_sdk::testing::call(&tools, "deadline", motor_sdk::serde_json::json!({})).unwrap(), "10000 ms");
/// ```
///
/// A function that cannot be a tool does not compile, and the message names the fix:
///
/// ```compile_fail
/// # use motor_sdk::{ToolError, tool};
/// /// Says hello.
/// #[tool]
/// fn greet(name: &str) -> Result<String, ToolError> {
///     Ok(format!("hello, {name}"))
/// }
/// ```
pub use motor_sdk_macros::tool;

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
        inline: "package motor:sdk; world described { export motor:host/about@0.1.2; }",
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

/// The tools of functions with [`#[tool]`](macro@crate::tool), as a `Vec<Tool>`.
#[macro_export]
macro_rules! tools {
    ($($function:ty),* $(,)?) => {
        ::std::vec![$(<$function as $crate::ToolFunction>::tool()),*]
    };
}

/// Exports tools, once in a component: functions with [`#[tool]`](macro@crate::tool), `motor_sdk::export!([greet]);`, or those
/// that a function `fn() -> Vec<Tool>` offers, `motor_sdk::export!(tools);`.
#[macro_export]
macro_rules! export {
    ([$($function:ty),+ $(,)?]) => {
        const _: () = {
            fn tools() -> ::std::vec::Vec<$crate::Tool> {
                $crate::tools![$($function),+]
            }
            $crate::export!(tools);
        };
    };
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

/// Exports a whole skill, once in a component: its texts, and its tools as [`export!`] takes them. The
/// name is `[a-z][a-z0-9-]*[a-z0-9]`, at most 64 characters without `--`; the description says its purpose and when to
/// use it, in at most 1024 characters; the instructions are Markdown, at most 64 KiB.
///
/// It takes the place of [`export!`]. Its texts grant nothing: the owner who approves the skill reads them.
#[macro_export]
macro_rules! skill {
    (name: $name:expr, description: $description:expr, instructions: $instructions:expr, tools: $tools:tt $(,)?) => {
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

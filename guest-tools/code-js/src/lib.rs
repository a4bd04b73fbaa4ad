//! JavaScript for programs a model wrote: QuickJS behind the `code` world.
//!
//! The component imports nothing, so nothing here can reach a file, a host or a real clock: time and randomness are
//! values of the call. The second build, with the feature `connected`, also has `fetch` and `workspace`, for programs
//! with that grant; their reach is the host's decision. The engine is built once by `init`, before the build snapshots
//! the memory. It must not know the purpose of a program, nor keep anything for a next call: an instance runs one
//! program and is thrown away, so nothing is freed at the end either. The host survives hostile programs: it bounds
//! loops, memory and stack, and changes of a program to its own globals only reach itself.

mod clock;
#[cfg(feature = "connected")]
mod connected;
mod console;
mod cut;
mod engine;
mod fault;
mod random;
mod rejections;
mod run;

/// Generated from the WIT world.
#[allow(missing_docs, unsafe_code, clippy::all, clippy::restriction)]
mod bindings {
    #[cfg(not(feature = "connected"))]
    wit_bindgen::generate!({ path: "../../wit", world: "code" });
    #[cfg(feature = "connected")]
    wit_bindgen::generate!({ path: "../../wit", world: "code-connected" });
    use super::Component;
    export!(Component with_types_in self);
}

use bindings::exports::motor::host::interpreter::{Guest, Program, Report};

struct Component;

impl Guest for Component {
    fn execute(program: Program) -> Report {
        engine::with(|engine| run::run(engine, program))
    }
}

/// Builds and warms the engine. Called once at build time; the snapshot taken afterwards no longer exports it.
#[allow(unsafe_code, reason = "the export needs a fixed name")]
#[unsafe(no_mangle)]
pub extern "C" fn init() {
    engine::with(run::warm_up);
}

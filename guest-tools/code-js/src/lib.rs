//! JavaScript for programs a model wrote: QuickJS behind the `code` world.
//!
//! The component imports nothing, so nothing here can reach a file, a host or a real clock: time and randomness are
//! values of the call. The second build, with the feature `connected`, also has `fetch` and `workspace`, for programs that
//! were granted them; what those reach is the host's decision. The engine is built once by `init`, before the build snapshots the memory; a call finds it ready.
//! It must not know what a program is for, nor keep anything for a next call: an instance runs one program and is
//! thrown away, so nothing is freed at the end either. What survives a hostile program is the host: loops, memory and
//! stack are bounded there, and what a program does to its own globals only reaches itself.

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

/// What the WIT world generates.
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

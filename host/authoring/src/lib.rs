//! Projects of tools, skills, reflectors and neurons on their author's machine: scaffolding, building with the language's own
//! toolchain, test cases as files, and packing (SPEC HOST-9).
//!
//! It knows no engine and no home: callers run the built component. It trusts the project like any source code that its
//! author builds; nothing here gives a component powers.

mod bindings;
mod case;
mod describe;
mod javascript;
mod pack;
mod package;
mod project;
mod scaffold;
mod sdk;
mod sources;
mod toolchain;
mod unused;

pub use case::{Case, Expected, Observed, Verdict, case, cases};
pub use pack::{PackedSkill, ToolLine, pack};
pub use package::{encoded_interfaces, interfaces};
pub use project::{Kind, Language, Project};
pub use scaffold::create;
pub use sources::fingerprint;
pub use toolchain::build;

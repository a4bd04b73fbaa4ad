//! The tools of runs: the catalogue of bundled ones, their sandboxes, and the `Toolbox` port of `motor` over them.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests"))]

mod briefing;
pub mod catalogue;
mod code;
mod commands;
mod config;
mod consent;
mod define;
mod direct;
mod output;
mod pinned;
mod preparing;
mod reply;
mod run;
mod sandboxes;
mod save;

pub use code::CodeGrants;
pub use commands::unknown_commands;
pub use config::{CodeConfig, ToolsConfig};
pub use consent::asks_before;
pub use define::{define, effects_in_words};
pub use direct::{DirectCall, DirectReply};
pub use preparing::Preparations;
pub use run::{RunToolbox, ToolboxParts};
pub use sandboxes::{BundledComponent, CompileTurn, SandboxPool, SkillTool, Toolset, bundled_component, load, unpack};
pub use save::{FindSaved, NOT_KEPT, SAVE_CREDENTIAL, SavedCredentials};

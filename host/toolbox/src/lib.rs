//! The tools of runs: the catalogue of bundled ones, their sandboxes, and the `Toolbox` port of `motor` over them.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests"))]

mod briefing;
pub mod catalogue;
mod code;
mod config;
mod consent;
mod define;
mod direct;
mod output;
mod preparing;
mod reply;
mod run;
mod sandboxes;

pub use code::CodeGrants;
pub use config::{CodeConfig, ToolsConfig};
pub use define::{define, effects_in_words};
pub use direct::{DirectCall, DirectReply};
pub use preparing::Preparations;
pub use run::{RunToolbox, ToolboxParts};
pub use sandboxes::{BundledComponent, CompileTurn, SandboxPool, SkillTool, Toolset, bundled_component, load};

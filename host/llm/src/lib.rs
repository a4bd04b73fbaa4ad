//! The contract between the loops and a language model: messages, tools, replies, usage, errors; and the parts
//! common to all providers: roles, fallbacks, recordings, and the mending of model output.
//!
//! Architecture invariant: no HTTP here. `providers` speaks to real endpoints; `replay` serves recorded turns.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests"))]

pub mod arguments;
pub mod constrained;
pub mod fallback;
pub mod message;
pub mod model;
pub mod price;
pub mod record;
pub mod recording;
pub mod reference;
pub mod repair;
pub mod replay;
pub mod role;
mod shown;
pub mod shown_usage;

pub use arguments::check_arguments;
pub use constrained::ConstrainedModel;
pub use fallback::Fallback;
pub use message::{Arguments, Message, ProviderState, RequestedCall, ToolSpec};
pub use model::{ChatReply, ChatRequest, Delta, FinishReason, Model, ModelError, ModelErrorKind, Usage};
pub use price::{MicroUsd, ModelPrice, PriceTable};
pub use record::Recorder;
pub use reference::{InvalidModelRef, ModelRef, Provider};
pub use repair::{ReasoningFilter, Recovery, TextCall, granted_name, recover_text_calls, take_reasoning};
pub use replay::Replay;
pub use role::{Role, RoleSettings, RoleUnset};

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
pub mod record;
pub mod recording;
pub mod reference;
pub mod repair;
pub mod replay;
pub mod role;

pub use arguments::check_arguments;
pub use constrained::Constrained;
pub use fallback::Fallback;
pub use message::{Arguments, Message, ProviderState, ToolCall, ToolSpec};
pub use model::{ChatReply, ChatRequest, Delta, FinishReason, Model, ModelError, ModelErrorKind, Usage};
pub use record::Recorder;
pub use reference::{InvalidModelRef, ModelRef, Provider};
pub use repair::{ReasoningFilter, Recovery, TextCall, granted_name, recover_text_calls, take_reasoning};
pub use replay::Replay;
pub use role::{Role, RoleSettings, RoleUnset};

/// The nearest of `known` to `text`, if it is near enough to be a likely match.
pub(crate) fn nearest<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// Below this Jaro-Winkler similarity two names are unrelated.
    const SIMILAR: f64 = 0.82;
    let text = text.to_lowercase();
    known
        .map(|name| {
            let lower = name.to_lowercase();
            // `file_path` for `path`, `filePath` for `path`, `q` for `query`: a name that contains the other.
            let part = lower.len() >= 3 && text.contains(&lower) || text.len() >= 3 && lower.contains(&text);
            let score = if part { 0.95 } else { strsim::jaro_winkler(&text, &lower) };
            (score, name)
        })
        .filter(|(score, _)| *score >= SIMILAR)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

/// Cuts `text` to at most `max` characters and marks the cut: outside text must not fill a message.
pub(crate) fn cut(text: &str, max: usize) -> String {
    let mut short: String = text.chars().take(max).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

//! Why a model stopped, from the names that providers have for it. One table for all: no name means two things.

use llm::{ChatReply, FinishReason, ModelErrorKind};

use crate::failure::{ProviderFailure, said};

/// The reason that a provider's name stands for.
///
/// # Errors
/// If the name reports a failure of the provider or its server: the reply is unusable.
pub(crate) fn reason(name: &str) -> Result<FinishReason, ProviderFailure> {
    // Gemini's door for OpenAI clients says `content_filter: SAFETY`.
    let bare = name.split(':').next().unwrap_or(name).trim().to_ascii_lowercase();
    Ok(match bare.as_str() {
        "stop" | "end_turn" | "stop_sequence" | "eos" | "eos_token" | "completed" | "complete" => FinishReason::Stop,
        "tool_calls" | "tool_call" | "tool_use" | "function_call" => FinishReason::ToolCalls,
        "length" | "max_tokens" | "max_output_tokens" | "max_completion_tokens" => FinishReason::Length,
        "pause_turn" => FinishReason::Paused,
        "refusal" => FinishReason::Refused,
        "model_context_window_exceeded" | "context_length_exceeded" | "model_length" => FinishReason::ContextFull,
        "content_filter"
        | "content_filtered"
        | "guardrail_intervened"
        | "sensitive"
        | "safety"
        | "recitation"
        | "language"
        | "blocklist"
        | "prohibited_content"
        | "spii"
        | "image_safety"
        | "image_prohibited_content"
        | "image_recitation" => FinishReason::Filtered,
        "malformed_function_call" | "unexpected_tool_call" => {
            let message = format!("the model wrote a tool call that its provider could not read (`{}`)", said(name));
            return Err(ProviderFailure::new(ModelErrorKind::Malformed, message));
        }
        "error" | "abort" | "aborted" | "cancelled" | "insufficient_system_resource" | "load" | "unload" => {
            let message = format!("the endpoint gave up within the reply (`{}`)", said(name));
            return Err(ProviderFailure::new(ModelErrorKind::Unavailable, message));
        }
        _ => FinishReason::Other,
    })
}

/// The reason of a reply that has two names for it: the provider's own (OpenRouter's `native_finish_reason`) counts where
/// it tells more than the common one.
pub(crate) fn reason_of_two(name: &str, native: Option<&str>) -> Result<(FinishReason, String), ProviderFailure> {
    let common = reason(name)?;
    match native.map(|native| (native, reason(native))) {
        Some((native, Ok(reason))) if !reason.is_complete() && reason != FinishReason::Other => {
            Ok((reason, native.to_owned()))
        }
        Some((_, Err(failure))) => Err(failure),
        _ => Ok((common, name.to_owned())),
    }
}

/// The text of [`ChatReply::finish_detail`]: none after an ordinary end.
pub(crate) fn detail(reason: FinishReason, name: &str, words: &str) -> Option<String> {
    let words = said(words);
    let text = match (reason, words.is_empty()) {
        (FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Missing, _) => return None,
        (_, true) => said(name),
        (_, false) => format!("{}: {words}", said(name)),
    };
    Some(text.chars().take(ChatReply::MAX_DETAIL).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_native_reason_counts_where_it_tells_more() {
        for (name, native, expected) in [
            ("stop", None, Ok(FinishReason::Stop)),
            ("stop", Some("STOP"), Ok(FinishReason::Stop)),
            ("stop", Some("completed"), Ok(FinishReason::Stop)),
            ("stop", Some("refusal"), Ok(FinishReason::Refused)),
            ("length", Some("model_context_window_exceeded"), Ok(FinishReason::ContextFull)),
            ("content_filter", Some("SAFETY"), Ok(FinishReason::Filtered)),
            ("length", Some("something"), Ok(FinishReason::Length)),
            ("content_filter: SAFETY", None, Ok(FinishReason::Filtered)),
            ("whatever", None, Ok(FinishReason::Other)),
            ("error", None, Err(ModelErrorKind::Unavailable)),
            ("stop", Some("MALFORMED_FUNCTION_CALL"), Err(ModelErrorKind::Malformed)),
        ] {
            let found = reason_of_two(name, native).map(|(reason, _)| reason).map_err(|failure| failure.kind);
            assert_eq!(found, expected, "{name} {native:?}");
        }
    }
}

//! `provider/model`: how configuration, flags and records name a model (SPEC CONF-3).
//!
//! It knows the names of providers, not how to reach them. The text comes from people and files: the error for an
//! unknown provider names the nearest known one.

use std::fmt;
use std::str::FromStr;

use base::text::{cut, did_you_mean, nearest};
use serde::{Deserialize, Serialize};

/// The server of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Provider {
    /// OpenAI, or the endpoint in `OPENAI_BASE_URL`.
    OpenAi,
    /// OpenRouter, a gateway to many models.
    OpenRouter,
    /// Anthropic, serving the Claude models.
    Anthropic,
    /// Google Gemini, via Google's own API.
    Gemini,
    /// A local Ollama server.
    Ollama,
    /// An OpenAI-compatible endpoint at `OPENAI_BASE_URL`, with or without a key.
    Compatible,
    /// Recorded turns from a file.
    Replay,
}

impl Provider {
    /// All of the known providers.
    pub const ALL: [Self; 7] =
        [Self::OpenAi, Self::OpenRouter, Self::Anthropic, Self::Gemini, Self::Ollama, Self::Compatible, Self::Replay];

    /// The name before the slash.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenRouter => "openrouter",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::Compatible => "compatible",
            Self::Replay => "replay",
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A model and its provider, written `provider/model`. Everything after the first slash is the model: names with
/// slashes (`openrouter/vendor/name`) and paths (`replay/demo/turns.jsonl`) stay whole.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModelRef {
    /// The provider that serves it.
    pub provider: Provider,
    /// The model's name there; for [`Provider::Replay`] a file.
    pub model: String,
}

/// A text that is not a model reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidModelRef {
    /// The text has no slash.
    #[error("`{text}` names no provider: write `provider/model`, for example `{example}`")]
    NoProvider {
        /// The text that was given.
        text: String,
        /// A likely intended reference.
        example: String,
    },
    /// There is nothing after the slash.
    #[error("`{provider}/` names no model: write `{provider}/` and the model's name")]
    NoModel {
        /// The provider before the slash.
        provider: Provider,
    },
    /// The provider is not a known one.
    #[error("unknown provider `{provider}`{}; known: {}", did_you_mean(.suggestion.as_ref()), known())]
    UnknownProvider {
        /// The text before the slash.
        provider: String,
        /// The nearest known provider, if any.
        suggestion: Option<Provider>,
    },
    /// It has a control character or more than 512 bytes.
    #[error("a model's name is at most 512 bytes without control characters")]
    NotAName,
}

fn known() -> String {
    Provider::ALL.map(Provider::as_str).join(", ")
}

impl FromStr for ModelRef {
    type Err = InvalidModelRef;

    fn from_str(text: &str) -> Result<Self, InvalidModelRef> {
        let text = text.trim();
        if text.len() > 512 || text.chars().any(char::is_control) {
            return Err(InvalidModelRef::NotAName);
        }
        let Some((name, model)) = text.split_once('/') else {
            let example = match nearest(text, Provider::ALL.map(|known| (known.as_str(), known))) {
                Some(provider) => format!("{provider}/MODEL"),
                None => format!("openai/{}", if text.is_empty() { "MODEL" } else { text }),
            };
            return Err(InvalidModelRef::NoProvider { text: cut(text, 80), example: cut(&example, 80) });
        };
        let written = name.to_ascii_lowercase();
        let Some(provider) = Provider::ALL.into_iter().find(|provider| provider.as_str() == written) else {
            let suggestion = nearest(name, Provider::ALL.map(|known| (known.as_str(), known)));
            return Err(InvalidModelRef::UnknownProvider { provider: cut(name, 80), suggestion });
        };
        if model.trim().is_empty() {
            return Err(InvalidModelRef::NoModel { provider });
        }
        Ok(Self { provider, model: model.to_owned() })
    }
}

impl TryFrom<String> for ModelRef {
    type Error = InvalidModelRef;
    fn try_from(text: String) -> Result<Self, InvalidModelRef> {
        text.parse()
    }
}

impl From<ModelRef> for String {
    fn from(reference: ModelRef) -> Self {
        reference.to_string()
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, provider: Provider, model: &str) {
        assert_eq!(text.parse(), Ok(ModelRef { provider, model: model.to_owned() }), "{text}");
    }

    fn refuse(text: &str, part: &str) {
        let error = text.parse::<ModelRef>().unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }

    #[test]
    fn everything_after_the_first_slash_is_the_model() {
        check("openai/gpt-5", Provider::OpenAi, "gpt-5");
        check("openrouter/anthropic/claude-opus", Provider::OpenRouter, "anthropic/claude-opus");
        check("replay//srv/demo/turns.jsonl", Provider::Replay, "/srv/demo/turns.jsonl");
        check("ollama/qwen3:4b", Provider::Ollama, "qwen3:4b");
        check(" OpenAI/gpt-5\n", Provider::OpenAi, "gpt-5");
    }

    #[test]
    fn what_is_not_a_model_is_told_what_would_be() {
        refuse("gpt-5", "`openai/gpt-5`");
        refuse("ollama", "`ollama/MODEL`");
        refuse("", "`openai/MODEL`");
        refuse("antropic/claude", "did you mean `anthropic`?");
        refuse("open-router/x", "did you mean `openrouter`?");
        refuse("zzz/claude", "known: openai, openrouter");
        refuse("openai/", "names no model");
        refuse("openai/a\u{0}b", "control characters");
        refuse(&format!("openai/{}", "x".repeat(600)), "512 bytes");
    }

    #[test]
    fn round_trips_through_json() {
        let reference: ModelRef = "openrouter/a/b".parse().unwrap();
        let json = serde_json::to_string(&reference).unwrap();
        assert_eq!(json, "\"openrouter/a/b\"");
        assert_eq!(serde_json::from_str::<ModelRef>(&json).unwrap(), reference);
    }
}

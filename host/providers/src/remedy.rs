//! The setting that helps against an endpoint's error: `does not support tools` names no remedy by itself.
//!
//! Errors have no common codes, so they are recognised by their words. A wrong guess adds a sentence and never changes a
//! request.

use llm::{ModelErrorKind, ModelRef, Provider};

use crate::failure::ProviderFailure;

/// The model that was asked, and the variables that say how.
#[derive(Debug, Clone)]
pub(crate) struct RequestOrigin {
    pub model: ModelRef,
    pub key_variable: &'static str,
    pub url_variable: &'static str,
}

impl RequestOrigin {
    pub(crate) fn key_refused(&self, status: u16, said: &str) -> ProviderFailure {
        let message = format!("the endpoint refused the key ({status}); check `{}`{said}", self.key_variable);
        ProviderFailure::new(ModelErrorKind::Auth, message)
    }

    /// Whether the server is likely on this machine or near it, started by the owner.
    fn is_local(&self) -> bool {
        matches!(self.model.provider, Provider::Ollama | Provider::Compatible)
    }

    /// How to mend a connection that cannot be made.
    pub(crate) fn unreachable(&self) -> String {
        let variable = self.url_variable;
        match self.model.provider {
            Provider::Ollama => format!("start it with `ollama serve`, or set `{variable}` to where it runs"),
            _ => format!("check the base URL, `{variable}`, and that the endpoint runs"),
        }
    }
}

/// The remedy for an error.
pub(crate) struct Remedy {
    pub text: String,
    /// Whether the same request will fail again.
    pub permanent: bool,
}

/// Words in errors about conversations that are too long.
const TOO_LONG: &[&str] = &[
    "context length",
    "context_length_exceeded",
    "maximum context",
    "context window",
    "context size",
    "exceed_context_size",
    "prompt is too long",
    "input is too long",
    "input token count",
    "maximum prompt length",
    "reduce the length",
    "max_new_tokens` must be",
];

/// Words in errors about models or servers without tool calling.
const NO_TOOLS: &[&str] = &[
    "does not support tools",
    "support tool use",
    "support tool calling",
    "support function calling",
    "function calling is not enabled",
    "tool calling is not supported",
    "tools is not supported",
    "tool choice requires",
    "--enable-auto-tool-choice",
    "--jinja",
    "tool_use_failed",
];

/// Words in errors about models that the endpoint does not have.
const NO_MODEL: &[&str] = &[
    "model_not_found",
    "model not found",
    "no such model",
    "unknown model",
    "invalid model",
    "not a valid model",
    "try pulling it first",
    "no models loaded",
    "model not exist",
];

/// The remedy for the error with these words.
pub(crate) fn remedy(status: u16, words: &str, origin: &RequestOrigin) -> Option<Remedy> {
    let words = words.to_ascii_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    let permanent = |text: String| Some(Remedy { text, permanent: true });
    if says(NO_TOOLS) {
        return permanent("`--set models.constrained=true` asks for tool calls as text instead".to_owned());
    }
    if says(TOO_LONG) {
        let server = match origin.model.provider {
            Provider::Ollama => "; Ollama's own window is set by `OLLAMA_CONTEXT_LENGTH` where it runs",
            Provider::Compatible => "; a local server has an option for it (llama.cpp: `--ctx-size`)",
            _ => "",
        };
        let text = "the conversation is longer than the model's context window: lower `motor.context_bytes`, or name a \
                    model with a larger window (`--model`, `LLM_MOTOR_MODEL`)";
        return permanent(format!("{text}{server}"));
    }
    let missing =
        says(NO_MODEL) || words.contains("model") && says(&["does not exist", "not_found_error", "not found"]);
    if missing && !(500..600).contains(&status) || status == 404 {
        let name = &origin.model.model;
        return permanent(match origin.model.provider {
            Provider::Ollama => format!("`ollama pull {name}` fetches it, or check `--model` and `LLM_MOTOR_MODEL`"),
            _ if missing => "check the model's name (`--model`, `LLM_MOTOR_MODEL`)".to_owned(),
            _ => format!(
                "check the model's name (`--model`, `LLM_MOTOR_MODEL`) and the base URL (`{}`)",
                origin.url_variable
            ),
        });
    }
    if origin.is_local() && says(&["loading model", "is loading", "model is currently loading"]) {
        let text = "the model is still loading: try again, or raise `models.retries`".to_owned();
        return Some(Remedy { text, permanent: false });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_setting_that_helps() {
        for (model, status, words, part, permanent) in [
            ("ollama/gemma:2b", 400, "gemma:2b does not support tools", "models.constrained=true", true),
            ("compatible/x", 500, "tools param requires --jinja flag", "models.constrained=true", true),
            ("openai/x", 400, "This model's maximum context length is 8192 tokens", "LLM_MOTOR_MODEL", true),
            ("ollama/x", 400, "exceeds the available context size", "OLLAMA_CONTEXT_LENGTH", true),
            ("compatible/x", 400, "exceed_context_size_error", "--ctx-size", true),
            ("openai/x", 404, "The model `x` does not exist", "LLM_MOTOR_MODEL", true),
            ("openai/x", 404, "", "`U`", true),
            ("ollama/q", 404, "model 'q' not found, try pulling it first", "ollama pull q", true),
            ("compatible/x", 503, "Loading model", "models.retries", false),
        ] {
            let origin = RequestOrigin { model: model.parse().unwrap(), key_variable: "K", url_variable: "U" };
            let remedy = remedy(status, words, &origin).expect(words);
            assert!(remedy.text.contains(part), "{words}: {}", remedy.text);
            assert_eq!(remedy.permanent, permanent, "{words}");
        }
        let origin = RequestOrigin { model: "openai/x".parse().unwrap(), key_variable: "K", url_variable: "U" };
        for (status, words) in [(500, "oops"), (429, "slow down"), (503, "model overloaded"), (400, "bad schema")] {
            assert!(remedy(status, words, &origin).is_none(), "{words}");
        }
    }
}

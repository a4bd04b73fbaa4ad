//! The two tools that the loop itself has: asking the user, and asking the owner (SPEC ASK-1, APPR-1).
//!
//! They do nothing but wait, so they are granted to every run that may ask at all; their arguments come from a model and
//! are bounded here.

use std::sync::LazyLock;
use std::time::Duration;

use base::ErrorCode;
use grants::{DomainConsent, RunConsent};
use llm::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::{MAX_CHOICES, MAX_WORDS_BYTES};
use crate::toolbox::{ToolDefinition, ToolEffects, ToolResult};

pub(crate) const ASK_USER: &str = "ask_user";
pub(crate) const REQUEST_APPROVAL: &str = "request_approval";
/// The tool of a toolbox after which a run knows a secret that it did not know before (SPEC VAULT-4).
pub const SAVE_CREDENTIAL: &str = "save_credential";

/// Domains that one request may name.
const MAX_DOMAINS: usize = 16;
/// Bytes of one choice or domain.
const MAX_CHOICE_BYTES: usize = 300;

static TOOLS: LazyLock<[ToolDefinition; 2]> = LazyLock::new(|| [ask_user(), request_approval()]);

/// The tools that the loop offers to a run that may ask. A run whose access is settled asks its user only.
pub(crate) fn of(settled: bool) -> &'static [ToolDefinition] {
    let [user, _] = &*TOOLS;
    if settled { std::slice::from_ref(user) } else { TOOLS.as_slice() }
}

fn tool(name: &str, description: &str, parameters: Value) -> ToolDefinition {
    ToolDefinition {
        spec: ToolSpec { name: name.to_owned(), description: description.to_owned(), parameters },
        effects: ToolEffects { read_only: true, destructive: false, idempotent: true, open_world: false },
        timeout: Duration::MAX,
        component: None,
        most: None,
    }
}

fn ask_user() -> ToolDefinition {
    tool(
        ASK_USER,
        "Asks the user and waits for the answer.",
        json!({
            "type": "object",
            "properties": {
                "question": { "type": "string" },
                "choices": { "type": "array", "items": { "type": "string" } }
            },
            "required": ["question"],
            "additionalProperties": false
        }),
    )
}

fn request_approval() -> ToolDefinition {
    tool(
        REQUEST_APPROVAL,
        "Asks the owner for consent to an exact action, or access to domains, and waits.",
        json!({
            "type": "object",
            "properties": {
                "action": { "type": "string" },
                "reason": { "type": "string" },
                "domains": { "type": "array", "items": { "type": "string" } }
            },
            "required": ["action"],
            "additionalProperties": false
        }),
    )
}

/// Arguments of [`ASK_USER`].
#[derive(Debug, Deserialize)]
pub(crate) struct Ask {
    pub(crate) question: String,
    #[serde(default)]
    pub(crate) choices: Vec<String>,
}

/// Arguments of [`REQUEST_APPROVAL`].
#[derive(Debug, Deserialize)]
pub(crate) struct ApprovalRequest {
    pub(crate) action: String,
    #[serde(default)]
    pub(crate) reason: Option<String>,
    #[serde(default)]
    pub(crate) domains: Vec<String>,
}

impl Ask {
    /// Reads arguments that fit the schema.
    ///
    /// # Errors
    /// The result that the model gets in place of an answer.
    pub(crate) fn read(arguments: &Value) -> Result<Self, ToolResult> {
        let ask: Self = read(arguments)?;
        words("question", &ask.question)?;
        if ask.choices.len() > MAX_CHOICES || ask.choices.iter().any(|choice| choice.len() > MAX_CHOICE_BYTES) {
            return Err(invalid(format!("offer at most {MAX_CHOICES} choices of at most {MAX_CHOICE_BYTES} bytes")));
        }
        Ok(ask)
    }
}

impl ApprovalRequest {
    /// Reads arguments that fit the schema.
    ///
    /// # Errors
    /// The result that the model gets in place of a decision.
    pub(crate) fn read(arguments: &Value) -> Result<Self, ToolResult> {
        let request: Self = read(arguments)?;
        words("action", &request.action)?;
        words("reason", request.reason.as_deref().unwrap_or("-"))?;
        if request.domains.len() > MAX_DOMAINS || request.domains.iter().any(|domain| domain.len() > MAX_CHOICE_BYTES) {
            return Err(invalid(format!("name at most {MAX_DOMAINS} domains")));
        }
        Ok(request)
    }

    /// A summary for people: first the access that would be granted, then the model's own words.
    pub(crate) fn summary(&self) -> String {
        if self.domains.is_empty() {
            return self.action.clone();
        }
        format!("access to {}: {}", self.domains.join(", "), self.action)
    }

    /// The access that the environment gets if the owner consents.
    pub(crate) fn grant(&self) -> Option<RunConsent> {
        let domains = DomainConsent::of(self.domains.clone());
        (!self.domains.is_empty()).then_some(RunConsent::Domains(domains))
    }
}

fn read<T: serde::de::DeserializeOwned>(arguments: &Value) -> Result<T, ToolResult> {
    T::deserialize(arguments).map_err(|error| invalid(error.to_string()))
}

fn words(what: &str, text: &str) -> Result<(), ToolResult> {
    if text.trim().is_empty() {
        return Err(invalid(format!("`{what}` is empty")));
    }
    if text.len() > MAX_WORDS_BYTES {
        return Err(invalid(format!("`{what}` has {} bytes; at most {MAX_WORDS_BYTES} can be shown", text.len())));
    }
    Ok(())
}

fn invalid(reason: String) -> ToolResult {
    ToolResult::failure(ErrorCode::InvalidArgs, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_model_are_bounded() {
        assert!(Ask::read(&json!({"question": "Which file?", "choices": ["a", "b"]})).is_ok());
        for hostile in [
            json!({"question": " \n"}),
            json!({"question": "x".repeat(MAX_WORDS_BYTES + 1)}),
            json!({"question": "?", "choices": vec!["c"; MAX_CHOICES + 1]}),
            json!({"question": "?", "choices": ["c".repeat(MAX_CHOICE_BYTES + 1)]}),
            json!({"question": 7}),
        ] {
            assert_eq!(Ask::read(&hostile).unwrap_err().error_code, Some(ErrorCode::InvalidArgs));
        }
        assert_eq!(ApprovalRequest::read(&json!({"action": "delete it"})).unwrap().grant(), None);
        let request = ApprovalRequest::read(&json!({"action": "look it up", "domains": ["a.example"]})).unwrap();
        assert_eq!(serde_json::to_value(request.grant()).unwrap(), json!({"domains": ["a.example"]}));
        assert_eq!(request.summary(), "access to a.example: look it up");
        assert!(ApprovalRequest::read(&json!({"action": "x", "domains": vec!["d"; MAX_DOMAINS + 1]})).is_err());
    }
}

//! The waits of a run: for an answer of the user, or for the owner's consent to an action (SPEC ASK-1, APPR-1).
//!
//! A waiting run is parked: it has no driver, and its head holds everything needed to judge an answer. Ids are derived
//! from the position in the history, so a question keeps its id after a crash.

use base::{ContentHash, RunId, Timestamp};
use grants::RunConsent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ceiling::CeilingRaise;
use crate::request::ShownRequest;

/// The question or approval a parked run waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Waiting {
    /// An answer of the user.
    Input(Question),
    /// The owner's consent to an action.
    Approval(Approval),
}

impl Waiting {
    /// The id that an answer names.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Input(question) => &question.id,
            Self::Approval(approval) => &approval.id,
        }
    }

    /// Since when it waits.
    #[must_use]
    pub fn asked_at(&self) -> Timestamp {
        match self {
            Self::Input(question) => question.asked_at,
            Self::Approval(approval) => approval.asked_at,
        }
    }

    /// The time after which an answer is too late, also if the host was down in between (SPEC DUR-3).
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        match self {
            Self::Input(question) => question.expires_at,
            Self::Approval(approval) => approval.expires_at,
        }
    }
}

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// `ask_` and twelve hex digits.
    pub id: String,
    /// The step it was asked in.
    pub step: u32,
    /// The call that asks; the answer is its result.
    pub call_id: String,
    /// The question in the model's words.
    pub question: String,
    /// Answers that the model offers. Any other is possible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// When the question was asked.
    pub asked_at: Timestamp,
    /// From when on an answer is too late.
    pub expires_at: Timestamp,
    /// Where the run had read untrusted content from, which may have put the question into the model's mouth.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The ceiling that the host asks about; the model has not asked then, and `call_id` is empty (SPEC RUN-16).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<CeilingRaise>,
}

/// A request for the owner's consent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// `apr_` and twelve hex digits.
    pub id: String,
    /// The step it was asked in.
    pub step: u32,
    /// The actions: one, or several that are alike and harmless.
    pub items: Vec<ApprovalItem>,
    /// Why it is asked.
    pub reason: String,
    /// The class whose actions a lasting consent covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The access that the environment gets after the consent. The loop does not look inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<RunConsent>,
    /// For how long the owner may consent. The first is meant when nothing else is said.
    pub choices: Vec<Scope>,
    /// When the approval was asked for.
    pub asked_at: Timestamp,
    /// From when on a consent is too late.
    pub expires_at: Timestamp,
    /// Where the run had read untrusted content from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The call was refused these requests already, and is made again after a consent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
    /// The writes the call made before it was refused, which it would make again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sent: Vec<String>,
}

/// One action of a request for consent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalItem {
    /// The id of the call.
    pub call_id: String,
    /// The name of the tool.
    pub tool: String,
    /// Its effect, in words for people.
    pub summary: String,
    /// The exact arguments of the call.
    pub arguments: Value,
    /// The hash that the consent is bound to: of the request as it would be sent, or else of run, tool and arguments.
    pub action_hash: ContentHash,
    /// The requests that a consent for longer than once covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The access that the environment gets after such a consent. The loop does not look inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<RunConsent>,
    /// The request, when the action is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<ShownRequest>,
}

/// For how long the owner consents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ConsentScope")]
pub enum Scope {
    /// For this action, one time.
    #[default]
    Once,
    /// For the class, in this run.
    Run,
    /// For the class, in the agent's runs until the host ends.
    Session,
    /// For the class, in the agent's runs, for good.
    Always,
}

impl Scope {
    /// The scope as it appears in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Run => "run",
            Self::Session => "session",
            Self::Always => "always",
        }
    }
}

/// Whether a consent to some of several actions allows this one; to none in particular: to all.
#[must_use]
pub(crate) fn allows(only: &[ContentHash], action: ContentHash) -> bool {
    only.is_empty() || only.contains(&action)
}

/// The hash that a consent is bound to: one changed byte is another action.
#[must_use]
pub(crate) fn action_hash(run: &RunId, tool: &str, arguments: &Value) -> ContentHash {
    base::canonical::hash(&json!({ "run": run, "tool": tool, "arguments": arguments }))
}

/// The id of the question or approval at a position of a run's history.
pub(crate) fn waiting_id(prefix: &str, run: &RunId, sequence: u64) -> String {
    format!("{prefix}_{}", ContentHash::of(format!("{run}/{sequence}").as_bytes()).short())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_changed_byte_is_another_action() {
        let (run, other) = (RunId::parse("run_1").unwrap(), RunId::parse("run_2").unwrap());
        let of = |run: &RunId, tool: &str, arguments: Value| action_hash(run, tool, &arguments);
        let first = of(&run, "fetch", json!({"url": "https://a.example/", "method": "POST"}));
        assert_eq!(first, of(&run, "fetch", json!({"method": "POST", "url": "https://a.example/"})));
        for changed in [
            of(&other, "fetch", json!({"url": "https://a.example/", "method": "POST"})),
            of(&run, "fetcH", json!({"url": "https://a.example/", "method": "POST"})),
            of(&run, "fetch", json!({"url": "https://a.example/?", "method": "POST"})),
            of(&run, "fetch", json!({"url": "https://a.example/", "method": "POST", "body": ""})),
        ] {
            assert_ne!(first, changed);
        }
        assert_ne!(waiting_id("ask", &run, 1), waiting_id("ask", &run, 11));
    }
}

//! The content of a receipt. It has types of its own, because signed content must not change with other types.
//!
//! No number is a fraction: libraries differ in how they write those, and a receipt is compared byte by byte.

use base::text::cut;
use base::{AgentName, ConsentRecord, ContentHash, RunId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the form. A field that is added or changes its meaning is another version.
pub const VERSION: u32 = 1;
/// The version of the form with a seed, which only a run with one has: programs that know no seeds read all others.
pub const SEEDED_VERSION: u32 = 2;

/// The origin of a result. JSON in camel case, times in milliseconds since the epoch, unknown values left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Receipt {
    /// The version of the form: [`VERSION`], or [`SEEDED_VERSION`] with a seed.
    pub version: u32,
    /// Id of the run.
    pub run_id: RunId,
    /// Whose run it was.
    pub agent: AgentName,
    /// The task of the run.
    pub task: Task,
    /// How the run ended.
    pub status: ReceiptOutcome,
    /// How often it was begun: 1, and one more for each retry.
    pub attempts: u32,
    /// The seed of its random numbers and its clock (SPEC SIM-1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u32>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it was first taken up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Time of the run's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// The models that answered, as `provider/model`, each once.
    pub models: Vec<String>,
    /// The full text of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The files it produced, by path.
    pub artifacts: Vec<ReceiptArtifact>,
    /// The skill it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<Skill>,
    /// The components that were executed, by hash.
    pub components: Vec<ReceiptComponent>,
    /// The requests for the owner's consent.
    pub approvals: Vec<ReceiptApproval>,
    /// Who answered its questions.
    pub answers: Vec<ReceiptAnswer>,
    /// The hosts it asked, by name, refused requests included.
    pub hosts: Vec<ReceiptHost>,
    /// Calls with an unknown outcome.
    pub unknown_outcomes: Vec<String>,
    /// The credentials that were sent, by name.
    pub credentials: Vec<String>,
    /// The energy that the run drained.
    pub energy: Energy,
    /// The tokens that the models counted.
    pub tokens: Tokens,
    /// Millionths of a US dollar, where prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<u64>,
    /// Who says all this.
    pub issuer: Issuer,
}

impl Receipt {
    /// The version of the form of a receipt with this seed, or with none.
    #[must_use]
    pub fn version_of(seed: Option<u32>) -> u32 {
        if seed.is_some() { SEEDED_VERSION } else { VERSION }
    }
}

/// The task of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ReceiptTask")]
pub struct Task {
    /// Of the whole task.
    pub hash: ContentHash,
    /// How it begins, for people.
    pub beginning: String,
}

impl Task {
    /// Characters of a task that are kept for people.
    const CHARACTERS: usize = 200;

    /// The task of that text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self { hash: ContentHash::of(text.as_bytes()), beginning: cut(text, Self::CHARACTERS) }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReceiptOutcome {
    /// The run ended with an answer.
    Completed,
    /// The run ended without an answer.
    Failed,
    /// A person cancelled the run.
    Cancelled,
}

impl ReceiptOutcome {
    /// The outcome as it appears in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A file that the run produced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReceiptArtifact {
    /// Below the directory of the artifacts, `/` between the parts.
    pub path: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Hash of the file's content.
    pub hash: ContentHash,
}

/// A skill as it was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ReceiptSkill")]
pub struct Skill {
    /// Name of the skill.
    pub name: String,
    /// Its [`crate::directory_hash`].
    pub hash: ContentHash,
}

/// A component that was executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReceiptComponent {
    /// Hash of the component's file.
    pub hash: ContentHash,
    /// The tools that it was called as, each once.
    pub tools: Vec<String>,
}

/// A request for the owner's consent, and the decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReceiptApproval {
    /// Id of the request.
    pub id: String,
    /// The actions it was about.
    pub actions: Vec<ReceiptAction>,
    /// Whether they were allowed.
    pub granted: bool,
    /// For how long: `once`, `run`, `session` or `always`. Absent without a decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Who decided. Absent without a decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<ConsentRecord>,
}

/// One action that needed consent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReceiptAction {
    /// The action, as it was shown.
    pub summary: String,
    /// The hash that the consent was bound to.
    pub hash: ContentHash,
}

/// An answer to a question of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReceiptAnswer {
    /// The question that was asked.
    pub question: String,
    /// Whose word the answer was.
    pub consent: ConsentRecord,
}

/// A host that was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReceiptHost {
    /// Its name, with the port where it is not the usual one.
    pub host: String,
    /// How often, refused requests included.
    pub requests: u64,
    /// How many of those the gate refused: nothing was sent.
    pub refused: u64,
    /// The methods, each once.
    pub methods: Vec<String>,
    /// The answers by HTTP status.
    pub statuses: Vec<StatusCount>,
}

/// How often a host answered in a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ReceiptStatusCount")]
pub struct StatusCount {
    /// The HTTP status code.
    pub status: u16,
    /// Number of answers with it.
    pub count: u64,
}

/// Energy (SPEC EN-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ReceiptEnergy")]
pub struct Energy {
    /// Millionths of all that an agent can have.
    pub millionths: u64,
}

/// Tokens of all model calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ReceiptTokens")]
pub struct Tokens {
    /// Tokens of all prompts.
    pub input: u64,
    /// Tokens of all replies.
    pub output: u64,
}

/// The host that signs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ReceiptIssuer")]
pub struct Issuer {
    /// Of the public key's 32 bytes.
    pub key_id: ContentHash,
    /// The version of the program.
    pub host_version: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_cut_for_people_and_hashed_whole() {
        let long = "ä".repeat(Task::CHARACTERS + 1);
        let task = Task::of(&long);
        assert_eq!(task.beginning, format!("{}…", "ä".repeat(Task::CHARACTERS)));
        assert_eq!(task.hash, ContentHash::of(long.as_bytes()));
        assert_eq!(Task::of("short").beginning, "short");
    }

    #[test]
    fn outcomes_read_as_they_are_called() {
        for outcome in [ReceiptOutcome::Completed, ReceiptOutcome::Failed, ReceiptOutcome::Cancelled] {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.as_str());
        }
    }
}

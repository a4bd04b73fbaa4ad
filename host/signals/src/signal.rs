//! The content of a signal, as it is stored and as JSON shows it.

use std::fmt;
use std::time::Duration;

use base::{AgentName, ContentHash, RunId, Timestamp};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How long a signal is worth acting upon by default: five minutes (SPEC SIG-1). A run that waits goes on waiting after it.
pub const TTL: Duration = Duration::from_secs(300);

/// Who says it (SPEC SIG-1).
pub const SOURCE: &str = "motor.cortex";

/// Adds the tag of a [`MotorResult`], which the derived schema lacks.
fn add_type(schema: &mut Schema) {
    let tag = serde_json::json!({ "type": "string", "const": "motor_result" });
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.insert("type".to_owned(), tag);
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.push("type".into());
    }
}

/// A stored signal. In JSON the body's fields stand beside the rest, with `"type":"motor_result"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Signal {
    /// Rises with each signal of a home, from 1; numbers may be left out.
    pub id: u64,
    /// The agent that the run belongs to.
    pub agent: AgentName,
    /// When it was staged.
    pub created_at: Timestamp,
    /// For how many milliseconds it is worth acting upon.
    pub ttl_ms: u64,
    /// How urgent it is.
    pub priority: Priority,
    /// The sender of the signal.
    pub source: String,
    /// The content of the signal.
    #[serde(flatten)]
    pub body: MotorResult,
}

impl Signal {
    /// Whether it is too old to act upon at `now`. It is kept and delivered all the same.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now.since(self.created_at) > Duration::from_millis(self.ttl_ms)
    }
}

/// How urgent a signal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Priority {
    /// Wakes cognition at once.
    High,
}

/// A run has ended, or waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename = "motor_result", rename_all = "camelCase")]
#[schemars(transform = add_type)]
pub struct MotorResult {
    /// Id of the run.
    pub run_id: RunId,
    /// The status of the run.
    pub status: SignalStatus,
    /// The outcome of a completed run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<TaskResult>,
    /// Why a run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<SignalError>,
    /// The question of a waiting run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The answers that it offers to choose from; none: anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The request for consent of a waiting run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<SignalApproval>,
    /// The failure of a failed run, as `motor task status` shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Value>,
    /// Files that the run leaves behind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<SignalArtifact>,
    /// Skills that the run made or changed: each waits for its review (SPEC SIG-1).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub installed_skills: Vec<SignalSkill>,
    /// The attempt that it is about, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// Writes that the run staged: the owner sends them, or not (SPEC LAND-5).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub staged: u32,
    /// Where on the web the run has read before it said this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Calls with an unknown outcome, because the host stopped during them (SPEC DUR-2).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_outcomes: Vec<String>,
    /// Notices for the owner, such as a credential's value that was withheld (SPEC VAULT-3).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

impl MotorResult {
    /// That a run is in a status, and nothing else.
    #[must_use]
    pub fn new(run_id: RunId, status: SignalStatus) -> Self {
        Self {
            run_id,
            status,
            result: None,
            error: None,
            question: None,
            choices: Vec::new(),
            approval: None,
            failure: None,
            artifacts: Vec::new(),
            installed_skills: Vec::new(),
            attempt: 0,
            staged: 0,
            sources: Vec::new(),
            unknown_outcomes: Vec::new(),
            notices: Vec::new(),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A request for consent, in words for people. The exact actions are found by the id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignalApproval {
    /// Its id, `apr_…`, which an answer names.
    pub id: String,
    /// One line for each action.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summaries: Vec<String>,
    /// Why the owner is asked.
    #[serde(default)]
    pub reason: String,
    /// The kind of action, where several are decided together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// For how long it may be granted: `once`, `run`, `session`, `always`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
}

/// A file that a run leaves behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignalArtifact {
    /// Its path below the run's artifacts.
    pub path: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Hash of the file's content.
    pub hash: ContentHash,
}

/// A skill that a run made or changed, or why it could not be taken over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignalSkill {
    /// Name of the skill.
    pub name: String,
    /// Its skills directory and entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Content hash of its directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<ContentHash>,
    /// There was none before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub created: bool,
    /// Why it was not taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The status of a run that has ended or waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignalStatus {
    /// The run ended with an answer.
    Completed,
    /// The run ended without an answer.
    Failed,
    /// A person cancelled the run.
    Cancelled,
    /// It waits for an answer to its question.
    AwaitingInput,
    /// It waits for the owner's approval.
    AwaitingApproval,
}

impl SignalStatus {
    /// Whether the run continues only after an answer.
    #[must_use]
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::AwaitingInput | Self::AwaitingApproval)
    }

    /// As JSON has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::AwaitingInput => "awaiting_input",
            Self::AwaitingApproval => "awaiting_approval",
        }
    }
}

impl fmt::Display for SignalStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskResult {
    /// Whether the task was done.
    pub ok: bool,
    /// The answer, for people.
    pub summary: String,
    /// Time, calls and energy of the run.
    pub stats: TaskStats,
}

/// Time, calls and energy of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskStats {
    /// Turns of the loop.
    pub iterations: u32,
    /// Wall-clock time in milliseconds.
    pub duration_ms: u64,
    /// Energy drained, where 1.0 is a full level.
    pub energy_cost: f64,
    /// Tool calls that failed.
    pub errors: u32,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignalError {
    /// The reason, for people.
    pub message: String,
    /// The last action of the run, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_step: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_the_specification_has_it() {
        let run = RunId::parse("run_0123456789abcdef").unwrap();
        let stats = TaskStats { iterations: 3, duration_ms: 1_200, energy_cost: 0.1, errors: 0 };
        let signal = Signal {
            id: 7,
            agent: AgentName::default(),
            created_at: Timestamp::from_millis(1_000),
            ttl_ms: 300_000,
            priority: Priority::High,
            source: SOURCE.to_owned(),
            body: MotorResult {
                result: Some(TaskResult { ok: true, summary: "done".to_owned(), stats }),
                ..MotorResult::new(run, SignalStatus::Completed)
            },
        };
        let json = serde_json::to_value(&signal).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "id": 7, "agent": "main", "createdAt": 1000, "ttlMs": 300_000,
                "priority": "high", "source": "motor.cortex",
                "type": "motor_result", "runId": "run_0123456789abcdef", "status": "completed",
                "result": { "ok": true, "summary": "done",
                    "stats": { "iterations": 3, "durationMs": 1200, "energyCost": 0.1, "errors": 0 } },
            })
        );
        assert_eq!(serde_json::from_value::<Signal>(json).unwrap(), signal);
        assert!(!signal.is_expired(Timestamp::from_millis(301_000)));
        assert!(signal.is_expired(Timestamp::from_millis(301_001)));
        assert!(!signal.is_expired(Timestamp::from_millis(0)));
    }

    #[test]
    fn what_a_run_asks_and_leaves_behind_survives_being_stored() {
        let run = RunId::parse("run_0123456789abcdef").unwrap();
        let body = MotorResult {
            question: Some("which?".to_owned()),
            choices: vec!["a".to_owned(), "b".to_owned()],
            approval: Some(SignalApproval {
                id: "apr_1".to_owned(),
                summaries: vec!["send a mail".to_owned()],
                reason: "it cannot be taken back".to_owned(),
                class: Some("mail".to_owned()),
                choices: vec!["once".to_owned()],
            }),
            failure: Some(
                serde_json::json!({ "category": "timeout", "retryable": true, "nested": { "n": [1, null] } }),
            ),
            artifacts: vec![SignalArtifact { path: "a.txt".to_owned(), bytes: 3, hash: ContentHash::of(b"abc") }],
            attempt: 2,
            sources: vec!["example.com".to_owned()],
            ..MotorResult::new(run, SignalStatus::AwaitingApproval)
        };
        let signal = Signal {
            id: 1,
            agent: AgentName::default(),
            created_at: Timestamp::from_millis(0),
            ttl_ms: 300_000,
            priority: Priority::High,
            source: SOURCE.to_owned(),
            body,
        };
        let bytes = serde_json::to_vec(&signal).unwrap();
        assert_eq!(serde_json::from_slice::<Signal>(&bytes).unwrap(), signal);
    }

    #[test]
    fn statuses_say_whether_somebody_is_waited_for_and_read_like_their_json() {
        for (status, text, waiting) in [
            (SignalStatus::Completed, "completed", false),
            (SignalStatus::Failed, "failed", false),
            (SignalStatus::Cancelled, "cancelled", false),
            (SignalStatus::AwaitingInput, "awaiting_input", true),
            (SignalStatus::AwaitingApproval, "awaiting_approval", true),
        ] {
            assert_eq!((status.to_string().as_str(), status.is_waiting()), (text, waiting));
            assert_eq!(serde_json::to_value(status).unwrap(), text);
        }
    }
    #[test]
    fn a_stored_signal_that_names_its_run_twice_is_read() {
        let run = RunId::parse("run_0123456789abcdef").unwrap();
        let old = serde_json::json!({
            "id": 7, "agent": "main", "run": run, "createdAt": 1000, "ttlMs": 300_000, "priority": "high",
            "source": "motor.cortex", "type": "motor_result", "runId": run, "status": "completed",
        });
        let read: Signal = serde_json::from_value(old).unwrap();
        assert_eq!((read.id, read.body), (7, MotorResult::new(run, SignalStatus::Completed)));
    }
}

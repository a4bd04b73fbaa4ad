//! What a signal says, as it is stored and as JSON shows it.

use std::time::Duration;

use base::{AgentName, RunId, Timestamp};
use serde::{Deserialize, Serialize};

/// How long a signal is worth acting upon: five minutes (SPEC SIG-1). A run that waits goes on waiting after it.
pub const TTL_MS: u64 = 300_000;

/// Who says it (SPEC SIG-1).
pub const SOURCE: &str = "motor.cortex";

/// A stored signal. In JSON the body's fields stand beside the rest, with `"type":"motor_result"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Signal {
    /// Rises with each signal of a home, from 1; numbers may be left out.
    pub id: u64,
    /// Whose it is.
    pub agent: AgentName,
    /// The run it is about.
    pub run: RunId,
    /// When it was staged.
    pub created_at: Timestamp,
    /// For how many milliseconds it is worth acting upon.
    pub ttl_ms: u64,
    /// How urgent it is.
    pub priority: Priority,
    /// Who says it.
    pub source: String,
    /// What it says.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Priority {
    /// Wakes cognition at once.
    High,
}

/// A run has ended, or waits for somebody.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "motor_result", rename_all = "camelCase")]
pub struct MotorResult {
    /// The run.
    pub run_id: RunId,
    /// What became of it.
    pub status: SignalStatus,
    /// The outcome of a completed run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<TaskResult>,
    /// Why a run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<SignalError>,
    /// What a waiting run asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}

/// What became of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalStatus {
    /// It answered.
    Completed,
    /// It gave up.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// It waits for an answer to its question.
    AwaitingInput,
    /// It waits for the owner's approval.
    AwaitingApproval,
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskResult {
    /// Whether the task was done.
    pub ok: bool,
    /// The answer, for people.
    pub summary: String,
    /// What it took.
    pub stats: TaskStats,
}

/// What a run took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignalError {
    /// The reason, for people.
    pub message: String,
    /// What the run was doing, when that is known.
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
            run: run.clone(),
            created_at: Timestamp::from_millis(1_000),
            ttl_ms: TTL_MS,
            priority: Priority::High,
            source: SOURCE.to_owned(),
            body: MotorResult {
                run_id: run,
                status: SignalStatus::Completed,
                result: Some(TaskResult { ok: true, summary: "done".to_owned(), stats }),
                error: None,
                question: None,
            },
        };
        let json = serde_json::to_value(&signal).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "id": 7, "agent": "main", "run": "run_0123456789abcdef", "createdAt": 1000, "ttlMs": 300_000,
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
}

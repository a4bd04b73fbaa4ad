//! Runs as callers see them (SPEC RUN-3). camelCase JSON, times in milliseconds since the epoch.
//!
//! The stored record of a run has more fields, which are internal and change with the host.

use base::{AgentName, RunId, Timestamp};
use grants::Agreement;
use llm::MicroUsd;
use motor::{
    Artifact, CreditBudget, FailureSummary, InstalledSkill, RunError, RunRecord, RunStatus, SkillLabel, Waiting,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A run in a list: its state and its totals. Its steps are in the trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskSummary {
    /// Id of the run.
    pub run_id: RunId,
    /// The agent that the run belongs to.
    pub agent: AgentName,
    /// The current status of the run.
    pub status: RunStatus,
    /// The first 200 characters of the task.
    pub task: String,
    /// The granted tools, by exact name.
    pub tools: Vec<String>,
    /// Maximum number of iterations of the current attempt.
    pub max_iterations: u32,
    /// Time limit of an attempt in milliseconds. Time spent waiting for people is not counted.
    pub timeout_ms: u64,
    /// Time the run was accepted.
    pub created_at: Timestamp,
    /// Time of the first step; absent before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Time the run ended; absent until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Number of iterations begun, over all attempts.
    pub iterations: u32,
    /// Number of requests to the model. With retries there are more than iterations.
    pub model_calls: u32,
    /// Number of tool calls that returned, including failed ones.
    pub tool_calls: u32,
    /// Number of failed tool calls.
    pub errors: u32,
    /// Number of writes that it staged, sent since or not (SPEC LAND-5).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub staged: u32,
    /// Tokens of all prompts.
    pub input_tokens: u64,
    /// Those of them that the provider had in its cache.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub cached_input_tokens: u64,
    /// Tokens of all replies.
    pub output_tokens: u64,
    /// Cost in US dollars of the replies whose price is known; absent if no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Number of replies whose price is unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced_replies: u32,
    /// The most that the run may cost in US dollars; absent without a cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_cap: Option<MicroUsd>,
    /// Energy used so far.
    pub energy: f64,
    /// The seed of its random numbers and its clock; absent without one (SPEC SIM-1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u32>,
    /// Number of times that a host resumed it.
    pub resumes: u32,
    /// The current attempt; the first is 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// Sources of the untrusted content that the run has read (SPEC TAINT-1).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub web_sources: Vec<String>,
    /// The question or request for consent that the run waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// How the last attempt failed, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureSummary>,
    /// Tool calls whose outcome is unknown and which the owner should check (SPEC DUR-2).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_outcomes: Vec<String>,
    /// Notices for the owner, such as that a credential's value was withheld (SPEC VAULT-3).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// The files it produced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The plan that the run is held to, with the owner's consent to it and the cost of drafting it (SPEC LAND-6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
    /// The skill that the run follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<SkillLabel>,
    /// The skills it installed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub installed_skills: Vec<InstalledSkill>,
    /// Its budget and spending; absent if budgets are switched off (SPEC EN-2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<CreditBudget>,
    /// The first 2,000 characters of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Why it failed or was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
}

impl From<RunRecord> for TaskSummary {
    fn from(record: RunRecord) -> Self {
        Self {
            run_id: record.id,
            agent: record.agent,
            status: record.status,
            task: record.task,
            tools: record.tools,
            max_iterations: record.max_iterations,
            timeout_ms: record.timeout_ms,
            created_at: record.created_at,
            started_at: record.started_at,
            completed_at: record.completed_at,
            iterations: record.iterations,
            model_calls: record.model_calls,
            tool_calls: record.tool_calls,
            errors: record.errors,
            staged: record.staged,
            input_tokens: record.input_tokens,
            cached_input_tokens: record.cached_input_tokens,
            output_tokens: record.output_tokens,
            cost_usd: record.cost_usd,
            unpriced_replies: record.unpriced_replies,
            usd_cap: record.money.cap,
            energy: record.energy,
            seed: record.grant.seed,
            resumes: record.resumes,
            attempt: record.attempt,
            web_sources: record.web_sources,
            waiting: record.waiting,
            failure: record.failure,
            unknown_outcomes: record.unknown_outcomes,
            notices: record.notices,
            artifacts: record.artifacts,
            agreement: record.grant.agreement,
            skill: record.skill,
            installed_skills: record.installed_skills,
            budget: record.budget,
            summary: record.summary,
            error: record.error,
        }
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_zero_u64(number: &u64) -> bool {
    *number == 0
}

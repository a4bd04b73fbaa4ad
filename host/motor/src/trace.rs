//! The trace of a run: steps, calls, results, cost, in the form that people and programs read (SPEC OBS-1).
//!
//! A fold of the run's events, like everything else about a run; it never decides anything.

use base::{AgentName, ConsentRecord, ContentHash, RunId, Timestamp};
use llm::{Arguments, MicroUsd, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::artifact::Artifact;
use crate::budget::CreditBudget;
use crate::event::{RunEvent, StoredEvent};
use crate::failure::{FailureSummary, RunError};
use crate::record::RunRecord;
use crate::request::OutgoingRequest;
use crate::skill::{InstalledSkill, SkillLabel};
use crate::status::RunStatus;
use crate::toolbox::{SandboxUsage, ToolNote, ToolResult};
use crate::wait::{Approval, Question, Scope, Waiting, allows};

/// The trace of a run. JSON in camel case, times in milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunTrace {
    /// The id of the run.
    pub run_id: RunId,
    /// Whose run it is.
    pub agent: AgentName,
    /// The task in full.
    pub task: String,
    /// The names of the granted tools.
    pub tools: Vec<String>,
    /// Where the run is in its life.
    pub status: RunStatus,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When a driver first took it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When the run ended; absent while it is live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// The whole answer; for a run without one, the last thing the model said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// The consequences of a failure for a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureSummary>,
    /// The question or approval it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// The attempts before this one and this one, when there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptTrace>,
    /// The questions it asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<QuestionTrace>,
    /// The messages of the owner while it worked, and beside refusals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owner_messages: Vec<OwnerMessageTrace>,
    /// The approvals it asked for, with their decisions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<ApprovalTrace>,
    /// The files it produced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The skill it works by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<SkillLabel>,
    /// The skills that it left behind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub installed_skills: Vec<InstalledSkill>,
    /// Calls with an unknown outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_outcomes: Vec<String>,
    /// Notices for the owner: the value of a credential that was stopped on its way out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Its limit and its spending; absent if spending is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<CreditBudget>,
    /// The steps of all attempts, in order.
    pub steps: Vec<StepTrace>,
    /// The changes of status, and when the run was taken up again.
    pub transitions: Vec<TransitionTrace>,
    /// The number of steps begun.
    pub total_iterations: u32,
    /// Milliseconds from start to end, or to the last event.
    pub total_duration_ms: u64,
    /// The energy drained so far.
    pub total_energy_cost: f64,
    /// Tokens and cost of all replies.
    #[serde(with = "llm::shown_usage")]
    #[schemars(with = "llm::shown_usage::ShownUsage")]
    pub total_usage: Usage,
    /// Replies whose price is unknown: the cost is that of the others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced_replies: u32,
    /// The most that it may cost in US dollars; absent without a cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_cap: Option<MicroUsd>,
    /// The seed of its random numbers and its clock; absent without one (SPEC SIM-1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u32>,
    /// Requests to the model, its retries included.
    pub llm_calls: u32,
    /// Tool calls that have a result.
    pub tool_calls: u32,
    /// Tool calls that failed.
    pub errors: u32,
    /// Writes that it staged, sent since or not (SPEC LAND-5).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub staged: u32,
}

/// One attempt of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptTrace {
    /// The attempt's number, from 0.
    pub index: u32,
    /// When the attempt began.
    pub started_at: Timestamp,
    /// The number of its first step.
    pub first_step: u32,
    /// The owner's guidance for this attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidance: Option<String>,
    /// Whose word it is, when it was given more than the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<ConsentRecord>,
    /// The error of a failed attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// The consequences of the failure for a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureSummary>,
}

/// A question and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionTrace {
    /// The question as it was asked.
    #[serde(flatten)]
    pub question: Question,
    /// The answer, when there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Whose word it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<ConsentRecord>,
}

/// A message of the owner to the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnerMessageTrace {
    /// When it was said.
    pub at: Timestamp,
    /// The last step begun then; 0 before the first.
    pub step: u32,
    /// Text of the message.
    pub text: String,
    /// Whose word it is.
    pub consent: ConsentRecord,
}

/// A request for consent and its decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalTrace {
    /// The approval as it was asked for.
    #[serde(flatten)]
    pub approval: Approval,
    /// Whether it was allowed, when it was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<bool>,
    /// How long the consent lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// The actions that were allowed, by hash, when not all of them were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<ContentHash>,
    /// Why, in the owner's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whose word it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<ConsentRecord>,
}

impl ApprovalTrace {
    /// Whether the owner allowed this action.
    #[must_use]
    pub fn allows(&self, action: ContentHash) -> bool {
        self.granted == Some(true) && allows(&self.only, action)
    }
}

/// One step: a model reply and the calls it asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepTrace {
    /// The step's number, from 1.
    pub iteration: u32,
    /// When the reply was there.
    pub timestamp: Timestamp,
    /// `provider/model` that answered.
    pub llm_model: String,
    /// Reasoning that came beside the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The text of the model's reply.
    pub text: String,
    /// Tokens and cost of the reply.
    #[serde(with = "llm::shown_usage")]
    #[schemars(with = "llm::shown_usage::ShownUsage")]
    pub usage: Usage,
    /// Milliseconds the model took, retries included.
    pub duration_ms: u64,
    /// How often the request was tried again.
    pub retries: u32,
    /// Whether a call was read out of the text.
    pub recovered_call: bool,
    /// The calls, in order.
    pub tool_calls: Vec<ToolCallTrace>,
    /// The host's messages to the model after this step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_messages: Vec<String>,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallTrace {
    /// The model's id of the call.
    pub call_id: String,
    /// The name of the tool.
    pub tool: String,
    /// The arguments as executed, or as the model wrote them when nothing was executed.
    pub args: Value,
    /// The result; none while the call is open, or when the run ended before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolResult>,
    /// Milliseconds the call took.
    pub duration_ms: u64,
    /// Units of wasmtime fuel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fuel: Option<u64>,
    /// The most linear memory held at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
    /// Calls from the guest into the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_calls: Option<u64>,
    /// The component behind the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<ContentHash>,
    /// The network requests of the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<OutgoingRequest>,
    /// The lines the call wrote to the run's log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<ToolNote>,
    /// Whether the host tried it again after a transient failure.
    #[serde(default)]
    pub retried: bool,
    /// Whether the host had stopped while it was in flight.
    #[serde(default)]
    pub recovered: bool,
}

/// A change of status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransitionTrace {
    /// When the status changed.
    pub at: Timestamp,
    /// The status from then on.
    pub status: RunStatus,
    /// Whether the host had stopped before.
    #[serde(default)]
    pub resumed: bool,
}

impl RunTrace {
    /// The trace after the first event.
    pub(crate) fn created(record: &RunRecord, task: &str) -> Self {
        Self {
            run_id: record.id.clone(),
            agent: record.agent.clone(),
            task: task.to_owned(),
            tools: record.tools.clone(),
            status: record.status,
            created_at: record.created_at,
            started_at: None,
            completed_at: None,
            summary: None,
            error: None,
            failure: None,
            waiting: None,
            attempts: Vec::new(),
            questions: Vec::new(),
            owner_messages: Vec::new(),
            approvals: Vec::new(),
            artifacts: Vec::new(),
            skill: record.skill.clone(),
            installed_skills: Vec::new(),
            unknown_outcomes: Vec::new(),
            notices: Vec::new(),
            budget: None,
            steps: Vec::new(),
            transitions: vec![TransitionTrace { at: record.created_at, status: record.status, resumed: false }],
            total_iterations: 0,
            total_duration_ms: 0,
            total_energy_cost: record.energy,
            total_usage: Usage::default(),
            unpriced_replies: 0,
            usd_cap: record.money.cap,
            seed: record.grant.seed,
            llm_calls: 0,
            tool_calls: 0,
            errors: 0,
            staged: 0,
        }
    }

    /// Everything but the steps, for a writer that adds those one at a time.
    #[must_use]
    pub fn without_steps(&self) -> Self {
        Self {
            run_id: self.run_id.clone(),
            agent: self.agent.clone(),
            task: self.task.clone(),
            tools: self.tools.clone(),
            status: self.status,
            created_at: self.created_at,
            started_at: self.started_at,
            completed_at: self.completed_at,
            summary: self.summary.clone(),
            error: self.error.clone(),
            failure: self.failure.clone(),
            waiting: self.waiting.clone(),
            attempts: self.attempts.clone(),
            questions: self.questions.clone(),
            owner_messages: self.owner_messages.clone(),
            approvals: self.approvals.clone(),
            artifacts: self.artifacts.clone(),
            skill: self.skill.clone(),
            installed_skills: self.installed_skills.clone(),
            unknown_outcomes: self.unknown_outcomes.clone(),
            notices: self.notices.clone(),
            budget: self.budget.clone(),
            steps: Vec::new(),
            transitions: self.transitions.clone(),
            total_iterations: self.total_iterations,
            total_duration_ms: self.total_duration_ms,
            total_energy_cost: self.total_energy_cost,
            total_usage: self.total_usage,
            unpriced_replies: self.unpriced_replies,
            usd_cap: self.usd_cap,
            seed: self.seed,
            llm_calls: self.llm_calls,
            tool_calls: self.tool_calls,
            errors: self.errors,
            staged: self.staged,
        }
    }

    /// Takes in an event; `record` is the head after it.
    pub(crate) fn apply(&mut self, stored: &StoredEvent, record: &RunRecord) {
        match &stored.event {
            RunEvent::Created { .. } => {}
            RunEvent::Started | RunEvent::Resumed => {
                let resumed = matches!(stored.event, RunEvent::Resumed);
                self.transitions.push(TransitionTrace { at: stored.at, status: record.status, resumed });
            }
            RunEvent::ModelReplied { step, reply, duration_ms, recovered_call, .. } => self.steps.push(StepTrace {
                iteration: *step,
                timestamp: stored.at,
                llm_model: reply.model.clone(),
                reasoning: reply.reasoning.clone(),
                text: reply.text.clone(),
                usage: reply.usage,
                duration_ms: *duration_ms,
                retries: reply.retries,
                recovered_call: *recovered_call,
                tool_calls: reply.tool_calls.iter().map(ToolCallTrace::asked).collect(),
                host_messages: Vec::new(),
            }),
            RunEvent::ToolIntended { call_id, arguments, component, .. } => {
                if let Some(call) = self.call(call_id) {
                    call.args = arguments.clone();
                    call.component = *component;
                }
            }
            RunEvent::ToolReturned { call_id, result, usage, requests, notes, retried, recovered, .. } => {
                if let Some(call) = self.call(call_id) {
                    call.returned(result, *usage);
                    // A call that was held has been made before.
                    call.requests.extend_from_slice(requests);
                    call.notes.extend_from_slice(notes);
                    call.retried = *retried;
                    call.recovered = *recovered;
                }
            }
            RunEvent::Told { text, .. } => {
                if let Some(step) = self.steps.last_mut() {
                    step.host_messages.push(text.clone());
                }
            }
            RunEvent::Finished { summary, error, .. } => {
                self.summary.clone_from(summary);
                self.error.clone_from(error);
                self.changed(stored, record);
            }
            RunEvent::OwnerSaid { step, text, consent, .. } => {
                let (at, text, consent) = (stored.at, text.clone(), consent.clone());
                self.owner_messages.push(OwnerMessageTrace { at, step: *step, text, consent });
            }
            RunEvent::Asked { question } => {
                self.questions.push(QuestionTrace { question: question.clone(), answer: None, consent: None });
                self.changed(stored, record);
            }
            RunEvent::Answered { answer, consent, .. } => {
                if let Some(asked) = self.questions.last_mut() {
                    (asked.answer, asked.consent) = (Some(answer.clone()), Some(consent.clone()));
                }
                self.changed(stored, record);
            }
            RunEvent::CeilingRaised { .. } => self.changed(stored, record),
            RunEvent::ApprovalAsked { approval } => {
                let approval = approval.clone();
                let undecided =
                    ApprovalTrace { approval, granted: None, scope: None, only: Vec::new(), why: None, consent: None };
                self.approvals.push(undecided);
                self.changed(stored, record);
            }
            RunEvent::ApprovalDecided { granted, scope, only, reason, consent, .. } => {
                if let Some(asked) = self.approvals.last_mut() {
                    (asked.granted, asked.scope) = (Some(*granted), Some(*scope));
                    asked.only.clone_from(only);
                    (asked.why, asked.consent) = (reason.clone(), Some(consent.clone()));
                }
                self.changed(stored, record);
            }
            RunEvent::Retried { attempt, guidance, consent, .. } => {
                self.begin_attempt(*attempt, stored.at, record, (guidance.clone(), consent.clone()));
                self.changed(stored, record);
            }
        }
        self.total(stored.at, record);
    }

    fn changed(&mut self, stored: &StoredEvent, record: &RunRecord) {
        self.transitions.push(TransitionTrace { at: stored.at, status: record.status, resumed: false });
    }

    /// The attempt before keeps why it failed; the run itself starts anew.
    fn begin_attempt(
        &mut self,
        index: u32,
        at: Timestamp,
        record: &RunRecord,
        (guidance, consent): (Option<String>, Option<ConsentRecord>),
    ) {
        if self.attempts.is_empty() {
            let started_at = self.started_at.unwrap_or(self.created_at);
            let first = AttemptTrace {
                index: 0,
                started_at,
                first_step: 1,
                guidance: None,
                consent: None,
                error: None,
                failure: None,
            };
            self.attempts.push(first);
        }
        if let Some(last) = self.attempts.last_mut() {
            (last.error, last.failure) = (self.error.take(), self.failure.take());
        }
        self.summary = None;
        let first_step = record.iterations + 1;
        let (error, failure) = (None, None);
        self.attempts.push(AttemptTrace { index, started_at: at, first_step, guidance, consent, error, failure });
    }

    fn total(&mut self, now: Timestamp, record: &RunRecord) {
        self.status = record.status;
        self.waiting.clone_from(&record.waiting);
        self.artifacts.clone_from(&record.artifacts);
        self.installed_skills.clone_from(&record.installed_skills);
        self.unknown_outcomes.clone_from(&record.unknown_outcomes);
        self.notices.clone_from(&record.notices);
        self.budget.clone_from(&record.budget);
        self.failure = record.failure.clone().filter(|_| record.status == RunStatus::Failed);
        self.started_at = record.started_at;
        self.completed_at = record.completed_at;
        self.total_iterations = record.iterations;
        self.total_duration_ms = u64::try_from(record.elapsed(now).as_millis()).unwrap_or(u64::MAX);
        self.total_energy_cost = record.energy;
        self.total_usage = Usage {
            input_tokens: record.input_tokens,
            cached_input_tokens: record.cached_input_tokens,
            output_tokens: record.output_tokens,
            cost_usd: record.cost_usd,
            ..Usage::default()
        };
        (self.unpriced_replies, self.usd_cap) = (record.unpriced_replies, record.money.cap);
        self.llm_calls = record.model_calls;
        self.tool_calls = record.tool_calls;
        self.errors = record.errors;
        self.staged = record.staged;
    }

    /// An open call of the latest step: only that one can have any.
    fn call(&mut self, call_id: &str) -> Option<&mut ToolCallTrace> {
        self.steps.last_mut()?.tool_calls.iter_mut().find(|call| call.call_id == call_id)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl ToolCallTrace {
    fn asked(call: &llm::RequestedCall) -> Self {
        Self {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            args: match &call.arguments {
                Arguments::Json(value) => value.clone(),
                Arguments::Malformed(text) => Value::String(text.clone()),
            },
            result: None,
            duration_ms: 0,
            fuel: None,
            peak_memory_bytes: None,
            host_calls: None,
            component: None,
            requests: Vec::new(),
            notes: Vec::new(),
            retried: false,
            recovered: false,
        }
    }

    fn returned(&mut self, result: &ToolResult, usage: Option<SandboxUsage>) {
        self.duration_ms = result.duration_ms;
        self.result = Some(result.clone());
        self.fuel = usage.map(|usage| usage.fuel);
        self.peak_memory_bytes = usage.map(|usage| usage.peak_memory_bytes);
        self.host_calls = usage.map(|usage| usage.host_calls);
    }
}

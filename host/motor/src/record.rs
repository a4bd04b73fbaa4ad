//! The head of a run: small, and all that a listing needs. A fold of the run's events.

use std::time::Duration;

use base::text::cut;
use base::{AgentName, ErrorCode, Provenance, RunId, Timestamp};
use grants::{Grant, RunConsent};
use llm::{MicroUsd, Usage};
use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::budget::CreditBudget;
use crate::ceiling::Ceilings;
use crate::config::MAX_UNKNOWN;
use crate::event::{RunEvent, StoredEvent};
use crate::failure::{FailureSummary, RunError};
use crate::money::RunMoney;
use crate::rules::RunRules;
use crate::skill::{InstalledSkill, SkillLabel};
use crate::spend::SpendOfDay;
use crate::status::{IllegalTransition, RunStatus, StatusEvent};
use crate::toolbox::ToolNote;
use crate::wait::{Scope, Waiting, allows};

/// Characters of the task that the head keeps; the whole task is in the first event.
const TASK_CHARACTERS: usize = 200;
/// Characters of the summary that the head keeps; the whole summary is in the last event.
const SUMMARY_CHARACTERS: usize = 2_000;
/// Sources of untrusted content that are kept by name. A run with any source is tainted.
const WEB_SOURCES: usize = 32;
/// Notices that are kept; later ones are dropped.
const NOTICES: usize = 32;
/// The rule of the gate that refuses a credential's value, `network::Rule::CredentialInClear`.
const LEAK_RULE: &str = "credential_in_clear";

/// The head of a run.
///
/// JSON: `{ id, agent, status, task, tools, settings, maxIterations, timeoutMs, createdAt, startedAt?, completedAt?,
/// iterations, modelCalls, toolCalls, errors, inputTokens, outputTokens, costUsd?, energy, resumes, nextSequence,
/// webSources?, attempt?, waiting?, failure?, artifacts?, summary?, error? … }`, times in milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRecord {
    /// The id of the run.
    pub id: RunId,
    /// Whose run it is.
    pub agent: AgentName,
    /// Where it is in its life.
    pub status: RunStatus,
    /// The beginning of the task.
    pub task: String,
    /// The tools granted, by exact name.
    pub tools: Vec<String>,
    /// The access that the run's environment is rebuilt from. The loop does not look inside.
    #[serde(rename = "settings", deserialize_with = "Grant::stored")]
    pub grant: Grant,
    /// How many model calls its attempt may take.
    pub max_iterations: u32,
    /// Milliseconds of wall clock that an attempt may take, across restarts of the host, waiting for people not counted.
    pub timeout_ms: u64,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When a driver first took it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When the run ended; absent while it is live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// The number of steps begun.
    pub iterations: u32,
    /// Requests to the model, its retries included.
    pub model_calls: u32,
    /// Tool calls that have a result.
    pub tool_calls: u32,
    /// Tool calls that failed.
    pub errors: u32,
    /// Writes that it staged, sent since or not (SPEC LAND-5): the highest number that a call was given.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub staged: u32,
    /// Tokens of all prompts.
    pub input_tokens: u64,
    /// Those of them that the provider had in its cache.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub cached_input_tokens: u64,
    /// Tokens of all replies.
    pub output_tokens: u64,
    /// US dollars, when prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Energy drained so far.
    pub energy: f64,
    /// How often it was taken up again.
    pub resumes: u32,
    /// Where the run has read untrusted content from, each once (SPEC TAINT-1).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub web_sources: Vec<String>,
    /// Whether its task was written in the sight of untrusted content: its words are not those of its user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub task_is_tainted: bool,
    /// The tool of a call that can reach the network and has no result yet: it may have read anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reaching: Option<String>,
    /// The attempt it is in: the first is 0 (SPEC RUN-10).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// Steps of the attempts before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub earlier_iterations: u32,
    /// When the attempt began, when it is not the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_started_at: Option<Timestamp>,
    /// The owner's guidance for this attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidance: Option<String>,
    /// How the attempt before failed; of a failed run: how it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureSummary>,
    /// The question or approval it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// The signal that announced the wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<u64>,
    /// Milliseconds that the attempt has waited for people.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub waited_ms: u64,
    /// Milliseconds that the attempt had worked at its last event; none after events of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worked_ms: Option<u64>,
    /// When its last event happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_at: Option<Timestamp>,
    /// Whether irreversible and outward actions wait for consent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approval_required: bool,
    /// Whether it may ask its user and owner.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_ask: bool,
    /// Whether it was started to be left alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detached: bool,
    /// Whether its access is settled: it asks for none beyond the plan that the owner agreed to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
    /// Whether a model requested it, with the powers it has. No longer once the owner widened them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_model: bool,
    /// The access that the owner granted beyond the settings, for the rest of the run. The loop does not look inside.
    #[serde(default, rename = "grants", skip_serializing_if = "Vec::is_empty")]
    pub consents: Vec<RunConsent>,
    /// Calls with an unknown outcome, for the owner (SPEC DUR-2).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_outcomes: Vec<String>,
    /// Notices for the owner, each once: the value of a credential that was stopped on its way out (SPEC VAULT-3).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Messages of the owner that it got while it worked.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub owner_messages: u32,
    /// The files it produced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The skill it works by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<SkillLabel>,
    /// The skills that it left behind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub installed_skills: Vec<InstalledSkill>,
    /// Its limit and its spending; absent if spending is not counted (SPEC EN-2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<CreditBudget>,
    /// Its cap in US dollars, and the prices of its models.
    #[serde(default, skip_serializing_if = "RunMoney::is_default")]
    pub money: RunMoney,
    /// Replies whose price is unknown: the cost is that of the others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced_replies: u32,
    /// Its spending on the day of its last reply.
    #[serde(default)]
    pub(crate) spent_of_day: SpendOfDay,
    /// The owner's answers about its ceilings.
    #[serde(default, skip_serializing_if = "Ceilings::is_default")]
    pub ceilings: Ceilings,
    /// The rules that it started with.
    #[serde(default)]
    pub rules: RunRules,
    /// The number the next event gets: also how many there are.
    pub next_sequence: u64,
    /// The beginning of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
}

impl RunRecord {
    /// The head after the first event, when that is the creation of a run.
    pub(crate) fn created(id: RunId, first: &StoredEvent) -> Option<Self> {
        let RunEvent::Created {
            agent,
            task,
            tools,
            max_iterations,
            timeout_ms,
            grant,
            key: _,
            energy,
            approval_required,
            may_ask,
            detached,
            settled,
            credits,
            skill,
            web_sources,
            by_model,
            rules,
            money,
        } = &first.event
        else {
            return None;
        };
        Some(Self {
            id,
            agent: agent.clone(),
            status: RunStatus::Created,
            task: cut(task, TASK_CHARACTERS),
            tools: tools.clone(),
            grant: (**grant).clone(),
            max_iterations: *max_iterations,
            timeout_ms: *timeout_ms,
            created_at: first.at,
            started_at: None,
            completed_at: None,
            iterations: 0,
            model_calls: 0,
            tool_calls: 0,
            errors: 0,
            staged: 0,
            input_tokens: 0,
            cached_input_tokens: 0,
            output_tokens: 0,
            cost_usd: None,
            energy: *energy,
            resumes: 0,
            web_sources: web_sources.clone(),
            task_is_tainted: !web_sources.is_empty(),
            reaching: None,
            attempt: 0,
            earlier_iterations: 0,
            attempt_started_at: None,
            guidance: None,
            failure: None,
            waiting: None,
            signal: None,
            waited_ms: 0,
            worked_ms: first.worked_ms,
            last_event_at: Some(first.at),
            approval_required: *approval_required,
            may_ask: *may_ask,
            detached: *detached,
            settled: *settled,
            by_model: *by_model,
            consents: Vec::new(),
            unknown_outcomes: Vec::new(),
            notices: Vec::new(),
            owner_messages: 0,
            artifacts: Vec::new(),
            skill: skill.clone(),
            installed_skills: Vec::new(),
            budget: credits.map(CreditBudget::new),
            money: money.clone(),
            unpriced_replies: 0,
            spent_of_day: SpendOfDay::default(),
            ceilings: Ceilings::default(),
            rules: *rules,
            next_sequence: 1,
            summary: None,
            error: None,
        })
    }

    /// Takes in an event after the first.
    ///
    /// # Errors
    /// When the event may not happen in the run's status; the record is unchanged then.
    pub(crate) fn apply(&mut self, stored: &StoredEvent) -> Result<(), IllegalTransition> {
        match &stored.event {
            // A second creation is as illegal as a second start.
            RunEvent::Created { .. } | RunEvent::Started => {
                self.status = self.status.transition(StatusEvent::Start)?;
                self.started_at = Some(stored.at);
            }
            RunEvent::Finished { status, summary, error, energy, failure, artifacts, installed_skills } => {
                self.end(stored.at, *status, error.clone())?;
                self.leave_in_flight();
                self.summary = summary.as_deref().map(|text| cut(text, SUMMARY_CHARACTERS));
                self.energy += energy;
                self.failure.clone_from(failure);
                self.artifacts.clone_from(artifacts);
                self.installed_skills.clone_from(installed_skills);
            }
            RunEvent::Asked { question } => {
                self.status = self.status.transition(StatusEvent::AskInput)?;
                self.waiting = Some(Waiting::Input(question.clone()));
            }
            RunEvent::ApprovalAsked { approval } => {
                self.status = self.status.transition(StatusEvent::AskApproval)?;
                self.waiting = Some(Waiting::Approval(approval.clone()));
            }
            RunEvent::Answered { .. } => {
                self.status = self.status.transition(StatusEvent::Answer)?;
                if let Some(Waiting::Input(question)) = self.stop_waiting(stored.at)
                    && let Some(raise) = question.ceiling
                {
                    self.ceiling_answered(raise);
                }
            }
            RunEvent::ApprovalDecided { granted, scope, only, .. } => {
                self.status = self.status.transition(StatusEvent::Answer)?;
                if let Some(Waiting::Approval(approval)) = self.stop_waiting(stored.at)
                    && *granted
                    && *scope != Scope::Once
                {
                    let items = approval.items.into_iter().filter(|item| allows(only, item.action_hash));
                    let grants = items.map(|item| item.grant).chain([approval.grant]);
                    self.consents.extend(grants.flatten());
                }
            }
            RunEvent::Retried { attempt, guidance, grant, max_iterations, consent: _, usd } => {
                self.status = self.status.transition(StatusEvent::Retry)?;
                self.attempt = *attempt;
                self.guidance.clone_from(guidance);
                if let Some(grant) = grant {
                    self.grant = (**grant).clone();
                    // The owner gave it more than the model asked for.
                    self.by_model = false;
                }
                self.reset_ceilings(*usd);
                self.max_iterations = *max_iterations;
                self.earlier_iterations = self.iterations;
                self.attempt_started_at = Some(stored.at);
                self.waited_ms = 0;
                (self.completed_at, self.summary, self.error) = (None, None, None);
                self.artifacts.clear();
                self.installed_skills.clear();
            }
            other => {
                self.status = self.status.transition(StatusEvent::GoOn)?;
                if let RunEvent::ModelReplied { reply, .. } = other {
                    self.spent_of_day.count(stored.at, &reply.usage, self.cost_of(&reply.usage));
                }
                self.count(other);
            }
        }
        self.next_sequence += 1;
        (self.worked_ms, self.last_event_at) = (stored.worked_ms, Some(stored.at));
        Ok(())
    }

    /// The run is over, with or without an event that says so.
    ///
    /// # Errors
    /// When it may not end like this; the record is unchanged then.
    pub(crate) fn end(
        &mut self,
        at: Timestamp,
        status: RunStatus,
        error: Option<RunError>,
    ) -> Result<(), IllegalTransition> {
        let event = match status {
            RunStatus::Completed => StatusEvent::Complete,
            RunStatus::Cancelled => StatusEvent::Cancel,
            _ => StatusEvent::Fail,
        };
        self.status = self.status.transition(event)?;
        self.stop_waiting(at);
        self.completed_at = Some(at);
        self.error = error;
        Ok(())
    }

    /// Takes the wait from the record. Its duration does not count as working time of the run.
    fn stop_waiting(&mut self, now: Timestamp) -> Option<Waiting> {
        self.signal = None;
        let waiting = self.waiting.take()?;
        let waited = u64::try_from(now.since(waiting.asked_at()).as_millis()).unwrap_or(u64::MAX);
        self.waited_ms = self.waited_ms.saturating_add(waited);
        Some(waiting)
    }

    fn count(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Resumed => {
                self.resumes += 1;
                self.leave_in_flight();
            }
            RunEvent::OwnerSaid { .. } => self.owner_messages += 1,
            RunEvent::CeilingRaised { raise } => self.raise(*raise),
            RunEvent::ToolIntended { tool, effects, reserved, .. } => {
                if effects.open_world {
                    self.reaching = Some(tool.clone());
                }
                if let Some(budget) = &mut self.budget {
                    budget.reserve(*reserved);
                }
            }
            RunEvent::ModelReplied { step, reply, credits, .. } => {
                self.iterations = *step;
                self.tell(&reply.notices);
                if let Some(budget) = &mut self.budget {
                    budget.settle(*credits);
                }
                self.model_calls += 1 + reply.retries;
                self.input_tokens += reply.usage.input_tokens;
                self.cached_input_tokens += reply.usage.cached_input_tokens.min(reply.usage.input_tokens);
                self.output_tokens += reply.usage.output_tokens;
                if let Some(cost) = reply.usage.cost() {
                    self.cost_usd = Some(self.spent().plus(cost).usd());
                } else if self.cost_of(&reply.usage).is_none() {
                    self.unpriced_replies = self.unpriced_replies.saturating_add(1);
                }
            }
            RunEvent::ToolReturned { step, tool, result, requests, notes, recovered, credits, held, .. } => {
                self.reaching = None;
                if let Some(budget) = &mut self.budget {
                    // The spending of a call that died with the host is unknown: its reservation is charged in full.
                    match credits {
                        Some(credits) => budget.settle(*credits),
                        None => budget.forfeit(),
                    }
                }
                let leaks = requests.iter().filter(|request| request.rule.as_deref() == Some(LEAK_RULE));
                let leak = |why: &String| format!("step {step}: `{tool}` was refused: {why}");
                self.tell(&leaks.filter_map(|request| request.error.as_ref().map(leak)).collect::<Vec<_>>());
                self.tell(&notes.iter().filter_map(ToolNote::notice).collect::<Vec<_>>());
                self.staged = requests.iter().filter_map(|request| request.staged).fold(self.staged, u32::max);
                for request in requests.iter().filter(|request| request.status.is_some()) {
                    self.read_from(request.host.clone());
                }
                if result.provenance == Provenance::Web && self.web_sources.is_empty() {
                    self.read_from(format!("`{tool}`"));
                }
                if !held {
                    self.tool_calls += 1;
                    let failed = !result.ok && result.error_code != Some(ErrorCode::Staged);
                    self.errors += u32::from(failed);
                }
                if *recovered
                    && result.error_code == Some(ErrorCode::OutcomeUnknown)
                    && self.unknown_outcomes.len() < MAX_UNKNOWN
                {
                    self.unknown_outcomes.push(format!("step {step}: `{tool}`"));
                }
            }
            _ => {}
        }
    }

    /// Records a call without a result: its reads and its spending are unknown.
    fn leave_in_flight(&mut self) {
        if let Some(budget) = &mut self.budget {
            budget.forfeit();
        }
        if let Some(tool) = self.reaching.take() {
            self.read_from(format!("an interrupted call of `{tool}`"));
        }
    }

    /// Keeps notices for the owner, each once.
    fn tell(&mut self, notices: &[String]) {
        for notice in notices {
            if self.notices.len() < NOTICES && !self.notices.contains(notice) {
                self.notices.push(notice.clone());
            }
        }
    }

    fn read_from(&mut self, source: String) {
        if self.web_sources.len() < WEB_SOURCES && !self.web_sources.contains(&source) {
            self.web_sources.push(source);
        }
    }

    /// How long the attempt has worked when a driver takes it up at `now`: its time counts from its start, not from the start of
    /// the host. Between two hosts there is only the wall clock; waiting for people does not count.
    pub(crate) fn worked(&self, now: Timestamp) -> Duration {
        if self.started_at.is_none() {
            return Duration::ZERO;
        }
        if let (Some(worked), Some(last)) = (self.worked_ms, self.last_event_at) {
            let since = if self.status.is_waiting() { Duration::ZERO } else { now.since(last) };
            return Duration::from_millis(worked).saturating_add(since);
        }
        let began = self.attempt_started_at.or(self.started_at);
        let used = began.map_or(Duration::ZERO, |began| now.since(began));
        used.saturating_sub(Duration::from_millis(self.waited_ms))
    }

    /// The cost of a reply. One that is replayed has none of its own and costs nothing.
    fn cost_of(&self, usage: &Usage) -> Option<MicroUsd> {
        usage.cost().or_else(|| self.money.prices.is_free().then_some(MicroUsd::ZERO))
    }

    /// The known cost of its replies.
    #[must_use]
    pub fn spent(&self) -> MicroUsd {
        self.cost_usd.and_then(MicroUsd::from_usd).unwrap_or_default()
    }

    /// Attempts that are left after this one.
    pub(crate) fn attempts_left(&self) -> u32 {
        self.rules.max_attempts.saturating_sub(self.attempt + 1)
    }

    /// Steps begun in this attempt.
    #[must_use]
    pub fn attempt_iterations(&self) -> u32 {
        self.iterations.saturating_sub(self.earlier_iterations)
    }

    /// Whether the attempt may make another request to its model.
    pub(crate) fn has_steps_left(&self) -> bool {
        self.attempt_iterations() < self.max_iterations
    }

    /// The wall clock it may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// How long it has taken, from its start to its end or to `now`.
    #[must_use]
    pub fn elapsed(&self, now: Timestamp) -> Duration {
        self.started_at.map_or(Duration::ZERO, |started| self.completed_at.unwrap_or(now).since(started))
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_zero_u64(number: &u64) -> bool {
    *number == 0
}

fn is_nothing(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests;

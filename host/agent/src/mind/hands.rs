//! Cognition acts by runs. A run or program that it starts is a model's, also in the owner's conversation: energy binds it, and it gets
//! no more than any model's. Only an answer carries the owner's authority, which cognition holds for the turn of their message.

use std::sync::Arc;

use async_trait::async_trait;
use base::text::cut;
use base::{AgentName, Refusal, RefusalCode, RunId};
use cognition::{
    AskedBy, Consolidation, Delegation, Hands, LearnableProgram, ProgramOutcome, RunAnswer, RunDecision, RunView,
    SensedSignals, SkillView,
};
use grants::RunConsent;
use ledger::{Ledger, PeerId, PeerReport, PeerSummary};
use motor::{Approval, ApprovalItem, RunRecord, Scope, ShownField, ValueOrigin, Waiting};
use neurons::{NeuronStatus, split_sample};
use runtime::Language;
use serde_json::{Value, json};
use skills::SkillStatus;
use store::blocking;

use crate::api::skills::{ReviewRequest, ShowSkillRequest};
use crate::api::{ActRequest, Caller, ExecuteRequest, Tier};
use crate::neuron::{Neurons, code_hash, consolidate};
use crate::reflection::Reflections;
use crate::task::{ApproveTask, RespondRequest, RetryTask};
use crate::{Credentials, Programs, Runs, Skills};

/// Characters of a program's value, or of the sentence of its error, for the model of a conversation.
const MAX_OUTPUT: usize = 4_000;
/// Characters of a program's console output.
const MAX_CONSOLE: usize = 1_500;
/// Bytes of the result of a program that can become a neuron: more than the signals of a tick may have.
const MAX_LEARNABLE: usize = 20 << 10;

/// Acts by the runs of a home, and through the same capabilities as other callers of the host.
pub(crate) struct RunHands {
    pub runs: Arc<Runs>,
    pub neurons: Neurons,
    pub skills: Skills,
    pub programs: Programs,
    pub credentials: Credentials,
    pub ledger: Ledger,
    pub reflections: Reflections,
}

#[async_trait]
impl Hands for RunHands {
    async fn act(&self, delegation: Delegation) -> Result<RunId, Refusal> {
        let Delegation { agent, task, tools, domains, skill, approval_required, key, sources } = delegation;
        let request = ActRequest {
            agent,
            task,
            tools,
            domains,
            skill,
            approval_required,
            key: Some(key),
            ..ActRequest::default()
        };
        Ok(self.runs.delegate(request, Caller::Model, sources).await?.run_id)
    }

    async fn view(&self, run: &RunId) -> Result<RunView, Refusal> {
        Ok(view(self.runs.record(run)?))
    }

    async fn respond(&self, run: &RunId, answer: RunAnswer) -> Result<(), Refusal> {
        let RunAnswer { question, text, key, consent } = answer;
        let request = RespondRequest { answer: text, question: Some(question), key: Some(key) };
        self.runs.respond(run, request, consent).await.map(drop)
    }

    async fn decide(&self, run: &RunId, decision: RunDecision) -> Result<(), Refusal> {
        let RunDecision { approval, actions, grant, key, consent } = decision;
        let request = ApproveTask {
            approval: Some(approval),
            actions,
            grant,
            only: Vec::new(),
            // A yes in a conversation is about the actions that were shown, and no others.
            scope: Scope::Once,
            reason: None,
            key: Some(key),
        };
        self.runs.approve(run, request, consent).await.map(drop)
    }

    async fn cancel(&self, run: &RunId) -> Result<(), Refusal> {
        self.runs.cancel(run).await.map(drop)
    }

    async fn retry(&self, run: &RunId, guidance: Option<String>, key: String) -> Result<(), Refusal> {
        let request = RetryTask { guidance, key: Some(key), ..RetryTask::default() };
        self.runs.retry(run, request, None).await.map(drop)
    }

    async fn key_of(&self, run: &RunId) -> Result<Option<String>, Refusal> {
        self.runs.motor.key_of(run)
    }

    async fn consolidate(&self, consolidation: Consolidation) -> Result<Value, Refusal> {
        let neuron = consolidate(&self.neurons, consolidation).await?;
        let next = match neuron.status {
            NeuronStatus::Quarantined => "it passed its quarantine; the owner decides with `motor neuron approve`",
            NeuronStatus::Rejected => "the quarantine refused it; mend the code, or the scenarios",
            _ => "it was proposed before",
        };
        Ok(json!({ "neuron": neuron.draft.name, "status": neuron.status, "fault": neuron.fault, "next": next }))
    }

    async fn sensed(&self, agent: &AgentName, limit: usize) -> Result<SensedSignals, Refusal> {
        let found = self.neurons.signals(agent, None, limit).await?;
        let mut sources: Vec<String> = found.iter().flat_map(|signal| signal.sources.clone()).collect();
        sources.sort();
        sources.dedup();
        let shown = found.iter().map(
            |signal| json!({ "neuron": signal.neuron, "kind": signal.kind, "at": signal.at, "data": signal.data }),
        );
        Ok(SensedSignals { report: shown.collect(), sources })
    }

    async fn execute(&self, agent: &AgentName, code: String) -> Result<ProgramOutcome, Refusal> {
        let sampled = split_sample(&code).ok();
        let request = ExecuteRequest {
            code,
            language: Language::JavaScript,
            purpose: None,
            tier: Tier::Isolated,
            timeout_ms: None,
            guard: None,
            agent: agent.clone(),
            seed: None,
        };
        let reply = self.programs.execute(request, Caller::Model).await?;
        let is_whole = reply.ok && !reply.truncated && reply.output.len() <= MAX_LEARNABLE;
        let learnable = match sampled.filter(|_| is_whole) {
            Some((sample, source)) => Some(LearnableProgram {
                code: code_hash(&source),
                sample: serde_json::to_value(sample).map_err(unwritable)?,
                output: reply.output.clone(),
            }),
            None => None,
        };
        let (output, console) = (cut(&reply.output, MAX_OUTPUT), cut(&reply.console, MAX_CONSOLE));
        let report = json!({
            "ok": reply.ok,
            "error": reply.error_code,
            "line": reply.line,
            "isCut": reply.truncated || output != reply.output,
            "output": output,
            "isConsoleCut": reply.console_truncated || console != reply.console,
            "console": console,
        });
        Ok(ProgramOutcome { report, learnable })
    }

    async fn skills(&self) -> Result<Value, Refusal> {
        let listed = self.skills.list().await?;
        let shown = listed.into_iter().filter_map(|skill| {
            let (name, status) = (skill.name?, skill.status);
            // The words of an author whom the owner has not approved are in no list.
            let description = (status == SkillStatus::Approved).then_some(skill.description);
            Some(json!({ "name": name, "status": status, "description": description }))
        });
        Ok(shown.collect())
    }

    async fn show_skill(&self, skill: String, file: Option<String>) -> Result<SkillView, Refusal> {
        let shown = self.skills.show(ShowSkillRequest { skill, file }).await?;
        let sources = skill_sources(shown.name.as_str(), shown.status);
        Ok(SkillView { report: serde_json::to_value(shown).map_err(unwritable)?, sources })
    }

    async fn review_skill(&self, agent: &AgentName, skill: String) -> Result<SkillView, Refusal> {
        let request = ReviewRequest { skill, advisory: false };
        let review = self.skills.review(request, agent, Caller::Model).await?.review;
        let sources = skill_sources(review.name.as_str(), review.status);
        let mut report = serde_json::to_value(review).map_err(unwritable)?;
        if let Some(fields) = report.as_object_mut() {
            // They would leave no room for the facts.
            fields.retain(|name, _| name != "text" && name != "files");
        }
        Ok(SkillView { report, sources })
    }

    async fn credentials(&self) -> Result<Value, Refusal> {
        let listed = self.credentials.list().await?;
        // One that waits for the owner can be granted to no run.
        let shown = listed.into_iter().filter(|credential| credential.pending.is_none()).map(
            |credential| json!({ "name": credential.name, "domains": credential.domains, "skill": credential.skill }),
        );
        Ok(
            json!({ "credentials": shown.collect::<Value>(), "toAdd": "the owner runs `motor credential set NAME --domain DOMAIN`" }),
        )
    }

    async fn peers(&self, agent: &AgentName, after: Option<PeerId>, limit: usize) -> Result<Vec<PeerSummary>, Refusal> {
        let (ledger, agent) = (self.ledger.clone(), agent.clone());
        blocking(move || Ok(ledger.list(&agent, after.as_ref(), limit)?)).await
    }

    async fn peer(&self, agent: &AgentName, peer: PeerId) -> Result<PeerReport, Refusal> {
        let (ledger, agent) = (self.ledger.clone(), agent.clone());
        blocking(move || ledger.report(&agent, &peer)).await
    }

    async fn offers_assess_peer(&self, agent: &AgentName) -> bool {
        self.reflections.offers_assess_peer(agent).await
    }
}

/// The text of a skill that the owner has not approved may come from anywhere.
fn skill_sources(name: &str, status: SkillStatus) -> Vec<String> {
    if status == SkillStatus::Approved { Vec::new() } else { vec![format!("skill:{name}")] }
}

fn unwritable(error: serde_json::Error) -> Refusal {
    Refusal::new(RefusalCode::Failed, error.to_string())
}

fn view(record: RunRecord) -> RunView {
    let report = json!({
        "task": record.task,
        "attempt": record.attempt,
        "steps": record.iterations,
        "toolCalls": record.tool_calls,
        "errors": record.errors,
        "failure": record.failure,
        "unknownOutcomes": record.unknown_outcomes,
        "artifacts": record.artifacts.iter().map(|artifact| &artifact.path).collect::<Vec<_>>(),
        "webSources": record.web_sources,
    });
    RunView {
        is_over: record.status.is_terminal(),
        status: record.status.to_string(),
        agent: record.agent,
        waiting: record.waiting.map(asked),
        report,
        sources: record.web_sources,
    }
}

fn asked(waiting: Waiting) -> AskedBy {
    match waiting {
        Waiting::Input(question) => {
            let is_ceiling = question.ceiling.is_some();
            AskedBy::Question { id: question.id, text: question.question, choices: question.choices, is_ceiling }
        }
        Waiting::Approval(approval) => {
            let summaries = approval.items.iter().flat_map(shown).chain(context(&approval)).collect();
            let actions = approval.items.iter().map(|item| item.action_hash).collect();
            AskedBy::Approval { id: approval.id, reason: approval.reason, summaries, actions }
        }
    }
}

/// The lines in which the owner sees an action: the request as it would be sent, each field with where it was first seen.
fn shown(item: &ApprovalItem) -> Vec<String> {
    let mut lines = vec![item.summary.clone()];
    let Some(request) = &item.request else {
        lines.push(format!("{} {}", item.tool, item.arguments));
        return lines;
    };
    if !item.summary.contains(&request.url) {
        lines.push(request.url.clone());
    }
    if !request.credentials.is_empty() {
        lines.push(format!("with the credentials {}", request.credentials.join(", ")));
    }
    lines.extend(request.fields.iter().map(|ShownField { name, value, origin }| {
        let origin = match origin {
            ValueOrigin::User => "from your words".to_owned(),
            ValueOrigin::Response { source } => format!("first seen in {source}"),
            ValueOrigin::Model => "the model's own".to_owned(),
        };
        format!("{name} = {value} ({origin})")
    }));
    match &request.body {
        Some(body) => lines.push(format!("sends {body}")),
        None if request.fields.is_empty() && request.body_bytes > 0 => {
            lines.push(format!("sends a body of {} bytes", request.body_bytes));
        }
        None => {}
    }
    lines
}

fn context(approval: &Approval) -> Vec<String> {
    let mut lines = Vec::new();
    if !approval.sent.is_empty() {
        lines.push(format!("sends again: {}", approval.sent.join("; ")));
    }
    if let Some(RunConsent::Domains(asked)) = &approval.grant {
        lines.push(format!("reaches {}", asked.domains.join(", ")));
    }
    if !approval.sources.is_empty() {
        lines.push(format!("the run has read untrusted content of {}", approval.sources.join(", ")));
    }
    lines
}

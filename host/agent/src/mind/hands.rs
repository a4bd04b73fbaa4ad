//! Cognition acts by runs. A run that it starts is a model's, also in the owner's conversation: energy binds it, and it gets
//! no more than any model's run. Only an answer carries the owner's authority, which cognition holds for the turn of their message.

use std::sync::Arc;

use async_trait::async_trait;
use base::{AgentName, Refusal, RunId};
use cognition::{AskedBy, Consolidation, Delegation, Hands, RunAnswer, RunDecision, RunView, SensedSignals};
use grants::RunConsent;
use motor::{Approval, ApprovalItem, RunRecord, Scope, ShownField, ValueOrigin, Waiting};
use neurons::NeuronStatus;
use serde_json::json;

use crate::Runs;
use crate::api::{ActRequest, Caller};
use crate::neuron::{Neurons, consolidate};
use crate::task::{ApproveTask, RespondRequest, RetryTask};

/// Acts by the runs of a home.
pub(super) struct RunHands {
    pub runs: Arc<Runs>,
    pub neurons: Neurons,
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

    async fn consolidate(&self, consolidation: Consolidation) -> Result<serde_json::Value, Refusal> {
        let neuron = consolidate(&self.neurons, consolidation).await?;
        let next = match neuron.status {
            NeuronStatus::Quarantined => "it passed its quarantine; the owner decides with `motor neuron approve`",
            NeuronStatus::Rejected => "the quarantine refused it; mend the code in a run, or the scenarios",
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

//! Receipts of runs (SPEC RUN-14): a fold of a run's stored data, signed with the key of the home.

mod key;
pub(crate) mod verify;

use std::collections::{BTreeMap, BTreeSet};

use base::{Refusal, RefusalCode, RunId};
use motor::{RunStatus, RunTrace, ToolCallTrace};
use receipts::{
    Energy, Issuer, PublicKey, Receipt, ReceiptAction, ReceiptAnswer, ReceiptApproval, ReceiptArtifact,
    ReceiptComponent, ReceiptOutcome, SignedReceipt, Skill, StatusCount, Task, Tokens,
};

use crate::Runs;
pub(crate) use key::{PUBLIC_KEY, ReceiptKey};
use store::blocking;

impl Runs {
    /// The receipt of a run that is over. The first receipt makes the key of the home.
    ///
    /// # Errors
    /// If the run does not exist, it is not over, or the key cannot be used.
    pub async fn receipt(&self, id: &RunId) -> Result<SignedReceipt, Refusal> {
        let trace = self.trace(id)?;
        let outcome = outcome(&trace)?;
        let keys = self.receipt_key.clone();
        blocking(move || {
            let key = keys.open()?;
            let receipt = receipt(&trace, outcome, &key.public());
            SignedReceipt::sign(receipt, &key)
                .map_err(|error| Refusal::new(RefusalCode::Failed, format!("the receipt cannot be written: {error}")))
        })
        .await
    }
}

fn outcome(trace: &RunTrace) -> Result<ReceiptOutcome, Refusal> {
    match trace.status {
        RunStatus::Completed => Ok(ReceiptOutcome::Completed),
        RunStatus::Failed => Ok(ReceiptOutcome::Failed),
        RunStatus::Cancelled => Ok(ReceiptOutcome::Cancelled),
        status => {
            let reason = format!("run `{}` is {status}: a receipt is of a run that is over", trace.run_id);
            Err(Refusal::new(RefusalCode::IllegalState, reason).with_remedy("wait for its end, or cancel it"))
        }
    }
}

fn receipt(trace: &RunTrace, status: ReceiptOutcome, key: &PublicKey) -> Receipt {
    let mut models = Vec::new();
    for step in &trace.steps {
        if !models.contains(&step.llm_model) {
            models.push(step.llm_model.clone());
        }
    }
    let answered = trace.questions.iter().filter_map(|asked| {
        let consent = asked.consent.clone()?;
        Some(ReceiptAnswer { question: asked.question.question.clone(), consent })
    });
    let widened = trace.attempts.iter().filter_map(|attempt| {
        let question = format!("may attempt {} have more than the one before?", attempt.index + 1);
        Some(ReceiptAnswer { question, consent: attempt.consent.clone()? })
    });
    let sent: BTreeSet<_> = requests(trace).flat_map(|request| &request.credentials).collect();
    Receipt {
        version: Receipt::version_of(trace.seed),
        run_id: trace.run_id.clone(),
        agent: trace.agent.clone(),
        task: Task::of(&trace.task),
        status,
        attempts: u32::try_from(trace.attempts.len()).unwrap_or(u32::MAX).max(1),
        seed: trace.seed,
        created_at: trace.created_at,
        started_at: trace.started_at,
        completed_at: trace.completed_at,
        models,
        result: trace.summary.clone().filter(|_| status == ReceiptOutcome::Completed),
        error: trace.error.as_ref().map(|error| error.message.clone()),
        artifacts: listed(&trace.artifacts),
        skill: trace.skill.as_ref().map(|skill| Skill { name: skill.name.clone(), hash: skill.hash }),
        components: components(trace),
        approvals: approvals(trace),
        answers: answered.chain(widened).collect(),
        hosts: hosts(trace),
        unknown_outcomes: trace.unknown_outcomes.clone(),
        credentials: sent.into_iter().cloned().collect(),
        energy: Energy { millionths: millionths(trace.total_energy_cost) },
        tokens: Tokens { input: trace.total_usage.input_tokens, output: trace.total_usage.output_tokens },
        cost_micro_usd: trace.total_usage.cost_usd.map(millionths),
        issuer: Issuer { key_id: key.id(), host_version: env!("CARGO_PKG_VERSION").to_owned() },
    }
}

/// Artifacts as a receipt lists them.
pub(crate) fn listed(artifacts: &[motor::Artifact]) -> Vec<ReceiptArtifact> {
    artifacts
        .iter()
        .map(|motor::Artifact { path, bytes, hash }| ReceiptArtifact { path: path.clone(), bytes: *bytes, hash: *hash })
        .collect()
}

fn calls(trace: &RunTrace) -> impl Iterator<Item = &ToolCallTrace> {
    trace.steps.iter().flat_map(|step| &step.tool_calls)
}

fn requests(trace: &RunTrace) -> impl Iterator<Item = &motor::OutgoingRequest> {
    calls(trace).flat_map(|call| &call.requests)
}

/// A call has its component from the moment before its execution; a refused call has none.
fn components(trace: &RunTrace) -> Vec<ReceiptComponent> {
    let mut tools = BTreeMap::<_, BTreeSet<String>>::new();
    for call in calls(trace) {
        if let Some(hash) = call.component {
            tools.entry(hash).or_default().insert(call.tool.clone());
        }
    }
    tools.into_iter().map(|(hash, tools)| ReceiptComponent { hash, tools: tools.into_iter().collect() }).collect()
}

fn approvals(trace: &RunTrace) -> Vec<ReceiptApproval> {
    // An approval that allowed some actions and refused others becomes two.
    trace
        .approvals
        .iter()
        .flat_map(|asked| [true, false].into_iter().filter_map(|granted| approval(asked, granted)))
        .collect()
}

/// The allowed or the refused actions of an approval. `None` if it has no such actions.
fn approval(asked: &motor::ApprovalTrace, granted: bool) -> Option<ReceiptApproval> {
    let items = asked.approval.items.iter().filter(|item| asked.allows(item.action_hash) == granted);
    let actions: Vec<_> =
        items.map(|item| ReceiptAction { summary: item.summary.clone(), hash: item.action_hash }).collect();
    (!actions.is_empty()).then(|| ReceiptApproval {
        id: asked.approval.id.clone(),
        actions,
        granted,
        scope: asked.scope.map(|scope| scope.as_str().to_owned()),
        consent: asked.consent.clone(),
    })
}

/// Hosts by name. A request that the gate could not read names no host.
fn hosts(trace: &RunTrace) -> Vec<receipts::ReceiptHost> {
    #[derive(Default)]
    struct AskedHosts {
        requests: u64,
        refused: u64,
        methods: BTreeSet<String>,
        statuses: BTreeMap<u16, u64>,
    }
    let mut hosts = BTreeMap::<&str, AskedHosts>::new();
    for request in requests(trace).filter(|request| !request.host.is_empty()) {
        let asked = hosts.entry(&request.host).or_default();
        asked.requests += 1;
        asked.refused += u64::from(request.rule.is_some());
        asked.methods.insert(request.method.clone());
        if let Some(status) = request.status {
            *asked.statuses.entry(status).or_default() += 1;
        }
    }
    let host = |(host, asked): (&str, AskedHosts)| receipts::ReceiptHost {
        host: host.to_owned(),
        requests: asked.requests,
        refused: asked.refused,
        methods: asked.methods.into_iter().collect(),
        statuses: asked.statuses.into_iter().map(|(status, count)| StatusCount { status, count }).collect(),
    };
    hosts.into_iter().map(host).collect()
}

/// A receipt has no fractions. Negative amounts and NaN become 0.
fn millionths(amount: f64) -> u64 {
    (amount * 1e6).round() as u64
}

#[cfg(test)]
mod tests;

//! A reflector in its sandbox, as the cortex sees it: facts go in as JSON, and nothing that comes out is trusted.
//!
//! Its failures skip the cycle, each with a stable code. The limits are below those of a tool: a reflector turns one text into
//! another, and a cycle waits for it.

use std::sync::Arc;

use async_trait::async_trait;
use base::text::Foreign;
use base::{AgentName, Refusal};
use cortex::{
    CycleSummaries, Promiser, Prompt, Proposals, ProposedAssessment, ProposedBelief, ProposedCommitment,
    ProposedDirective, ProposedGuidance, Reflector, ReflectorError, ReflectorName, SkipCode, UsedReflector,
};
use runtime::{
    AssessmentProposal, BeliefProposal, CommitmentProposal, DirectiveProposal, GuidanceProposals, Limits, Note,
    NoteSink, Outcome, ReflectionPrompt, ReflectionProposals, ReflectorCall, ReflectorComponent,
};
use tokio::sync::OnceCell;

use super::Reflections;

/// Characters of a log line that are kept.
const MAX_LOG_LINE: usize = 300;

/// The limits of one call of a reflector.
pub(crate) fn reflector_limits() -> Limits {
    Limits {
        // A reply of 256 KiB is read with a hundredth of that.
        fuel: 1_000_000_000,
        // The fuel takes 60 ms of a processor that is its own; in the background it may get a hundredth of one.
        deadline_ms: 30_000,
        memory_bytes: 32 << 20,
        hostcall_bytes: 2 << 20,
        output_bytes: 1 << 20,
        log_lines: 100,
        log_bytes: 16 << 10,
        ..Limits::default()
    }
}

/// The reflector of one cycle.
pub(super) struct GuestReflector {
    reflections: Reflections,
    agent: AgentName,
    name: Option<ReflectorName>,
    /// Set by the first call: one cycle has one reflector.
    component: OnceCell<ReflectorComponent>,
}

impl GuestReflector {
    /// The reflector of this name, or the bundled one. It is looked up when the cycle needs it.
    pub fn new(reflections: Reflections, agent: AgentName, name: Option<ReflectorName>) -> Self {
        Self { reflections, agent, name, component: OnceCell::new() }
    }

    async fn component(&self) -> Result<&ReflectorComponent, ReflectorError> {
        let reflectors = &self.reflections.0.reflectors;
        let found = self.component.get_or_try_init(|| reflectors.component(self.name.as_ref())).await;
        found.map_err(|Refusal { reason, remedy, .. }| {
            let reason = remedy.map_or_else(|| reason.clone(), |remedy| format!("{reason}; {remedy}"));
            ReflectorError::new(SkipCode::ReflectorUnavailable, reason)
        })
    }

    fn call(&self) -> ReflectorCall {
        let cancel = self.reflections.0.closing.child_token();
        ReflectorCall { limits: reflector_limits(), notes: log_of(self.agent.clone()), cancel }
    }
}

/// Log lines of a reflector go to the host's log, at its lowest level: they are untrusted text.
fn log_of(agent: AgentName) -> NoteSink {
    Arc::new(move |note| {
        if let Note::Log { level, message } = note {
            let line = Foreign(&message).visible(MAX_LOG_LINE);
            tracing::debug!(%agent, level, line, "the reflector writes");
        }
    })
}

#[async_trait]
impl Reflector for GuestReflector {
    fn used(&self) -> UsedReflector {
        let hash = self.component.get().map(|component| component.component().hash());
        UsedReflector { name: self.name.clone(), hash }
    }

    async fn prompt(&self, summaries: &CycleSummaries) -> Result<Prompt, ReflectorError> {
        let facts = serde_json::to_string(summaries)
            .map_err(|error| ReflectorError::new(SkipCode::PromptInvalid, error.to_string()))?;
        let composed = self.component().await?.compose(&facts, self.call()).await;
        let ReflectionPrompt { system, user } = ended(composed.outcome, SkipCode::PromptInvalid)?;
        Ok(Prompt { system, user })
    }

    async fn proposals(&self, reply: &str) -> Result<Proposals, ReflectorError> {
        let component = self.component().await?;
        let read = component.interpret(reply, self.call()).await;
        let proposals = proposals(ended(read.outcome, SkipCode::ReplyUnreadable)?);
        let guidance = match component.guide(reply, self.call()).await {
            Some(read) => guidance(ended(read.outcome, SkipCode::ReplyUnreadable)?),
            // A reflector of an earlier version has none.
            None => ProposedGuidance::default(),
        };
        Ok(Proposals { guidance, ..proposals })
    }
}

/// The value of a call, or the reason to skip the cycle. `own` is the code of an error of the reflector's own.
fn ended<T>(outcome: Outcome<T, String>, own: SkipCode) -> Result<T, ReflectorError> {
    let (code, reason) = match outcome {
        Outcome::Returned(value) => return Ok(value),
        Outcome::Refused(reason) => (own, reason),
        Outcome::Exceeded(exceeded) => (SkipCode::ReflectorLimit, format!("the reflector was ended: {exceeded}")),
        Outcome::Trapped(trap) => (SkipCode::ReflectorTrapped, format!("the reflector trapped: {}", trap.message)),
        Outcome::Cancelled => (SkipCode::ReflectorUnavailable, "the host is shutting down".to_owned()),
        Outcome::HostFault(message) => {
            // It may name a path of the host.
            tracing::warn!(reason = %message, "the host could not run a reflector");
            (SkipCode::ReflectorUnavailable, "the host could not run the reflector; its log has the reason".to_owned())
        }
    };
    Err(ReflectorError::new(code, reason))
}

fn proposals(read: ReflectionProposals) -> Proposals {
    let ReflectionProposals { assessments, beliefs, summary } = read;
    let assessment = |AssessmentProposal { peer, trust, rationale }| ProposedAssessment { peer, trust, rationale };
    let belief = |BeliefProposal { key, value, rationale, peer }| ProposedBelief { key, value, rationale, peer };
    Proposals {
        assessments: assessments.into_iter().map(assessment).collect(),
        beliefs: beliefs.into_iter().map(belief).collect(),
        summary,
        guidance: ProposedGuidance::default(),
    }
}

fn guidance(read: GuidanceProposals) -> ProposedGuidance {
    let GuidanceProposals { commitments, closings, directives, drift } = read;
    let commitment = |CommitmentProposal { key, text, by_peer, peer, due_in_minutes }| {
        let by = if by_peer { Promiser::Peer } else { Promiser::Agent };
        ProposedCommitment { key, text, by, peer, due_in_minutes }
    };
    let directive = |DirectiveProposal { key, text, peer }| ProposedDirective { key, text, peer };
    ProposedGuidance {
        commitments: commitments.into_iter().map(commitment).collect(),
        closings,
        directives: directives.into_iter().map(directive).collect(),
        drift,
    }
}

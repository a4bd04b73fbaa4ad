//! Messages from people to runs: answers, approvals, another attempt (SPEC RUN-7, ASK-1, APPR-1, RUN-10).
//!
//! `motor` checks once whether an answer fits the question, and keeps it. This module adds the effect of an approval
//! that outlasts its run: a decision about domains that later runs find too. It is made from the run's history, after
//! the approval is durable: a crash in between leaves a run with its consent, and later runs that ask again.

use base::{AgentName, ConsentRecord, ContentHash, Refusal, RefusalCode, RunId};
use consent::{AnswerAuthority, Consent};
use energy::Activity;
use grants::{Grant, RunConsent, patterns, shapes};
use llm::MicroUsd;
use motor::{
    Approval, ApprovalDecision, ApprovalTrace, CommandReply, OwnerMessage, QuestionAnswer, RetryReply, RetryRequest,
    RunRecord, Scope, TellReply,
};
use network::Shape;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::Table;

use crate::Runs;
use crate::api::Caller;
use crate::decisions::{Decision, DecisionLevel, DomainVerdict};

/// The answer to a run's question.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RespondRequest {
    /// Text of the answer.
    pub answer: String,
    /// The answered question, `ask_…`. Default: the waiting one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Idempotency key: the same answer with the same key is given once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// The owner's decision about a run's request for approval.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApproveTask {
    /// The decided request, `apr_…`. Default: the waiting one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// The actions shown to the owner, by hash; empty: not shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<ContentHash>,
    /// Whether the actions are allowed.
    pub grant: bool,
    /// The allowed actions, by hash, if not all are allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<ContentHash>,
    /// How long the decision lasts.
    #[serde(default)]
    pub scope: Scope,
    /// Reason for the decision, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Idempotency key: the same decision with the same key is made once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// A message of the owner to a run that works.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TellRequest {
    /// Text of the message, 1 to 16384 bytes. It grants nothing.
    pub text: String,
    /// Idempotency key: the same message with the same key is said once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Another attempt at a failed run.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryTask {
    /// Guidance for the new attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidance: Option<String>,
    /// Domains it may reach in addition to those it was granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// Domains it may still write to after reading web content, in addition to those it was granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// Maximum number of model calls. Default 15.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "base::whole::option")]
    pub max_iterations: Option<u32>,
    /// US dollars that the run may spend from now on, over all its attempts: the owner's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<MicroUsd>,
    /// Idempotency key: the same request with the same key begins one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl RetryTask {
    /// Whether the run gets more access, which only the owner may give.
    #[must_use]
    pub fn widens(&self) -> bool {
        self.reaches_more() || self.budget_usd.is_some()
    }

    fn reaches_more(&self) -> bool {
        !self.domains.is_empty() || !self.writes.is_empty()
    }
}

impl Runs {
    /// Answers a run's question. Durable when this returns.
    ///
    /// # Errors
    /// `illegal_state` if the run does not wait for this answer, or asked too long ago.
    pub async fn respond(
        &self,
        run: &RunId,
        request: RespondRequest,
        authority: impl Into<AnswerAuthority>,
    ) -> Result<CommandReply, Refusal> {
        let RespondRequest { answer, question, key } = request;
        let text = self.clean(Some(answer)).await?.unwrap_or_default();
        self.motor.respond(run, QuestionAnswer { text, question, consent: authority.into(), key }).await
    }

    /// Decides about a run's request for approval. Durable when this returns.
    ///
    /// # Errors
    /// `illegal_state` if the run does not wait for this approval, or asked too long ago.
    pub async fn approve(&self, run: &RunId, request: ApproveTask, consent: Consent) -> Result<CommandReply, Refusal> {
        let ApproveTask { approval, actions, grant, only, scope, reason, key } = request;
        let reason = self.clean(reason).await?;
        let decided = ApprovalDecision { approval, actions, grant, only, scope, reason, consent, key };
        let moved = self.motor.approve(run, decided).await?;
        // Afterwards, and also if the same command was applied before without a reply to the caller.
        self.make_last(run, &moved.about).await?;
        Ok(moved)
    }

    /// Tells a run something while it works. Durable when this returns; the next request to the model delivers it.
    ///
    /// # Errors
    /// `illegal_state` if it waits, is over, was told too much, or makes no further request; `invalid_request` if the text is
    /// empty or too long.
    pub async fn tell(&self, run: &RunId, request: TellRequest, consent: Consent) -> Result<TellReply, Refusal> {
        let text = self.clean(Some(request.text)).await?.unwrap_or_default();
        self.motor.tell(run, OwnerMessage { text, consent, key: request.key }).await
    }

    /// Tries a failed run again.
    ///
    /// # Errors
    /// `illegal_state` if it did not fail or has no attempts left; `consent_needed` if it would get more access without
    /// the owner's consent; `energy_too_low` without it if the agent's energy is too low.
    pub async fn retry(
        &self,
        run: &RunId,
        request: RetryTask,
        consent: Option<Consent>,
    ) -> Result<RetryReply, Refusal> {
        self.may_retry(run)?;
        let widens = request.widens();
        if widens && consent.is_none() {
            return Err(Refusal::new(RefusalCode::ConsentNeeded, "more can be granted to a run by its owner only"));
        }
        // An attempt is begun as a run is: energy binds it unless the owner asks (SPEC EN-3).
        if consent.is_none() {
            self.energy.check(&self.record(run)?.agent, Activity::Agentic { browser: false })?;
        }
        let grant = if request.reaches_more() { Some(Box::new(self.wider(run, &request)?)) } else { None };
        let RetryTask { guidance, max_iterations, budget_usd: usd, key, .. } = request;
        // The record of an attempt names the owner only if it was given more.
        let consent = consent.filter(|_| widens);
        let guidance = self.clean(guidance).await?;
        let retried = self.motor.retry(run, RetryRequest { guidance, grant, max_iterations, consent, key, usd }).await;
        match retried {
            Err(refusal) if refusal.code == RefusalCode::Busy => {
                Err(self.busy(&self.record(run)?.agent, Caller::Owner, refusal))
            }
            retried => retried,
        }
    }

    /// A message to a run, without the values of credentials.
    async fn clean(&self, text: Option<String>) -> Result<Option<String>, Refusal> {
        match text {
            Some(text) => Ok(Some(self.environment.access.clean(text).await?.0)),
            None => Ok(None),
        }
    }

    /// A review has one attempt (SPEC SKILL-9).
    fn may_retry(&self, run: &RunId) -> Result<(), Refusal> {
        if self.record(run)?.grant.is_review() {
            let reason = "the review of a skill has one attempt";
            return Err(Refusal::new(RefusalCode::IllegalState, reason).with_remedy("review the skill again"));
        }
        Ok(())
    }

    /// The grant of a run with the additions of a retry.
    fn wider(&self, run: &RunId, request: &RetryTask) -> Result<Grant, Refusal> {
        let mut grant = self.record(run)?.grant;
        grant.check()?;
        grant.extend(patterns(&request.domains)?, shapes(&request.writes)?);
        Ok(grant)
    }

    /// Turns an approval that outlasts the run, as recorded in the run's history, into a decision for later runs.
    async fn make_last(&self, run: &RunId, approval: &str) -> Result<(), Refusal> {
        let trace = self.trace(run)?;
        let Some(asked) = trace.approvals.iter().find(|asked| asked.approval.id == approval) else { return Ok(()) };
        let access = &self.environment.access;
        for decision in lasting(asked, &trace.agent)? {
            // A consent to read must not remove one to write.
            let same = |other: &Decision| {
                (&other.pattern, other.level, &other.agent) == (&decision.pattern, decision.level, &decision.agent)
            };
            let standing = access.decisions.all()?.into_iter().find(same).map(|other| other.verdict);
            if standing != Some(DomainVerdict::AllowWrites) {
                access.decide(decision).await?;
            }
        }
        Ok(())
    }

    pub(crate) fn record(&self, run: &RunId) -> Result<RunRecord, Refusal> {
        let missing = || Refusal::new(RefusalCode::NotFound, format!("there is no run `{run}`"));
        self.store.get(Table::Runs, run.as_str())?.ok_or_else(missing)
    }
}

/// The decisions that follow from an approval that outlasts the run.
fn lasting(asked: &ApprovalTrace, agent: &AgentName) -> Result<Vec<Decision>, Refusal> {
    let level = match asked.scope {
        Some(Scope::Session) => DecisionLevel::Session,
        Some(Scope::Always) => DecisionLevel::Always,
        _ => return Ok(Vec::new()),
    };
    match (&asked.consent, asked.granted) {
        (Some(consent), Some(true)) => decisions(&asked.approval, level, agent, consent),
        _ => Ok(Vec::new()),
    }
}

fn decisions(
    approval: &Approval,
    level: DecisionLevel,
    agent: &AgentName,
    consent: &ConsentRecord,
) -> Result<Vec<Decision>, Refusal> {
    let allowed = match &approval.grant {
        None => return Ok(Vec::new()),
        Some(RunConsent::Domains(allowed)) => allowed,
        Some(_) => {
            let reason = format!("the domains of `{}` cannot be read", approval.id);
            return Err(Refusal::new(RefusalCode::StateUnusable, reason));
        }
    };
    let of = |pattern: Shape| Decision {
        pattern,
        // Only the owner's own command allows all requests to a host.
        verdict: DomainVerdict::Allow,
        level,
        agent: agent.clone(),
        run: None,
        decided_at: None,
        consent: Some(consent.clone()),
    };
    // Parsed as patterns: a model wrote them, and only the owner may write shapes.
    patterns(&allowed.domains)?;
    Ok(shapes(&allowed.domains)?.into_iter().map(of).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn approval(grant: Value) -> Approval {
        serde_json::from_value(json!({
            "id": "apr_1", "step": 1, "reason": "r", "grant": grant, "choices": ["once", "always"], "askedAt": 1_000,
            "expiresAt": 2_000, "items": [{ "callId": "c", "tool": "fetch", "summary": "s", "arguments": {},
            "actionHash": ContentHash::of(b"a") }],
        }))
        .unwrap()
    }

    fn consent() -> ConsentRecord {
        serde_json::from_value(json!({ "givenBy": "owner", "door": "terminal", "at": 1_500 })).unwrap()
    }

    #[test]
    fn what_lasts_is_what_the_request_names() {
        let agent = AgentName::default();
        let made = |grant| decisions(&approval(grant), DecisionLevel::Always, &agent, &consent());
        assert!(made(Value::Null).unwrap().is_empty());
        assert!(made(json!({ "class": "x" })).is_err());
        let two = made(json!({ "domains": ["a.example.com", "*.b.example.com"] })).unwrap();
        let told: Vec<_> = two.iter().map(|decision| (decision.pattern.to_string(), decision.verdict)).collect();
        let expected = ["a.example.com", "*.b.example.com"].map(|text| (text.to_owned(), DomainVerdict::Allow));
        assert_eq!(told, expected);
        assert!(two.iter().all(|decision| decision.consent == Some(consent()) && decision.run.is_none()));
        let reads = made(json!({ "domains": ["a.example.com"] })).unwrap();
        assert_eq!(reads.first().map(|decision| decision.verdict), Some(DomainVerdict::Allow));
        // A model wrote it: an invalid or too broad pattern is refused, not reinterpreted.
        for domains in [json!(["*.com"]), json!(["https://a.example.com"]), json!([""]), json!("a.example.com")] {
            assert!(made(json!({ "domains": domains })).is_err(), "{domains}");
        }
    }

    #[test]
    fn only_a_consent_for_longer_than_the_run_lasts() {
        let agent = AgentName::default();
        let of = |granted, scope, consent| {
            let approval = approval(json!({ "domains": ["a.example.com"] }));
            lasting(&ApprovalTrace { approval, granted, scope, only: vec![], why: None, consent }, &agent)
                .unwrap()
                .len()
        };
        assert_eq!(of(Some(true), Some(Scope::Always), Some(consent())), 1);
        assert_eq!(of(Some(true), Some(Scope::Session), Some(consent())), 1);
        for (granted, scope, consent) in [
            (Some(true), Some(Scope::Once), Some(consent())),
            (Some(true), Some(Scope::Run), Some(consent())),
            (Some(false), Some(Scope::Always), Some(consent())),
            (Some(true), Some(Scope::Always), None),
            (None, None, None),
        ] {
            assert_eq!(of(granted, scope, consent), 0, "{granted:?} {scope:?}");
        }
    }
}

//! The owner's decisions: credentials and domains.
//!
//! Every change to the powers of runs takes a [`Consent`], which only the gate gives: no surface can forget to ask.

use std::sync::Arc;

use base::{ConsentRecord, CredentialName, Refusal, RefusalCode, RunId, Secret};
use consent::Consent;
use grants::patterns;
use motor::Motor;
use skills::{Policy, SkillName, SkillStatus, Taken};
use vault::{CredentialInfo, NewCredential};

use crate::api::{PendingDecision, SetCredential};
use crate::decisions::{Decision, DecisionLevel};
use crate::environment::HostEnvironment;

/// The stored credentials of a home. Cheap to clone.
#[derive(Clone)]
pub struct Credentials {
    pub(crate) environment: Arc<HostEnvironment>,
}

impl Credentials {
    /// Stores a credential (SPEC VAULT-2). Durable when this returns.
    ///
    /// # Errors
    /// If a domain is invalid, the value cannot be kept secret, or the store fails.
    pub async fn set(&self, credential: SetCredential, consent: Consent) -> Result<Vec<String>, Refusal> {
        let SetCredential { name, value, domains, skill, raw } = credential;
        let ConsentRecord { given_by: by, door, .. } = consent.into();
        tracing::info!(credential = %name, by, ?door, "the owner sets a credential");
        let value = Secret::new(value);
        let domains = patterns(&domains)?.iter().map(ToString::to_string).collect();
        let access = &self.environment.access;
        access.set_credential(NewCredential { name, skill, value, domains, raw }).await?;
        Ok(access.vault.warnings())
    }

    /// The stored credentials, and those that runs saved and that wait for the owner: names, never values.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn list(&self) -> Result<Vec<CredentialInfo>, Refusal> {
        let mut all = self.environment.access.credentials().await?;
        all.extend(self.environment.access.vault.pending().await?);
        Ok(all)
    }

    /// Makes a credential that a run saved one of its skill, under the skill's policy as it is now (SPEC VAULT-4).
    ///
    /// # Errors
    /// `not_found` if none waits, or not the one that was shown; `skill_untrusted` if no approved version of the skill
    /// declares it for its domains; `illegal_state` if it is set by now, or its skill has to be named.
    pub async fn accept(&self, decision: PendingDecision, consent: Consent) -> Result<CredentialInfo, Refusal> {
        let ConsentRecord { given_by: by, door, .. } = consent.into();
        let pending = self.environment.pending(&decision).await?;
        let (name, skill) = (&pending.name, pending.skill.as_deref().unwrap_or_default());
        self.environment.check_declared(&pending)?;
        tracing::info!(credential = %name, skill, by, ?door, "the owner accepts a saved credential");
        self.environment.access.vault.accept(name, skill, decision.saved_at).await?;
        Ok(pending)
    }

    /// Removes a credential that a run saved, or the note that it expired.
    ///
    /// # Errors
    /// `not_found` if no credential waits under this name; `illegal_state` if its skill has to be named.
    pub async fn reject(&self, decision: PendingDecision, consent: Consent) -> Result<CredentialInfo, Refusal> {
        let ConsentRecord { given_by: by, door, .. } = consent.into();
        let pending = self.environment.pending(&decision).await?;
        let (name, skill) = (&pending.name, pending.skill.as_deref().unwrap_or_default());
        tracing::info!(credential = %name, skill, by, ?door, "the owner rejects a saved credential");
        self.environment.access.vault.reject(name, skill).await?;
        Ok(pending)
    }

    /// Deletes a stored credential.
    ///
    /// # Errors
    /// If it does not exist, or the store fails.
    pub async fn delete(&self, name: &CredentialName, skill: Option<&str>, consent: Consent) -> Result<(), Refusal> {
        let ConsentRecord { given_by: by, door, .. } = consent.into();
        tracing::info!(credential = %name, by, ?door, "the owner forgets a credential");
        self.environment.access.forget_credential(name, skill).await
    }
}

impl HostEnvironment {
    /// The one pending credential that a decision is about.
    async fn pending(&self, decision: &PendingDecision) -> Result<CredentialInfo, Refusal> {
        let PendingDecision { name, skill, saved_at } = decision;
        let mut found = self.access.vault.pending().await?;
        found.retain(|info| {
            info.name == *name
                && skill.as_ref().is_none_or(|skill| info.skill.as_ref() == Some(skill))
                && saved_at.is_none_or(|at| info.set_at == Some(at))
        });
        match (found.pop(), found.is_empty()) {
            (Some(only), true) => Ok(only),
            (Some(_), false) => {
                let reason = format!("credentials `{name}` of several skills wait");
                Err(Refusal::new(RefusalCode::IllegalState, reason).with_remedy("add `--skill NAME`"))
            }
            (None, _) => Err(Refusal::new(RefusalCode::NotFound, format!("no saved credential `{name}` waits"))
                .with_remedy("`motor credential list` shows those that do")),
        }
    }

    /// The pending credentials of a skill that a policy declares.
    pub(crate) async fn saved_for(&self, taken: &Taken, policy: &Policy) -> Result<Vec<CredentialInfo>, Refusal> {
        let mut saved = self.saved_of(taken).await?;
        saved.retain(|info| declares(policy, info) && info.pending.as_ref().is_some_and(|facts| !facts.expired));
        Ok(saved)
    }

    /// Removes the pending credentials of a rejected skill that no approved version of it declares.
    pub(crate) async fn drop_undeclared(&self, taken: &Taken) -> Result<(), Refusal> {
        let skill = taken.manifest.name.as_str();
        for info in self.saved_of(taken).await? {
            if self.check_declared(&info).is_err() {
                tracing::info!(credential = %info.name, skill, "a saved credential goes with its rejected skill");
                self.access.vault.reject(&info.name, skill).await?;
            }
        }
        Ok(())
    }

    async fn saved_of(&self, taken: &Taken) -> Result<Vec<CredentialInfo>, Refusal> {
        // A tool of the home may have the name of a skill, and saves nothing.
        if taken.place.is_tool() {
            return Ok(Vec::new());
        }
        let mut saved = self.access.vault.pending().await?;
        saved.retain(|info| info.skill.as_deref() == Some(taken.manifest.name.as_str()));
        Ok(saved)
    }

    /// Checks that an approved version of the skill declares a pending credential for its domains.
    fn check_declared(&self, pending: &CredentialInfo) -> Result<(), Refusal> {
        let skill = pending.skill.as_deref().unwrap_or_default();
        let records = match SkillName::parse(skill) {
            Ok(name) => self.skills.trust().of_name(&name)?,
            Err(_) => Vec::new(),
        };
        let is_declared = records.iter().any(|record| {
            record.status == SkillStatus::Approved
                && !record.superseded
                && record.policy.as_ref().is_some_and(|policy| declares(policy, pending))
        });
        if is_declared {
            return Ok(());
        }
        let reason = format!(
            "no approved version of the skill `{skill}` declares `{}` for the domains it was saved for",
            pending.name
        );
        let remedy = format!("approve the skill with them, or `motor credential reject {}`", pending.name);
        Err(Refusal::new(RefusalCode::SkillUntrusted, reason).with_remedy(remedy))
    }
}

/// Whether a policy declares a pending credential for its domains.
pub(crate) fn declares(policy: &Policy, pending: &CredentialInfo) -> bool {
    policy.required_credentials.contains(&pending.name)
        && pending.domains.iter().all(|domain| policy.domains.contains(domain))
}

/// The owner's decisions about domains.
pub struct Domains {
    pub(crate) environment: Arc<HostEnvironment>,
    pub(crate) motor: Motor,
}

impl Domains {
    /// Decides about a domain: for an active run, for the session, or for good. In force when this returns.
    ///
    /// # Errors
    /// If the run does not exist, it is over, or the store fails.
    pub async fn decide(&self, mut decision: Decision, consent: Consent) -> Result<Decision, Refusal> {
        decision.consent = Some(consent.into());
        if let Some(run) = &decision.run {
            decision.agent = self.live_agent(run)?;
        }
        self.environment.access.decide(decision).await
    }

    /// Withdraws a decision.
    ///
    /// # Errors
    /// If it does not exist, or the store fails.
    pub async fn forget(&self, mut decision: Decision, consent: Consent) -> Result<(), Refusal> {
        let ConsentRecord { given_by: by, door, .. } = consent.into();
        tracing::info!(pattern = %decision.pattern, by, ?door, "the owner takes a decision back");
        if let Some(run) = &decision.run {
            decision.agent = self.motor.status(run)?.agent;
            decision.level = DecisionLevel::Run;
        }
        self.environment.access.forget(&decision).await
    }

    /// Every decision in force.
    ///
    /// # Errors
    /// If the store fails.
    pub fn list(&self) -> Result<Vec<Decision>, Refusal> {
        self.environment.access.decisions.all()
    }

    fn live_agent(&self, run: &RunId) -> Result<base::AgentName, Refusal> {
        let trace = self.motor.status(run)?;
        if trace.status.is_terminal() {
            let reason = format!("run `{run}` is over ({}): nothing can be allowed to it any more", trace.status);
            return Err(Refusal::new(RefusalCode::IllegalState, reason)
                .with_remedy("for later runs take `--session` or `--always`"));
        }
        Ok(trace.agent)
    }
}

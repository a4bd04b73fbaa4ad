//! The owner's decisions: credentials and domains.
//!
//! Every change to the powers of runs takes a [`Consent`], which only the gate gives: no surface can forget to ask.

use std::sync::Arc;

use base::{ConsentRecord, CredentialName, Refusal, RefusalCode, RunId, Secret};
use consent::Consent;
use grants::patterns;
use motor::Motor;
use vault::{CredentialInfo, NewCredential};

use crate::api::SetCredential;
use crate::decisions::{Decision, DecisionLevel};
use crate::environment::HostEnvironment;

/// The stored credentials of a home.
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

    /// The stored credentials: names, never values.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn list(&self) -> Result<Vec<CredentialInfo>, Refusal> {
        self.environment.access.credentials().await
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

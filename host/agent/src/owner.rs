//! The owner's decisions and questions: credentials, domains, and a run's possible access.
//!
//! Every change to what runs may do takes a [`Consent`], which only the gate gives: no surface can forget to ask.

use base::{ConsentRecord, CredentialName, Refusal, RefusalCode, RunId, Secret};
use consent::{Claim, Consent, OwnerStatus, Replacement};
use grants::patterns;
use vault::{CredentialInfo, CredentialSource, NewCredential};

use crate::Host;
use crate::api::{ActRequest, Caller, SetCredential};
use crate::decisions::{Decision, DecisionLevel};
use crate::explain::{
    ExplainedCredential, ExplainedEnergy, ExplainedFiles, ExplainedNetwork, ExplainedSkill, ExplainedTool, Explanation,
    FileAccess,
};
use crate::plan::{Plan, plan};
use crate::skill::{Purpose, limits};
use crate::workspace;
use toolbox::catalogue;
use toolbox::{CodeGrants, define, effects_in_words};

impl Host {
    /// Explains a run's possible access, from the plan it would start from (SPEC RUN-13). Starts nothing.
    ///
    /// # Errors
    /// If the request is invalid, or a component cannot be used.
    pub async fn explain(&self, request: &ActRequest, by: Caller) -> Result<Explanation, Refusal> {
        let parts = self.parts();
        let Plan { tools, skill: taken, own, grant, policy, problems, warnings } =
            plan(request, Purpose::Task, by, &parts.environment, &parts.energy).await?;
        let reaches = !policy.domains.is_empty();
        let limits = limits(&parts.config.limits, &grant)?;
        let definitions =
            define(&parts.sandboxes, &parts.config.tools, &limits, CodeGrants::planned(&tools, reaches), &tools, &own)
                .await?;
        let set = parts.environment.access.credentials().await?;
        let of_skill = grant.skill.as_ref().map(|skill| skill.name.as_str());
        let explained = |name: &CredentialName| {
            // In the vault's order: the skill's before shared ones, stored ones before those of the environment.
            let own = set
                .iter()
                .find(|info| info.skill.is_some() && info.skill.as_deref() == of_skill && is_same(name, info));
            let found = own.or_else(|| set.iter().find(|info| info.skill.is_none() && is_same(name, info)));
            ExplainedCredential {
                name: name.clone(),
                source: found.map(|info| info.source),
                domains: found.map(|info| info.domains.clone()).unwrap_or_default(),
                raw: found.is_some_and(|info| info.raw),
            }
        };
        let energy = &parts.config.energy;
        let saves = catalogue::saves_files(&tools).is_some();
        let max_iterations = parts.config.motor.iterations(request.max_iterations)?;
        let timeout = parts.config.motor.timeout(request.timeout_ms.map(std::time::Duration::from_millis))?;
        let beyond = f64::from(max_iterations.saturating_sub(energy.free_iterations));
        Ok(Explanation {
            agent: request.agent.clone(),
            model: parts.environment.model_name(&grant),
            tools: definitions
                .iter()
                .map(|tool| ExplainedTool {
                    name: tool.spec.name.clone(),
                    effects: effects_in_words(tool.effects),
                    timeout_ms: u64::try_from(tool.timeout.as_millis()).unwrap_or(u64::MAX),
                    component: tool.component,
                })
                .collect(),
            skill: taken.map(|taken| ExplainedSkill {
                name: taken.manifest.name,
                place: taken.place,
                hash: taken.snapshot.hash,
                status: taken.standing.status,
                reason: taken.standing.reason,
                tools: own.keys().cloned().collect(),
            }),
            commands: grant.commands,
            network: ExplainedNetwork {
                domains: policy.domains,
                refused: policy.refused,
                writes: policy.writes,
                tainted_write: policy.tainted_write,
                private: parts.config.network.private.clone(),
            },
            credentials: grant.credentials.iter().map(explained).collect(),
            files: ExplainedFiles {
                // A tool whose pages are saved to the workspace sees the workspace too.
                access: match (catalogue::sees_files(&tools) || saves, catalogue::writes_files(&tools) || saves) {
                    (false, _) => FileAccess::None,
                    (true, false) => FileAccess::Read,
                    (true, true) => FileAccess::ReadWrite,
                },
                inputs: request.files.iter().map(workspace::name_of).collect(),
                most_bytes: limits.workspace_bytes,
                most_files: limits.workspace_files,
            },
            limits,
            max_iterations,
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            energy: ExplainedEnergy {
                level: parts.energy.level(&request.agent)?,
                base: energy.agentic_base,
                per_iteration: energy.agentic_per_iteration,
                free_iterations: energy.free_iterations,
                most: energy.agentic_base + beyond * energy.agentic_per_iteration,
                enabled: energy.enabled,
            },
            problems,
            warnings,
        })
    }

    /// The owner's consent: admits the holder of the owner's token (SPEC CONSENT-1).
    ///
    /// # Errors
    /// `consent_needed` for all other callers.
    pub async fn consent(&self, claim: Claim) -> Result<Consent, Refusal> {
        Ok(self.parts().consent.admit(claim).await?)
    }

    /// The status of the owner's token.
    #[must_use]
    pub fn owner(&self) -> OwnerStatus {
        self.parts().consent.status()
    }

    /// Replaces the owner's token. Durable, and the old token is refused, when this returns.
    ///
    /// # Errors
    /// If the claim is refused, the new file does not hold the new token, or the disk fails.
    pub async fn replace_token(&self, claim: Claim, new: Replacement) -> Result<OwnerStatus, Refusal> {
        Ok(self.parts().consent.replace(claim, new).await?)
    }

    /// Stores a credential (SPEC VAULT-2). Durable when this returns.
    ///
    /// # Errors
    /// If a domain is invalid, the value cannot be kept secret, or the store fails.
    pub async fn set_credential(&self, credential: SetCredential, consent: Consent) -> Result<Vec<String>, Refusal> {
        let SetCredential { name, value, domains, skill, raw } = credential;
        let ConsentRecord { given_by: by, door, .. } = consent.into();
        tracing::info!(credential = %name, by, ?door, "the owner sets a credential");
        let value = Secret::new(value);
        let domains = patterns(&domains)?.iter().map(ToString::to_string).collect();
        let access = &self.parts().environment.access;
        access.set_credential(NewCredential { name, skill, value, domains, raw }).await?;
        Ok(access.vault.warnings())
    }

    /// The stored credentials: names, never values.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn credentials(&self) -> Result<Vec<CredentialInfo>, Refusal> {
        self.parts().environment.access.credentials().await
    }

    /// Deletes a stored credential.
    ///
    /// # Errors
    /// If it does not exist, or the store fails.
    pub async fn delete_credential(
        &self,
        name: &CredentialName,
        skill: Option<&str>,
        consent: Consent,
    ) -> Result<(), Refusal> {
        let ConsentRecord { given_by: by, door, .. } = consent.into();
        tracing::info!(credential = %name, by, ?door, "the owner forgets a credential");
        self.parts().environment.access.forget_credential(name, skill).await
    }

    /// Decides about a domain: for an active run, for the session, or for good. In force when this returns.
    ///
    /// # Errors
    /// If the run does not exist, it is over, or the store fails.
    pub async fn decide(&self, mut decision: Decision, consent: Consent) -> Result<Decision, Refusal> {
        decision.consent = Some(consent.into());
        if let Some(run) = &decision.run {
            decision.agent = self.live_agent(run)?;
        }
        self.parts().environment.access.decide(decision).await
    }

    /// Withdraws a decision.
    ///
    /// # Errors
    /// If it does not exist, or the store fails.
    pub async fn forget(&self, mut decision: Decision, consent: Consent) -> Result<(), Refusal> {
        let ConsentRecord { given_by: by, door, .. } = consent.into();
        tracing::info!(pattern = %decision.pattern, by, ?door, "the owner takes a decision back");
        if let Some(run) = &decision.run {
            decision.agent = self.task(run)?.agent;
            decision.level = DecisionLevel::Run;
        }
        self.parts().environment.access.forget(&decision).await
    }

    /// Every decision in force.
    ///
    /// # Errors
    /// If the store fails.
    pub fn decisions(&self) -> Result<Vec<Decision>, Refusal> {
        self.parts().environment.access.decisions.all()
    }

    fn live_agent(&self, run: &RunId) -> Result<base::AgentName, Refusal> {
        let trace = self.task(run)?;
        if trace.status.is_terminal() {
            let reason = format!("run `{run}` is over ({}): nothing can be allowed to it any more", trace.status);
            return Err(Refusal::new(RefusalCode::IllegalState, reason)
                .with_remedy("for later runs take `--session` or `--always`"));
        }
        Ok(trace.agent)
    }
}

/// Whether this is the named credential: names of the vault are exact, those of variables are case-insensitive.
fn is_same(name: &CredentialName, info: &CredentialInfo) -> bool {
    let folded = |name: &CredentialName| name.as_str().to_ascii_lowercase().replace('-', "_");
    info.name == *name || (info.source == CredentialSource::Environment && folded(&info.name) == folded(name))
}

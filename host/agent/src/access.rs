//! What runs may reach: the one place where the policy of a run is put together, for the gate and for whoever explains it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base::{AgentName, Clock, CredentialName, Refusal, RefusalCode, RunId};
use motor::RunRecord;
use network::{Gate, Pattern, Policy, RunNetwork, Taint, WebSource};
use vault::{CredentialInfo, RunSecrets, Vault};

use crate::decisions::{Decision, Decisions, Verdict};
use crate::environment::blocking;

/// The gate, the vault, and the ways out that are open.
pub(crate) struct Access {
    pub gate: Gate,
    pub vault: Vault,
    pub config: network::Config,
    pub decisions: Decisions,
    pub clock: Arc<dyn Clock>,
    open: Mutex<HashMap<RunId, Open>>,
}

/// The way out of a run that goes on.
struct Open {
    agent: AgentName,
    domains: Vec<Pattern>,
    network: RunNetwork,
}

impl Access {
    pub fn new(gate: Gate, vault: Vault, config: network::Config, decisions: Decisions, clock: Arc<dyn Clock>) -> Self {
        Self { gate, vault, config, decisions, clock, open: Mutex::default() }
    }

    /// What a run of the agent that was granted `domains` may reach. `run` is none for one that does not exist yet.
    pub fn policy(&self, agent: &AgentName, run: Option<&RunId>, domains: &[Pattern]) -> Result<Policy, Refusal> {
        let mut policy = Policy {
            domains: domains.to_vec(),
            writes: patterns(&self.config.writes)?,
            refused: Vec::new(),
            tainted_write: self.config.tainted_write,
        };
        for Decision { pattern, verdict, .. } in self.decisions.of(agent, run)? {
            // The last word about a pattern counts.
            policy.refused.retain(|other| *other != pattern);
            match verdict {
                Verdict::Deny => policy.refused.push(pattern),
                Verdict::Allow => policy.domains.push(pattern),
                Verdict::AllowWrites => {
                    policy.domains.push(pattern.clone());
                    policy.writes.push(pattern);
                }
            }
        }
        Ok(policy)
    }

    /// Opens the way out of a run, as it was when an earlier host left it.
    pub async fn open(
        &self,
        run: &RunRecord,
        domains: &[Pattern],
        credentials: &[CredentialName],
    ) -> Result<RunNetwork, Refusal> {
        let policy = self.policy(&run.agent, Some(&run.id), domains)?;
        let secrets = Arc::new(self.secrets(credentials).await?);
        let read = run.web_sources.iter().map(|host| WebSource { host: host.clone() }).collect();
        let network = self.gate.run(policy, secrets, Taint::of(read));
        let open = Open { agent: run.agent.clone(), domains: domains.to_vec(), network: network.clone() };
        self.ways().insert(run.id.clone(), open);
        Ok(network)
    }

    /// A way out for a program outside runs.
    pub async fn for_program(&self) -> Result<RunNetwork, Refusal> {
        let policy = Policy {
            domains: patterns(&self.config.code_domains)?,
            writes: patterns(&self.config.writes)?,
            refused: Vec::new(),
            tainted_write: self.config.tainted_write,
        };
        let secrets = Arc::new(self.secrets(&[]).await?);
        Ok(self.gate.run(policy, secrets, Taint::default()))
    }

    /// Opens credentials. The key may have to be fetched from the system's keyring, which may take its time.
    ///
    /// # Errors
    /// `credentials_needed` when one is missing.
    pub async fn secrets(&self, credentials: &[CredentialName]) -> Result<RunSecrets, Refusal> {
        let (vault, credentials) = (self.vault.clone(), credentials.to_vec());
        blocking(move || vault.for_run(&credentials, None)).await
    }

    /// The credentials there are.
    pub async fn credentials(&self) -> Result<Vec<CredentialInfo>, Refusal> {
        let vault = self.vault.clone();
        blocking(move || vault.list()).await
    }

    /// The run is over: its secrets are wiped when its last call is.
    pub fn close(&self, run: &RunId) {
        self.ways().remove(run);
    }

    /// Makes a decision, and puts it in force in every run it is about.
    pub async fn decide(&self, decision: Decision) -> Result<Decision, Refusal> {
        let decision = self.decisions.decide(decision, &*self.clock).await?;
        self.renew(&decision);
        Ok(decision)
    }

    /// Takes a decision back.
    pub async fn forget(&self, decision: &Decision) -> Result<(), Refusal> {
        self.decisions.forget(decision).await?;
        self.renew(decision);
        Ok(())
    }

    /// Swaps the policies of the runs that a decision is about. What cannot be read allows nothing.
    fn renew(&self, decision: &Decision) {
        for (run, open) in self.ways().iter() {
            if open.agent == decision.agent && decision.run.as_ref().is_none_or(|only| only == run) {
                let policy = self.policy(&open.agent, Some(run), &open.domains).unwrap_or_else(|refusal| {
                    tracing::error!(%run, reason = %refusal, "the policy of a run cannot be read: it reaches nothing");
                    Policy::default()
                });
                open.network.change(policy);
            }
        }
    }

    fn ways(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads patterns that somebody wrote.
///
/// # Errors
/// When one is none, or too wide; says which.
pub(crate) fn patterns(texts: &[String]) -> Result<Vec<Pattern>, Refusal> {
    let read = |text: &String| {
        text.trim().parse().map_err(|error: network::InvalidPattern| {
            Refusal::new(RefusalCode::InvalidRequest, error.to_string())
                .with_remedy("write `example.com`, `*.example.com` or `*`, with `:PORT` where it is not 80 or 443")
        })
    };
    texts.iter().map(read).collect()
}

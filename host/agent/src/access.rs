//! The reach of runs: the one place where a run's policy is put together, for the gate and for explanations.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use base::text::{did_you_mean, nearest};
use base::{AgentName, Clock, CredentialName, Refusal, RefusalCode, RunId};
use grants::{RunConsent, patterns};
use motor::RunRecord;
use network::{AllowedShape, Gate, Pattern, Policy, RunExchange, RunNetwork, Shape, Taint, WeakRunNetwork, WebSource};
use parking_lot::Mutex;
use vault::{CredentialInfo, CredentialSource, NewCredential, RunSecrets, Scrubber, Vault};

use crate::decisions::{Decision, DecisionLevel, Decisions, DomainVerdict};
use crate::staged::StagedWrites;
use store::blocking;

/// The gate, the vault, and the open network access of runs.
pub(crate) struct NetworkAccess {
    pub gate: Gate,
    pub vault: Vault,
    pub config: network::NetworkConfig,
    pub decisions: Decisions,
    pub clock: Arc<dyn Clock>,
    open: Mutex<HashMap<RunId, OpenRun>>,
}

/// The network access of a run that is not over.
struct OpenRun {
    agent: AgentName,
    domains: Vec<Pattern>,
    writes: Vec<Shape>,
    consents: RunConsents,
    /// Weak: the access ends with the run's last call, and its secrets with it.
    network: WeakRunNetwork,
    /// The run's exchanges so far: a run that waits for its owner continues from there.
    exchanged: RunExchange,
}

/// How a run asks for consent, and the consents it has for its remaining time.
#[derive(Debug, Clone)]
pub(crate) struct RunConsents {
    pub allowed: Vec<AllowedShape>,
    pub asks_always: bool,
    pub may_ask: bool,
    /// Whether the run is held to a plan: decisions and settings for all runs add nothing to it.
    pub settled: bool,
}

/// The reach of a run by its own grant and by the consents of its owner.
struct RunReach {
    domains: Vec<Pattern>,
    writes: Vec<Shape>,
    consents: RunConsents,
}

impl RunReach {
    fn of(run: &RunRecord) -> Self {
        let (mut domains, writes) = (run.grant.domains.clone(), run.grant.writes.clone());
        let mut consents = RunConsents::new(run.approval_required, run.may_ask).settled(run.settled);
        for consent in &run.consents {
            match consent {
                RunConsent::Domains(allowed) => domains.extend(allowed.patterns()),
                RunConsent::Requests(allowed) => consents.allowed.push(allowed.clone()),
                RunConsent::Unreadable(_) => {
                    tracing::warn!(run = %run.id, "a consent cannot be read: it allows nothing")
                }
            }
        }
        Self { domains, writes, consents }
    }
}

impl RunConsents {
    /// For a run without any consents yet.
    pub fn new(asks_always: bool, may_ask: bool) -> Self {
        Self { allowed: Vec::new(), asks_always, may_ask, settled: false }
    }

    /// The same for a run that is held to a plan, if it is.
    pub fn settled(self, settled: bool) -> Self {
        Self { settled, ..self }
    }
}

impl NetworkAccess {
    pub fn new(
        gate: Gate,
        vault: Vault,
        config: network::NetworkConfig,
        decisions: Decisions,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { gate, vault, config, decisions, clock, open: Mutex::default() }
    }

    /// The policy of a run whose agent was granted `domains`. `run` is `None` if the run does not exist yet.
    pub fn policy(
        &self,
        agent: &AgentName,
        run: Option<&RunId>,
        domains: &[Pattern],
        writes: &[Shape],
        consents: &RunConsents,
    ) -> Result<Policy, Refusal> {
        let mut policy = Policy {
            domains: domains.to_vec(),
            writes: if consents.settled { Vec::new() } else { self.config.write_shapes()? },
            run: consents.allowed.clone(),
            asks_always: consents.asks_always,
            may_ask: consents.may_ask && !consents.settled,
            only_planned: consents.settled,
            tainted_write: self.config.tainted_write,
            ..Policy::default()
        };
        policy.writes.extend_from_slice(writes);
        let mut decisions = self.decisions.of(agent, run)?;
        // The latest decision about a pattern counts, at any level.
        decisions.sort_by_key(|decision| decision.decided_at);
        for Decision { pattern: shape, verdict, level, .. } in decisions {
            let host = shape.host().clone();
            policy.refused.retain(|other| *other != host);
            policy.reads.retain(|other| *other != host);
            // The owner agreed to the plan as it was shown. A decision about this very run is a later word.
            if consents.settled && level != DecisionLevel::Run && verdict != DomainVerdict::Deny {
                continue;
            }
            match verdict {
                DomainVerdict::Deny => policy.refused.push(host),
                DomainVerdict::Allow => {
                    policy.writes.retain(|other| *other != shape);
                    policy.reads.push(host.clone());
                    policy.domains.push(host);
                }
                DomainVerdict::AllowWrites => {
                    policy.domains.push(host);
                    policy.writes.push(shape);
                }
            }
        }
        let mut seen = HashSet::new();
        policy.domains.retain(|pattern| seen.insert(pattern.clone()));
        Ok(policy)
    }

    /// Opens the network access of a run, in the state in which an earlier host left it.
    pub async fn open(&self, run: &RunRecord, staged: &Arc<StagedWrites>) -> Result<RunNetwork, Refusal> {
        let secrets = Arc::new(self.secrets(&run.grant.credentials, run.grant.credentials_of()).await?);
        let read = run.web_sources.iter().map(|host| WebSource { host: host.clone() }).collect();
        let exchanged = self.open.lock().get(&run.id).map(|open| open.exchanged.clone()).unwrap_or_default();
        let (none, read, before) = (Policy::default(), Taint::of(read), exchanged.clone());
        let network = match run.grant.staged {
            true => self.gate.resume_staged(none, secrets, read, before, staged.of_run(run.id.clone())),
            false => self.gate.resume(none, secrets, read, before),
        };
        // Read under the lock: a decision made now either finds the run or is already in its policy.
        let mut ways = self.open.lock();
        let RunReach { domains, writes, consents } = RunReach::of(run);
        network.change(self.policy(&run.agent, Some(&run.id), &domains, &writes, &consents)?);
        let (agent, way) = (run.agent.clone(), network.downgrade());
        ways.insert(run.id.clone(), OpenRun { agent, domains, writes, consents, network: way, exchanged });
        drop(ways);
        Ok(network)
    }

    /// The network access with which the owner sends a staged write of a run: the run's grant and the decisions as they are now.
    /// The run had read from `sources` when it made the write.
    pub async fn for_sending(&self, run: &RunRecord, sources: &[String]) -> Result<RunNetwork, Refusal> {
        let secrets = Arc::new(self.secrets(&run.grant.credentials, run.grant.credentials_of()).await?);
        let read = sources.iter().map(|host| WebSource { host: host.clone() }).collect();
        let RunReach { domains, writes, consents } = RunReach::of(run);
        let policy = self.policy(&run.agent, Some(&run.id), &domains, &writes, &consents)?;
        // The owner has been asked, also if the run may not ask.
        Ok(self.gate.run(Policy { may_ask: true, ..policy }, secrets, Taint::of(read)))
    }

    /// The hosts that the owner allowed for all runs of the agent and has not refused since.
    pub fn allowed(&self, agent: &AgentName) -> Result<Vec<Pattern>, Refusal> {
        Ok(self.policy(agent, None, &[], &[], &RunConsents::new(false, true))?.domains)
    }

    /// The network access of a program outside runs.
    pub async fn for_program(&self, agent: &AgentName) -> Result<RunNetwork, Refusal> {
        let domains = patterns(&self.config.code_domains)?;
        // Domains allowed for the agent's runs add nothing here; refused ones stay refused.
        let consents = RunConsents::new(false, false);
        let Policy { refused, .. } = self.policy(agent, None, &[], &[], &consents)?;
        let decided = Policy { domains, refused, writes: self.config.write_shapes()?, ..Policy::default() };
        let policy = Policy { tainted_write: self.config.tainted_write, may_ask: false, ..decided };
        let secrets = Arc::new(self.secrets(&[], None).await?);
        Ok(self.gate.run(policy, secrets, Taint::default()))
    }

    /// Opens credentials, the skill's own before shared ones. May block while the key is fetched from the system's
    /// keyring.
    ///
    /// # Errors
    /// `credentials_needed` if a credential is missing.
    pub async fn secrets(&self, credentials: &[CredentialName], skill: Option<&str>) -> Result<RunSecrets, Refusal> {
        let (vault, credentials, skill) = (self.vault.clone(), credentials.to_vec(), skill.map(str::to_owned));
        blocking(move || vault.for_run(&credentials, skill.as_deref())).await
    }

    /// Removes secrets from a run's output: those the run was given, even if changed since, otherwise those of the
    /// home.
    pub async fn scrubber(&self, run: &RunId) -> Result<Arc<Scrubber>, Refusal> {
        let open = self.open.lock().get(run).and_then(|open| open.network.upgrade());
        if let Some(network) = open {
            return Ok(network.secrets().scrubber().clone());
        }
        let vault = self.vault.clone();
        blocking(move || vault.scrubber()).await
    }

    /// The text for a run with placeholders in place of credential values, and the names of those credentials.
    pub async fn clean(&self, text: String) -> Result<(String, Vec<CredentialName>), Refusal> {
        let vault = self.vault.clone();
        blocking(move || {
            let scrubber = vault.scrubber()?;
            let names = scrubber.secrets_in(text.as_bytes()).into_iter().map(|secret| secret.name.clone()).collect();
            Ok((scrubber.text(text), names))
        })
        .await
    }

    /// Lists the stored credentials, without values.
    pub async fn credentials(&self) -> Result<Vec<CredentialInfo>, Refusal> {
        let vault = self.vault.clone();
        blocking(move || vault.list()).await
    }

    /// A refusal of credentials that do not exist, with the existing name that is nearest to the first of them.
    pub async fn with_nearest(&self, refusal: Refusal, names: &[CredentialName]) -> Refusal {
        let known = self.credentials().await.unwrap_or_default();
        let missing = names.iter().find(|name| known.iter().all(|known| known.name != **name));
        let near = missing
            .and_then(|name| nearest(name.as_str(), known.iter().map(|known| (known.name.as_str(), &known.name))));
        Refusal { reason: format!("{}{}", refusal.reason, did_you_mean(near)), ..refusal }
    }

    /// The names among these that a run by the skill can be granted now.
    pub async fn available(&self, names: Vec<CredentialName>, skill: &str) -> Result<Vec<CredentialName>, Refusal> {
        let known = self.credentials().await?;
        // As the vault finds them: a variable of the environment in any spelling.
        let plain = |name: &CredentialName| name.as_str().to_ascii_uppercase().replace('-', "_");
        let is_known = |name: &CredentialName| {
            known.iter().any(|info| match info.source {
                CredentialSource::Vault => info.name == *name && info.skill.as_deref().is_none_or(|of| of == skill),
                CredentialSource::Environment => plain(&info.name) == plain(name),
            })
        };
        Ok(names.into_iter().filter(is_known).collect())
    }

    /// Stores a credential. Runs that use an earlier value of it lose access to that value.
    pub async fn set_credential(&self, credential: NewCredential) -> Result<(), Refusal> {
        let name = credential.name.clone();
        self.vault.set(credential).await?;
        self.revoke(&name);
        Ok(())
    }

    /// Deletes a credential, also for the runs that use it.
    pub async fn forget_credential(&self, name: &CredentialName, skill: Option<&str>) -> Result<(), Refusal> {
        if let Err(refusal) = self.vault.delete(name, skill).await {
            return Err(match refusal.code {
                RefusalCode::NotFound => self.with_nearest(refusal, std::slice::from_ref(name)).await,
                _ => refusal,
            });
        }
        self.revoke(name);
        Ok(())
    }

    fn revoke(&self, name: &CredentialName) {
        for network in self.open.lock().values().filter_map(|open| open.network.upgrade()) {
            network.secrets().revoke(name);
        }
    }

    /// Closes a run: its secrets are wiped after its last call, and its own decisions are dropped unless it may go on.
    pub async fn close(&self, run: &RunId, may_go_on: bool) {
        self.open.lock().remove(run);
        if may_go_on {
            return;
        }
        if let Err(error) = self.decisions.end(run).await {
            tracing::warn!(%run, %error, "decisions about a run that is over stay in the store");
        }
    }

    /// Makes a decision, and applies it to every run it concerns.
    ///
    /// # Errors
    /// If it is about single requests and does not allow them: a domain is reached or refused as a whole.
    pub async fn decide(&self, decision: Decision) -> Result<Decision, Refusal> {
        if decision.verdict != DomainVerdict::AllowWrites && !decision.pattern.is_whole_host() {
            let reason =
                format!("`{}` names requests, and a domain is reached or refused as a whole", decision.pattern);
            return Err(Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy(format!(
                "`motor network allow '{}' --writes`, or name the domain alone",
                decision.pattern
            )));
        }
        let decision = self.decisions.decide(decision, &*self.clock).await?;
        self.renew(&decision);
        Ok(decision)
    }

    /// Withdraws an earlier decision.
    pub async fn forget(&self, decision: &Decision) -> Result<(), Refusal> {
        self.decisions.forget(decision).await?;
        self.renew(decision);
        Ok(())
    }

    /// Swaps the policies of the runs that a decision concerns. A policy that cannot be read allows nothing.
    fn renew(&self, decision: &Decision) {
        for (run, open) in self.open.lock().iter() {
            let concerned = open.agent == decision.agent && decision.run.as_ref().is_none_or(|only| only == run);
            if concerned && let Some(network) = open.network.upgrade() {
                let policy = self.policy(&open.agent, Some(run), &open.domains, &open.writes, &open.consents);
                let policy = policy.unwrap_or_else(|refusal| {
                    tracing::error!(%run, reason = %refusal, "the policy of a run cannot be read: it reaches nothing");
                    Policy::default()
                });
                network.change(policy);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use base::TestClock;
    use store::Store;
    use vault::VaultParts;

    use super::*;

    fn access(directory: &std::path::Path, config: network::NetworkConfig) -> NetworkAccess {
        let store = Store::open(&directory.join("state")).unwrap();
        let clock = Arc::new(TestClock::at(base::Timestamp::from_millis(1_000)));
        let vault = Vault::open(VaultParts {
            store: store.clone(),
            clock: clock.clone(),
            directory: directory.to_owned(),
            key: None,
            keyring: false,
            variables: std::collections::BTreeMap::new(),
            config: vault::VaultConfig::default(),
        });
        let gate = Gate::new(&config).unwrap();
        NetworkAccess::new(gate, vault, config, Decisions::new(store), clock)
    }

    fn decision(verdict: DomainVerdict, level: DecisionLevel, run: Option<&RunId>) -> Decision {
        let (pattern, agent) = ("api.example.com".parse().unwrap(), AgentName::default());
        Decision { pattern, verdict, level, agent, run: run.cloned(), decided_at: None, consent: None }
    }

    #[tokio::test]
    async fn the_last_word_counts_at_whatever_level_it_was_said() {
        let directory = tempfile::tempdir().unwrap();
        // The clock stands still: the order of decisions does not depend on it.
        let access = access(directory.path(), network::NetworkConfig::default());
        let (agent, run) = (AgentName::default(), RunId::parse("run_1").unwrap());
        let now = async |verdict, level, of: Option<&RunId>| {
            access.decide(decision(verdict, level, of)).await.unwrap();
            access.policy(&agent, Some(&run), &[], &[], &RunConsents::new(false, true)).unwrap()
        };
        assert_eq!(
            access.policy(&agent, Some(&run), &[], &[], &RunConsents::new(false, true)).unwrap(),
            Policy::default()
        );
        let policy = now(DomainVerdict::Allow, DecisionLevel::Run, Some(&run)).await;
        assert_eq!((policy.domains.len(), policy.writes.len(), policy.refused.len()), (1, 0, 0));
        let policy = now(DomainVerdict::Deny, DecisionLevel::Always, None).await;
        assert_eq!(policy.refused.len(), 1);
        let policy = now(DomainVerdict::AllowWrites, DecisionLevel::Session, None).await;
        assert_eq!((policy.writes.len(), policy.refused.len()), (1, 0));
        let policy = now(DomainVerdict::Allow, DecisionLevel::Run, Some(&run)).await;
        assert_eq!((policy.writes.len(), policy.refused.len()), (0, 0));
        // Other agents are not affected, nor is the run after its end.
        let other = AgentName::parse("other").unwrap();
        assert_eq!(access.policy(&other, None, &[], &[], &RunConsents::new(false, true)).unwrap(), Policy::default());
        access.close(&run, true).await;
        assert_eq!(access.decisions.of(&agent, Some(&run)).unwrap().len(), 3);
        access.close(&run, false).await;
        assert_eq!(access.decisions.of(&agent, Some(&run)).unwrap().len(), 2);
        access.forget(&decision(DomainVerdict::Deny, DecisionLevel::Always, None)).await.unwrap();
        assert!(access.forget(&decision(DomainVerdict::Deny, DecisionLevel::Always, None)).await.is_err());
    }

    #[tokio::test]
    async fn programs_outside_runs_get_what_is_configured_and_not_what_was_refused() {
        let directory = tempfile::tempdir().unwrap();
        let code_domains = vec!["api.example.com".to_owned(), "b.example.com".to_owned()];
        let access =
            access(directory.path(), network::NetworkConfig { code_domains, ..network::NetworkConfig::default() });
        let agent = AgentName::default();
        assert!(access.for_program(&agent).await.unwrap().policy().refused.is_empty());
        access.decide(decision(DomainVerdict::Deny, DecisionLevel::Always, None)).await.unwrap();
        let policy = access.for_program(&agent).await.unwrap().policy();
        assert_eq!((policy.domains.len(), policy.refused.len()), (2, 1));
    }
}

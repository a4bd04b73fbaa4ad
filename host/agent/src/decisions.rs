//! The owner's decisions about domains beyond the configuration: for one run, for the lifetime of the host, or for good
//! (SPEC NET-3).
//!
//! Decisions for a run and for good are durable before they apply. Readers fail closed: an unreadable decision is never
//! taken for an approval.

use base::text::{did_you_mean, nearest};
use base::{AgentName, Clock, ConsentRecord, Refusal, RefusalCode, RunId, Timestamp};
use network::Shape;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Batch, Scan, Store, Table};

/// Prefix of the keys of [`Table::Meta`] that hold decisions.
const PREFIX: &str = "decision/";

/// How long a decision lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecisionLevel {
    /// Only for one run.
    Run,
    /// For the agent's runs, until the host ends.
    Session,
    /// For the agent's runs, for good.
    Always,
}

/// The decision about a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DomainVerdict {
    /// It may be reached.
    Allow,
    /// It may be reached, and written to after the run has read from the web.
    AllowWrites,
    /// It may not be reached, even if another rule allows it.
    Deny,
}

/// One decision of the owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Decision {
    /// The hosts, or the requests that are allowed.
    pub pattern: Shape,
    /// The decision about the pattern.
    pub verdict: DomainVerdict,
    /// How long the decision lasts.
    pub level: DecisionLevel,
    /// The agent whose runs it concerns.
    #[serde(default)]
    pub agent: AgentName,
    /// The run, if it is for one.
    #[serde(default, rename = "runId", alias = "run", skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Time of the decision; filled in by the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
    /// The owner's consent; filled in by the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<ConsentRecord>,
}

/// The decisions of a home.
pub(crate) struct Decisions {
    store: Store,
    session: Mutex<Vec<Decision>>,
}

impl Decisions {
    pub fn new(store: Store) -> Self {
        Self { store, session: Mutex::default() }
    }

    /// Makes a decision. It replaces an earlier one about the same pattern at the same level.
    pub async fn decide(&self, mut decision: Decision, clock: &dyn Clock) -> Result<Decision, Refusal> {
        // Later than all others, even if the clock was set back: the latest decision must not lose to an earlier one.
        let newest = self.all()?.iter().filter_map(|decision| decision.decided_at).max();
        let after = newest.map_or(0, |newest| newest.as_millis() + 1);
        decision.decided_at = Some(Timestamp::from_millis(clock.now().as_millis().max(after)));
        if let Some(key) = key(&decision)? {
            let mut batch = Batch::new();
            batch.put(Table::Meta, key, &decision)?;
            self.store.commit(batch).await?;
        } else {
            let mut session = self.session.lock();
            session.retain(|other| other.agent != decision.agent || other.pattern != decision.pattern);
            session.push(decision.clone());
        }
        Ok(decision)
    }

    /// Withdraws a decision.
    ///
    /// # Errors
    /// If the decision does not exist, or the store fails.
    pub async fn forget(&self, decision: &Decision) -> Result<(), Refusal> {
        let gone = match key(decision)? {
            Some(key) => {
                let there = self.store.get::<Decision>(Table::Meta, &key)?.is_some();
                let mut batch = Batch::new();
                batch.delete(Table::Meta, key);
                self.store.commit(batch).await?;
                there
            }
            None => {
                let mut session = self.session.lock();
                let before = session.len();
                session.retain(|other| other.agent != decision.agent || other.pattern != decision.pattern);
                session.len() < before
            }
        };
        if gone {
            return Ok(());
        }
        let others: Vec<String> = self.all()?.iter().map(|other| other.pattern.to_string()).collect();
        let pattern = decision.pattern.to_string();
        let near =
            nearest(&pattern, others.iter().filter(|other| **other != pattern).map(|other| (other.as_str(), other)));
        let reason = format!("there is no such decision about `{pattern}`{}", did_you_mean(near));
        Err(Refusal::new(RefusalCode::NotFound, reason).with_remedy("`motor network list` shows those there are"))
    }

    /// The decisions for a run of the agent: for good, for the session, for the run, in this order.
    pub fn of(&self, agent: &AgentName, run: Option<&RunId>) -> Result<Vec<Decision>, Refusal> {
        let mut decisions = self.stored(&always_prefix(agent))?;
        let session = self.session.lock();
        decisions.extend(session.iter().filter(|decision| decision.agent == *agent).cloned());
        drop(session);
        if let Some(run) = run {
            decisions.extend(self.stored(&run_prefix(run))?);
        }
        Ok(decisions)
    }

    /// All decisions of the home.
    pub fn all(&self) -> Result<Vec<Decision>, Refusal> {
        let mut decisions = self.stored(PREFIX)?;
        decisions.extend(self.session.lock().iter().cloned());
        Ok(decisions)
    }

    /// Removes the decisions for a run that is over.
    pub async fn end(&self, run: &RunId) -> Result<(), Refusal> {
        let decided = self.stored(&run_prefix(run))?;
        if decided.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::new();
        for key in decided.iter().map(key) {
            if let Some(key) = key? {
                batch.delete(Table::Meta, key);
            }
        }
        Ok(self.store.commit(batch).await?)
    }

    fn stored(&self, prefix: &str) -> Result<Vec<Decision>, Refusal> {
        let stored = self.store.scan(Table::Meta, &Scan::prefix(prefix.to_owned()))?;
        Ok(stored.into_iter().map(|(_, decision)| decision).collect())
    }
}

fn always_prefix(agent: &AgentName) -> String {
    format!("{PREFIX}always/{agent}/")
}

fn run_prefix(run: &RunId) -> String {
    format!("{PREFIX}run/{run}/")
}

/// The key of a stored decision; `None` if it is only in memory.
fn key(decision: &Decision) -> Result<Option<String>, Refusal> {
    let pattern = &decision.pattern;
    match (decision.level, &decision.run) {
        (DecisionLevel::Run, Some(run)) => Ok(Some(format!("{}{pattern}", run_prefix(run)))),
        (DecisionLevel::Always, None) => Ok(Some(format!("{}{pattern}", always_prefix(&decision.agent)))),
        (DecisionLevel::Session, None) => Ok(None),
        (DecisionLevel::Run, None) => {
            Err(Refusal::new(RefusalCode::InvalidRequest, "a decision for a run names the run")
                .with_remedy("say which: `--run RUN`, or take `--session` or `--always`"))
        }
        (_, Some(_)) => {
            Err(Refusal::new(RefusalCode::InvalidRequest, "a decision that names a run is for that run alone"))
        }
    }
}

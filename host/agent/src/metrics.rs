//! Figures about a host and its runs, for monitoring (SPEC OBS-2). They hold no ids, no texts and no host names.

use std::collections::BTreeMap;

use base::{AgentName, Refusal, Timestamp};
use motor::RunTotals;

use crate::Host;

/// Agents whose energy is reported, at most: callers choose the names of agents.
const MAX_AGENTS: usize = 20;

/// The figures of a host at one moment.
#[derive(Debug, Clone)]
pub struct HostMetrics {
    /// When the host started. The totals of runs begin then.
    pub started_at: Timestamp,
    /// The work of runs since then.
    pub totals: RunTotals,
    /// Runs that are not over, by status. A status without runs is absent.
    pub live: BTreeMap<&'static str, u64>,
    /// The energy of the default agent and of agents with live runs, from 0.05 to 1; at most 20 agents.
    pub energy: BTreeMap<AgentName, f64>,
    /// The id of the newest signal of the home.
    pub latest_signal: u64,
    /// Groups of commits since the home was made.
    pub commits: u64,
}

impl Host {
    /// The current figures. Reads the head of each run that is not over, so it may block.
    ///
    /// # Errors
    /// If the store fails.
    pub fn metrics(&self) -> Result<HostMetrics, Refusal> {
        let (live, agents) = self.runs.motor.live()?;
        // The default agent first; it may be among the others.
        let agents = std::iter::once(AgentName::default()).chain(agents);
        let energy = agents.take(MAX_AGENTS).map(|agent| Ok((agent.clone(), self.energy.level(&agent)?)));
        Ok(HostMetrics {
            started_at: self.status().started_at,
            totals: self.runs.motor.totals(),
            live,
            energy: energy.collect::<Result<_, Refusal>>()?,
            latest_signal: self.signals.latest(),
            commits: self.runs.store.commits()?,
        })
    }
}

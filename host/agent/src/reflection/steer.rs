//! News of cortexes for the conversations of the owner (SPEC CX-10): new directives and overdue commitments begin a turn there.
//!
//! Only a host that stays gives them. The position behind them is cognition's, in the commit of the entry: nothing is given twice.

use base::{AgentName, Refusal};
use cognition::{Cognition, HostNote};
use cortex::{Cortex, CortexNews};

use super::Reflections;

impl Reflections {
    /// Gives the news that have come since the last time.
    pub(super) async fn steer(&self, cognition: &Cognition) {
        for (agent, cortex) in self.open_cortexes() {
            if let Err(refusal) = steer(&agent, &cortex, cognition).await {
                tracing::warn!(%agent, %refusal, "news of the cortex do not reach the owner's conversation; trying again");
            }
        }
    }
}

async fn steer(agent: &AgentName, cortex: &Cortex, cognition: &Cognition) -> Result<(), Refusal> {
    let config = cortex.config();
    if !config.enabled {
        return Ok(());
    }
    let Some(CortexNews { last, text, sources, is_overdue }) = cortex.news(cognition.noted(agent)?)? else {
        return Ok(());
    };
    let (agent, max_per_day) = (agent.clone(), config.wakes_per_day);
    cognition.note(HostNote { agent, number: last, text, sources, is_overdue, max_per_day }).await
}

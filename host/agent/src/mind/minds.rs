//! The models of cognition by role (SPEC CONF-3), the price of a reply, and the text that they may see.

use std::sync::Arc;

use async_trait::async_trait;
use base::{AgentName, Refusal};
use cognition::{Minds, TriggerKind};
use energy::{Activity, EnergyBook};
use llm::{Model, Role};
use store::{Batch, blocking};

use crate::environment::HostEnvironment;

/// Connects to models by the role that fits a turn.
pub(super) struct RoleMinds {
    pub environment: Arc<HostEnvironment>,
    pub energy: Arc<EnergyBook>,
}

/// The roles that serve a turn, the first that has a model. A person's message gets the better model; to tell the result of a run takes
/// the quick one.
fn roles(trigger: TriggerKind) -> [Role; 3] {
    match trigger {
        TriggerKind::OwnerMessage => [Role::Smart, Role::Fast, Role::Motor],
        TriggerKind::PeerMessage | TriggerKind::Signal => [Role::Fast, Role::Smart, Role::Motor],
    }
}

#[async_trait]
impl Minds for RoleMinds {
    async fn model(&self, agent: &AgentName, trigger: TriggerKind) -> Result<Arc<dyn Model>, Refusal> {
        // A model call is not gated by itself; a turn that the owner did not ask for is held to the level of an act.
        if trigger != TriggerKind::OwnerMessage {
            self.energy.check(agent, Activity::Agentic { browser: false })?;
        }
        let access = self.environment.model_access();
        blocking(move || {
            let scrubber = access.vault.scrubber()?;
            access.connect_role(&roles(trigger), Some(scrubber))
        })
        .await
    }

    async fn charge(&self, batch: &mut Batch, agent: &AgentName) -> Result<(), Refusal> {
        Ok(self.energy.stage_drain(batch, agent, Activity::Llm).await.map(drop)?)
    }

    async fn clean(&self, text: String) -> Result<String, Refusal> {
        Ok(self.environment.access.clean(text).await?.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_gets_the_better_model_and_a_signal_the_quick_one() {
        assert_eq!(roles(TriggerKind::OwnerMessage)[0], Role::Smart);
        assert_eq!(roles(TriggerKind::Signal)[0], Role::Fast);
        assert_eq!(roles(TriggerKind::PeerMessage)[0], Role::Fast);
    }
}

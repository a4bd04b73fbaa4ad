//! The models of cognition by role (SPEC CONF-3), the price of a reply, and the text that they may see.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base::{AgentName, Refusal};
use cognition::{Charged, ConversationKey, Minds, PeerAnswer, TriggerKind};
use energy::{Activity, EnergyBook};
use llm::{Model, Role};
use store::{Batch, blocking};

use crate::environment::HostEnvironment;
use crate::reflection::Reflections;
use crate::spending::models_of_roles;

/// Connects to models by the role that fits a turn.
pub(super) struct RoleMinds {
    pub environment: Arc<HostEnvironment>,
    pub energy: Arc<EnergyBook>,
    pub reflections: Reflections,
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
        self.environment.check_call(agent, &models_of_roles(&self.environment.config(), &roles(trigger)))?;
        let access = self.environment.model_access();
        blocking(move || {
            let scrubber = access.vault.scrubber()?;
            access.connect_role(&roles(trigger), Some(scrubber))
        })
        .await
    }

    async fn charge(&self, batch: &mut Batch, agent: &AgentName, charged: Charged<'_>) -> Result<(), Refusal> {
        let activity = match charged {
            Charged::Message => Activity::Message,
            Charged::Reply { .. } => Activity::Llm,
        };
        self.energy.stage_drain(batch, agent, activity).await?;
        if let Charged::Reply { conversation, usage } = charged {
            let (spend, now) = (&self.environment.spend, self.environment.clock.now());
            spend.add(batch, agent, &format!("chat-{conversation}"), now, usage)?;
        }
        Ok(())
    }

    fn consultation(&self, conversation: &ConversationKey, answer: PeerAnswer<'_>) -> Option<Duration> {
        self.reflections.consultation(&conversation.agent, answer)
    }

    async fn consult(&self, conversation: &ConversationKey, answer: PeerAnswer<'_>) -> Result<bool, Refusal> {
        let Some(peer) = &conversation.peer else { return Ok(true) };
        self.reflections.consult(&conversation.agent, peer, answer).await
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

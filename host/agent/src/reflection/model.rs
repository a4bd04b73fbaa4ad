//! The model of reflections: the role `cortex` (or `cortex.model`), in a context of its own, within its tokens and for energy.
//!
//! It has no tools, and no secret of the home reaches it. Its price in energy is drained before the call, so a call that is given
//! up, or that outlives its host, was paid for.

use std::sync::Arc;

use async_trait::async_trait;
use base::{AgentName, Refusal, RefusalCode};
use cortex::{CortexConfig, ModelReply, Prompt, ReflectionModel};
use energy::Activity;
use llm::{ChatRequest, Delta, Message, Role, take_reasoning};
use motor::SpendBook;
use store::{Batch, blocking};
use tokio::sync::oneshot;

use super::Reflections;
use crate::models::{self, ModelAccess};
use crate::spending::check_call;

/// The model of one cycle.
pub(super) struct CortexModel {
    pub reflections: Reflections,
    pub agent: AgentName,
    pub config: Arc<CortexConfig>,
}

impl Reflections {
    /// The name of the model of reflections.
    ///
    /// # Errors
    /// `model_unavailable` if none is set for the role.
    pub(super) fn model_name(&self, config: &CortexConfig) -> Result<String, Refusal> {
        let of_role = || {
            let roles = self.0.in_force.read().models.roles();
            let unset = |error: llm::RoleUnset| {
                Refusal::new(RefusalCode::ModelUnavailable, error.to_string())
                    .with_remedy("`motor setup` asks for one; or set `models.cortex`, or `cortex.model`")
            };
            roles.resolve(Role::Cortex).map(ToString::to_string).map_err(unset)
        };
        config.model.clone().map_or_else(of_role, Ok)
    }
}

#[async_trait]
impl ReflectionModel for CortexModel {
    async fn ask(&self, prompt: Prompt) -> Result<ModelReply, Refusal> {
        let inner = &*self.reflections.0;
        let name = self.reflections.model_name(&self.config)?;
        let in_force = inner.in_force.read().clone();
        let (config, prices) = (in_force.models.clone(), in_force.price_table());
        let (env, vault) = (inner.env.clone(), inner.vault.clone());
        let (spend, models) = (SpendBook::new(inner.store.clone()), [name.clone()]);
        check_call(&in_force, &spend, &self.agent, &models, inner.clock.now())?;
        let model = blocking(move || {
            let scrubber = vault.scrubber()?;
            ModelAccess { config, prices, env, vault, saving: None }.connect(Some(&name), None, Some(scrubber))
        })
        .await?;
        let mut batch = Batch::new();
        inner.energy.stage_drain(&mut batch, &self.agent, Activity::Llm).await?;
        inner.store.commit(batch).await?;
        let request = ChatRequest {
            system: prompt.system,
            messages: vec![Message::User { text: prompt.user }],
            ..ChatRequest::default()
        };
        let most = usize::try_from(self.config.max_reply_tokens.saturating_mul(4)).unwrap_or(usize::MAX);
        let (too_much, stop) = oneshot::channel();
        let (mut too_much, mut bytes) = (Some(too_much), 0_usize);
        let mut count = |delta: Delta| {
            if let Delta::Text(text) | Delta::Reasoning(text) = delta {
                bytes = bytes.saturating_add(text.len());
            }
            if bytes > most
                && let Some(too_much) = too_much.take()
            {
                // Without a receiver, the call is over.
                too_much.send(()).ok();
            }
        };
        let mut reply = tokio::select! {
            biased;
            () = inner.closing.cancelled() => {
                return Err(Refusal::new(RefusalCode::TryLater, "the host is shutting down"));
            }
            // Dropping the call ends the request.
            Ok(()) = stop => return Err(self.too_long()),
            reply = model.chat(&request, &mut count) => reply.map_err(|error| models::refusal(&error))?,
        };
        let (mut batch, now) = (Batch::new(), inner.clock.now());
        spend.add(&mut batch, &self.agent, &format!("cortex-{}", now.as_millis()), now, &reply.usage)?;
        inner.store.commit(batch).await?;
        let reasoning = reply.reasoning.as_ref().map_or(0, String::len);
        if reply.text.len().saturating_add(reasoning) > most {
            return Err(self.too_long());
        }
        if !reply.finish.is_complete() {
            let reason = "the reply was cut off or refused before it was complete";
            return Err(Refusal::new(RefusalCode::ModelUnavailable, reason));
        }
        take_reasoning(&mut reply);
        let counted = |tokens: u64| Some(tokens).filter(|tokens| *tokens > 0);
        Ok(ModelReply {
            text: reply.text,
            input_tokens: counted(reply.usage.input_tokens),
            output_tokens: counted(reply.usage.output_tokens),
        })
    }
}

impl CortexModel {
    fn too_long(&self) -> Refusal {
        let reason = format!("the reply has more than {} tokens", self.config.max_reply_tokens);
        Refusal::new(RefusalCode::ModelUnavailable, reason).with_remedy("raise `cortex.max_reply_tokens`")
    }
}

//! Commitments, directives and drift (SPEC CX-10) of one cortex, for the main loop and the owner. No model takes part in any of it.

use std::sync::Arc;

use base::{AgentName, Refusal, RefusalCode};
use ledger::PeerId;
use store::{Batch, Scan, Store, StoreError, Table, broke_off};

use crate::activity::Observation;
use crate::commitment::Commitment;
use crate::cortex::Cortex;
use crate::directive::{self, Directive};
use crate::injected::Injected;
use crate::notice::{self, CortexSignal};
use crate::record::SoulDrift;
use crate::state::CortexState;

impl Cortex {
    /// Shows the owner's `SOUL.md` to the cycles from now on.
    pub fn set_soul(&self, soul: Option<String>) {
        *self.inner.soul.lock() = soul;
    }

    /// The commitments, the oldest first: open ones, and those that were closed lately.
    #[must_use]
    pub fn commitments(&self) -> Vec<Commitment> {
        self.inner.state.read().commitments.all().to_vec()
    }

    /// The directives whose time is not over, the latest last.
    #[must_use]
    pub fn directives(&self) -> Vec<Directive> {
        let (now, config) = (self.inner.clock.now(), self.config());
        let state = self.inner.state.read();
        state.directives.active(now, config.directive_ttl(), config.max_directives).into_iter().cloned().collect()
    }

    /// The drift from `SOUL.md` that the last reflection found, if it found one.
    #[must_use]
    pub fn drift(&self) -> Option<SoulDrift> {
        self.inner.state.read().drift.clone()
    }

    /// The latest signals, the newest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn signals(&self, limit: usize) -> Result<Vec<CortexSignal>, StoreError> {
        notice::latest(&self.inner.store, &self.inner.agent, limit)
    }

    /// The block of a system prompt with directives and overdue commitments, as advice: all of them or those about a peer, within
    /// `room` characters; empty if there are none.
    #[must_use]
    pub fn advise(&self, of: Option<&PeerId>, room: usize) -> Injected {
        let (now, config) = (self.inner.clock.now(), self.config());
        let state = self.inner.state.read();
        let mut active = state.directives.active(now, config.directive_ttl(), config.max_directives);
        active.retain(|directive| of.is_none() || directive.peer.as_ref() == of);
        directive::advice(&active, &state.commitments, of, room)
    }

    /// Closes a commitment for the owner, after a cycle under way. Durable when this returns.
    ///
    /// # Errors
    /// `not_found` if no commitment with this key is open; or if the store fails.
    pub async fn close_commitment(&self, key: String, kept: bool) -> Result<(), Refusal> {
        let remedy = "`motor cortex commitments` lists them";
        self.change(move |state, _, now| {
            let closed = state.commitments.close(&key, kept, now);
            closed.map_err(|reason| Refusal::new(RefusalCode::NotFound, reason).with_remedy(remedy))
        })
        .await
    }

    /// Removes a directive for the owner, after a cycle under way. Durable when this returns.
    ///
    /// # Errors
    /// `not_found` if there is none with this key; or if the store fails.
    pub async fn remove_directive(&self, key: String) -> Result<(), Refusal> {
        self.change(move |state, _, _| match state.directives.remove(&key) {
            true => Ok(()),
            false => Err(Refusal::new(RefusalCode::NotFound, "there is no directive with this key")
                .with_remedy("`motor cortex directives` lists them")),
        })
        .await
    }

    /// Marks the commitments whose time is over and stores a signal for each, as one commit: each is told once. Waits for the next
    /// call if a cycle is under way. Returns how many there were.
    ///
    /// # Errors
    /// If the store fails: nothing is marked.
    pub async fn tell_overdue(&self) -> Result<usize, Refusal> {
        let inner = &self.inner;
        if !inner.state.read().commitments.has_expired(inner.clock.now()) || self.is_reflecting() {
            return Ok(0);
        }
        let agent = inner.agent.clone();
        let expired = self
            .change(move |state, batch, now| {
                let expired = state.commitments.expire(now);
                for commitment in &expired {
                    notice::stage(batch, &agent, &mut state.signals, now, commitment.clone().into())?;
                    if !state.unreflected.contains(&commitment.peer) {
                        state.unreflected.push(commitment.peer.clone());
                    }
                }
                Ok(expired)
            })
            .await?;
        for Commitment { key, peer, .. } in &expired {
            tracing::info!(agent = %inner.agent, key, %peer, "a commitment is overdue");
            self.observe(Observation::Overdue { peer: peer.clone() });
        }
        Ok(expired.len())
    }

    /// Changes the state in one commit, between cycles. It runs in its own task: a caller that goes away leaves no old state in memory.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut CortexState, &mut Batch, base::Timestamp) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let inner = Arc::clone(&self.inner);
        let changing = tokio::spawn(async move {
            let _turn = inner.reflecting.lock().await;
            let (mut state, mut batch) = (inner.state.read().clone(), Batch::new());
            let value = change(&mut state, &mut batch, inner.clock.now())?;
            state.stage(&mut batch, &inner.agent)?;
            inner.store.commit(batch).await?;
            *inner.state.write() = state;
            Ok(value)
        });
        changing.await.unwrap_or_else(|error| Err(broke_off(&error)))
    }

    /// The agents with an open commitment, which is told when it is overdue, or a directive. One whose state cannot be read is left out: it
    /// must not keep the others from being told.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn agents_with_guidance(store: &Store) -> Result<Vec<AgentName>, StoreError> {
        let mut agents = Vec::new();
        for (key, _) in store.scan_each::<serde::de::IgnoredAny>(Table::Reflections, &Scan::all())? {
            let Some(agent) = key.strip_suffix(b"\0s") else { continue };
            let Some(agent) = std::str::from_utf8(agent).ok().and_then(|agent| AgentName::parse(agent).ok()) else {
                continue;
            };
            match CortexState::read(store, &agent) {
                Ok(state) if state.commitments.open().next().is_some() || !state.directives.is_empty() => {
                    agents.push(agent);
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%agent, %error, "its commitments cannot be read"),
            }
        }
        Ok(agents)
    }
}

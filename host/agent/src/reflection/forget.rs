//! Forgetting a peer, in its conversations, in the ledger and in the cortex of its agent.
//!
//! A mark is durable before the first step, and goes in the batch that completes the note of the forgetting, after the last one. A host
//! that starts and finds a mark takes every step again before it hears from anyone: a step that was taken before finds nothing. So a peer
//! is forgotten as a whole, or still known if the host ended before the mark.

use base::{AgentName, Refusal, RefusalCode};
use cognition::Cognition;
use ledger::{ForgottenPeer, PeerId};
use store::{Batch, Scan, Table, broke_off};

use super::Reflections;

/// Prefix of the keys of [`Table::Meta`] that name peers whose forgetting has begun.
const FORGETTING: &str = "cortex/forget/";

impl Reflections {
    /// Deletes everything about a peer, after `deleting`, which forgets it in conversations, memories and the ledger. It waits for a cycle
    /// under way, which may know the peer; nothing of that cycle applies then.
    ///
    /// # Errors
    /// As `deleting`, or if the store fails: the next host ends it then.
    pub async fn forget(
        &self,
        agent: &AgentName,
        peer: &PeerId,
        deleting: impl Future<Output = Result<ForgottenPeer, Refusal>> + Send + 'static,
    ) -> Result<ForgottenPeer, Refusal> {
        // In its own task: a client that goes away does not leave it to the next start.
        let (reflections, agent, peer) = (self.clone(), agent.clone(), peer.clone());
        let forgetting = tokio::spawn(async move { reflections.forget_marked(&agent, &peer, deleting).await });
        forgetting.await.unwrap_or_else(|error| Err(broke_off(&error)))
    }

    async fn forget_marked(
        &self,
        agent: &AgentName,
        peer: &PeerId,
        deleting: impl Future<Output = Result<ForgottenPeer, Refusal>> + Send,
    ) -> Result<ForgottenPeer, Refusal> {
        let store = &self.0.store;
        // The mark is that of one call.
        let _one_at_a_time = self.0.forgetting.lock().await;
        // Only for a known peer, so that asking about unknown agents opens nothing for good.
        let cortex = if self.0.ledger.knows(agent, peer)? { self.cortex(agent).ok() } else { None };
        let _forgetting = cortex.map(|cortex| cortex.begin_forgetting());
        let was_marked = store.get::<bool>(Table::Meta, key(agent, peer))?.is_some();
        let mut mark = Batch::new();
        mark.put(Table::Meta, key(agent, peer), &true)?;
        store.commit(mark).await?;
        let forgotten = deleting.await;
        match &forgotten {
            // It may be half forgotten: the mark stays, and the same command or the next host ends it.
            Err(refusal) if refusal.code != RefusalCode::NotFound => return forgotten,
            Err(_) if !was_marked => {
                let mut unknown = Batch::new();
                unknown.delete(Table::Meta, key(agent, peer));
                store.commit(unknown).await?;
                return forgotten;
            }
            _ => {}
        }
        let beliefs = self.forget_beliefs(agent, peer).await?;
        forgotten.map(|note| ForgottenPeer { beliefs, ..note })
    }

    /// Removes a peer from beliefs, history and activity, and returns how many beliefs, commitments and directives were about it. The same
    /// batch takes the mark away and completes the note of the forgetting.
    async fn forget_beliefs(&self, agent: &AgentName, peer: &PeerId) -> Result<u64, Refusal> {
        // The open one, so that no other has the beliefs in memory.
        let cortex = self.cortex(agent).or_else(|_| self.read(agent))?;
        let completing = |batch: &mut Batch, beliefs| {
            batch.delete(Table::Meta, key(agent, peer));
            if beliefs > 0 { self.0.ledger.stage_deleted_beliefs(batch, agent, peer, beliefs) } else { Ok(()) }
        };
        cortex.forget(peer, completing).await
    }

    /// Ends the forgetting that an earlier host began. For a host whose conversations have not begun.
    ///
    /// # Errors
    /// If the store fails: the next host ends it then.
    pub(crate) async fn finish_forgetting(&self, cognition: &Cognition) -> Result<(), Refusal> {
        for (key, _) in self.0.store.scan::<bool>(Table::Meta, &Scan::prefix(FORGETTING))? {
            let Some((agent, peer)) = named(&key) else {
                tracing::warn!("a mark of a forgotten peer cannot be read");
                continue;
            };
            match cognition.forget(&agent, &peer).await {
                Err(refusal) if refusal.code != RefusalCode::NotFound => return Err(refusal),
                _ => self.forget_beliefs(&agent, &peer).await?,
            };
        }
        Ok(())
    }
}

fn key(agent: &AgentName, peer: &PeerId) -> String {
    // Names of agents have no `/`.
    format!("{FORGETTING}{agent}/{peer}")
}

fn named(key: &[u8]) -> Option<(AgentName, PeerId)> {
    let (agent, peer) = std::str::from_utf8(key).ok()?.strip_prefix(FORGETTING)?.split_once('/')?;
    Some((AgentName::parse(agent).ok()?, PeerId::parse(peer).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_agent_and_peer() {
        for id in ["mai", "@mai:example.org", "a/b/c", "npub-1"] {
            let (agent, peer) = (AgentName::default(), PeerId::parse(id).unwrap());
            assert_eq!(named(key(&agent, &peer).as_bytes()), Some((agent, peer)));
        }
        assert_eq!(named(b"cortex/forget/main"), None);
    }
}

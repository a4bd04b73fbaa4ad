//! Commitments, directives and `SOUL.md` of agents (SPEC CX-10), for the surfaces.

use std::path::{Path, PathBuf};

use base::{AgentName, Refusal};
use cortex::{Commitment, CortexSignal, Directive};
use store::{Links, blocking};

use super::Reflections;

/// Name of the owner's file in the home. The program only reads it.
const SOUL: &str = "SOUL.md";
/// Bytes of it that reflections see; a longer one is not shown.
const MAX_SOUL_BYTES: u64 = 8 << 10;
/// Signals in one answer.
const MAX_LISTED_SIGNALS: usize = 200;

/// Path of `SOUL.md` in a home.
pub(super) fn soul_in(home: &Path) -> PathBuf {
    home.join(SOUL)
}

impl Reflections {
    /// The owner's `SOUL.md`; `None` without one, or while `cortex.soul` is false.
    ///
    /// # Errors
    /// With the reason why it is not shown to reflections.
    pub(super) async fn soul(&self, agent: &AgentName) -> Result<Option<String>, String> {
        let config = self.0.settings.of(agent);
        if !config.soul {
            return Ok(None);
        }
        let path = self.0.soul.clone();
        let read = blocking(move || Ok::<_, Refusal>(store::read_regular(&path, Links::Followed, MAX_SOUL_BYTES)));
        let text = match read.await.map_err(|refusal| refusal.reason)? {
            Ok(bytes) => String::from_utf8(bytes).map_err(|_| format!("`{SOUL}` is not text"))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("`{SOUL}` is not shown to reflections: {error}")),
        };
        // A quarter of the prompt, at four bytes a token.
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > config.max_context_tokens {
            return Err(format!("`{SOUL}` takes more than a quarter of `cortex.max_context_tokens`: it is not shown"));
        }
        Ok(Some(text).filter(|text| !text.trim().is_empty()))
    }

    /// The commitments of an agent, the oldest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn commitments(&self, agent: &AgentName) -> Result<Vec<Commitment>, Refusal> {
        Ok(self.read(agent)?.commitments())
    }

    /// Closes a commitment because the owner says so, as kept or as dropped.
    ///
    /// # Errors
    /// `not_found` if no commitment with this key is open; or if the store fails.
    pub async fn close_commitment(
        &self,
        agent: &AgentName,
        key: String,
        kept: bool,
    ) -> Result<Vec<Commitment>, Refusal> {
        let cortex = self.cortex(agent)?;
        cortex.close_commitment(key, kept).await?;
        Ok(cortex.commitments())
    }

    /// The directives of an agent whose time is not over.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn directives(&self, agent: &AgentName) -> Result<Vec<Directive>, Refusal> {
        self.refresh().await;
        Ok(self.read(agent)?.directives())
    }

    /// Removes a directive because the owner says so.
    ///
    /// # Errors
    /// `not_found` if there is none with this key; or if the store fails.
    pub async fn remove_directive(&self, agent: &AgentName, key: String) -> Result<Vec<Directive>, Refusal> {
        let cortex = self.cortex(agent)?;
        cortex.remove_directive(key).await?;
        Ok(cortex.directives())
    }

    /// The latest signals of an agent's cortex, the newest first; at most 200.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn signals(&self, agent: &AgentName, limit: usize) -> Result<Vec<CortexSignal>, Refusal> {
        Ok(self.read(agent)?.signals(limit.min(MAX_LISTED_SIGNALS))?)
    }

    /// Tells the commitments that have become overdue.
    pub(super) async fn tell_overdue(&self) {
        for (agent, cortex) in self.open_cortexes() {
            if cortex.config().enabled
                && let Err(refusal) = cortex.tell_overdue().await
            {
                tracing::warn!(%agent, %refusal, "overdue commitments are not told; trying again");
            }
        }
    }
}

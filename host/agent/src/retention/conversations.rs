//! Conversations beyond the limits of `[retention]`. One in which a message, a question, a run or a reply waits is neither deleted nor
//! counted.

use base::Refusal;
use cognition::Cognition;

use super::{BREATH, Pruner, surplus};

/// Notes about conversations that were forgotten here. Without an end there would be one for each name that was ever used.
const MAX_NOTES: usize = 10_000;

impl Pruner {
    /// Forgets conversations that are too old, then the longest unused until the rest fits, and returns their number.
    pub(super) async fn prune_conversations(&self, cognition: &Cognition) -> Result<usize, Refusal> {
        let (age, bytes) = (self.settled(self.config.conversation_age), self.config.conversation_bytes.0);
        let most = Some(self.config.conversations).filter(|most| *most > 0);
        if age.is_none() && bytes.is_none() && most.is_none() {
            return Ok(0);
        }
        let (idle, now) = (cognition.idle().await?, self.time.earliest());
        let expired = idle.iter().take_while(|one| age.is_some_and(|age| now.since(one.at) >= age)).count();
        let sizes: Vec<u64> = idle.iter().skip(expired).map(|one| one.bytes).collect();
        let mut forgotten = 0;
        for one in idle.iter().take(expired + surplus(&sizes, bytes, most)) {
            tokio::time::sleep(BREATH).await;
            forgotten += usize::from(cognition.forget_idle(one).await?);
        }
        cognition.prune_notes(MAX_NOTES).await?;
        Ok(forgotten)
    }
}

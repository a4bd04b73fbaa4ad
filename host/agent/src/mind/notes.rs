//! The ledger's view of conversations (SPEC LED-1, LED-3): each message of a peer and each reply to one is an interaction, and the
//! peer's block is in the prompt of its turns.

use base::AgentName;
use base::text::cut;
use cognition::{ConversationKey, MAX_SECTION, Observed, Observer};
use ledger::{Direction, Ledger, NewInteraction, PeerId};
use tokio::sync::mpsc;

use crate::reflection::Reflections;

/// Interactions that wait to be stored. More at once are left out: observing never waits.
const MAX_WAITING: usize = 1_000;

/// Notes interactions with peers.
pub(super) struct PeerNotes {
    ledger: Ledger,
    reflections: Reflections,
    sender: mpsc::Sender<PeerNote>,
}

/// An interaction that is to be stored.
struct PeerNote {
    agent: AgentName,
    peer: PeerId,
    interaction: NewInteraction,
}

impl PeerNotes {
    /// Starts the task that stores them. It ends with this value.
    pub(super) fn start(ledger: Ledger, reflections: Reflections) -> Self {
        let (sender, mut notes) = mpsc::channel::<PeerNote>(MAX_WAITING);
        let storing = reflections.clone();
        tokio::spawn(async move {
            while let Some(PeerNote { agent, peer, interaction }) = notes.recv().await {
                if let Err(error) = storing.record(&agent, &peer, vec![interaction]).await {
                    tracing::warn!(%error, "an interaction with a peer is not noted");
                }
            }
        });
        Self { ledger, reflections, sender }
    }
}

impl Observer for PeerNotes {
    fn observe(&self, conversation: &ConversationKey, observed: Observed<'_>) {
        let Some(peer) = &conversation.peer else { return };
        let (direction, text) = match observed {
            Observed::Message(text) => (Direction::Incoming, text),
            Observed::Sent(text) => (Direction::Outgoing, text),
            Observed::ModelReplied { .. } | Observed::ToolReturned { .. } => return,
        };
        // The ledger keeps less; a message may be long.
        let summary = cut(text, ledger::MAX_SUMMARY);
        let interaction = NewInteraction { direction, channel: conversation.channel.clone(), summary };
        let note = PeerNote { agent: conversation.agent.clone(), peer: peer.clone(), interaction };
        if self.sender.try_send(note).is_err() {
            tracing::warn!("too many interactions at once: one is not noted");
        }
    }

    fn section(&self, conversation: &ConversationKey) -> Option<String> {
        let of_peer = |peer: &PeerId| self.ledger.report(&conversation.agent, peer).ok().map(|report| report.prompt);
        let mut section = String::new();
        match &conversation.peer {
            // A peer's turn has only beliefs about that peer: the model may repeat them.
            Some(peer) => {
                section = of_peer(peer).unwrap_or_default();
                self.reflections.inject_about(&conversation.agent, peer, &mut section);
            }
            None => self.reflections.inject(&conversation.agent, &mut section),
        }
        let mut advice = String::new();
        self.reflections.advise(&conversation.agent, conversation.peer.as_ref(), &mut advice);
        let section = with_advice(&section, &advice);
        (!section.is_empty()).then_some(section)
    }
}

/// Beliefs and then advice, in the length of a section. Advice is fenced and bounded: cutting it would open its fence.
fn with_advice(beliefs: &str, advice: &str) -> String {
    let room = MAX_SECTION.saturating_sub(advice.chars().count()).saturating_sub(1);
    format!("{}{advice}", cut(beliefs, room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_beliefs_do_not_open_the_fence_of_advice() {
        let advice = base::fence::fenced("cortex", "cortex", "- be brief");
        for length in [0, 10, MAX_SECTION - 1, MAX_SECTION, 3 * MAX_SECTION] {
            let section = with_advice(&"\u{e9}".repeat(length), &advice);
            assert!(section.chars().count() <= MAX_SECTION && section.ends_with(&advice), "{length}");
            assert_eq!(section.starts_with('\u{e9}'), length > 0, "{length}");
        }
    }
}

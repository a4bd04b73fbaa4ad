//! The cortex's view of conversations (SPEC CX-1, CX-7): their events are activity, in numbers alone, and its beliefs and advice are in
//! the prompt of each turn, together with the ledger's block about the peer (SPEC LED-3). The ledger itself is written by cognition.

use cognition::{ConversationKey, MAX_SECTION, Observed, Observer, PromptSection};
use cortex::Observation;
use ledger::{Direction, Ledger};

use crate::reflection::Reflections;

/// Tells the cortex about the turns of cognition.
pub(super) struct CortexObserver {
    pub ledger: Ledger,
    pub reflections: Reflections,
}

impl Observer for CortexObserver {
    fn observe(&self, conversation: &ConversationKey, observed: Observed<'_>) {
        let message =
            |direction, is_new| conversation.peer.clone().map(|peer| Observation::Message { peer, direction, is_new });
        let observation = match observed {
            Observed::Message { is_new_peer, .. } => message(Direction::Incoming, is_new_peer),
            Observed::Sent(_) => message(Direction::Outgoing, false),
            Observed::ModelReplied { input_tokens, output_tokens } => {
                Some(Observation::ModelReplied { tokens: input_tokens.saturating_add(output_tokens) })
            }
            Observed::ToolReturned { is_ok, .. } => Some(Observation::ToolReturned { ok: is_ok }),
        };
        // Messages of the owner are nothing that a reflection judges.
        if let Some(observation) = observation {
            self.reflections.observe(&conversation.agent, observation);
        }
    }

    fn section(&self, conversation: &ConversationKey) -> Option<PromptSection> {
        let (agent, peer) = (&conversation.agent, conversation.peer.as_ref());
        let mut text = peer.and_then(|peer| self.ledger.enrich(agent, peer).ok()).unwrap_or_default();
        // In a peer's turn only the part about that peer: the model may repeat it.
        let injected = self.reflections.inject(agent, peer, MAX_SECTION.saturating_sub(text.chars().count()));
        text.push_str(&injected.text);
        // A peer's turn delegates nothing and keeps no memory, and all of it is foreign.
        let sources = if peer.is_some() { Vec::new() } else { injected.sources.into_iter().collect() };
        (!text.is_empty()).then_some(PromptSection { text, sources })
    }
}

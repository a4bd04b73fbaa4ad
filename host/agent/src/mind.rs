//! Cognition, wired (SPEC COG-1): its ports over the runs, the models and the energy of this host.
//!
//! Nothing is decided here beyond that: which tools a turn has, and which message is the owner's, is cognition's.

mod hands;
mod minds;
mod notes;

use std::sync::Arc;

use base::{AgentName, Clock, Random, Refusal};
use cognition::{Cognition, CognitionParts};
use ledger::{ForgottenPeer, Ledger, PeerId};
use signals::SignalBus;

use crate::{Host, Runs};
use hands::RunHands;
use minds::RoleMinds;
use notes::PeerNotes;

/// Opens the conversations of a home.
///
/// # Errors
/// If the store fails.
pub(crate) async fn open(
    runs: &Arc<Runs>,
    signals: &SignalBus,
    ledger: &Ledger,
    clock: &Arc<dyn Clock>,
    random: &Arc<Random>,
) -> Result<Cognition, Refusal> {
    let opened = Cognition::open(CognitionParts {
        store: runs.store.clone(),
        clock: clock.clone(),
        random: random.clone(),
        signals: signals.clone(),
        hands: Arc::new(RunHands { runs: runs.clone() }),
        minds: Arc::new(RoleMinds { environment: runs.environment.clone(), energy: runs.energy.clone() }),
        observers: vec![Arc::new(PeerNotes::start(ledger.clone()))],
    });
    opened.await
}

impl Host {
    /// Forgets a peer: its conversations, then everything about it in the ledger.
    ///
    /// # Errors
    /// `not_found` if the ledger does not know it, or if the store fails: then the same command goes on.
    pub async fn forget_peer(&self, agent: &AgentName, peer: &PeerId) -> Result<ForgottenPeer, Refusal> {
        self.cognition.forget(agent, peer).await?;
        self.ledger.forget(agent, peer).await
    }
}

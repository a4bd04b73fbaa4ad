//! Cognition, wired (SPEC COG-1): its ports over the runs, the models and the energy of this host.
//!
//! Nothing is decided here beyond that: which tools a turn has, and which message is the owner's, is cognition's.

mod directory;
mod hands;
mod minds;
mod notes;

use std::sync::Arc;

use base::{Clock, Random, Refusal};
use cognition::{Channel, Cognition, CognitionParts};
use ledger::Ledger;
use signals::SignalBus;

use crate::Runs;
use crate::config::ChannelsConfig;
use crate::neuron::Neurons;
use crate::reflection::Reflections;
use directory::Directory;
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
    reflections: &Reflections,
    neurons: &Neurons,
    clock: &Arc<dyn Clock>,
    random: &Arc<Random>,
) -> Result<Cognition, Refusal> {
    let opened = Cognition::open(CognitionParts {
        store: runs.store.clone(),
        clock: clock.clone(),
        random: random.clone(),
        signals: signals.clone(),
        hands: Arc::new(RunHands { runs: runs.clone(), neurons: neurons.clone() }),
        minds: Arc::new(RoleMinds {
            environment: runs.environment.clone(),
            energy: runs.energy.clone(),
            reflections: reflections.clone(),
        }),
        observers: vec![Arc::new(PeerNotes::start(ledger.clone(), reflections.clone()))],
    });
    opened.await
}

/// The channels of the configuration.
///
/// # Errors
/// If one of them is not usable.
pub(crate) fn channels(config: &ChannelsConfig) -> Result<Vec<Arc<dyn Channel>>, Refusal> {
    let directory = config.directory.as_ref().map(Directory::open).transpose()?;
    Ok(directory.into_iter().map(|directory| Arc::new(directory) as Arc<dyn Channel>).collect())
}

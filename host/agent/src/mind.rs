//! Cognition, wired (SPEC COG-1): its ports over the runs, the models and the energy of this host.
//!
//! Nothing is decided here beyond that: which tools a turn has, and which message is the owner's, is cognition's.

mod directory;
mod hands;
mod minds;
mod observer;

use std::sync::Arc;

use base::{Clock, Random, Refusal};
use cognition::{Channel, Cognition, CognitionParts};
use signals::SignalBus;

use crate::config::ChannelsConfig;
use directory::Directory;
pub(crate) use hands::RunHands;
use minds::RoleMinds;
use observer::CortexObserver;

/// Opens the conversations of a home.
///
/// # Errors
/// If the store fails.
pub(crate) async fn open(
    hands: RunHands,
    signals: &SignalBus,
    clock: &Arc<dyn Clock>,
    random: &Arc<Random>,
) -> Result<Cognition, Refusal> {
    let RunHands { runs, ledger, reflections, .. } = &hands;
    let opened = Cognition::open(CognitionParts {
        store: runs.store.clone(),
        clock: clock.clone(),
        random: random.clone(),
        signals: signals.clone(),
        ledger: ledger.clone(),
        minds: Arc::new(RoleMinds {
            environment: runs.environment.clone(),
            energy: runs.energy.clone(),
            reflections: reflections.clone(),
        }),
        observers: vec![Arc::new(CortexObserver { ledger: ledger.clone(), reflections: reflections.clone() })],
        hands: Arc::new(hands),
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

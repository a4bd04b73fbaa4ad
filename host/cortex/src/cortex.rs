//! The cortex of one agent: observing, injecting, and everything else that takes no model.

use std::sync::Arc;
use std::time::Duration;

use base::{AgentName, Clock, Refusal};
use ledger::{Ledger, PeerId};
use parking_lot::{Mutex, RwLock};
use store::{Batch, Store, StoreError, Table};

use crate::activity::{Activity, ActivityBuffer, Observation};
use crate::belief::{Belief, names};
use crate::config::{CortexConfig, InvalidConfig};
use crate::injected::Injected;
use crate::notice;
use crate::record::{CycleOutcome, GuidanceRecord, ReflectionRecord};
use crate::state::{CortexState, record_key, records};
use crate::trigger::{Trigger, due};

/// The dependencies of a cortex.
#[derive(Debug, Clone)]
pub struct CortexParts {
    /// The state of the home.
    pub store: Store,
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// The peers of the same home.
    pub ledger: Ledger,
    /// The agent that is reflected on.
    pub agent: AgentName,
    /// The settings to begin with.
    pub config: CortexConfig,
}

/// The cortex of one agent. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Cortex {
    pub(crate) inner: Arc<CortexInner>,
}

#[derive(Debug)]
pub(crate) struct CortexInner {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub ledger: Ledger,
    pub agent: AgentName,
    pub(crate) config: Mutex<Arc<CortexConfig>>,
    pub activity: ActivityBuffer,
    /// The state as it is stored. Written by the holder of `reflecting` alone.
    pub state: RwLock<CortexState>,
    /// Held by a cycle.
    pub reflecting: Arc<tokio::sync::Mutex<()>>,
    /// Held by each [`ForgettingGuard`].
    pub forgetting: Arc<()>,
    /// The owner's `SOUL.md`, as it was last read.
    pub soul: Mutex<Option<String>>,
    /// The monotonic clock at the beginning of the last cycle, or when the cortex was opened.
    pub last_cycle: Mutex<Duration>,
}

/// While it is held, a peer is forgotten in the ledger and not yet in beliefs: a cycle that begins then is skipped, because it would read
/// beliefs about a peer that is gone.
#[must_use = "keep it until the peer is forgotten everywhere"]
#[derive(Debug)]
pub struct ForgettingGuard {
    _held: Arc<()>,
}

impl Cortex {
    /// Reads the beliefs of the agent. The last trust of each peer stays in the ledger, where a cycle finds it, also if the owner recorded it.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn open(parts: CortexParts) -> Result<Self, StoreError> {
        let CortexParts { store, clock, ledger, agent, config } = parts;
        let state = CortexState::read(&store, &agent)?;
        let activity = ActivityBuffer::default();
        // An earlier host may have ended before a cycle took them up.
        for peer in state.unreflected.clone() {
            activity.observe(Observation::Overdue { peer });
        }
        let state = RwLock::new(state);
        let last_cycle = Mutex::new(clock.monotonic());
        let config = Mutex::new(Arc::new(config));
        let inner = CortexInner {
            store,
            clock,
            ledger,
            agent,
            config,
            activity,
            state,
            reflecting: Arc::default(),
            forgetting: Arc::default(),
            soul: Mutex::default(),
            last_cycle,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The settings in force.
    #[must_use]
    pub fn config(&self) -> Arc<CortexConfig> {
        self.inner.config.lock().clone()
    }

    /// Replaces the settings; a cycle under way ends with those it began with.
    ///
    /// # Errors
    /// If a number is out of its range: the settings stay as they were.
    pub fn configure(&self, config: CortexConfig) -> Result<(), InvalidConfig> {
        config.validate()?;
        *self.inner.config.lock() = Arc::new(config);
        Ok(())
    }

    /// Notes something that the main loop did. It cannot fail, and changes nothing for the main loop.
    pub fn observe(&self, observation: Observation) {
        self.inner.activity.observe(observation);
    }

    /// Shows these peers to the next cycle, without starting one.
    pub fn show(&self, peers: impl IntoIterator<Item = PeerId>) {
        self.inner.activity.give_back(peers.into_iter().map(|peer| (peer, 1)));
    }

    /// The activity since the last cycle.
    #[must_use]
    pub fn activity(&self) -> Activity {
        self.inner.activity.activity()
    }

    /// Whether a cycle is under way.
    #[must_use]
    pub fn is_reflecting(&self) -> bool {
        // Its guard has the lock for as long as it lasts; trying the lock would get in the way of a cycle that begins.
        Arc::strong_count(&self.inner.reflecting) > 1
    }

    /// The triggers that apply now. Empty while the cortex is off.
    #[must_use]
    pub fn due(&self) -> Vec<Trigger> {
        let inner = &self.inner;
        let since_last = inner.clock.monotonic().saturating_sub(*inner.last_cycle.lock());
        due(inner.activity.activity(), since_last, &self.config())
    }

    /// The block of a system prompt with the active beliefs (SPEC CX-7), all of them or those about a peer, within `room` characters;
    /// empty if there are none.
    #[must_use]
    pub fn inject(&self, of: Option<&PeerId>, room: usize) -> Injected {
        let config = self.config();
        let now = self.inner.clock.now();
        self.inner.state.read().beliefs.block((now, config.belief_ttl()), of, (config.max_beliefs, room))
    }

    /// The active beliefs, the latest confirmed last.
    #[must_use]
    pub fn beliefs(&self) -> Vec<Belief> {
        let (now, ttl) = (self.inner.clock.now(), self.config().belief_ttl());
        self.inner.state.read().beliefs.active(now, ttl).cloned().collect()
    }

    /// The records of the latest cycles, the newest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn history(&self, limit: usize) -> Result<Vec<ReflectionRecord>, StoreError> {
        records(&self.inner.store, &self.inner.agent, limit)
    }

    /// Announces that a peer is about to be forgotten: before the ledger forgets it, and until [`Cortex::forget`] is done.
    pub fn begin_forgetting(&self) -> ForgettingGuard {
        ForgettingGuard { _held: Arc::clone(&self.inner.forgetting) }
    }

    /// Removes everything about a peer from beliefs, history and activity, after a cycle under way. For a peer that the ledger
    /// forgot. Returns the number of beliefs, commitments and directives that were removed; `noting` gets it, and adds to the batch.
    ///
    /// # Errors
    /// If `noting` or the store fails: nothing is removed then.
    pub async fn forget(
        &self,
        peer: &PeerId,
        noting: impl FnOnce(&mut Batch, u64) -> Result<(), StoreError>,
    ) -> Result<u64, Refusal> {
        let inner = &*self.inner;
        let _turn = inner.reflecting.lock().await;
        inner.activity.forget(peer);
        let mut state = inner.state.read().clone();
        let removed = [state.beliefs.forget(peer), state.commitments.forget(peer), state.directives.forget(peer)];
        state.unreflected.retain(|known| known != peer);
        state.drift = state.drift.filter(|drift| !names(&drift.finding, peer));
        state.summary = state.summary.filter(|summary| !names(summary, peer));
        let mut batch = Batch::new();
        state.stage(&mut batch, &inner.agent)?;
        for mut record in records(&inner.store, &inner.agent, usize::MAX)? {
            if forget_in(&mut record, peer) {
                batch.put(Table::Reflections, record_key(&inner.agent, record.cycle), &record)?;
            }
        }
        for signal in notice::latest(&inner.store, &inner.agent, usize::MAX)? {
            if signal.event.concerns(peer) {
                batch.delete(Table::Reflections, notice::key(&inner.agent, signal.id));
            }
        }
        let removed = u64::try_from(removed.into_iter().sum::<usize>()).unwrap_or(u64::MAX);
        noting(&mut batch, removed)?;
        inner.store.commit(batch).await?;
        *inner.state.write() = state;
        Ok(removed)
    }
}

/// Removes a peer from a record; returns whether it was there.
fn forget_in(record: &mut ReflectionRecord, peer: &PeerId) -> bool {
    let before = record.clone();
    match &mut record.outcome {
        CycleOutcome::Skipped { reason, .. } => {
            if names(reason, peer) {
                "skipped".clone_into(reason);
            }
        }
        CycleOutcome::Applied {
            assessed,
            beliefs_added,
            beliefs_reaffirmed,
            beliefs_revised,
            beliefs_expired,
            refused,
            summary,
            guidance: GuidanceRecord { commitments_made, commitments_closed, directives, drift },
        } => {
            assessed.retain(|assessed| assessed.peer != *peer);
            let beliefs = [beliefs_added, beliefs_reaffirmed, beliefs_revised, beliefs_expired, refused];
            for texts in beliefs.into_iter().chain([commitments_made, commitments_closed, directives]) {
                texts.retain(|text| !names(text, peer));
            }
            *drift = drift.take().filter(|finding| !names(finding, peer));
            if names(summary, peer) {
                summary.clear();
            }
        }
    }
    *record != before
}

//! The neurons of a home: their records, and the one writer of them.
//!
//! Keys of `Table::Meta`:
//!
//! | key | value |
//! | --- | --- |
//! | `neurons/head/AGENT/NAME` | the neuron, a fold of its events with the counts of its ticks |
//! | `neurons/event/AGENT/NAME/NUMBER` | one event |
//! | `neurons/component/AGENT/NAME` | the bytes of its component as base64, if its program is one |
//! | `neurons/signal/NUMBER` | an emitted signal |
//! | `neurons/cursor` | the last signal that was processed, and the numbers of emitted ones |
//! | `neurons/off` | the owner's switch for all of them |
//!
//! A caller that may be dropped calls in a task of its own: dropped in the middle of a commit, it would leave an old state in memory.

mod process;
mod staged;

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{AgentName, Clock, ConsentRecord, ContentHash, Refusal, RefusalCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use signals::SignalBus;
use store::{Batch, Scan, Store, StoreError, Table};
use tokio::sync::Mutex;

use crate::change::{IllegalChange, NeuronChange, NeuronEvent, NeuronStatus};
use crate::config::NeuronsConfig;
use crate::draft::{NeuronComponentRef, NeuronDraft, NeuronProgram};
use crate::names::NeuronName;
use crate::neuron::Neuron;
use crate::quarantine::examine;
use crate::tick::{NeuronHost, NeuronSignal};
use process::Stops;
use staged::Staged;

const HEADS: &str = "neurons/head/";
const EVENTS: &str = "neurons/event/";
const COMPONENTS: &str = "neurons/component/";
const SIGNALS: &str = "neurons/signal/";
const CURSOR: &str = "neurons/cursor";
const OFF: &str = "neurons/off";
/// Neurons of a home in all states together.
const MAX_NEURONS: usize = 100;
/// Signals that are read at a time where a filter skips some.
const PAGE: usize = 100;

/// An agent and the name of its neuron.
type Key = (AgentName, NeuronName);

/// The neurons of a home. Cheap to clone.
#[derive(Clone)]
pub struct NeuronBook(Arc<BookInner>);

struct BookInner {
    store: Store,
    clock: Arc<dyn Clock>,
    signals: SignalBus,
    config: NeuronsConfig,
    /// Held for a whole change: there is one writer.
    state: Mutex<State>,
    stops: Stops,
}

/// The durable state in memory.
struct State {
    heads: BTreeMap<Key, Neuron>,
    cursor: Cursor,
    /// The last processed signal that is durable.
    stored: u64,
    is_off: bool,
}

/// Positions in the signals that are read, and in those that are emitted.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Cursor {
    /// The last processed signal.
    after: u64,
    /// The number of the next emitted signal.
    next: u64,
    /// The number of the oldest emitted signal that is kept.
    oldest: u64,
}

/// The switches of neurons, and their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NeuronSwitches {
    /// Whether the configuration has them on.
    pub enabled: bool,
    /// Whether the owner has switched all of them off.
    pub switched_off: bool,
    /// Neurons on trial or active.
    pub running: u64,
    /// The most that may run at a time.
    pub places: u64,
}

impl NeuronBook {
    /// Opens the neurons of a home. `config` should have passed [`NeuronsConfig::validate`].
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn open(
        store: Store,
        clock: Arc<dyn Clock>,
        signals: SignalBus,
        config: NeuronsConfig,
    ) -> Result<Self, StoreError> {
        let heads = store.scan::<Neuron>(Table::Meta, &Scan::prefix(HEADS))?;
        let heads = heads.into_iter().map(|(_, neuron)| (key_of(&neuron), neuron)).collect();
        let cursor = store.get::<Cursor>(Table::Meta, CURSOR)?;
        let cursor = cursor.unwrap_or(Cursor { after: signals.latest(), next: 1, oldest: 1 });
        let is_off = store.get::<serde::de::IgnoredAny>(Table::Meta, OFF)?.is_some();
        let state = Mutex::new(State { heads, cursor, stored: cursor.after, is_off });
        Ok(Self(Arc::new(BookInner { store, clock, signals, config, state, stops: Stops::default() })))
    }

    /// Proposes a neuron. Nothing of it is executed before its quarantine. The same proposal again changes nothing. `component` are
    /// the bytes of a program that is one.
    ///
    /// # Errors
    /// `invalid_request` if the draft is wrong or the bytes are not those of its component, `illegal_state` if there are too few successes,
    /// neurons are off, or the name is taken; `forbidden` if the owner has refused or stopped this version.
    pub async fn propose(&self, draft: NeuronDraft, component: Option<&[u8]>) -> Result<Neuron, Refusal> {
        let config = &self.0.config;
        let illegal = |reason: String| Refusal::new(RefusalCode::IllegalState, reason);
        if !config.enabled {
            return Err(illegal("neurons are off: `neurons.enabled` is false".to_owned()));
        }
        draft.check()?;
        let expected = match &draft.program {
            NeuronProgram::Source(_) => None,
            NeuronProgram::Component(expected) => Some(*expected),
        };
        if component.map(NeuronComponentRef::of) != expected {
            let reason = "these are not the bytes of the component of the neuron";
            return Err(Refusal::new(RefusalCode::InvalidRequest, reason));
        }
        if !draft.origin.is_file() && draft.origin.successes < config.min_successes {
            let reason = format!(
                "this code has succeeded in {} runs or turns, not yet in {}",
                draft.origin.successes, config.min_successes
            );
            return Err(illegal(reason));
        }
        let mut state = self.0.state.lock().await;
        let key = (draft.agent.clone(), draft.name.clone());
        match state.heads.get(&key) {
            // Its quarantine has refused exactly this.
            Some(known) if known.fault.is_some() && known.status == NeuronStatus::Rejected && known.draft == draft => {
                return Ok(known.clone());
            }
            Some(known) if known.hash == draft.hash() => match known.status {
                // Its scenarios may have been wrong.
                NeuronStatus::Rejected if known.fault.is_some() => {}
                NeuronStatus::Rejected | NeuronStatus::Disabled => {
                    let reason = format!("exactly this version of `{}` was {} before", draft.name, known.status);
                    return Err(Refusal::new(RefusalCode::Forbidden, reason)
                        .with_remedy(format!("`motor neuron show {}` tells why", draft.name)));
                }
                _ => return Ok(known.clone()),
            },
            Some(known) if !matches!(known.status, NeuronStatus::Rejected | NeuronStatus::Disabled) => {
                return Err(illegal(format!("there is another neuron `{}`, which is {}", draft.name, known.status))
                    .with_remedy("choose another name, or ask the owner to switch it off"));
            }
            None if state.heads.len() >= MAX_NEURONS => {
                return Err(illegal(format!("there are {MAX_NEURONS} neurons"))
                    .with_remedy("the owner forgets some with `motor neuron forget`"));
            }
            _ => {}
        }
        let mut staged = Staged::new(self.0.clock.now());
        match component {
            Some(bytes) => staged.batch.put(Table::Meta, component_key(&key), &STANDARD.encode(bytes))?,
            None => staged.batch.delete(Table::Meta, component_key(&key)),
        }
        staged.change(&state, &key, NeuronChange::Proposed { draft: Box::new(draft) })?;
        staged.commit(&self.0, &mut state).await?;
        find(&state, &key).cloned()
    }

    /// Puts a proposed neuron through its quarantine, and returns it. One that is no longer proposed is returned as it is.
    ///
    /// # Errors
    /// `not_found` if there is no such neuron; or if the host or the store fails: then it stays proposed.
    pub async fn quarantine(
        &self,
        agent: &AgentName,
        name: &NeuronName,
        host: &dyn NeuronHost,
    ) -> Result<Neuron, Refusal> {
        let key = (agent.clone(), name.clone());
        let before = find(&*self.0.state.lock().await, &key)?.clone();
        if before.status != NeuronStatus::Proposed {
            return Ok(before);
        }
        let component = self.component(&before.draft)?;
        let change = examine(&before.draft, component, host, &self.0.config).await?;
        let mut state = self.0.state.lock().await;
        // The owner may have rejected it since, and another version may have been proposed.
        if find(&state, &key)?.events == before.events {
            let mut staged = Staged::new(self.0.clock.now());
            staged.change(&state, &key, change)?;
            staged.commit(&self.0, &mut state).await?;
        }
        find(&state, &key).cloned()
    }

    /// The owner approves the shown version. Its trial begins at once if a place is free.
    ///
    /// # Errors
    /// `not_found` if there is no such neuron, `illegal_state` if it is not quarantined or not the shown version; or if the store fails.
    pub async fn approve(
        &self,
        agent: &AgentName,
        name: &NeuronName,
        hash: ContentHash,
        consent: ConsentRecord,
    ) -> Result<Neuron, Refusal> {
        let change = NeuronChange::Approved { hash, consent };
        self.decide(agent, name, change).await
    }

    /// The owner rejects a neuron that is not approved.
    ///
    /// # Errors
    /// `not_found` if there is no such neuron, `illegal_state` if it was decided before; or if the store fails.
    pub async fn reject(
        &self,
        agent: &AgentName,
        name: &NeuronName,
        consent: ConsentRecord,
    ) -> Result<Neuron, Refusal> {
        self.decide(agent, name, NeuronChange::Rejected { consent }).await
    }

    /// The owner switches one neuron off, or lets a disabled one be tried again.
    ///
    /// # Errors
    /// `not_found` if there is no such neuron, `illegal_state` if it is so already; or if the store fails.
    pub async fn switch(
        &self,
        agent: &AgentName,
        name: &NeuronName,
        on: bool,
        consent: ConsentRecord,
    ) -> Result<Neuron, Refusal> {
        let change = if on { NeuronChange::SwitchedOn { consent } } else { NeuronChange::SwitchedOff { consent } };
        self.decide(agent, name, change).await
    }

    async fn decide(&self, agent: &AgentName, name: &NeuronName, change: NeuronChange) -> Result<Neuron, Refusal> {
        let stop = matches!(change, NeuronChange::SwitchedOff { .. }).then(|| self.0.stops.ask());
        let mut state = self.0.state.lock().await;
        drop(stop);
        let key = (agent.clone(), name.clone());
        let neuron = find(&state, &key)?;
        if let NeuronChange::Approved { hash, .. } = &change
            && neuron.hash != *hash
        {
            let reason = format!("the neuron `{name}` is not the version that was shown");
            return Err(Refusal::new(RefusalCode::IllegalState, reason)
                .with_remedy(format!("`motor neuron approve {name}` shows it and asks")));
        }
        let mut staged = Staged::new(self.0.clock.now());
        staged.change(&state, &key, change)?;
        staged.begin_trials(&self.0, &state)?;
        staged.commit(&self.0, &mut state).await?;
        find(&state, &key).cloned()
    }

    /// The owner's switch for all neurons. Signals of the time in between are not processed later. Off, it waits for the tick under way,
    /// after which none begins.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn switch_all(&self, on: bool, consent: ConsentRecord) -> Result<NeuronSwitches, Refusal> {
        let stop = (!on).then(|| self.0.stops.ask());
        let mut state = self.0.state.lock().await;
        drop(stop);
        let mut staged = Staged::new(self.0.clock.now());
        let cursor = Cursor { after: self.0.signals.latest().max(state.cursor.after), ..state.cursor };
        let was_off = state.is_off;
        if on {
            staged.batch.delete(Table::Meta, OFF);
            if was_off {
                staged.move_to(cursor)?;
            }
            state.is_off = false;
            staged.begin_trials(&self.0, &state).inspect_err(|_| state.is_off = was_off)?;
        } else {
            staged.batch.put(Table::Meta, OFF, &consent)?;
        }
        // Off in memory even if it could not be stored: the switch fails towards off.
        state.is_off = was_off || !on;
        staged.commit(&self.0, &mut state).await?;
        state.is_off = !on;
        drop(state);
        Ok(self.switches().await)
    }

    /// Deletes a neuron with its events and signals.
    ///
    /// # Errors
    /// `not_found` if there is no such neuron; or if the store fails.
    pub async fn forget(&self, agent: &AgentName, name: &NeuronName) -> Result<(), Refusal> {
        let mut state = self.0.state.lock().await;
        let key = (agent.clone(), name.clone());
        let events = find(&state, &key)?.events;
        let mut batch = Batch::new();
        batch.delete(Table::Meta, head_key(&key));
        batch.delete(Table::Meta, component_key(&key));
        for number in 0..events {
            batch.delete(Table::Meta, event_key(&key, number));
        }
        for (stored, signal) in self.0.store.scan::<NeuronSignal>(Table::Meta, &Scan::prefix(SIGNALS))? {
            if (signal.agent, signal.neuron) == key {
                batch.delete(Table::Meta, stored);
            }
        }
        self.0.store.commit(batch).await?;
        state.heads.remove(&key);
        // Its place is free: durable or not, the next start does the same.
        let mut staged = Staged::new(self.0.clock.now());
        staged.begin_trials(&self.0, &state)?;
        staged.commit(&self.0, &mut state).await
    }

    /// The bytes that are stored beside a neuron, if its program is a component. They are not checked.
    fn component(&self, draft: &NeuronDraft) -> Result<Option<Arc<[u8]>>, StoreError> {
        if matches!(draft.program, NeuronProgram::Source(_)) {
            return Ok(None);
        }
        let key = (draft.agent.clone(), draft.name.clone());
        let text = self.0.store.get::<String>(Table::Meta, component_key(&key))?;
        Ok(text.and_then(|text| STANDARD.decode(text).ok()).map(Arc::from))
    }

    /// The neurons of an agent, by name.
    pub async fn list(&self, agent: &AgentName) -> Vec<Neuron> {
        let state = self.0.state.lock().await;
        state.heads.values().filter(|neuron| neuron.draft.agent == *agent).cloned().collect()
    }

    /// One neuron with its events, oldest first.
    ///
    /// # Errors
    /// `not_found` if there is no such neuron; or if the store cannot be read.
    pub async fn show(&self, agent: &AgentName, name: &NeuronName) -> Result<(Neuron, Vec<NeuronEvent>), Refusal> {
        let key = (agent.clone(), name.clone());
        let neuron = find(&*self.0.state.lock().await, &key)?.clone();
        let events = self.0.store.scan::<NeuronEvent>(Table::Meta, &Scan::prefix(events_prefix(&key)))?;
        Ok((neuron, events.into_iter().map(|(_, event)| event).collect()))
    }

    /// The switches of all neurons.
    pub async fn switches(&self) -> NeuronSwitches {
        let state = self.0.state.lock().await;
        let running = state.heads.values().filter(|neuron| neuron.status.ticks()).count();
        NeuronSwitches {
            enabled: self.0.config.enabled,
            switched_off: state.is_off,
            running: u64::try_from(running).unwrap_or(u64::MAX),
            places: self.0.config.max_running,
        }
    }

    /// The latest signals of an agent's neurons, or of one of them, the newest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn signals(
        &self,
        agent: &AgentName,
        name: Option<&NeuronName>,
        limit: usize,
    ) -> Result<Vec<NeuronSignal>, StoreError> {
        let mut found = Vec::new();
        let mut scan = Scan::prefix(SIGNALS).newest_first().limit(PAGE);
        while found.len() < limit {
            let page = self.0.store.scan::<NeuronSignal>(Table::Meta, &scan)?;
            let Some((last, _)) = page.last() else { break };
            scan = Scan::prefix(SIGNALS).newest_first().limit(PAGE).after(last.clone());
            let fits = |signal: &NeuronSignal| signal.agent == *agent && name.is_none_or(|name| signal.neuron == *name);
            found.extend(page.into_iter().map(|(_, signal)| signal).filter(fits));
        }
        found.truncate(limit);
        Ok(found)
    }
}

fn find<'a>(state: &'a State, key: &Key) -> Result<&'a Neuron, Refusal> {
    state.heads.get(key).ok_or_else(|| {
        let reason = format!("the agent `{}` has no neuron `{}`", key.0, key.1);
        Refusal::new(RefusalCode::NotFound, reason).with_remedy("`motor neuron list` shows them")
    })
}

fn illegal(name: &NeuronName, error: &IllegalChange) -> Refusal {
    Refusal::new(RefusalCode::IllegalState, format!("`{name}`: {error}"))
        .with_remedy(format!("`motor neuron show {name}` tells its state"))
}

fn key_of(neuron: &Neuron) -> Key {
    (neuron.draft.agent.clone(), neuron.draft.name.clone())
}

// Names of agents and neurons have no `/`.
fn head_key((agent, name): &Key) -> String {
    format!("{HEADS}{agent}/{name}")
}

fn component_key((agent, name): &Key) -> String {
    format!("{COMPONENTS}{agent}/{name}")
}

fn events_prefix((agent, name): &Key) -> String {
    format!("{EVENTS}{agent}/{name}/")
}

fn event_key(key: &Key, number: u64) -> String {
    format!("{}{number:010}", events_prefix(key))
}

fn signal_key(number: u64) -> String {
    format!("{SIGNALS}{number:020}")
}

//! Signals into ticks. The position behind a signal, the counts, the emitted signals, the ticks of neurons that read those, the energy
//! and the changes of state that follow from it are one batch: a signal is processed once.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::Refusal;
use signals::Signal;
use store::Table;

use super::{Cursor, Key, NeuronBook, PAGE, Staged, State, key_of, signal_key};
use crate::change::{NeuronChange, NeuronStatus};
use crate::names::{InputKind, NeuronName};
use crate::neuron::Neuron;
use crate::program::{EmittedSignal, NeuronInput};
use crate::tick::{NeuronHost, NeuronSignal, Tick, run};

/// Signals without a tick after which the position is stored: so many are looked at again after a restart.
const MAX_UNSTORED: u64 = 1_000;
/// Ticks that the signal of one run leads to.
const MAX_TICKS: usize = 32;
/// Sources of an emitted signal that are named.
const MAX_SOURCES: usize = 64;
/// Stands for all others.
const MANY: &str = "many other sources";

/// The owner's switches that wait for a reaction under way: while there is one, no tick begins.
#[derive(Debug, Default)]
pub(super) struct Stops(AtomicUsize);

/// One of them, until it is dropped.
pub(super) struct Stop<'a>(&'a AtomicUsize);

impl Stops {
    pub fn ask(&self) -> Stop<'_> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Stop(&self.0)
    }

    fn is_asked(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl NeuronBook {
    /// Takes up the work of an earlier host: quarantines, and trials that can begin or are over.
    ///
    /// # Errors
    /// If the host or the store fails.
    pub async fn resume(&self, host: &dyn NeuronHost) -> Result<(), Refusal> {
        if !self.0.config.enabled {
            return Ok(());
        }
        let proposed: Vec<Key> = {
            let state = self.0.state.lock().await;
            let proposed = state.heads.values().filter(|neuron| neuron.status == NeuronStatus::Proposed);
            proposed.map(key_of).collect()
        };
        for (agent, name) in proposed {
            self.quarantine(&agent, &name, host).await?;
        }
        let mut state = self.0.state.lock().await;
        let mut staged = Staged::new(self.0.clock.now());
        let passed = state.heads.values().filter(|neuron| neuron.has_passed(staged.now, &self.0.config));
        for key in passed.map(key_of).collect::<Vec<_>>() {
            staged.change(&state, &key, NeuronChange::Promoted)?;
        }
        staged.begin_trials(&self.0, &state)?;
        staged.commit(&self.0, &mut state).await
    }

    /// Processes the signals that came since, at most 100, and fewer if the owner switches neurons off meanwhile; returns how many. 0: there
    /// are no others at the moment.
    ///
    /// # Errors
    /// If the host or the store fails: the same signal is processed by the next call.
    pub async fn process(&self, host: &dyn NeuronHost) -> Result<usize, Refusal> {
        let mut state = self.0.state.lock().await;
        let page = self.0.signals.since(state.cursor.after, PAGE)?;
        let mut taken = 0;
        for signal in &page {
            self.take(&mut state, signal, host).await?;
            taken += 1;
            if self.0.stops.is_asked() {
                break;
            }
        }
        Ok(taken)
    }

    async fn take(&self, state: &mut State, signal: &Signal, host: &dyn NeuronHost) -> Result<(), Refusal> {
        let mut staged = Staged::new(self.0.clock.now());
        let cursor = Cursor { after: signal.id, ..state.cursor };
        let input = NeuronInput::of(signal).filter(|_| !state.is_off && self.0.config.enabled);
        let heard = input.map(|input| HeardSignal {
            input,
            sources: signal.body.sources.clone(),
            reacts_to: None,
            chain: Vec::new(),
        });
        let heard = heard.filter(|heard| !hearing(state, &staged, signal, heard).is_empty());
        let Some(heard) = heard.filter(|_| host.check_energy(&signal.agent, 0).is_ok()) else {
            state.cursor = cursor;
            if cursor.after.saturating_sub(state.stored) >= MAX_UNSTORED {
                staged.move_to(cursor)?;
                staged.commit(&self.0, state).await?;
            }
            return Ok(());
        };
        let mut reaction = Reaction { host, signal, cursor, spent: 0, ticks: 0, queue: VecDeque::from([heard]) };
        while let Some(heard) = reaction.queue.pop_front() {
            for key in hearing(state, &staged, signal, &heard) {
                if let Some(reason) = self.end_of(&reaction, staged.get(state, &key)) {
                    tracing::warn!(neuron = %key.1, reason, "a chain of neurons ends early");
                    reaction.queue.clear();
                    break;
                }
                self.tick(state, &mut staged, &mut reaction, &heard, &key).await?;
            }
        }
        staged.move_to(reaction.cursor)?;
        staged.begin_trials(&self.0, state)?;
        host.drain(&mut staged.batch, &signal.agent, reaction.spent).await?;
        staged.commit(&self.0, state).await
    }

    /// Why no tick follows, that of this neuron included.
    fn end_of(&self, reaction: &Reaction<'_>, next: Option<&Neuron>) -> Option<&'static str> {
        if self.0.stops.is_asked() {
            return Some("the owner switches neurons off");
        }
        if reaction.ticks >= MAX_TICKS {
            return Some("it is too long");
        }
        // The ticks before it are not drained yet.
        let needed = reaction.spent.saturating_add(next.map_or(0, |neuron| neuron.draft.energy_micros));
        let refused = reaction.host.check_energy(&reaction.signal.agent, needed).is_err();
        refused.then_some("the agent has not the energy for it")
    }

    /// Gives a signal to one neuron.
    async fn tick(
        &self,
        state: &State,
        staged: &mut Staged,
        reaction: &mut Reaction<'_>,
        heard: &HeardSignal,
        key: &Key,
    ) -> Result<(), Refusal> {
        let Some(mut neuron) = staged.get(state, key).cloned() else { return Ok(()) };
        // The same signal after a crash gives the same result: seed and clock are the signal's.
        let tick = Tick { signal: &heard.input, seed: reaction.signal.id, now: reaction.signal.created_at };
        let component = self.component(&neuron.draft)?;
        let (ended, energy) = run(reaction.host, &neuron.draft, component, tick).await?;
        reaction.ticks += 1;
        reaction.spent = reaction.spent.saturating_add(energy);
        neuron.meter.energy_micros = neuron.meter.energy_micros.saturating_add(energy);
        let number = ended.as_ref().map(|signals| u64::try_from(signals.len()).unwrap_or(u64::MAX));
        let counted = neuron.meter.count(staged.now, &number.map_err(Clone::clone), &self.0.config);
        let has_passed = neuron.has_passed(staged.now, &self.0.config);
        if counted.is_ok() {
            let emitted = ended.unwrap_or_else(|fault| {
                tracing::debug!(neuron = %key.1, code = fault.code.as_str(), "a tick failed");
                Vec::new()
            });
            self.emit(staged, reaction, heard, &neuron, emitted)?;
        }
        staged.count(neuron);
        match counted {
            Err(fault) => {
                tracing::warn!(neuron = %key.1, code = fault.code.as_str(), "a neuron is disabled");
                staged.change(state, key, NeuronChange::Disabled { fault })
            }
            Ok(()) if has_passed => staged.change(state, key, NeuronChange::Promoted),
            Ok(()) => Ok(()),
        }
    }

    /// Adds the signals of a tick, which other neurons may read, and deletes the oldest ones beyond the bound.
    fn emit(
        &self,
        staged: &mut Staged,
        reaction: &mut Reaction<'_>,
        heard: &HeardSignal,
        neuron: &Neuron,
        emitted: Vec<EmittedSignal>,
    ) -> Result<(), Refusal> {
        let source = format!("neuron:{}", neuron.draft.name);
        let mut sources = vec![source.clone()];
        for other in neuron.draft.origin.sources.iter().chain(&heard.sources) {
            if sources.len() >= MAX_SOURCES {
                sources.push(MANY.to_owned());
                break;
            }
            if !sources.contains(other) {
                sources.push(other.clone());
            }
        }
        let Reaction { signal, cursor, queue, .. } = reaction;
        let chain: Vec<NeuronName> = heard.chain.iter().chain([&neuron.draft.name]).cloned().collect();
        for EmittedSignal { kind, data } in emitted {
            let id = cursor.next;
            let record = NeuronSignal {
                id,
                agent: neuron.draft.agent.clone(),
                neuron: neuron.draft.name.clone(),
                version: neuron.hash,
                source: source.clone(),
                kind: kind.clone(),
                data: data.clone(),
                at: staged.now,
                cause: signal.id,
                reacts_to: heard.reacts_to,
                sources: sources.clone(),
            };
            staged.batch.put(Table::Meta, signal_key(id), &record)?;
            let input = NeuronInput { kind: InputKind::Emitted(kind), data };
            queue.push_back(HeardSignal { input, sources: sources.clone(), reacts_to: Some(id), chain: chain.clone() });
            cursor.next = id.saturating_add(1);
            while cursor.next.saturating_sub(cursor.oldest) > self.0.config.kept_signals {
                staged.batch.delete(Table::Meta, signal_key(cursor.oldest));
                cursor.oldest = cursor.oldest.saturating_add(1);
            }
        }
        Ok(())
    }
}

/// A signal that neurons read: the end of a run, or one that a neuron emitted for it.
struct HeardSignal {
    input: NeuronInput,
    /// The untrusted sources of the signal.
    sources: Vec<String>,
    /// The number of a neuron's signal.
    reacts_to: Option<u64>,
    /// The neurons that it went through: none of them reads it, so that no chain is a circle.
    chain: Vec<NeuronName>,
}

/// The ticks that follow from the signal of a run, in one batch.
struct Reaction<'a> {
    host: &'a dyn NeuronHost,
    signal: &'a Signal,
    cursor: Cursor,
    /// Energy in millionths of a full level.
    spent: u64,
    ticks: usize,
    queue: VecDeque<HeardSignal>,
}

fn hearing(state: &State, staged: &Staged, signal: &Signal, heard: &HeardSignal) -> Vec<Key> {
    let hears = |key: &&Key| {
        let neuron = staged.get(state, key);
        !heard.chain.contains(&key.1)
            && neuron.is_some_and(|neuron| neuron.hears(&signal.agent, &heard.input.kind, signal.id))
    };
    state.heads.keys().filter(hears).cloned().collect()
}

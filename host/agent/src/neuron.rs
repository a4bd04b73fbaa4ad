//! The neurons of a home (SPEC NEU-1), wired: the isolated engine for code, components of neurons, the energy of agents, the signals
//! of runs.
//!
//! A host that stays processes signals in one task of its own. Only the owner's [`Consent`] approves a neuron or lets it be tried
//! again; a model or the owner proposes, and nothing of a proposal is executed outside of its quarantine.

mod consolidate;
mod engine;
mod propose;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use base::{AgentName, Clock, ConsentRecord, Refusal};
use consent::Consent;
use energy::EnergyBook;
use motor::Motor;
use neurons::{Neuron, NeuronBook, NeuronName, NeuronSignal, NeuronSwitches, NeuronsConfig};
use signals::SignalBus;
use store::{Store, blocking, broke_off};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use toolbox::SandboxPool;

use crate::api::neurons::{ApproveNeuron, NeuronDetail, NeuronList};
pub(crate) use consolidate::{code_hash, consolidate};
use engine::EngineHost;
pub(crate) use engine::{signal_text, tick_limits};
pub(crate) use propose::ENERGY_MICROS;

/// Pause after a failure of the host or its storage.
const PAUSE: Duration = Duration::from_secs(5);
/// Emitted signals in one answer.
const MAX_LISTED: usize = 1_000;

/// The dependencies of neurons.
pub(crate) struct NeuronParts {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub signals: SignalBus,
    pub config: NeuronsConfig,
    pub sandboxes: Arc<SandboxPool>,
    pub energy: Arc<EnergyBook>,
    pub motor: Motor,
    /// Whether this host lives long enough to process signals.
    pub stays: bool,
}

/// The neurons of a home. Cheap to clone.
#[derive(Clone)]
pub struct Neurons(Arc<NeuronsInner>);

struct NeuronsInner {
    book: NeuronBook,
    host: EngineHost,
    signals: SignalBus,
    motor: Motor,
    closing: CancellationToken,
    tasks: TaskTracker,
    stays: bool,
}

impl Neurons {
    /// Opens the neurons of a home. Nothing ticks before [`Neurons::begin`].
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) fn open(parts: NeuronParts) -> Result<Self, Refusal> {
        let NeuronParts { store, clock, signals, config, sandboxes, energy, motor, stays } = parts;
        let book = NeuronBook::open(store, clock, signals.clone(), config)?;
        let (closing, tasks) = (CancellationToken::new(), TaskTracker::new());
        let host = EngineHost::new(sandboxes, energy, closing.clone());
        Ok(Self(Arc::new(NeuronsInner { book, host, signals, motor, closing, tasks, stays })))
    }

    /// Begins to process signals. For a host that resumes its runs; only the first call counts.
    pub(crate) fn begin(&self) {
        // A closed tracker has its task, or the host is shutting down.
        if !self.0.stays || !self.0.tasks.close() {
            return;
        }
        let neurons = self.clone();
        self.0.tasks.spawn(async move {
            while let Err(refusal) = neurons.follow().await {
                if neurons.0.closing.is_cancelled() {
                    return;
                }
                tracing::error!(%refusal, "the signals of runs do not reach the neurons; trying again");
                let closing = &neurons.0.closing;
                if closing.run_until_cancelled(tokio::time::sleep(PAUSE)).await.is_none() {
                    return;
                }
            }
        });
    }

    /// Processes signals until the host ends. It is not cancelled in the middle of a commit.
    async fn follow(&self) -> Result<(), Refusal> {
        let NeuronsInner { book, host, signals, closing, .. } = &*self.0;
        let mut newest = signals.subscribe();
        book.resume(host).await?;
        while !closing.is_cancelled() {
            newest.borrow_and_update();
            if book.process(host).await? > 0 {
                continue;
            }
            match closing.run_until_cancelled(newest.changed()).await {
                Some(Ok(())) => {}
                Some(Err(_)) | None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Ends the ticks when it is dropped.
    pub(crate) fn end_on_drop(&self) -> DropGuard {
        self.0.closing.clone().drop_guard()
    }

    /// Ends at a durable point.
    pub(crate) async fn stop(&self) {
        self.0.closing.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// The neurons of an agent, with the switches of the home.
    pub async fn list(&self, agent: &AgentName) -> NeuronList {
        NeuronList { switches: self.0.book.switches().await, neurons: self.0.book.list(agent).await }
    }

    /// One neuron with its program and its events.
    ///
    /// # Errors
    /// `not_found` if there is no such neuron; or if the store cannot be read.
    pub async fn show(&self, agent: &AgentName, name: &NeuronName) -> Result<NeuronDetail, Refusal> {
        let (neuron, events) = self.0.book.show(agent, name).await?;
        Ok(NeuronDetail { neuron, events })
    }

    /// The latest signals of an agent's neurons, or of one of them, the newest first; at most 1,000.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn signals(
        &self,
        agent: &AgentName,
        name: Option<NeuronName>,
        limit: usize,
    ) -> Result<Vec<NeuronSignal>, Refusal> {
        let (book, agent) = (self.0.book.clone(), agent.clone());
        blocking(move || Ok(book.signals(&agent, name.as_ref(), limit.min(MAX_LISTED))?)).await
    }

    /// Approves exactly the version of the request's hash. Its trial begins at once if a place is free.
    ///
    /// # Errors
    /// `not_found` if there is no such neuron, `illegal_state` if it does not wait for approval or is another version; or if the store
    /// fails.
    pub async fn approve(&self, request: ApproveNeuron, consent: Consent) -> Result<Neuron, Refusal> {
        let ApproveNeuron { agent, name, hash } = request;
        let consent = ConsentRecord::from(consent);
        self.whole(|book| async move { book.approve(&agent, &name, hash, consent).await }).await
    }

    /// Rejects a neuron that is not approved.
    ///
    /// # Errors
    /// `not_found` if there is no such neuron, `illegal_state` if it was decided before; or if the store fails.
    pub async fn reject(&self, agent: AgentName, name: NeuronName, consent: Consent) -> Result<Neuron, Refusal> {
        let consent = ConsentRecord::from(consent);
        self.whole(|book| async move { book.reject(&agent, &name, consent).await }).await
    }

    /// Switches one neuron off, or lets a disabled one be tried again.
    ///
    /// # Errors
    /// `not_found` if there is no such neuron, `illegal_state` if its state does not admit it; or if the store fails.
    pub async fn switch(
        &self,
        agent: AgentName,
        name: NeuronName,
        on: bool,
        consent: Consent,
    ) -> Result<Neuron, Refusal> {
        let consent = ConsentRecord::from(consent);
        self.whole(move |book| async move { book.switch(&agent, &name, on, consent).await }).await
    }

    /// Switches all neurons of the home off or on. Off lasts until it is switched on again.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn switch_all(&self, on: bool, consent: Consent) -> Result<NeuronSwitches, Refusal> {
        let consent = ConsentRecord::from(consent);
        self.whole(move |book| async move { book.switch_all(on, consent).await }).await
    }

    /// Deletes a neuron with its events and signals.
    ///
    /// # Errors
    /// `not_found` if there is no such neuron; or if the store fails.
    pub async fn forget(&self, agent: AgentName, name: NeuronName) -> Result<(), Refusal> {
        self.whole(|book| async move { book.forget(&agent, &name).await }).await
    }

    /// Does something in a task of its own: a caller that goes away does not end it in the middle.
    async fn whole<T, F>(&self, change: impl FnOnce(NeuronBook) -> F) -> Result<T, Refusal>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Refusal>> + Send + 'static,
    {
        tokio::spawn(change(self.0.book.clone())).await.unwrap_or_else(|error| Err(broke_off(&error)))
    }
}

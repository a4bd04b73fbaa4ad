//! The cortexes of a home's agents (SPEC CX-1 to CX-10): their observations, their schedule, their model.
//!
//! One cortex for each agent with activity, opened at its first. The main loop and the motor only observe: that takes a few
//! microseconds and cannot fail. Cycles run in tasks of their own; a failure of one is a record in the history and a line in the
//! log. Nothing here can change a run, a reply or a prompt, except by the text of [`Reflections::inject`].

mod advice;
mod component;
mod counsel;
mod forget;
mod model;
mod reflectors;
mod schedule;
mod settings;
mod steer;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use base::{AgentName, Clock, Refusal, RefusalCode};
use cortex::{
    AfterAssess, AfterReflect, Belief, Cortex, CortexParts, CycleOutcome, Injected, Observation, ReflectOutcome,
    ReflectionRecord, Trigger,
};
use energy::EnergyBook;
use ledger::{Assessment, Ledger, NewAssessment, NewInteraction, PeerId, Recorded};
use motor::RunTrace;
use parking_lot::{Mutex, RwLock};
use runtime::Runtime;
use schemars::JsonSchema;
use serde::Serialize;
use store::{Store, broke_off};
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use vault::Vault;

use crate::Env;
use crate::api::cortex::{CortexStatus, ReflectReply, ReflectRequest};
use crate::config::{Config, LoadedConfig};
use component::GuestReflector;
use model::CortexModel;
use reflectors::Reflectors;
use settings::Settings;

pub(crate) use component::reflector_limits;
pub(crate) use settings::check;

/// Agents with an open cortex. Callers choose the names of agents; the activity of further ones is not observed.
const MAX_AGENTS: usize = 256;
/// Peers that a request for a cycle names.
const MAX_NAMED_PEERS: usize = 50;
/// Events that a slow receiver may be behind.
const MAX_EVENTS_BEHIND: usize = 256;

/// The dependencies of reflections.
pub(crate) struct ReflectionParts {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub ledger: Ledger,
    pub energy: Arc<EnergyBook>,
    pub vault: Vault,
    pub env: Env,
    pub config: LoadedConfig,
    /// The configuration of the host's runs, for its models.
    pub in_force: Arc<RwLock<Arc<Config>>>,
    /// The engine of the reflectors.
    pub runtime: Runtime,
    /// The directory of the reflectors from outside.
    pub reflectors: PathBuf,
    /// The directory of the home.
    pub home: PathBuf,
    /// Whether this host lives long enough to reflect by itself.
    pub stays: bool,
}

/// The cortexes of a home's agents. Cheap to clone.
#[derive(Clone)]
pub struct Reflections(Arc<ReflectionsInner>);

struct ReflectionsInner {
    store: Store,
    clock: Arc<dyn Clock>,
    ledger: Ledger,
    energy: Arc<EnergyBook>,
    vault: Vault,
    env: Env,
    in_force: Arc<RwLock<Arc<Config>>>,
    reflectors: Reflectors,
    /// The owner's `SOUL.md`.
    soul: PathBuf,
    settings: Settings,
    cortexes: Mutex<BTreeMap<AgentName, Cortex>>,
    /// Held while a peer is forgotten.
    forgetting: tokio::sync::Mutex<()>,
    events: broadcast::Sender<CortexEvent>,
    /// Something was observed that starts a cycle.
    wake: Notify,
    closing: CancellationToken,
    tasks: TaskTracker,
    stays: bool,
}

/// An event of a cortex (SPEC CX-5, CX-8).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CortexEvent {
    /// The agent whose cortex it is.
    pub agent: AgentName,
    /// Its kind and its payload.
    #[serde(flatten)]
    pub body: CortexEventBody,
}

/// The kind of an event with its payload.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", content = "payload")]
pub enum CortexEventBody {
    /// An assessment was recorded.
    #[serde(rename = "cortex.after_assess")]
    AfterAssess(AfterAssess),
    /// The proposals of a cycle were applied.
    #[serde(rename = "cortex.after_reflect")]
    AfterReflect(AfterReflect),
}

impl Reflections {
    /// Opens the cortex of the default agent.
    ///
    /// # Errors
    /// If the store fails.
    pub(crate) fn open(parts: ReflectionParts) -> Result<Self, Refusal> {
        let ReflectionParts {
            store,
            clock,
            ledger,
            energy,
            vault,
            env,
            config,
            in_force,
            runtime,
            reflectors,
            home,
            stays,
        } = parts;
        let settings = Settings::open(&store, config)?;
        let reflectors = Reflectors::new(store.clone(), runtime, reflectors);
        let reflections = Self(Arc::new(ReflectionsInner {
            store,
            clock,
            ledger,
            energy,
            vault,
            env,
            in_force,
            reflectors,
            soul: advice::soul_in(&home),
            settings,
            cortexes: Mutex::default(),
            forgetting: tokio::sync::Mutex::default(),
            events: broadcast::channel(MAX_EVENTS_BEHIND).0,
            wake: Notify::new(),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
            stays,
        }));
        reflections.cortex(&AgentName::default())?;
        // A host that reflects tells overdue commitments of all agents; others are opened when they are used.
        for agent in Cortex::agents_with_guidance(&reflections.0.store)?.into_iter().take(MAX_AGENTS / 2) {
            reflections.cortex(&agent)?;
        }
        Ok(reflections)
    }

    /// The cortex of an agent, kept open from now on.
    fn cortex(&self, agent: &AgentName) -> Result<Cortex, Refusal> {
        let mut cortexes = self.0.cortexes.lock();
        if let Some(cortex) = cortexes.get(agent) {
            return Ok(cortex.clone());
        }
        if cortexes.len() >= MAX_AGENTS {
            let reason = format!("this host already reflects on {MAX_AGENTS} agents");
            return Err(
                Refusal::new(RefusalCode::Busy, reason).with_remedy("use fewer names of agents, and restart it")
            );
        }
        let cortex = self.open_cortex(agent)?;
        cortexes.insert(agent.clone(), cortex.clone());
        Ok(cortex)
    }

    /// The cortex of an agent for reading: asking about unknown agents opens nothing for good.
    fn read(&self, agent: &AgentName) -> Result<Cortex, Refusal> {
        let known = self.0.cortexes.lock().get(agent).cloned();
        known.map_or_else(|| self.open_cortex(agent), Ok)
    }

    fn open_cortex(&self, agent: &AgentName) -> Result<Cortex, Refusal> {
        let ReflectionsInner { store, clock, ledger, settings, .. } = &*self.0;
        Ok(Cortex::open(CortexParts {
            store: store.clone(),
            clock: clock.clone(),
            ledger: ledger.clone(),
            agent: agent.clone(),
            config: settings.of(agent),
        })?)
    }

    /// Records interactions with a peer in the ledger, and observes them.
    ///
    /// # Errors
    /// As [`Ledger::record`].
    pub async fn record(
        &self,
        agent: &AgentName,
        peer: &PeerId,
        interactions: Vec<NewInteraction>,
    ) -> Result<Recorded, Refusal> {
        let directions: Vec<_> = interactions.iter().map(|interaction| interaction.direction).collect();
        let recorded = self.0.ledger.record(agent, peer, interactions).await?;
        for (index, direction) in directions.into_iter().enumerate() {
            let is_new = recorded.is_new && index == 0;
            self.observe(agent, Observation::Message { peer: peer.clone(), direction, is_new });
        }
        Ok(recorded)
    }

    /// Notes something that an agent did (SPEC CX-1). It cannot fail, and changes nothing for the caller.
    pub fn observe(&self, agent: &AgentName, observation: Observation) {
        match self.cortex(agent) {
            Ok(cortex) => {
                cortex.observe(observation);
                if !cortex.due().is_empty() {
                    self.0.wake.notify_one();
                }
            }
            Err(refusal) => tracing::debug!(%agent, %refusal, "an observation is lost"),
        }
    }

    /// Notes a run that is over.
    pub(crate) fn observe_run(&self, trace: &RunTrace) {
        let RunTrace { agent, total_usage, llm_calls, tool_calls, errors, .. } = trace;
        let tokens = total_usage.input_tokens.saturating_add(total_usage.output_tokens);
        let observation = Observation::RunEnded {
            model_replies: (*llm_calls).into(),
            tokens,
            tool_calls: (*tool_calls).into(),
            tool_failures: (*errors).into(),
        };
        self.observe(agent, observation);
    }

    /// The part of an agent's system prompt with its active beliefs (SPEC CX-7), directives and overdue commitments, all of them or
    /// those about a peer, within `room` characters: beliefs give way to advice. Empty if there are none, and while its cortex is off.
    #[must_use]
    pub fn inject(&self, agent: &AgentName, of: Option<&PeerId>, room: usize) -> Injected {
        match self.read(agent) {
            Ok(cortex) if cortex.config().enabled => {
                let advice = cortex.advise(of, room);
                let mut injected = cortex.inject(of, room.saturating_sub(advice.text.chars().count()));
                injected.append(advice);
                injected
            }
            Ok(_) => Injected::default(),
            Err(refusal) => {
                tracing::warn!(%agent, %refusal, "the beliefs of the cortex cannot be read");
                Injected::default()
            }
        }
    }

    /// Receives the events of all agents from now on.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<CortexEvent> {
        self.0.events.subscribe()
    }

    /// Whether `assess_peer` is offered for an agent (SPEC LED-4): only while its cortex is off.
    pub async fn offers_assess_peer(&self, agent: &AgentName) -> bool {
        self.refresh().await;
        self.0.settings.of(agent).offers_assess_peer()
    }

    /// Checks that peers of an agent are assessed by command, not by its cortex (SPEC LED-4).
    ///
    /// # Errors
    /// `illegal_state` while the cortex is on.
    async fn check_assess_peer(&self, agent: &AgentName) -> Result<(), Refusal> {
        if self.offers_assess_peer(agent).await {
            return Ok(());
        }
        let reason = format!("the cortex assesses the peers of `{agent}` while it is on");
        let remedy = format!("`motor cortex off --agent {agent}` brings assessing by hand back");
        Err(Refusal::new(RefusalCode::IllegalState, reason).with_remedy(remedy))
    }

    /// Records a judgement about a peer that is not of the cortex, as it is.
    ///
    /// # Errors
    /// `illegal_state` while the cortex is on; or as [`Ledger::record_assessment`].
    pub async fn assess_peer(&self, agent: &AgentName, assessment: NewAssessment) -> Result<Assessment, Refusal> {
        self.check_assess_peer(agent).await?;
        self.0.ledger.record_assessment(agent, assessment).await
    }

    /// The state of an agent's cortex.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn status(&self, agent: &AgentName) -> Result<CortexStatus, Refusal> {
        let reload = self.refresh().await;
        let cortex = self.read(agent)?;
        let (model, unset) = match self.model_name(&cortex.config()) {
            Ok(name) => (Some(name), None),
            Err(refusal) => (None, Some(refusal.reason)),
        };
        let config = self.0.settings.of(agent);
        let unusable = self.0.reflectors.check(config.reflector.as_ref()).await.err().map(|refusal| refusal.reason);
        Ok(CortexStatus {
            agent: agent.clone(),
            enabled: config.enabled,
            switched_off: self.0.settings.is_switched_off(agent),
            offers_assess_peer: config.offers_assess_peer(),
            is_reflecting: cortex.is_reflecting(),
            model,
            problems: unset.into_iter().chain(unusable).chain(reload).chain(self.soul(agent).await.err()).collect(),
            activity: cortex.activity(),
            beliefs: u64::try_from(cortex.beliefs().len()).unwrap_or(u64::MAX),
            open_commitments: u64::try_from(cortex.commitments().iter().filter(|one| one.status.is_open()).count())
                .unwrap_or(u64::MAX),
            directives: u64::try_from(cortex.directives().len()).unwrap_or(u64::MAX),
            drift: cortex.drift(),
            last_cycle: cortex.history(1)?.into_iter().next(),
            settings: config,
        })
    }

    /// The active beliefs of an agent, the latest confirmed last.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn beliefs(&self, agent: &AgentName) -> Result<Vec<Belief>, Refusal> {
        self.refresh().await;
        Ok(self.read(agent)?.beliefs())
    }

    /// The records of an agent's latest cycles, the newest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn history(&self, agent: &AgentName, limit: usize) -> Result<Vec<ReflectionRecord>, Refusal> {
        Ok(self.read(agent)?.history(limit)?)
    }

    /// Switches the cortex of an agent off, or on again. Off stays off over restarts.
    ///
    /// # Errors
    /// `illegal_state` if it is to be switched on and the configuration has it off; or if the store fails.
    pub async fn switch(&self, agent: &AgentName, enabled: bool) -> Result<CortexStatus, Refusal> {
        self.refresh().await;
        self.0.settings.switch(&self.0.store, agent, enabled).await?;
        self.configure();
        self.0.wake.notify_one();
        self.status(agent).await
    }

    /// Runs a cycle because the owner asks for it.
    ///
    /// # Errors
    /// `illegal_state` if the cortex is off, `busy` if a cycle is under way, `not_found` if a named peer is unknown,
    /// `model_unavailable` if no model is set; or if the store fails.
    pub async fn reflect(&self, request: ReflectRequest) -> Result<ReflectReply, Refusal> {
        let ReflectRequest { agent, peers } = request;
        if peers.len() > MAX_NAMED_PEERS {
            let reason = format!("{} peers are named: name at most {MAX_NAMED_PEERS}", peers.len());
            return Err(Refusal::new(RefusalCode::InvalidRequest, reason));
        }
        self.refresh().await;
        for peer in &peers {
            if !self.0.ledger.knows(&agent, peer)? {
                let reason = format!("the agent `{agent}` knows no peer `{peer}`");
                return Err(Refusal::new(RefusalCode::NotFound, reason).with_remedy("`motor ledger list` shows them"));
            }
        }
        let cortex = self.cortex(&agent)?;
        if cortex.config().enabled {
            self.model_name(&cortex.config())?;
            cortex.show(peers);
        }
        match self.cycle(&agent, &cortex, vec![Trigger::Owner]).await? {
            ReflectOutcome::Done { record, assessed, reflected } => Ok(ReflectReply { record, assessed, reflected }),
            ReflectOutcome::AlreadyReflecting => {
                let reason = format!("a reflection on `{agent}` is under way");
                Err(Refusal::new(RefusalCode::Busy, reason)
                    .with_remedy("`motor cortex history` shows it when it is over"))
            }
            ReflectOutcome::Off => {
                let reason = format!("the cortex of `{agent}` is off");
                let remedy = match self.0.settings.is_switched_off(&agent) {
                    true => format!("`motor cortex on --agent {agent}`"),
                    false => "set `enabled = true` under `[cortex]`".to_owned(),
                };
                Err(Refusal::new(RefusalCode::IllegalState, reason).with_remedy(remedy))
            }
        }
    }

    /// One cycle, and its events. In a task of its own: a client that goes away takes neither with it.
    async fn cycle(
        &self,
        agent: &AgentName,
        cortex: &Cortex,
        triggers: Vec<Trigger>,
    ) -> Result<ReflectOutcome, Refusal> {
        let (reflections, agent, cortex) = (self.clone(), agent.clone(), cortex.clone());
        let cycle = self.0.tasks.spawn(async move { reflections.cycle_told(&agent, &cortex, triggers).await });
        cycle.await.unwrap_or_else(|error| Err(broke_off(&error)))
    }

    async fn cycle_told(
        &self,
        agent: &AgentName,
        cortex: &Cortex,
        triggers: Vec<Trigger>,
    ) -> Result<ReflectOutcome, Refusal> {
        let config = cortex.config();
        // Status has the reason; the cycle goes on without it.
        cortex.set_soul(self.soul(agent).await.unwrap_or_default());
        let reflector = GuestReflector::new(self.clone(), agent.clone(), config.reflector.clone());
        let model = CortexModel { reflections: self.clone(), agent: agent.clone(), config };
        let outcome = cortex.reflect(triggers, Arc::new(reflector), Arc::new(model)).await?;
        if let ReflectOutcome::Done { record, assessed, reflected } = &outcome {
            if let CycleOutcome::Applied { guidance, .. } = &record.outcome
                && !(guidance.commitments_made.is_empty() && guidance.directives.is_empty())
            {
                // A commitment may be overdue already, and a directive is news.
                self.0.wake.notify_one();
            }
            let assessed = assessed.iter().cloned().map(CortexEventBody::AfterAssess);
            for body in assessed.chain(reflected.iter().cloned().map(CortexEventBody::AfterReflect)) {
                // Without a receiver an event is lost; the history has it.
                self.0.events.send(CortexEvent { agent: agent.clone(), body }).ok();
            }
        }
        Ok(outcome)
    }
}

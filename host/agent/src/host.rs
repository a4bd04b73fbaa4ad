//! The facade: the full function of the product, for every surface. One per home, held by a lock.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::{AgentName, Clock, HostTime, Random, Refusal, RefusalCode, RunId, Secret, Timestamp};
use cognition::Cognition;
use consent::{ApiTokens, ConsentGate};
use deliveries::{DeliverParts, Deliveries, WaitingSignals};
use energy::EnergyBook;
use ledger::{ForgottenPeer, Ledger, LedgerParts, PeerId};
use motor::{LiveEvent, Motor, MotorParts};
use network::Gate;
use parking_lot::{Mutex, RwLock};
use runtime::Language;
use signals::SignalBus;
use skills::{Library, LibraryParts};
use store::{HomeLock, Links, Scan, Store, StoreError, Table, open_regular};
use vault::{Vault, VaultParts};

use crate::access::NetworkAccess;
use crate::api::HostStatus;
use crate::components::engine;
use crate::config::LoadedConfig;
use crate::decisions::Decisions;
use crate::environment::HostEnvironment;
use crate::loss::check_new_state;
use crate::mind::RunHands;
use crate::neuron::{NeuronParts, Neurons};
use crate::origins::Origins;
use crate::otlp::TraceExports;
use crate::receipt::ReceiptKey;
use crate::reflection::{ReflectionParts, Reflections};
use crate::retention::{Pruner, Retention};
use crate::settings::Settings;
use crate::staged::StagedWrites;
use crate::trace_file::TraceWriter;
use crate::{Credentials, Domains, Env, Home, Programs, Runs, Skills, landing, mind};
use tokio_util::sync::DropGuard;
use toolbox::{CompileTurn, SandboxPool};

/// The time for pending answers when the host ends because its storage failed.
const LAST_ANSWERS: Duration = Duration::from_millis(200);

/// The dependencies of a host.
pub struct HostOptions {
    /// The home to open.
    pub home: Home,
    /// The loaded configuration to use.
    pub config: LoadedConfig,
    /// The environment's variables: keys and endpoints of models.
    pub env: Env,
    /// The variables `VAULT_*`: credentials, by the whole name of the variable (SPEC VAULT-1).
    pub vault_variables: BTreeMap<String, String>,
    /// The program that compiles untrusted components (see [`runtime::EngineConfig::compile_worker`]).
    pub compile_worker: Option<PathBuf>,
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// The source of randomness.
    pub random: Arc<Random>,
}

/// A running host. Cheap to clone; the home is free again when the last clone is dropped.
#[derive(Clone)]
pub struct Host(Arc<Capabilities>);

impl Deref for Host {
    type Target = Capabilities;

    fn deref(&self) -> &Capabilities {
        &self.0
    }
}

/// The capabilities of a host.
pub struct Capabilities {
    /// The runs: start, follow, answer, stop.
    pub runs: Arc<Runs>,
    /// The skills and the owner's decisions about them.
    pub skills: Skills,
    /// Execution of programs that belong to no run.
    pub programs: Programs,
    /// Credentials: their names, their domains, how they are set.
    pub credentials: Credentials,
    /// The owner's decisions about domains.
    pub domains: Domains,
    /// The gate that tells the owner from other callers.
    pub consent: ConsentGate,
    /// The tokens of other programs for the HTTP API.
    pub tokens: ApiTokens,
    /// The energy of agents.
    pub energy: Arc<EnergyBook>,
    /// The peers of agents.
    pub ledger: Ledger,
    /// The conversations of agents.
    pub cognition: Cognition,
    /// Channels that are served once the host takes up its work.
    channels: Mutex<Vec<Arc<dyn cognition::Channel>>>,
    /// The cortexes of agents, which reflect on their acts and judge their peers.
    pub reflections: Reflections,
    /// The neurons of agents, which react to signals without a model.
    pub neurons: Neurons,
    /// The signals of runs.
    pub signals: SignalBus,
    /// The signals of runs that still wait.
    pub waiting: WaitingSignals,
    /// The settings in force, and where each comes from.
    pub settings: Settings,
    deliveries: Deliveries,
    started_at: Timestamp,
    _reflecting: DropGuard,
    _ticking: DropGuard,
    /// Held for as long as the host lives. Last, so that the home is free only when all else is gone.
    _lock: HomeLock,
}

impl Host {
    /// Takes the home, opens its state, and resumes the runs that an earlier host left.
    ///
    /// # Errors
    /// If another process owns the home, or its state cannot be used.
    pub async fn open(options: HostOptions) -> Result<Self, Refusal> {
        let host = Self::assemble(options, true, None).await?;
        host.resume().await?;
        Ok(host)
    }

    /// Takes the home and opens its state without resuming runs: for a short-lived host, which would only interrupt
    /// them again. Loads the engine of `program`'s language, if there is one, while the state is opened.
    ///
    /// # Errors
    /// If another process owns the home, or its state cannot be used.
    pub async fn open_idle(options: HostOptions, program: Option<Language>) -> Result<Self, Refusal> {
        Self::assemble(options, false, program).await
    }

    /// `stays`: skills are watched, because the host lives long enough to see them change.
    async fn assemble(options: HostOptions, stays: bool, program: Option<Language>) -> Result<Self, Refusal> {
        options.home.create()?;
        let lock = HomeLock::acquire(options.home.path())?;
        check_new_state(&options.home)?;
        let engine = engine(&options.config.config, Some(options.home.cache()), options.compile_worker.clone())?;
        let sandboxes = Arc::new(SandboxPool::new(engine, vec![options.home.engines()]));
        if let Some(language) = program {
            let sandboxes = sandboxes.clone();
            // `Programs::execute` repeats a failed load, and reports why it failed.
            tokio::spawn(async move { sandboxes.code(language, false, CompileTurn::ONLY).await.map(drop).ok() });
        }
        let store = Store::open(&options.home.state())?;
        let vault = open_vault(&options, &store);
        let HostOptions { home, config: loaded, env, clock, random, .. } = options;
        let config = loaded.config.clone();
        let in_force = Arc::new(RwLock::new(Arc::new(config.clone())));
        let signals = SignalBus::open(store.clone(), clock.clone())?;
        let energy = Arc::new(EnergyBook::open(store.clone(), clock.clone(), config.energy.clone()));
        let ledger = Ledger::open(LedgerParts { store: store.clone(), clock: clock.clone(), random: random.clone() });
        let reflections = Reflections::open(ReflectionParts {
            store: store.clone(),
            clock: clock.clone(),
            ledger: ledger.clone(),
            energy: energy.clone(),
            vault: vault.clone(),
            env: env.clone(),
            config: loaded.clone(),
            in_force: in_force.clone(),
            runtime: sandboxes.runtime().clone(),
            reflectors: home.reflectors(),
            home: home.path().to_owned(),
            stays,
        })?;
        for file in &config.network.authorities {
            open_regular(file, Links::Followed).map_err(|error| {
                let reason = format!("`network.authorities`: cannot read `{}`: {error}", file.display());
                Refusal::new(RefusalCode::InvalidRequest, reason)
            })?;
        }
        let gate = Gate::new(&config.network)?;
        let consent = ConsentGate::open(store.clone(), clock.clone(), home.config()).await?;
        let consent = consent.with_config(config.consent.clone());
        let tokens = ApiTokens::open(store.clone(), clock.clone())?;
        let decisions = Decisions::new(store.clone());
        let access = NetworkAccess::new(gate.clone(), vault.clone(), config.network.clone(), decisions, clock.clone());
        let traces = TraceWriter::start(home.logs())
            .map_err(|error| Refusal::new(RefusalCode::Failed, format!("the host gets no thread: {error}")))?;
        let library = Library::open(LibraryParts {
            store: store.clone(),
            clock: clock.clone(),
            roots: config.skills.roots(&home),
            index: home.skill_index(),
            versions: home.versions(),
            bounds: config.skills.bounds(config.engine.component_bytes),
            watch: stays,
        })?;
        if stays {
            let roots: Vec<_> = library.roots().iter().map(|root| root.path.clone()).collect();
            tokio::task::spawn_blocking(move || {
                for error in roots.iter().filter_map(|root| skills::install::tidy(root).err()) {
                    tracing::warn!(%error, "leftovers of an earlier host stay in a skills directory");
                }
            });
        }
        let environment = Arc::new(HostEnvironment {
            skills: library.clone(),
            spend: motor::SpendBook::new(store.clone()),
            home: home.clone(),
            config: in_force.clone(),
            env,
            clock: clock.clone(),
            sandboxes: sandboxes.clone(),
            access,
            staged: Arc::new(StagedWrites::new(store.clone(), clock.clone())),
            origins: Origins::new(store.clone(), home.clone()),
            traces,
            reflections: reflections.clone(),
            landing: tokio::sync::Mutex::default(),
        });
        if let Err(refusal) = landing::end_interrupted(&home.runs()) {
            tracing::warn!(%refusal, "an interrupted landing is not ended");
        }
        let motor = Motor::new(MotorParts {
            store: store.clone(),
            signals: signals.clone(),
            energy: energy.clone(),
            clock: clock.clone(),
            random: random.clone(),
            environment: environment.clone(),
            config: config.of_loop(),
        });
        let deliveries = Deliveries::start(DeliverParts {
            config: config.signals.clone(),
            telemetry: config.telemetry.clone(),
            traces: Arc::new(TraceExports(motor.clone())),
            store: store.clone(),
            signals: signals.clone(),
            clock: clock.clone(),
            random: random.clone(),
            gate,
            vault,
            env: environment.env.clone(),
        });
        let deliveries = deliveries.await?;
        let waiting = WaitingSignals { store: store.clone(), signals: signals.clone() };
        let pruner = Pruner {
            home: home.clone(),
            config: config.retention,
            motor: motor.clone(),
            environment: environment.clone(),
            signals: signals.clone(),
            ledger: ledger.clone(),
            waiting: waiting.clone(),
            consumers: Deliveries::consumers(&config.signals),
            time: HostTime::starting(clock.clone()),
            was_counted: store.was_counted(),
        };
        let retention = Retention::start(pruner.clone(), stays);
        let runs = Arc::new(Runs {
            environment: environment.clone(),
            energy: energy.clone(),
            motor: motor.clone(),
            pruner,
            receipt_key: ReceiptKey::new(environment.home.config()),
            retention,
            store: store.clone(),
        });
        let neurons = Neurons::open(NeuronParts {
            store: store.clone(),
            clock: clock.clone(),
            signals: signals.clone(),
            config: config.neurons.clone(),
            sandboxes: sandboxes.clone(),
            energy: energy.clone(),
            motor: motor.clone(),
            stays,
        })?;
        let skills = Skills {
            environment: environment.clone(),
            runs: runs.clone(),
            random: random.clone(),
            offers: Arc::default(),
        };
        let programs = Programs {
            environment: environment.clone(),
            energy: energy.clone(),
            store: store.clone(),
            random: random.clone(),
        };
        let credentials = Credentials { environment: environment.clone() };
        let hands = RunHands {
            runs: runs.clone(),
            neurons: neurons.clone(),
            skills: skills.clone(),
            programs: programs.clone(),
            credentials: credentials.clone(),
            ledger: ledger.clone(),
            reflections: reflections.clone(),
        };
        let cognition = mind::open(hands, &signals, &clock, &random).await?;
        reflections.finish_forgetting(&cognition).await?;
        let ticking = neurons.end_on_drop();
        // Only a host that stays: the peers of a channel do not wait for a command of the owner.
        let channels = if stays { mind::channels(&config.channels)? } else { Vec::new() };
        let reflecting = reflections.end_on_drop();
        let capabilities = Capabilities {
            skills,
            programs,
            credentials,
            settings: Settings {
                loaded: Mutex::new(loaded),
                environment: environment.clone(),
                motor: motor.clone(),
                reading: tokio::sync::Mutex::default(),
            },
            domains: Domains { environment, motor },
            runs,
            consent,
            tokens,
            energy,
            ledger,
            cognition,
            channels: Mutex::new(channels),
            reflections,
            neurons,
            signals,
            waiting,
            deliveries,
            started_at: clock.now(),
            _reflecting: reflecting,
            _ticking: ticking,
            _lock: lock,
        };
        Ok(Self(Arc::new(capabilities)))
    }

    /// Resumes the runs that an earlier host left, and delivers its remaining signals. Active runs are left alone.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn resume(&self) -> Result<Vec<RunId>, Refusal> {
        self.deliveries.begin();
        self.runs.retention.begin(self.cognition.clone());
        self.reflections.begin(&self.cognition);
        self.neurons.begin();
        let resumed = self.runs.motor.resume_all().await?;
        if !resumed.is_empty() {
            tracing::info!(runs = resumed.len(), "took up runs that an earlier host left");
        }
        self.cognition.begin()?;
        for channel in std::mem::take(&mut *self.channels.lock()) {
            self.cognition.serve(channel)?;
        }
        Ok(resumed)
    }

    /// Resumes one run for its follower, if the run is neither over nor driven.
    ///
    /// # Errors
    /// If the run does not exist, the store fails, or the host is shutting down.
    pub fn take_up(&self, id: &RunId) -> Result<(), Refusal> {
        self.deliveries.begin();
        self.runs.motor.take_up(id)
    }

    /// Forgets a peer: its conversations, the memories of which it is a source and its record in the ledger in one step, then its beliefs.
    ///
    /// # Errors
    /// `not_found` if it has no conversation, no memory and no record in the ledger, or if the store fails: then the next host ends it.
    pub async fn forget_peer(&self, agent: &AgentName, peer: &PeerId) -> Result<ForgottenPeer, Refusal> {
        let (cognition, of, whom) = (self.cognition.clone(), agent.clone(), peer.clone());
        self.reflections.forget(agent, peer, async move { cognition.forget(&of, &whom).await }).await
    }

    /// The current status of the host.
    #[must_use]
    pub fn status(&self) -> HostStatus {
        HostStatus {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            home: self.runs.environment.home.path().to_owned(),
            started_at: self.started_at,
            running: self.running(),
            preparing: self.runs.environment.sandboxes.preparations().subscribe().borrow().clone(),
        }
    }

    /// Runs that are not over. Empty if the store fails; other requests report that error.
    fn running(&self) -> Vec<RunId> {
        let live = self.runs.store.scan::<serde::de::IgnoredAny>(Table::Live, &Scan::all()).unwrap_or_default();
        live.into_iter().filter_map(|(key, _)| RunId::parse(&String::from_utf8(key).ok()?).ok()).collect()
    }

    /// Waits until the state takes no more commits, because a write or sync failed. The host must end then, and the
    /// next one opens it again.
    pub async fn storage_lost(&self) -> Refusal {
        if self.runs.store.poisoned().wait_for(|is_poisoned| *is_poisoned).await.is_err() {
            // The store was closed.
            std::future::pending::<()>().await;
        }
        // Leaves time for the pending error answers to reach their clients.
        tokio::time::sleep(LAST_ANSWERS).await;
        StoreError::Poisoned.into()
    }

    /// The event for the followers of runs if the state takes no more commits.
    #[must_use]
    pub fn suspension(&self) -> Option<LiveEvent> {
        let reason = Refusal::from(StoreError::Poisoned).reason;
        self.runs
            .store
            .poisoned()
            .borrow()
            .then(|| LiveEvent::Suspended { at: self.runs.environment.clock.now(), reason })
    }

    /// The time on the host's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.runs.environment.clock.now()
    }

    /// The home of this host.
    #[must_use]
    pub fn home(&self) -> &Home {
        &self.runs.environment.home
    }

    /// Stops at a durable point. Runs are left as they are: the next host resumes them.
    pub async fn shutdown(&self) {
        self.reflections.stop().await;
        self.runs.retention.stop().await;
        // Before the runs: a turn would wait for them.
        self.cognition.shutdown().await;
        self.neurons.stop().await;
        self.runs.motor.shutdown().await;
        self.deliveries.stop().await;
        self.runs.environment.skills.close().await;
        if let Err(error) = self.runs.store.close().await {
            tracing::warn!(%error, "the store did not close cleanly");
        }
    }
}

/// The credentials of a home. A key is only looked for once it is needed.
pub(crate) fn open_vault(options: &HostOptions, store: &Store) -> Vault {
    let HostOptions { home, config, env, vault_variables, clock, .. } = options;
    Vault::open(VaultParts {
        store: store.clone(),
        clock: clock.clone(),
        directory: home.config(),
        key: env("MOTOR_CREDENTIALS_KEY").map(Secret::new),
        keyring: env("MOTOR_KEYRING").as_deref() != Some("off"),
        variables: vault_variables.clone(),
        config: config.config.credentials.clone(),
    })
}

//! The facade: the full function of the product, for every surface. One per home, held by a lock.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::{AgentName, Clock, HostTime, Random, Refusal, RefusalCode, RunId, Secret, Timestamp};
use deliveries::{DeliverParts, Deliveries, Follower, WaitingSignals};
use energy::{Activity, EnergyBook};
use motor::{CancelReply, ListFilter, LiveEvent, Motor, MotorParts, RunRecord, RunRequest, RunTrace, Waiting, Watch};
use network::Gate;
use runtime::Runtime;
use signals::{Signal, SignalBus};
use skills::{Library, LibraryParts};
use store::{HomeLock, Links, Scan, Store, StoreError, Table, blocking, open_regular};
use vault::{Vault, VaultParts};

use crate::access::NetworkAccess;
use crate::api::tasks::TaskSummary;
use crate::api::{ActReply, ActRequest, Caller, EnergyReport, HostStatus, TaskFilter};
use crate::config::{Config, LoadedConfig};
use crate::decisions::Decisions;
use crate::environment::HostEnvironment;
use crate::loss::check_new_state;
use crate::origins::Origins;
use crate::plan::{Plan, plan};
use crate::receipt::ReceiptKey;
use crate::retention::{Pruner, Retention};
use crate::skill::{self, Purpose};
use crate::trace_file::TraceWriter;
use crate::{Env, Home, workspace};
use toolbox::SandboxPool;

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
pub struct Host(Arc<HostInner>);

pub(crate) struct HostInner {
    pub(crate) home: Home,
    pub(crate) config: Config,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<Random>,
    pub(crate) store: Store,
    pub(crate) signals: SignalBus,
    pub(crate) energy: Arc<EnergyBook>,
    pub(crate) motor: Motor,
    pub(crate) environment: Arc<HostEnvironment>,
    pub(crate) sandboxes: Arc<SandboxPool>,
    pub(crate) consent: consent::ConsentGate,
    pub(crate) skills: Library,
    deliveries: Deliveries,
    pub(crate) pruner: Pruner,
    retention: Retention,
    pub(crate) receipt_key: ReceiptKey,
    started_at: Timestamp,
    /// Held for as long as the host lives. Last, so that the home is free only when all else is gone.
    _lock: HomeLock,
}

impl Host {
    pub(crate) fn parts(&self) -> &HostInner {
        &self.0
    }

    /// Takes the home, opens its state, and resumes the runs that an earlier host left.
    ///
    /// # Errors
    /// If another process owns the home, or its state cannot be used.
    pub async fn open(options: HostOptions) -> Result<Self, Refusal> {
        let host = Self::assemble(options, true).await?;
        host.resume().await?;
        Ok(host)
    }

    /// Takes the home and opens its state without resuming runs: for a short-lived host, which would only interrupt
    /// them again.
    ///
    /// # Errors
    /// If another process owns the home, or its state cannot be used.
    pub async fn open_idle(options: HostOptions) -> Result<Self, Refusal> {
        Self::assemble(options, false).await
    }

    /// `stays`: skills are watched, because the host lives long enough to see them change.
    async fn assemble(options: HostOptions, stays: bool) -> Result<Self, Refusal> {
        options.home.create()?;
        let lock = HomeLock::acquire(options.home.path())?;
        check_new_state(&options.home)?;
        let store = Store::open(&options.home.state())?;
        let vault = open_vault(&options, &store);
        let HostOptions { home, config: LoadedConfig { config, .. }, env, compile_worker, clock, random, .. } = options;
        let engine = config.engine.engine(config.limits.memory_bytes, Some(home.cache()), compile_worker);
        let runtime = Runtime::new(engine).map_err(|error| {
            Refusal::new(RefusalCode::Failed, format!("the component engine does not start: {}", error.root_cause()))
        })?;
        let sandboxes = Arc::new(SandboxPool::new(runtime));
        let signals = SignalBus::open(store.clone(), clock.clone())?;
        let energy = Arc::new(EnergyBook::open(store.clone(), clock.clone(), config.energy.clone()));
        for file in &config.network.authorities {
            open_regular(file, Links::Followed).map_err(|error| {
                let reason = format!("`network.authorities`: cannot read `{}`: {error}", file.display());
                Refusal::new(RefusalCode::InvalidRequest, reason)
            })?;
        }
        let gate = Gate::new(&config.network)?;
        let deliveries = Deliveries::start(DeliverParts {
            config: config.signals.clone(),
            store: store.clone(),
            signals: signals.clone(),
            clock: clock.clone(),
            random: random.clone(),
            gate: gate.clone(),
            vault: vault.clone(),
            env: env.clone(),
        });
        let deliveries = deliveries.await?;
        let consent = consent::ConsentGate::open(store.clone(), clock.clone(), home.config()).await?;
        let decisions = Decisions::new(store.clone());
        let access = NetworkAccess::new(gate, vault, config.network.clone(), decisions, clock.clone());
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
            home: home.clone(),
            config: config.clone(),
            env,
            clock: clock.clone(),
            sandboxes: sandboxes.clone(),
            access,
            origins: Origins::new(store.clone(), home.clone()),
            traces,
        });
        let motor = Motor::new(MotorParts {
            store: store.clone(),
            signals: signals.clone(),
            energy: energy.clone(),
            clock: clock.clone(),
            random: random.clone(),
            environment: environment.clone(),
            config: motor::MotorConfig { budget: config.budget.clone(), ..config.motor.clone() },
        });
        let pruner = Pruner {
            home: home.clone(),
            config: config.retention,
            motor: motor.clone(),
            environment: environment.clone(),
            signals: signals.clone(),
            waiting: WaitingSignals { store: store.clone(), signals: signals.clone() },
            consumers: Deliveries::consumers(&config.signals),
            time: HostTime::starting(clock.clone()),
            was_counted: store.was_counted(),
        };
        let retention = Retention::start(pruner.clone(), stays);
        let receipt_key = ReceiptKey::new(home.config());
        let started_at = clock.now();
        let inner = HostInner {
            home,
            config,
            clock,
            random,
            store,
            signals,
            energy,
            motor,
            environment,
            sandboxes,
            consent,
            skills: library,
            deliveries,
            pruner,
            retention,
            receipt_key,
            started_at,
            _lock: lock,
        };
        Ok(Self(Arc::new(inner)))
    }

    /// Resumes the runs that an earlier host left, and delivers its remaining signals. Active runs are left alone.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn resume(&self) -> Result<Vec<RunId>, Refusal> {
        self.0.deliveries.begin();
        self.0.retention.begin();
        let resumed = self.0.motor.resume_all().await?;
        if !resumed.is_empty() {
            tracing::info!(runs = resumed.len(), "took up runs that an earlier host left");
        }
        Ok(resumed)
    }

    /// Resumes one run for its follower, if the run is neither over nor driven.
    ///
    /// # Errors
    /// If the run does not exist, the store fails, or the host is shutting down.
    pub fn take_up(&self, id: &RunId) -> Result<(), Refusal> {
        self.0.deliveries.begin();
        self.0.motor.take_up(id)
    }

    /// Accepts a task: the run is durable when this returns (SPEC RUN-1, DUR-4).
    ///
    /// # Errors
    /// If any part of the request is wrong or missing; nothing is left behind then, and no energy is charged.
    pub async fn act(&self, request: ActRequest, by: Caller) -> Result<ActReply, Refusal> {
        self.start(request, Purpose::Task, by).await
    }

    pub(crate) async fn start(&self, request: ActRequest, purpose: Purpose, by: Caller) -> Result<ActReply, Refusal> {
        let inner = &*self.0;
        if request.task.trim().is_empty() {
            let refusal = Refusal::new(RefusalCode::InvalidRequest, "the task is empty");
            return Err(refusal.with_remedy("say in plain language what is to be done"));
        }
        // A repeated command: the answer is its run, even if files, energy or keys have changed since.
        if let Some(key) = &request.key
            && let Some(run) = inner.motor.started_by(&request.agent, key)?
        {
            return Ok(inner.accepted(&run, Vec::new()));
        }
        // Missing parts are found before the run exists and before a token is spent.
        let Plan { tools, skill, grant, mut warnings, .. } =
            plan(&request, purpose, by, &inner.environment, &inner.energy).await?.ready()?;
        // After the plan: a credential's value in the text does not grant the credential.
        let (task, named) = inner.environment.access.clean(request.task.clone()).await?;
        warnings.extend(named.into_iter().map(|name| {
            format!("the task held the value of the credential `{name}`: `<credential:{name}>` was put there, which is what a run uses")
        }));
        let id = inner.motor.new_run_id();
        let directory = inner.home.workspace(&id);
        let (max_iterations, may_ask) = (purpose.iterations(&request), !request.unattended);
        let (files, limits, place) = (request.files.clone(), inner.config.limits, directory.clone());
        let used = grant.skill.clone();
        let label = used.as_ref().map(skill::label);
        let versions = inner.skills.versions().clone();
        let given = blocking(move || {
            // The run's inputs are kept by content, so that a restart serves the same bytes.
            let skill = skill.map(|taken| taken.snapshot);
            if let Some(snapshot) = &skill {
                versions.keep(snapshot)?;
            }
            workspace::prepare(&place, skill.as_ref(), &files, &limits)
        })
        .await?;
        let paths: Vec<_> = request.files.iter().map(|file| file.path.as_path()).collect();
        let inputs = used.as_ref().and_then(|skill| skill.inputs.as_ref());
        let web_sources = inner.environment.origins.of(&task, inputs, &paths, &given);
        let web_sources = web_sources.inspect_err(|_| workspace::discard(&directory))?;
        let (agent, key) = (request.agent.clone(), request.key.clone());
        if let Some(skill) = used.as_ref().filter(|_| purpose == Purpose::Review) {
            skill::advise(inner.skills.trust(), skill, &id, None, inner.clock.now()).await?;
        }
        let started = inner.motor.start(
            id.clone(),
            RunRequest {
                agent: request.agent,
                task,
                tools,
                max_iterations,
                timeout: request.timeout_ms.map(Duration::from_millis),
                grant,
                key: request.key,
                approval_required: request.approval_required,
                may_ask,
                skill: label,
                web_sources,
            },
        );
        let run = started.await.map_err(|refusal| inner.busy(&agent, by, refusal)).inspect_err(|refusal| {
            // After a failed write the run may or may not be on disk: if it is, it needs its files.
            if !matches!(refusal.code, RefusalCode::StorageFailed | RefusalCode::OutcomeUnknown) {
                workspace::discard(&directory);
            }
        });
        let run = run.map_err(|refusal| unknown_act(refusal, key.as_deref()))?;
        if run.id != id {
            // The same key named an earlier run, which is the answer.
            workspace::discard(&directory);
        }
        if let Some(skill) = used {
            // For people only: failing to note the use does not make the run unaccepted.
            let noted = inner.skills.trust().used(&skill.name, &skill.place, inner.clock.now()).await;
            if let Err(error) = noted {
                tracing::warn!(%error, "when a skill was last used is not noted");
            }
        }
        Ok(inner.accepted(&run, warnings))
    }

    /// Lists runs, newest first.
    ///
    /// # Errors
    /// If the store fails.
    pub fn tasks(&self, filter: TaskFilter) -> Result<Vec<TaskSummary>, Refusal> {
        let filter = ListFilter { status: filter.status, agent: filter.agent, limit: filter.limit };
        Ok(self.0.motor.list(filter)?.into_iter().map(TaskSummary::from).collect())
    }

    /// The full trace of one run.
    ///
    /// # Errors
    /// If the run does not exist.
    pub fn task(&self, id: &RunId) -> Result<RunTrace, Refusal> {
        self.0.motor.status(id)
    }

    /// The last 16 KiB of a run's log.
    ///
    /// # Errors
    /// If the run does not exist.
    pub fn log(&self, id: &RunId) -> Result<String, Refusal> {
        self.0.motor.log(id)
    }

    /// Stops a run; the cancelled state is durable when this returns.
    ///
    /// # Errors
    /// If the run does not exist, or is over.
    pub async fn cancel(&self, id: &RunId) -> Result<CancelReply, Refusal> {
        self.0.motor.cancel(id).await
    }

    /// Deletes a run that is over: its record and history, then its workspace, artifacts and trace. Its signals are
    /// deleted once every consumer has received them.
    ///
    /// # Errors
    /// If the run does not exist, it is not over, or the store fails.
    pub async fn delete(&self, id: &RunId) -> Result<(), Refusal> {
        self.0.pruner.delete(id).await?;
        self.0.retention.again();
        Ok(())
    }

    /// A run's events from its first, then as they happen.
    ///
    /// # Errors
    /// If the run does not exist.
    pub fn watch(&self, id: &RunId) -> Result<Watch, Refusal> {
        self.0.motor.watch(id)
    }

    /// Waits until a run is over.
    ///
    /// # Errors
    /// If the run does not exist, or the host shuts down.
    pub async fn wait(&self, id: &RunId) -> Result<TaskSummary, Refusal> {
        self.0.motor.wait(id).await.map(TaskSummary::from)
    }

    /// Signals after an id, in order.
    ///
    /// # Errors
    /// If the store fails.
    pub fn signals(&self, after: u64, limit: usize) -> Result<Vec<Signal>, Refusal> {
        Ok(self.0.signals.since(after, limit)?)
    }

    /// The signals of runs that still wait, after the id `after`, oldest first, at most `limit` (SPEC DUR-3).
    ///
    /// # Errors
    /// If the store fails.
    pub fn signals_waiting(&self, after: u64, limit: usize) -> Result<Vec<Signal>, Refusal> {
        self.0.waiting_signals().since(after, limit)
    }

    /// Follows signals: after an id, or, without one, first those of runs that still wait and then new ones.
    #[must_use]
    pub fn follow_signals(&self, after: Option<u64>) -> Follower {
        Follower::from(self.0.waiting_signals(), after)
    }

    /// The id of the newest signal.
    #[must_use]
    pub fn signals_latest(&self) -> u64 {
        self.0.signals.latest()
    }

    /// The energy of an agent.
    ///
    /// # Errors
    /// If the store fails.
    pub fn energy(&self, agent: &AgentName) -> Result<EnergyReport, Refusal> {
        let level = self.0.energy.level(agent)?;
        let activities = [
            ("oneshot", Activity::Oneshot),
            ("agentic", Activity::Agentic { browser: false }),
            ("browser", Activity::Agentic { browser: true }),
        ];
        let allows = activities.into_iter().filter(|(_, activity)| self.0.energy.check(agent, *activity).is_ok());
        Ok(EnergyReport {
            agent: agent.clone(),
            level,
            enabled: self.0.config.energy.enabled,
            allows: allows.map(|(name, _)| name.to_owned()).collect(),
        })
    }

    /// The current status of the host.
    #[must_use]
    pub fn status(&self) -> HostStatus {
        HostStatus {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            home: self.0.home.path().to_owned(),
            started_at: self.0.started_at,
            running: self.running(),
            preparing: self.0.sandboxes.preparations().subscribe().borrow().clone(),
        }
    }

    /// Runs that are not over. Empty if the store fails; other requests report that error.
    fn running(&self) -> Vec<RunId> {
        let live = self.0.store.scan::<serde::de::IgnoredAny>(Table::Live, &Scan::all()).unwrap_or_default();
        live.into_iter().filter_map(|(key, _)| RunId::parse(&String::from_utf8(key).ok()?).ok()).collect()
    }

    /// Waits until the state takes no more commits, because a write or sync failed. The host must end then, and the
    /// next one opens it again.
    pub async fn storage_lost(&self) -> Refusal {
        if self.0.store.poisoned().wait_for(|is_poisoned| *is_poisoned).await.is_err() {
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
        self.0.store.poisoned().borrow().then(|| LiveEvent::Suspended { at: self.0.clock.now(), reason })
    }

    /// The home of this host.
    #[must_use]
    pub fn home(&self) -> &Home {
        &self.0.home
    }

    /// Stops at a durable point. Runs are left as they are: the next host resumes them.
    pub async fn shutdown(&self) {
        self.0.retention.stop().await;
        self.0.motor.shutdown().await;
        self.0.deliveries.stop().await;
        self.0.skills.close().await;
        if let Err(error) = self.0.store.close().await {
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

/// The error for an act whose commit failed, with the key for repeating it.
fn unknown_act(refusal: Refusal, key: Option<&str>) -> Refusal {
    if refusal.code != RefusalCode::OutcomeUnknown {
        return refusal;
    }
    let reason = format!("it is not known whether the run was accepted: {}", refusal.reason);
    let refusal = Refusal { reason, ..refusal };
    match key {
        Some(key) => refusal.with_key(key),
        None => refusal,
    }
}

impl HostInner {
    /// The owner's error for a busy agent: its run, what it waits for, and the commands to continue.
    pub(crate) fn busy(&self, agent: &AgentName, by: Caller, refusal: Refusal) -> Refusal {
        if refusal.code != RefusalCode::Busy || by != Caller::Owner {
            return refusal;
        }
        let Ok(Some((RunRecord { id, waiting, .. }, is_driven))) = self.motor.holder(agent) else { return refusal };
        let (state, command) = match waiting {
            Some(Waiting::Input(_)) => ("waits for your answer", format!("`motor task respond {id}` answers it")),
            Some(Waiting::Approval(_)) => ("waits for your consent", format!("`motor task approve {id}` decides")),
            None if is_driven => ("is under way", format!("`motor task status {id}` shows it")),
            None => ("was interrupted", format!("`motor act --resume {id}` goes on with it")),
        };
        let reason = format!("Motor Cortex is busy (run_id: {id}): that run of agent `{agent}` {state}");
        let remedy = format!("{command}, `motor task cancel {id}` gives it up, `--agent NAME` works beside it");
        Refusal::new(RefusalCode::Busy, reason).with_remedy(remedy)
    }

    fn waiting_signals(&self) -> WaitingSignals {
        WaitingSignals { store: self.store.clone(), signals: self.signals.clone() }
    }

    fn accepted(&self, run: &RunRecord, warnings: Vec<String>) -> ActReply {
        ActReply { workspace: self.home.workspace(&run.id), run_id: run.id.clone(), status: run.status, warnings }
    }
}

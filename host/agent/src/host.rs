//! The facade: everything the product can do, for every surface. One per home, held by a lock.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::{AgentName, Clock, Random, Refusal, RefusalCode, RunId, Timestamp};
use energy::{Activity, EnergyBook};
use motor::{Cancelled, ListFilter, Motor, MotorParts, RunRecord, RunRequest, RunTrace, Watch};
use runtime::{CodeErrorCode, Program, Runtime};
use signals::{Signal, SignalBus};
use store::{Batch, HomeLock, Scan, Store, Table};
use tokio_util::sync::CancellationToken;

use crate::api::{
    ActReply, ActRequest, Caller, EnergyReport, ExecuteReply, ExecuteRequest, HostStatus, Mode, TaskFilter,
};
use crate::config::{Config, Loaded};
use crate::environment::{HostEnvironment, RunSettings, blocking};
use crate::sandboxes::Sandboxes;
use crate::trace_file::TraceWriter;
use crate::{Env, Home, catalogue, workspace};

/// What a host is made of.
pub struct HostOptions {
    /// Its home.
    pub home: Home,
    /// Its configuration.
    pub config: Loaded,
    /// The environment's variables: keys and endpoints of models.
    pub env: Env,
    /// The program that compiles untrusted components (see [`runtime::EngineConfig::compile_worker`]).
    pub compile_worker: Option<PathBuf>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<Random>,
}

/// A running host. Cheap to clone; the home is free again when the last clone is gone.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    home: Home,
    config: Config,
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
    store: Store,
    signals: SignalBus,
    energy: Arc<EnergyBook>,
    motor: Motor,
    environment: Arc<HostEnvironment>,
    sandboxes: Arc<Sandboxes>,
    started_at: Timestamp,
    /// Held for as long as the host lives. Last, so that the home is free only when all else is gone.
    _lock: HomeLock,
}

impl Host {
    /// Takes the home, opens its state, and takes up the runs that an earlier host left.
    ///
    /// # Errors
    /// When another process owns the home, or its state cannot be used.
    pub async fn open(options: HostOptions) -> Result<Self, Refusal> {
        let host = Self::open_idle(options).await?;
        host.resume().await?;
        Ok(host)
    }

    /// Takes the home and opens its state, without taking up runs: for a host that lasts a moment, which would only
    /// interrupt them once more.
    ///
    /// # Errors
    /// When another process owns the home, or its state cannot be used.
    pub async fn open_idle(options: HostOptions) -> Result<Self, Refusal> {
        let HostOptions { home, config: Loaded { config, .. }, env, compile_worker, clock, random } = options;
        home.create()?;
        let lock = HomeLock::acquire(home.path())?;
        let store = Store::open(&home.state())?;
        let engine = config.engine.engine(config.limits.memory_bytes, Some(home.cache()), compile_worker);
        let runtime = Runtime::new(engine).map_err(|error| {
            Refusal::new(RefusalCode::Failed, format!("the component engine does not start: {}", error.root_cause()))
        })?;
        let sandboxes = Arc::new(Sandboxes::new(runtime));
        let signals = SignalBus::open(store.clone(), clock.clone())?;
        let energy = Arc::new(EnergyBook::open(store.clone(), clock.clone(), config.energy.clone()));
        let traces = TraceWriter::start(home.logs())
            .map_err(|error| Refusal::new(RefusalCode::Failed, format!("the host gets no thread: {error}")))?;
        let environment = Arc::new(HostEnvironment {
            home: home.clone(),
            config: config.clone(),
            env,
            clock: clock.clone(),
            random: random.clone(),
            sandboxes: sandboxes.clone(),
            traces,
        });
        let motor = Motor::new(MotorParts {
            store: store.clone(),
            signals: signals.clone(),
            energy: energy.clone(),
            clock: clock.clone(),
            random: random.clone(),
            environment: environment.clone(),
            config: config.motor.clone(),
        });
        let started_at = clock.now();
        let inner = Inner {
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
            started_at,
            _lock: lock,
        };
        Ok(Self(Arc::new(inner)))
    }

    /// Takes up the runs that an earlier host left. Those that already go on are left alone.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn resume(&self) -> Result<Vec<RunId>, Refusal> {
        let resumed = self.0.motor.resume_all().await?;
        if !resumed.is_empty() {
            tracing::info!(runs = resumed.len(), "took up runs that an earlier host left");
        }
        Ok(resumed)
    }

    /// Accepts a task: the run is durable when this returns (SPEC RUN-1, DUR-4).
    ///
    /// # Errors
    /// When anything about the request is wrong or missing; nothing is left behind then, and it cost no energy.
    pub async fn act(&self, request: ActRequest) -> Result<ActReply, Refusal> {
        let inner = &*self.0;
        if request.mode == Mode::Oneshot {
            let reason = "a oneshot is not a run";
            return Err(Refusal::new(RefusalCode::InvalidRequest, reason));
        }
        if request.task.trim().is_empty() {
            let refusal = Refusal::new(RefusalCode::InvalidRequest, "the task is empty");
            return Err(refusal.with_remedy("say in plain language what is to be done"));
        }
        // The same command again: its run is the answer, whatever has become of files, energy or keys since.
        if let Some(key) = &request.key
            && let Some(run) = inner.motor.started_by(&request.agent, key)?
        {
            return Ok(inner.accepted(&run, Vec::new()));
        }
        let tools = catalogue::resolve(&request.tools)?;
        let warnings = self.gate(&request.agent, Activity::Agentic { browser: false }, request.by)?;
        let settings = RunSettings { model: request.model, record: request.record, guard: request.guard };
        // What is missing is found before the run exists and before a token is spent.
        inner.environment.check(&settings)?;
        let id = inner.motor.new_run_id();
        let directory = inner.home.workspace(&id);
        let (files, limits, place) = (request.files, inner.config.limits, directory.clone());
        blocking(move || workspace::prepare(&place, &files, &limits)).await?;
        let settings = serde_json::to_value(&settings)
            .map_err(|error| Refusal::new(RefusalCode::InvalidRequest, error.to_string()))?;
        let started = inner.motor.start(
            id.clone(),
            RunRequest {
                agent: request.agent,
                task: request.task,
                tools,
                max_iterations: request.max_iterations,
                timeout: request.timeout_ms.map(Duration::from_millis),
                settings,
                key: request.key,
                approval_required: false,
            },
        );
        let run = started.await.inspect_err(|refusal| {
            // After a failed write nobody knows whether the run is on the disk: if it is, it needs its files.
            if refusal.code != RefusalCode::StorageFailed {
                workspace::discard(&directory);
            }
        })?;
        if run.id != id {
            // The same key named an earlier run: that one is the answer.
            workspace::discard(&directory);
        }
        Ok(inner.accepted(&run, warnings))
    }

    /// Acts in one go (SPEC RUN-1, mode oneshot): the task is a program, and its value comes back at once.
    ///
    /// # Errors
    /// When the request asks for what only a run has, or the host itself cannot.
    pub async fn act_once(&self, request: ActRequest) -> Result<ExecuteReply, Refusal> {
        let run_only = !request.tools.is_empty() || !request.files.is_empty() || request.model.is_some();
        if run_only || request.record.is_some() || request.max_iterations.is_some() || request.key.is_some() {
            let reason = "a oneshot runs its task as a program: it has no tools, files, model, iterations or key";
            return Err(
                Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy("leave them out, or act agentically")
            );
        }
        let ActRequest { task: code, timeout_ms, guard, agent, by, .. } = request;
        self.execute(ExecuteRequest { code, purpose: None, timeout_ms, guard, agent, seed: None, by }).await
    }

    /// Runs a program in the sandbox (SPEC CODE-5). What the program does wrong is part of the reply.
    ///
    /// # Errors
    /// When the host itself cannot: the sandbox does not load, or the store fails.
    pub async fn execute(&self, request: ExecuteRequest) -> Result<ExecuteReply, Refusal> {
        let inner = &*self.0;
        let warnings = match self.gate(&request.agent, Activity::Oneshot, request.by) {
            Ok(warnings) => warnings,
            Err(refusal) => return Ok(denied(&refusal)),
        };
        let sandbox = inner.sandboxes.code().await?;
        let mut batch = Batch::new();
        inner.energy.stage_drain(&mut batch, &request.agent, Activity::Oneshot).await?;
        inner.store.commit(batch).await?;
        let program = Program {
            source: request.code,
            timeout: inner.config.code.timeout(request.timeout_ms),
            guard: request.guard.unwrap_or(inner.config.code.guard),
            seed: request.seed.unwrap_or_else(|| inner.random.next_u64()),
            now_ms: inner.clock.now().as_millis(),
        };
        tracing::debug!(purpose = request.purpose, "executing a program");
        let report = sandbox.execute(&program, &inner.config.limits, &CancellationToken::new()).await;
        let usage = report.usage;
        let mut reply = ExecuteReply {
            ok: report.outcome.is_ok(),
            output: String::new(),
            error_code: None,
            line: None,
            column: None,
            truncated: false,
            console: report.console,
            console_truncated: report.console_truncated,
            duration_ms: usage.duration.as_secs_f64() * 1_000.0,
            fuel: usage.fuel,
            peak_memory_bytes: usage.peak_memory_bytes,
            warnings,
        };
        match report.outcome {
            Ok(value) => {
                reply.output = value.json;
                reply.truncated = value.truncated;
            }
            Err(error) => {
                reply.output = error.to_string();
                reply.error_code = Some(code_name(error.code).to_owned());
                reply.line = error.line;
                reply.column = error.column;
            }
        }
        Ok(reply)
    }

    /// Runs, newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub fn tasks(&self, filter: TaskFilter) -> Result<Vec<RunRecord>, Refusal> {
        self.0.motor.list(ListFilter { status: filter.status, agent: filter.agent, limit: filter.limit })
    }

    /// Everything about one run.
    ///
    /// # Errors
    /// When there is no such run.
    pub fn task(&self, id: &RunId) -> Result<RunTrace, Refusal> {
        self.0.motor.status(id)
    }

    /// The last 16 KiB of a run's log.
    ///
    /// # Errors
    /// When there is no such run.
    pub fn log(&self, id: &RunId) -> Result<String, Refusal> {
        self.0.motor.log(id)
    }

    /// Stops a run; the cancelled state is durable when this returns.
    ///
    /// # Errors
    /// When there is no such run, or it is over.
    pub async fn cancel(&self, id: &RunId) -> Result<Cancelled, Refusal> {
        self.0.motor.cancel(id).await
    }

    /// A run's events from its first, then as they happen.
    ///
    /// # Errors
    /// When there is no such run.
    pub fn watch(&self, id: &RunId) -> Result<Watch, Refusal> {
        self.0.motor.watch(id)
    }

    /// Waits until a run is over.
    ///
    /// # Errors
    /// When there is no such run, or the host shuts down.
    pub async fn wait(&self, id: &RunId) -> Result<RunRecord, Refusal> {
        self.0.motor.wait(id).await
    }

    /// Signals after an id, in order.
    ///
    /// # Errors
    /// When the store fails.
    pub fn signals(&self, after: u64, limit: usize) -> Result<Vec<Signal>, Refusal> {
        Ok(self.0.signals.since(after, limit)?)
    }

    /// The id of the newest signal.
    #[must_use]
    pub fn signals_latest(&self) -> u64 {
        self.0.signals.latest()
    }

    /// Changes whenever a signal was delivered.
    #[must_use]
    pub fn subscribe_signals(&self) -> tokio::sync::watch::Receiver<u64> {
        self.0.signals.subscribe()
    }

    /// An agent's energy.
    ///
    /// # Errors
    /// When the store fails.
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

    /// What the host says of itself.
    #[must_use]
    pub fn status(&self) -> HostStatus {
        HostStatus {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            home: self.0.home.path().to_owned(),
            started_at: self.0.started_at,
            running: self.running(),
        }
    }

    /// Runs that are not over. A store that fails is seen by whoever asks for more than a status.
    fn running(&self) -> Vec<RunId> {
        let live = self.0.store.scan::<serde::de::IgnoredAny>(Table::Live, &Scan::all()).unwrap_or_default();
        live.into_iter().filter_map(|(key, _)| RunId::parse(&String::from_utf8(key).ok()?).ok()).collect()
    }

    /// Its home.
    #[must_use]
    pub fn home(&self) -> &Home {
        &self.0.home
    }

    /// Stops at a durable point. Runs are left as they are: the next host takes them up.
    pub async fn shutdown(&self) {
        self.0.motor.shutdown().await;
        if let Err(error) = self.0.store.close().await {
            tracing::warn!(%error, "the store did not close cleanly");
        }
    }

    /// Energy refuses a model and warns the owner (SPEC EN-3).
    fn gate(&self, agent: &AgentName, activity: Activity, by: Caller) -> Result<Vec<String>, Refusal> {
        match (self.0.energy.check(agent, activity), by) {
            (Ok(()), _) => Ok(Vec::new()),
            (Err(refusal), Caller::Owner) if refusal.code == RefusalCode::EnergyTooLow => {
                Ok(vec![format!("{}; going on because the owner asks", refusal.reason)])
            }
            (Err(refusal), _) => Err(refusal),
        }
    }
}

impl Inner {
    fn accepted(&self, run: &RunRecord, warnings: Vec<String>) -> ActReply {
        ActReply { workspace: self.home.workspace(&run.id), run_id: run.id.clone(), status: run.status, warnings }
    }
}

fn code_name(code: CodeErrorCode) -> &'static str {
    match code {
        CodeErrorCode::Timeout => "EXECUTION_TIMEOUT",
        CodeErrorCode::Error => "EXECUTION_ERROR",
        CodeErrorCode::Blocked => "EXECUTION_BLOCKED",
        CodeErrorCode::Limit => "EXECUTION_LIMIT",
        CodeErrorCode::Cancelled => "EXECUTION_CANCELLED",
    }
}

fn denied(refusal: &Refusal) -> ExecuteReply {
    ExecuteReply {
        ok: false,
        output: format!("EXECUTION_DENIED: {}", refusal.reason),
        error_code: Some("EXECUTION_DENIED".to_owned()),
        line: None,
        column: None,
        truncated: false,
        console: String::new(),
        console_truncated: false,
        duration_ms: 0.0,
        fuel: 0,
        peak_memory_bytes: 0,
        warnings: Vec::new(),
    }
}

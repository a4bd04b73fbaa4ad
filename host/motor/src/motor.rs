//! The facade: starting, cancelling and resuming runs.
//!
//! One driver per run is its only writer; everything here either reads the store or asks a driver. A run that has no
//! driver (the host was stopped, or storage failed under it) is resumed on demand: at a start of the host, or by a
//! cancel.

use std::sync::Arc;
use std::time::Duration;

use base::{AgentName, Clock, HostTime, Random, Refusal, RefusalCode, RunId};
use energy::EnergyBook;
use grants::Grant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use signals::SignalBus;
use store::{Scan, Store, Table};

use crate::command::{
    ApprovalDecision, Command, CommandReply, OwnerMessage, QuestionAnswer, RetryReply, RetryRequest, TellReply,
};
use crate::config::MotorConfig;
use crate::drivers::Drivers;
use crate::environment::Environment;
use crate::event::RunEvent;
use crate::journal::{JournalError, RunStore, StoredReply, command_key, order_key};
use crate::money::RunMoney;
use crate::phase::DriverOutcome;
use crate::record::RunRecord;
use crate::skill::SkillLabel;
use crate::status::{IllegalTransition, RunStatus, StatusEvent};

/// Bytes of an idempotency key.
const MAX_KEY_BYTES: usize = 200;
/// Bytes of a task.
const MAX_TASK_BYTES: usize = 256 * 1024;

/// The parts that a motor is built from.
pub struct MotorParts {
    /// Where runs are kept.
    pub store: Store,
    /// Where results are announced.
    pub signals: SignalBus,
    /// The budgets and costs of runs.
    pub energy: Arc<EnergyBook>,
    /// The source of the time.
    pub clock: Arc<dyn Clock>,
    /// The source of random bits for ids.
    pub random: Arc<Random>,
    /// Makes tools and models.
    pub environment: Arc<dyn Environment>,
    /// The owner's settings.
    pub config: MotorConfig,
}

/// A run that is asked for.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// Whose run it is.
    pub agent: AgentName,
    /// The task, in the user's words.
    pub task: String,
    /// The tools granted, by exact name. Anything else is not available to the run.
    pub tools: Vec<String>,
    /// Model calls, 1 to 50. Default: the configuration's.
    pub max_iterations: Option<u32>,
    /// Wall clock. Default and most: the configuration's.
    pub timeout: Option<Duration>,
    /// The access that the environment gives the run, now and after a restart.
    pub grant: Grant,
    /// Asking again with the same key gives the same run, not another.
    pub key: Option<String>,
    /// Whether irreversible and outward actions wait for consent.
    pub approval_required: bool,
    /// Whether it may ask its user and owner. A run that may not goes on without, and
    /// actions that need consent are refused.
    pub may_ask: bool,
    /// Whether it was started to be left alone: its questions wait for `detached_timeout_seconds`.
    pub detached: bool,
    /// Whether its access is settled: it may ask its user questions, but not for more access (SPEC LAND-6).
    pub settled: bool,
    /// The skill it works by, as a label in its trace.
    pub skill: Option<SkillLabel>,
    /// The sources of untrusted input: a run with any of them begins tainted.
    pub web_sources: Vec<String>,
    /// Whether a model requests it.
    pub by_model: bool,
    /// Its cap in US dollars, and the prices of its models.
    pub money: RunMoney,
}

/// The reply to a cancel command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelReply {
    /// The id of the run.
    pub run_id: RunId,
    /// The status before the command.
    pub previous_status: RunStatus,
    /// The status after the command.
    pub new_status: RunStatus,
}

/// The runs of a home. Cheap to clone.
#[derive(Clone)]
pub struct Motor {
    pub(crate) inner: Arc<MotorInner>,
}

pub(crate) struct MotorInner {
    pub(crate) books: RunStore,
    random: Arc<Random>,
    pub(crate) drivers: Drivers,
    /// Held from the look at a place until it is taken.
    pub(crate) admission: Arc<tokio::sync::Mutex<()>>,
}

impl Motor {
    /// Over a home's stores. Nothing runs until [`Motor::start`] or [`Motor::resume_all`].
    #[must_use]
    pub fn new(parts: MotorParts) -> Self {
        let MotorParts { store, signals, energy, clock, random, environment, config } = parts;
        let time = HostTime::starting(clock.clone());
        let books = RunStore { store, signals, energy, clock, time, counters: Arc::default() };
        let drivers = Drivers::new(books.clone(), environment, config);
        Self { inner: Arc::new(MotorInner { books, random, drivers, admission: Arc::default() }) }
    }

    /// Changes the settings, for every run that is started or taken up from now on.
    pub fn configure(&self, config: MotorConfig) {
        self.inner.drivers.configure(config);
    }

    /// An id for a run that is about to be started, so that its workspace can be prepared first.
    #[must_use]
    pub fn new_run_id(&self) -> RunId {
        RunId::new(self.inner.books.clock.now(), &self.inner.random)
    }

    /// Accepts a run: when this returns, the run is durable and a driver is about to work on it. With a key that was
    /// used before, nothing is started and the record is that of the run it stands for: its id is then not `id`.
    ///
    /// # Errors
    /// `Busy` when another run of the agent holds the place (SPEC RUN-2), `InvalidRequest`, or an error of the store.
    pub async fn start(&self, id: RunId, request: RunRequest) -> Result<RunRecord, Refusal> {
        let created = self.accept(request)?;
        let motor = self.clone();
        // In a task of its own: a caller that goes away must not leave a durable run without a driver.
        match tokio::spawn(async move { motor.admit(id, created).await }).await {
            Ok(admitted) => admitted,
            Err(_) => Err(Refusal::new(RefusalCode::Failed, "the host broke off while it accepted the run")
                .with_remedy("list the runs to see whether it was accepted")),
        }
    }

    /// The run that an earlier command of the agent with this idempotency key started. Check it before preparing
    /// a run; [`Motor::start`] checks again.
    ///
    /// # Errors
    /// `InvalidRequest` if it is not a valid key, or an error of the store.
    pub fn started_by(&self, agent: &AgentName, key: &str) -> Result<Option<RunRecord>, Refusal> {
        check_key(key)?;
        let books = &self.inner.books;
        let Some(run) = books.store.get::<RunId>(Table::Places, command_key(agent, key))? else { return Ok(None) };
        match books.record(&run) {
            Ok(record) => Ok(Some(record)),
            Err(JournalError::Unknown { .. }) => {
                let reason = format!("the idempotency key `{key}` stands for run `{run}`, which was deleted");
                Err(Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy("take a new key for a new run"))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The unfinished runs of the agent, the oldest first, and whether a driver works on each.
    ///
    /// # Errors
    /// If the store fails.
    pub fn unfinished(&self, agent: &AgentName) -> Result<Vec<(RunRecord, bool)>, Refusal> {
        let runs = self.inner.books.unfinished(agent)?;
        let with_driver = |run: RunRecord| {
            let is_driven = self.is_driven(&run.id);
            (run, is_driven)
        };
        Ok(runs.into_iter().map(with_driver).collect())
    }

    /// Whether a run is at work in this host.
    #[must_use]
    pub fn is_driven(&self, id: &RunId) -> bool {
        self.inner.drivers.progress(id).is_some()
    }

    async fn admit(&self, id: RunId, created: RunEvent) -> Result<RunRecord, Refusal> {
        let RunEvent::Created { agent, key, .. } = &created else {
            return Err(Refusal::new(RefusalCode::Failed, "the request did not become a run"));
        };
        let books = &self.inner.books;
        let _admitted = self.inner.admission.lock().await;
        if let Some(key) = key
            && let Some(record) = self.started_by(agent, key)?
        {
            return Ok(record);
        }
        books.has_place(agent, &id, self.inner.drivers.config().places)?;
        if books.store.get::<RunRecord>(Table::Runs, id.as_str())?.is_some() {
            return Err(Refusal::new(RefusalCode::InvalidRequest, format!("there is already a run `{id}`")));
        }
        let record = books.create(id.clone(), created).await?;
        // When the host is closing the run is durable all the same, and starts with the next host.
        self.inner.drivers.launch(&id).ok();
        Ok(record)
    }

    /// The first event of the run that is asked for.
    fn accept(&self, request: RunRequest) -> Result<RunEvent, Refusal> {
        let RunRequest {
            agent,
            task,
            mut tools,
            max_iterations,
            timeout,
            grant,
            key,
            approval_required,
            may_ask,
            detached,
            settled,
            skill,
            web_sources,
            by_model,
            money,
        } = request;
        let invalid = |reason: String| Refusal::new(RefusalCode::InvalidRequest, reason);
        if task.trim().is_empty() {
            return Err(invalid("the task is empty".to_owned()).with_remedy("say what is to be done"));
        }
        if task.len() > MAX_TASK_BYTES {
            return Err(invalid(format!("the task has {} bytes: at most {MAX_TASK_BYTES} are possible", task.len()))
                .with_remedy("give long material to the run as a file"));
        }
        key.as_deref().map_or(Ok(()), check_key)?;
        let mut seen = std::collections::HashSet::new();
        tools.retain(|tool| seen.insert(tool.clone()));
        let config = self.inner.drivers.config();
        let timeout = config.timeout(timeout)?;
        Ok(RunEvent::Created {
            agent,
            task,
            tools,
            max_iterations: config.iterations(max_iterations)?,
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            grant: Box::new(grant),
            key,
            energy: 0.0,
            approval_required,
            may_ask,
            detached,
            settled,
            credits: Some(&config.budget).filter(|prices| prices.enabled).map(|prices| prices.credits),
            skill,
            web_sources,
            by_model,
            rules: config.rules,
            money,
        })
    }

    /// Takes up every run that a stopped host left (SPEC DUR-3). Looks at live runs only, however many are finished.
    ///
    /// # Errors
    /// If the store fails. A run whose own history is unusable fails for that reason, and the others go on.
    pub async fn resume_all(&self) -> Result<Vec<RunId>, Refusal> {
        let live = self.inner.books.store.scan::<RunId>(Table::Live, &Scan::all())?;
        let mut resumed = Vec::new();
        for (_, run) in live {
            let record = self.inner.books.record(&run);
            if self.go_on(&run, record.ok().as_ref())? {
                resumed.push(run);
            }
        }
        Ok(resumed)
    }

    /// Takes up one run, if it is neither over nor driven.
    ///
    /// # Errors
    /// `NotFound`, `TryLater` when the host is shutting down, or an error of the store.
    pub fn take_up(&self, id: &RunId) -> Result<(), Refusal> {
        let record = self.inner.books.record(id)?;
        if !record.status.is_terminal() {
            self.go_on(id, Some(&record))?;
        }
        Ok(())
    }

    /// Gives a run that is not over a driver, or a timer if it waits. Whether the driver is new.
    fn go_on(&self, run: &RunId, record: Option<&RunRecord>) -> Result<bool, Refusal> {
        // A run that waits for people is left alone, however many there are: all it needs is a look at the clock.
        // Its question is the same as before, and so are its signal and the time that is left for an answer.
        if let Some(RunRecord { status, waiting: Some(waiting), .. }) = record
            && status.is_waiting()
        {
            self.inner.drivers.take_up_at_the_end_of(waiting, run);
            return Ok(false);
        }
        Ok(self.inner.drivers.launch(run)?.is_new)
    }

    /// Gives a waiting run the user's answer (SPEC ASK-1). When this returns the answer is durable and the run goes on.
    ///
    /// # Errors
    /// `NotFound`; `IllegalState` when nothing or something else is asked, or the answer comes too late or a second time;
    /// or an error of the store.
    pub async fn respond(&self, id: &RunId, answer: QuestionAnswer) -> Result<CommandReply, Refusal> {
        self.order(id, Command::Respond(answer)).await
    }

    /// Gives a waiting run the owner's decision (SPEC APPR-1). When this returns it is durable and the run goes on.
    ///
    /// # Errors
    /// As [`Motor::respond`], and when the decision was made about another action than the one that waits.
    pub async fn approve(&self, id: &RunId, decided: ApprovalDecision) -> Result<CommandReply, Refusal> {
        self.order(id, Command::Approve(decided)).await
    }

    /// Tells a run something while it works. When this returns the message is durable, and the next request to the model
    /// delivers it; an answer that the model was writing meanwhile is not taken without it. It grants nothing.
    ///
    /// # Errors
    /// `NotFound`; `InvalidRequest` if the text is empty or too long; `IllegalState` when the run waits or is over, was told
    /// too much, or makes no further request in this attempt; or an error of the store.
    pub async fn tell(&self, id: &RunId, message: OwnerMessage) -> Result<TellReply, Refusal> {
        self.order(id, Command::Tell(message)).await
    }

    /// Tries a failed run again, with a new conversation (SPEC RUN-10).
    ///
    /// # Errors
    /// `NotFound`; `IllegalState` when it has not failed or every attempt was used; `Busy` when another run of the agent
    /// holds the slot; `ConsentNeeded` when it would get more access without the owner's proof; or an error of the store.
    pub async fn retry(&self, id: &RunId, request: RetryRequest) -> Result<RetryReply, Refusal> {
        let command = Command::Retry(request);
        // In the task of the order: a caller that goes away must not open the place to another run meanwhile.
        let admitted = self.inner.admission.clone().lock_owned().await;
        let books = &self.inner.books;
        let agent = books.record(id)?.agent;
        if self.reply_to(id, &command)?.is_none() {
            books.has_place(&agent, id, self.inner.drivers.config().places)?;
        }
        self.ordered(id, command, Some(admitted)).await
    }

    /// The earlier reply to the same command, found by its key.
    fn reply_to(&self, id: &RunId, command: &Command) -> Result<Option<Value>, Refusal> {
        let Some(key) = command.key() else { return Ok(None) };
        check_key(key)?;
        let given = self.inner.books.store.get::<StoredReply>(Table::Places, order_key(id, key))?;
        match given {
            Some(given) if given.order != command.fingerprint() => {
                let reason = format!("the idempotency key `{key}` was used for another order");
                Err(Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy("take a new key for a new order"))
            }
            given => Ok(given.map(|given| given.reply)),
        }
    }

    async fn order<T: serde::de::DeserializeOwned>(&self, id: &RunId, command: Command) -> Result<T, Refusal> {
        self.ordered(id, command, None).await
    }

    async fn ordered<T: serde::de::DeserializeOwned>(
        &self,
        id: &RunId,
        command: Command,
        admitted: Option<tokio::sync::OwnedMutexGuard<()>>,
    ) -> Result<T, Refusal> {
        let known = || self.reply_to(id, &command);
        let reply = match known()? {
            Some(reply) => reply,
            None => {
                let meant = command.clone().meant_for(&self.inner.books.record(id)?);
                let fingerprint = command.fingerprint();
                // In a task of its own: a caller that goes away must not leave an order half taken.
                let (drivers, run) = (self.inner.drivers.clone(), id.clone());
                let ordered = tokio::spawn(async move {
                    let _admitted = admitted;
                    match meant {
                        Command::Tell(_) => drivers.tell(&run, meant, fingerprint).await,
                        _ => drivers.order(&run, meant, fingerprint).await,
                    }
                });
                let ordered = ordered.await;
                let ordered = ordered
                    .unwrap_or_else(|_| Err(Refusal::new(RefusalCode::Failed, "the host broke off over an order")));
                match ordered {
                    Ok(reply) => reply,
                    // The same order, given at the same time, may have been carried out meanwhile.
                    Err(refusal) => known()?.ok_or(refusal)?,
                }
            }
        };
        serde_json::from_value(reply).map_err(|error| {
            Refusal::new(RefusalCode::StateUnusable, format!("the reply to an order cannot be read: {error}"))
        })
    }

    /// Cancels a run in any live state. Returns when that is durable; a guest in flight has been stopped.
    ///
    /// # Errors
    /// `NotFound`; `IllegalState` when the run is over or ends in another way first; or an error of the store.
    pub async fn cancel(&self, id: &RunId) -> Result<CancelReply, Refusal> {
        let previous_status = self.inner.books.record(id)?.status;
        let over = |status| {
            let illegal = IllegalTransition { status, event: StatusEvent::Cancel };
            Refusal::new(RefusalCode::IllegalState, illegal.to_string())
        };
        if previous_status.is_terminal() {
            return Err(over(previous_status));
        }
        match self.inner.drivers.cancel(id).await? {
            DriverOutcome::Finished(record) if record.status == RunStatus::Cancelled => {
                Ok(CancelReply { run_id: id.clone(), previous_status, new_status: record.status })
            }
            DriverOutcome::Finished(record) => Err(over(record.status)),
            DriverOutcome::Parked(record) => Err(over(record.status)),
            DriverOutcome::Suspended { refusal, .. } => Err(refusal),
        }
    }

    /// Stops every driver at a durable point. Runs are left as they are, to be taken up by the next host.
    pub async fn shutdown(&self) {
        self.inner.drivers.shutdown().await;
    }
}

fn check_key(key: &str) -> Result<(), Refusal> {
    if (1..=MAX_KEY_BYTES).contains(&key.len()) {
        return Ok(());
    }
    Err(Refusal::new(RefusalCode::InvalidRequest, format!("an idempotency key has 1 to {MAX_KEY_BYTES} bytes")))
}

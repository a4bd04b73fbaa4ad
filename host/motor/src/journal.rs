//! The only writer of a run. One atomic, synced batch for each durable point; nothing is shown before (SPEC DUR-1).
//!
//! A driver stages events, which change the state in memory at once, and commits them before it does anything that
//! others can notice. When a commit fails the state in memory is ahead of the disk and must be thrown away: the driver
//! loads the run again or stops, and the run stays as it was last durable.

use std::sync::Arc;
use std::time::Duration;

use base::{Clock, ContentHash, HostTime, Refusal, RefusalCode, RunId};
use energy::{Activity, EnergyBook};
use llm::Message;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use signals::{
    MotorResult, SignalApproval, SignalArtifact, SignalBus, SignalError, SignalSkill, SignalStatus, TaskResult,
    TaskStats,
};
use store::{Batch, Scan, Store, StoreError, Table};

use crate::artifact::Artifact;
use crate::counters::RunCounters;
use crate::event::{RunEvent, StoredEvent, event_key, event_prefix};
use crate::failure::{FailureSummary, RunError};
use crate::guard::GuardVerdict;
use crate::live::{LiveEvent, LiveLog};
use crate::record::RunRecord;
use crate::skill::InstalledSkill;
use crate::spend::SpendBook;
use crate::state::{HistoryError, RunState};
use crate::status::{IllegalTransition, RunStatus};
use crate::wait::Waiting;

/// Why a run cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum JournalError {
    #[error("run `{run}` has no record")]
    Unknown { run: RunId },
    #[error("the driver of run `{run}` broke off: a tool, a model or the loop itself panicked")]
    Panicked { run: RunId },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("it is not known whether this was stored: {}", Refusal::from(_0.clone()).reason)]
    Uncertain(StoreError),
    #[error(transparent)]
    History(#[from] HistoryError),
}

impl JournalError {
    /// Why a commit failed. After a failed write the next opening of the store finds the batch as a whole, or not.
    pub(crate) fn of_commit(error: StoreError) -> Self {
        match error {
            StoreError::Io { .. } => Self::Uncertain(error),
            other => Self::Store(other),
        }
    }

    /// Whether the history itself is unusable: this version will never read it, even if the disk recovers.
    pub(crate) fn is_unreadable_history(&self) -> bool {
        matches!(self, Self::History(_) | Self::Store(StoreError::Record { table: Table::Events, .. }))
    }
}

impl From<IllegalTransition> for JournalError {
    fn from(error: IllegalTransition) -> Self {
        Self::History(error.into())
    }
}

impl From<JournalError> for Refusal {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Store(error) => error.into(),
            JournalError::Uncertain(_) => Self::new(RefusalCode::OutcomeUnknown, error.to_string())
                .with_remedy("start the host again; `motor task list` shows what was stored"),
            JournalError::Unknown { .. } => Self::new(RefusalCode::NotFound, error.to_string())
                .with_remedy("list the runs to see their ids: `motor task list`"),
            JournalError::Panicked { .. } => Self::new(RefusalCode::Failed, error.to_string())
                .with_remedy("this is a defect: report it with the host's log"),
            JournalError::History(HistoryError::Illegal(illegal)) => {
                Self::new(RefusalCode::IllegalState, illegal.to_string())
            }
            JournalError::History(error) => Self::new(RefusalCode::StateUnusable, error.to_string())
                .with_remedy("restore the home's `state` directory from a backup"),
        }
    }
}

/// Where runs are kept.
#[derive(Clone)]
pub(crate) struct RunStore {
    pub(crate) store: Store,
    pub(crate) signals: SignalBus,
    pub(crate) energy: Arc<EnergyBook>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) time: HostTime,
    pub(crate) counters: Arc<RunCounters>,
}

/// The key under which a command's idempotency key leads to its run (SPEC DUR-4).
pub(crate) fn command_key(agent: &base::AgentName, key: &str) -> String {
    format!("command/{agent}/{key}")
}

/// The stored reply to a command with an idempotency key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredReply {
    /// Which order it was.
    pub(crate) order: ContentHash,
    /// The reply to the command, as JSON.
    pub(crate) reply: Value,
}

/// The key under which the reply to an order with an idempotency key is kept.
pub(crate) fn order_key(run: &RunId, key: &str) -> String {
    order_prefix(run) + key
}

/// Before the keys of all orders that a run was given.
pub(crate) fn order_prefix(run: &RunId) -> String {
    format!("order/{run}/")
}

impl RunStore {
    /// The head of a run.
    pub(crate) fn record(&self, run: &RunId) -> Result<RunRecord, JournalError> {
        self.store.get(Table::Runs, run.as_str())?.ok_or_else(|| JournalError::Unknown { run: run.clone() })
    }

    /// The whole history of a run that has a record.
    pub(crate) fn events(&self, run: &RunId) -> Result<Vec<StoredEvent>, JournalError> {
        let stored = self.store.scan(Table::Events, &Scan::prefix(event_prefix(run)))?;
        Ok(stored.into_iter().map(|(_, event)| event).collect())
    }

    /// The state of a run, from its whole history.
    pub(crate) fn load(&self, run: &RunId) -> Result<(RunState, Vec<StoredEvent>), JournalError> {
        // The record is read first: a commit in between leaves more events than it counts, which are not taken.
        let counted = self.record(run)?.next_sequence;
        let mut events = self.events(run)?;
        let found = events.len() as u64;
        if found < counted {
            return Err(HistoryError::Incomplete { run: run.clone(), found, counted }.into());
        }
        events.truncate(usize::try_from(counted).unwrap_or(usize::MAX));
        Ok((RunState::fold(run, &events)?, events))
    }

    /// Makes a run durable: its first event, its record, its place, and the energy it costs to begin.
    pub(crate) async fn create(&self, run: RunId, mut created: RunEvent) -> Result<RunRecord, JournalError> {
        let mut batch = Batch::new();
        let mut command = None;
        if let RunEvent::Created { agent, tools, key, energy, .. } = &mut created {
            let base = Activity::Agentic { browser: browses(tools) };
            *energy = self.energy.stage_drain(&mut batch, agent, base).await?.cost;
            command = key.as_deref().map(|key| command_key(agent, key));
        }
        let first = StoredEvent { at: self.clock.now(), worked_ms: None, event: created };
        let record =
            RunRecord::created(run.clone(), &first).ok_or_else(|| HistoryError::NoBeginning { run: run.clone() })?;
        batch.put(Table::Events, event_key(&run, 0), &first)?;
        batch.put(Table::Runs, run.as_str(), &record)?;
        batch.put(Table::Live, run.as_str(), &run)?;
        self.take_place(&mut batch, &record.agent, &run)?;
        if let Some(command) = command {
            batch.put(Table::Places, command, &run)?;
        }
        self.store.commit(batch).await.map_err(JournalError::of_commit)?;
        self.counters.count(&first.event);
        Ok(record)
    }

    /// Ends a run whose history cannot be read: its head, its signal and its slot, in one commit. The history is left
    /// as it is, for a version that can read it. Does nothing if the run is over already.
    pub(crate) async fn abandon(
        &self,
        run: &RunId,
        status: RunStatus,
        error: RunError,
    ) -> Result<RunRecord, JournalError> {
        let mut record = self.record(run)?;
        if record.status.is_terminal() {
            return Ok(record);
        }
        let now = self.clock.now();
        record.end(now, status, Some(error))?;
        let mut batch = Batch::new();
        batch.put(Table::Runs, run.as_str(), &record)?;
        batch.delete(Table::Live, run.as_str());
        self.give_back(&mut batch, &record.agent, run)?;
        let duration_ms = u64::try_from(record.elapsed(now).as_millis()).unwrap_or(u64::MAX);
        let staged = self
            .signals
            .stage(&mut batch, &record.agent, result(&record, duration_ms), record.rules.signal_ttl())
            .await?;
        self.store.commit(batch).await.map_err(JournalError::of_commit)?;
        staged.deliver();
        self.counters.count_abandoned(status);
        Ok(record)
    }
}

/// Whether the run may use a browser, which costs more energy (SPEC EN-1).
fn browses(tools: &[String]) -> bool {
    tools.iter().any(|tool| tool == "browser")
}

/// How a run ends.
#[derive(Debug, Clone)]
pub(crate) struct RunEnding {
    pub(crate) status: RunStatus,
    pub(crate) summary: Option<String>,
    pub(crate) error: Option<RunError>,
    pub(crate) failure: Option<FailureSummary>,
    pub(crate) artifacts: Vec<Artifact>,
    pub(crate) installed_skills: Vec<InstalledSkill>,
}

/// One run, being written.
pub(crate) struct Journal {
    books: RunStore,
    live: Arc<LiveLog>,
    run: RunId,
    state: RunState,
    outbox: Vec<StoredEvent>,
    time: WorkTime,
}

/// How long the attempt has worked. A clock that is set while it is driven neither gives nor takes time.
#[derive(Debug, Clone, Copy)]
struct WorkTime {
    before: Duration,
    /// The monotonic clock then.
    since: Duration,
}

impl WorkTime {
    fn at(self, monotonic: Duration) -> Duration {
        self.before.saturating_add(monotonic.saturating_sub(self.since))
    }
}

impl Journal {
    /// Takes a run up from its history.
    pub(crate) fn open(
        books: RunStore,
        live: Arc<LiveLog>,
        run: RunId,
    ) -> Result<(Self, Vec<StoredEvent>), JournalError> {
        let (state, events) = books.load(&run)?;
        let time = WorkTime { before: state.record.worked(books.clock.now()), since: books.clock.monotonic() };
        Ok((Self { books, live, run, state, outbox: Vec::new(), time }, events))
    }

    fn worked(&self) -> Duration {
        self.time.at(self.books.clock.monotonic())
    }

    /// The rest of the attempt's time.
    pub(crate) fn time_left(&self) -> Duration {
        self.state.record.timeout().saturating_sub(self.worked())
    }

    /// The run as it is with everything staged.
    pub(crate) fn state(&self) -> &RunState {
        &self.state
    }

    /// Adds an event to the next commit, and returns the verdict of the loop guard.
    ///
    /// # Errors
    /// When the event may not happen now; nothing is staged then.
    pub(crate) fn stage(&mut self, event: RunEvent) -> Result<GuardVerdict, JournalError> {
        if matches!(event, RunEvent::Started | RunEvent::Retried { .. }) {
            self.time = WorkTime { before: Duration::ZERO, since: self.books.clock.monotonic() };
        }
        let worked_ms = Some(u64::try_from(self.worked().as_millis()).unwrap_or(u64::MAX));
        let stored = StoredEvent { at: self.books.clock.now(), worked_ms, event };
        let verdict = self.state.apply(&stored)?;
        self.outbox.push(stored);
        Ok(verdict)
    }

    /// Commits the staged events, then shows them.
    pub(crate) async fn commit(&mut self) -> Result<(), JournalError> {
        if self.outbox.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::new();
        self.put_staged(&mut batch)?;
        self.books.store.commit(batch).await.map_err(JournalError::of_commit)?;
        self.show();
        Ok(())
    }

    /// Takes a secret that the run has just learnt out of all that was stored before. An event that it leaves unchanged is not
    /// written; an event that could not be read afterwards stays as it was.
    pub(crate) async fn rewrite(&mut self, clean: &(dyn Fn(Value) -> Value + Sync)) -> Result<(), JournalError> {
        self.commit().await?;
        let mut events = self.books.load(&self.run)?.1;
        let mut batch = Batch::new();
        let mut is_changed = false;
        for (sequence, stored) in (0_u64..).zip(&mut events) {
            let Ok(before) = serde_json::to_value(&*stored) else { continue };
            let after = clean(before.clone());
            if after == before {
                continue;
            }
            match serde_json::from_value::<StoredEvent>(after) {
                Ok(event) => *stored = event,
                Err(error) => {
                    tracing::warn!(run = %self.run, sequence, %error, "a secret stays in an event of the run");
                    continue;
                }
            }
            batch.put(Table::Events, event_key(&self.run, sequence), &*stored)?;
            is_changed = true;
        }
        if !is_changed {
            return Ok(());
        }
        let signal = self.state.record.signal;
        let mut state = RunState::fold(&self.run, &events)?;
        state.record.signal = signal;
        batch.put(Table::Runs, self.run.as_str(), &state.record)?;
        self.books.store.commit(batch).await.map_err(JournalError::of_commit)?;
        self.state = state;
        Ok(())
    }

    /// Parks the run: its question, its status and its signal in one commit.
    pub(crate) async fn park(&mut self, asked: RunEvent) -> Result<(), JournalError> {
        self.stage(asked)?;
        let mut batch = Batch::new();
        let (agent, ttl) = (self.state.record.agent.clone(), self.state.record.rules.signal_ttl());
        let staged = self.books.signals.stage(&mut batch, &agent, waiting(&self.state.record), ttl).await?;
        self.state.record.signal = Some(staged.signal().id);
        self.put_staged(&mut batch)?;
        self.books.store.commit(batch).await.map_err(JournalError::of_commit)?;
        staged.deliver();
        self.show();
        Ok(())
    }

    /// The reply to an earlier order with this idempotency key.
    pub(crate) fn reply_to(&self, key: &str) -> Result<Option<StoredReply>, JournalError> {
        Ok(self.books.store.get(Table::Places, order_key(&self.run, key))?)
    }

    /// Applies a command: its events, and the reply under the command's key, in one commit. Returns the loop guard's
    /// verdict on the last result among them.
    pub(crate) async fn carry_out(
        &mut self,
        events: Vec<RunEvent>,
        reply: Option<(&str, StoredReply)>,
    ) -> Result<GuardVerdict, JournalError> {
        let mut verdict = GuardVerdict::Continue;
        let mut batch = Batch::new();
        for event in events {
            if matches!(event, RunEvent::Retried { .. }) {
                // It was over and held nothing.
                batch.put(Table::Live, self.run.as_str(), &self.run)?;
                self.books.take_place(&mut batch, &self.state.record.agent, &self.run)?;
            }
            match self.stage(event)? {
                GuardVerdict::Continue => {}
                other => verdict = other,
            }
        }
        if let Some((key, reply)) = reply {
            batch.put(Table::Places, order_key(&self.run, key), &reply)?;
        }
        self.put_staged(&mut batch)?;
        self.books.store.commit(batch).await.map_err(JournalError::of_commit)?;
        self.show();
        Ok(verdict)
    }

    /// Ends the run: its last events, its signal, its energy, and the place it held, in one commit.
    pub(crate) async fn finish(&mut self, ending: RunEnding) -> Result<(), JournalError> {
        let mut batch = Batch::new();
        let record = &self.state.record;
        let agent = record.agent.clone();
        let iterations = Activity::Iterations { count: record.attempt_iterations(), browser: browses(&record.tools) };
        let drained = self.books.energy.stage_drain(&mut batch, &agent, iterations).await?;
        let RunEnding { status, summary, error, failure, artifacts, installed_skills } = ending;
        let energy = drained.cost;
        self.stage(RunEvent::Finished { status, summary, error, energy, failure, artifacts, installed_skills })?;
        self.put_staged(&mut batch)?;
        batch.delete(Table::Live, self.run.as_str());
        self.books.give_back(&mut batch, &agent, &self.run)?;
        let result = result(&self.state.record, self.state.trace.total_duration_ms);
        let staged = self.books.signals.stage(&mut batch, &agent, result, self.state.record.rules.signal_ttl()).await?;
        self.books.store.commit(batch).await.map_err(JournalError::of_commit)?;
        staged.deliver();
        self.show();
        Ok(())
    }

    /// The messages of the next request, with at most `budget` bytes unless the task alone has more.
    pub(crate) fn messages(&self, budget: usize) -> Vec<Message> {
        self.state.conversation.messages(budget, self.state.record.rules)
    }

    /// The events of the outbox, which are the newest of the state, and the record with all of them.
    fn put_staged(&self, batch: &mut Batch) -> Result<(), StoreError> {
        let first = self.state.record.next_sequence - self.outbox.len() as u64;
        for (sequence, event) in (first..).zip(&self.outbox) {
            batch.put(Table::Events, event_key(&self.run, sequence), event)?;
        }
        let record = &self.state.record;
        // The loop commits each reply before the next, so a batch has replies of one day.
        if self.outbox.iter().any(|stored| matches!(stored.event, RunEvent::ModelReplied { .. })) {
            SpendBook::put(batch, &record.agent, self.run.as_str(), &record.spent_of_day)?;
        }
        batch.put(Table::Runs, self.run.as_str(), record)
    }

    fn show(&mut self) {
        for stored in self.outbox.drain(..) {
            self.books.counters.count(&stored.event);
            if let Some(event) = LiveEvent::of(&self.run, &stored) {
                self.live.publish_durable(event);
            }
        }
    }
}

/// The signal of a run that is over (SPEC SIG-1).
fn result(record: &RunRecord, duration_ms: u64) -> MotorResult {
    let stats =
        TaskStats { iterations: record.iterations, duration_ms, energy_cost: record.energy, errors: record.errors };
    let (status, ok) = match record.status {
        RunStatus::Completed => (SignalStatus::Completed, true),
        RunStatus::Cancelled => (SignalStatus::Cancelled, false),
        _ => (SignalStatus::Failed, false),
    };
    MotorResult {
        result: Some(TaskResult { ok, summary: record.summary.clone().unwrap_or_default(), stats }),
        error: record
            .error
            .as_ref()
            .map(|error| SignalError { message: error.message.clone(), last_step: error.last_step.clone() }),
        failure: record.failure.as_ref().filter(|_| !ok).and_then(|failure| serde_json::to_value(failure).ok()),
        artifacts: record.artifacts.iter().map(artifact).collect(),
        installed_skills: record.installed_skills.iter().map(installed).collect(),
        attempt: record.attempt,
        staged: record.staged,
        sources: record.web_sources.clone(),
        unknown_outcomes: record.unknown_outcomes.clone(),
        notices: record.notices.clone(),
        ..MotorResult::new(record.id.clone(), status)
    }
}

fn artifact(artifact: &Artifact) -> SignalArtifact {
    SignalArtifact { path: artifact.path.clone(), bytes: artifact.bytes, hash: artifact.hash }
}

fn installed(skill: &InstalledSkill) -> SignalSkill {
    let InstalledSkill { name, place, hash, created, problem } = skill.clone();
    SignalSkill { name, place, hash, created, problem }
}

/// The signal of a run that waits (SPEC SIG-1).
fn waiting(record: &RunRecord) -> MotorResult {
    let of = |status| MotorResult {
        attempt: record.attempt,
        notices: record.notices.clone(),
        ..MotorResult::new(record.id.clone(), status)
    };
    match &record.waiting {
        Some(Waiting::Approval(asked)) => MotorResult {
            approval: Some(SignalApproval {
                id: asked.id.clone(),
                summaries: asked.items.iter().map(|item| item.summary.clone()).collect(),
                reason: asked.reason.clone(),
                class: asked.class.clone(),
                choices: asked.choices.iter().map(|scope| scope.as_str().to_owned()).collect(),
            }),
            sources: asked.sources.clone(),
            ..of(SignalStatus::AwaitingApproval)
        },
        Some(Waiting::Input(asked)) => MotorResult {
            question: Some(asked.question.clone()),
            choices: asked.choices.clone(),
            sources: asked.sources.clone(),
            ..of(SignalStatus::AwaitingInput)
        },
        None => of(SignalStatus::AwaitingInput),
    }
}

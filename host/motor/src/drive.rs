//! The loop: a driver works on one run, from the end of its history to the end of the run.
//!
//! It is a state machine over the history: find the next step, take it, stage its result, and commit before
//! any effect that others can notice. A step with one tool call takes two commits: reply and intent, then the result. It
//! survives a stop of the host at every point between, because it starts from the same history the same way.

use std::sync::Arc;
use std::time::Duration;

use base::{Refusal, RefusalCode, RunId};
use llm::Model;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::artifact::Artifact;
use crate::call::{CallOutcome, Interrupt, outcome_unknown};
use crate::ceiling::{CeilingKind, reached};
use crate::command::{Moment, PendingCommand, obey};
use crate::config::{ARTIFACTS, MotorConfig};
use crate::consent::is_host_tool;
use crate::conversation::{NextStep, OpenCall};
use crate::environment::Environment;
use crate::event::RunEvent;
use crate::failure::{FailureCategory, FailureSummary, RunError};
use crate::guard::GuardVerdict;
use crate::hear::Inbox;
use crate::host_tools;
use crate::journal::{Journal, JournalError, RunEnding, RunStore};
use crate::live::{LiveEvent, LiveLog, history};
use crate::phase::DriverOutcome;
use crate::record::RunRecord;
use crate::skill::InstalledSkill;
use crate::status::RunStatus;
use crate::timers::Timers;
use crate::toolbox::Toolbox;
use crate::trace::RunTrace;
use crate::wait::{Question, Waiting};
use store::StoreError;

/// A driver of one run, with its dependencies.
pub(crate) struct Driver {
    pub(crate) books: RunStore,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) config: MotorConfig,
    pub(crate) run: RunId,
    pub(crate) live: Arc<LiveLog>,
    pub(crate) cancel: CancellationToken,
    pub(crate) closing: CancellationToken,
    /// The command that started this driver, if any.
    pub(crate) order: Mutex<Option<PendingCommand>>,
    pub(crate) timers: Arc<Timers>,
    /// The commands to the run while it works.
    pub(crate) inbox: Inbox,
}

/// Why the loop was left.
pub(crate) enum LoopExit {
    /// The model gave its answer.
    Answered(String),
    /// It cannot go on.
    Failing(RunError),
    /// A person cancelled the run.
    Cancelled,
    /// It waits for people: that is durable already.
    Parked,
    /// The host goes away.
    Closing,
    /// It was over before.
    Over,
    /// There was no room for the order, and the run is as it was.
    Refused(Refusal),
}

impl Driver {
    /// Drives the run until it is over or waits, or until it cannot be driven.
    pub(crate) async fn drive(&self) -> (DriverOutcome, Option<Journal>) {
        match self.take_up().await {
            Ok((LoopExit::Closing, _)) => (DriverOutcome::Suspended { refusal: closing(), again: false }, None),
            Ok((LoopExit::Refused(refusal), _)) => (self.as_it_was(refusal), None),
            // The environment has heard of its end before.
            Ok((LoopExit::Over, journal)) => (DriverOutcome::Finished(Box::new(journal.state().record.clone())), None),
            Ok((exit, journal)) => {
                let record = Box::new(journal.state().record.clone());
                let outcome = if matches!(exit, LoopExit::Parked) {
                    DriverOutcome::Parked(record)
                } else {
                    DriverOutcome::Finished(record)
                };
                (outcome, Some(journal))
            }
            Err(error) => self.give_up(error).await,
        }
    }

    /// The outcome for a run that a command could not change: those who wait for it go on waiting.
    fn as_it_was(&self, refusal: Refusal) -> DriverOutcome {
        match self.books.record(&self.run) {
            Ok(record) if record.status.is_waiting() => DriverOutcome::Parked(Box::new(record)),
            Ok(record) if record.status.is_terminal() => DriverOutcome::Finished(Box::new(record)),
            _ => DriverOutcome::Suspended { refusal, again: false },
        }
    }

    /// Ends a run whose driver panicked: it is unknown whether it would panic again.
    pub(crate) async fn broke_off(&self) -> (DriverOutcome, Option<Journal>) {
        self.give_up(JournalError::Panicked { run: self.run.clone() }).await
    }

    async fn take_up(&self) -> Result<(LoopExit, Journal), JournalError> {
        let (mut journal, events) = Journal::open(self.books.clone(), self.live.clone(), self.run.clone())?;
        self.live.load(history(&self.run, &events));
        // A conversation is long, and the events are in it.
        drop(events);
        let order = self.order.lock().take();
        let mut ordered = None;
        if let Some(order) = order {
            let left = self.left(&journal);
            ordered = match obey(&mut journal, order, &self.config, Moment { left, while_asked: false }).await {
                // Its sender was told, and can send it again: the run must not be ended for that.
                Err(JournalError::Store(full @ StoreError::Full)) => {
                    return Ok((LoopExit::Refused(full.into()), journal));
                }
                ordered => ordered?,
            };
        }
        let status = journal.state().record.status;
        let exit = match ordered {
            _ if status.is_terminal() => LoopExit::Over,
            Some(GuardVerdict::Stop(error)) => self.conclude(&mut journal, LoopExit::Failing(error), None).await?,
            Some(GuardVerdict::Nudge(reason, text)) => {
                let step = journal.state().conversation.step();
                journal.stage(RunEvent::Told { step, reason, text })?;
                self.begin(&mut journal, true).await?
            }
            Some(GuardVerdict::Continue) => self.begin(&mut journal, true).await?,
            None if status.is_waiting() => self.look_at_the_clock(&mut journal).await?,
            None => self.begin(&mut journal, false).await?,
        };
        Ok((exit, journal))
    }

    /// How long the run may still wait.
    fn left(&self, journal: &Journal) -> Duration {
        let waiting = journal.state().record.waiting.as_ref();
        waiting.map_or(Duration::ZERO, |waiting| self.timers.left(&self.run, waiting.expires_at()))
    }

    /// Leaves a run that waits as it is, unless its time is over or it is cancelled.
    async fn look_at_the_clock(&self, journal: &mut Journal) -> Result<LoopExit, JournalError> {
        if self.cancel.is_cancelled() {
            return self.conclude(journal, LoopExit::Cancelled, None).await;
        }
        let message = match &journal.state().record.waiting {
            Some(_) if !self.left(journal).is_zero() => return Ok(LoopExit::Parked),
            Some(Waiting::Input(Question { ceiling: Some(raise), .. })) => {
                let error = reached(raise.kind, &journal.state().record);
                return self.conclude(journal, LoopExit::Failing(error), None).await;
            }
            Some(Waiting::Approval(_)) => "Owner approval timeout",
            _ => "User response timeout",
        };
        self.conclude(journal, LoopExit::Failing(RunError::new(FailureCategory::Unknown, message)), None).await
    }

    /// Ends the run as the loop was left, if it is to end.
    async fn conclude(
        &self,
        journal: &mut Journal,
        exit: LoopExit,
        model: Option<&dyn Model>,
    ) -> Result<LoopExit, JournalError> {
        let said = journal.state().conversation.last_text().map(str::to_owned);
        let nothing = RunEnding {
            status: RunStatus::Cancelled,
            summary: said,
            error: None,
            failure: None,
            artifacts: Vec::new(),
            installed_skills: Vec::new(),
        };
        let ending = match &exit {
            LoopExit::Answered(text) => {
                let Some(artifacts) = self.artifacts(journal).await else { return self.leave_open(journal).await };
                let Some(installed_skills) = self.skills(journal, text).await else {
                    return self.leave_open(journal).await;
                };
                let summary = Some(text.clone());
                RunEnding { status: RunStatus::Completed, summary, artifacts, installed_skills, ..nothing }
            }
            LoopExit::Failing(error) => {
                let error = self.located(journal, error.clone());
                let mut failure = self.summed_up(journal, &error);
                if let Some(model) = model {
                    failure.hint = self.what_went_wrong(journal, model, &error).await;
                }
                let Some(artifacts) = self.artifacts(journal).await else { return self.leave_open(journal).await };
                RunEnding {
                    status: RunStatus::Failed,
                    error: Some(error),
                    failure: Some(failure),
                    artifacts,
                    ..nothing
                }
            }
            LoopExit::Cancelled => nothing,
            LoopExit::Parked | LoopExit::Closing | LoopExit::Over | LoopExit::Refused(_) => return Ok(exit),
        };
        // A cancel that came while files were copied finds a run that is about to end: that it has ended is the answer.
        journal.finish(ending).await?;
        Ok(exit)
    }

    fn summed_up(&self, journal: &Journal, error: &RunError) -> FailureSummary {
        let state = journal.state();
        FailureSummary::of(error, state.conversation.latest_results(), state.record.attempts_left())
    }

    /// Leaves a run that was about to end for the next host, which finds that it is about to end.
    async fn leave_open(&self, journal: &mut Journal) -> Result<LoopExit, JournalError> {
        journal.commit().await?;
        Ok(LoopExit::Closing)
    }

    /// The files the run produced, put where they stay. A run does not fail because they cannot be. None when the host
    /// goes away meanwhile.
    async fn artifacts(&self, journal: &Journal) -> Option<Vec<Artifact>> {
        let record = &journal.state().record;
        if record.iterations == 0 {
            return Some(Vec::new());
        }
        let collecting = tokio::time::timeout(ARTIFACTS, self.environment.artifacts(record));
        let collected = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Some(Vec::new()),
            collected = collecting => collected,
            () = self.closing.cancelled() => return None,
        };
        Some(match collected {
            Ok(Ok(artifacts)) => artifacts,
            Ok(Err(refusal)) => {
                tracing::warn!(run = %self.run, reason = %refusal, "the files of the run stay in its workspace");
                Vec::new()
            }
            Err(_) => {
                tracing::warn!(run = %self.run, "copying the files of the run takes too long: they stay in its workspace");
                Vec::new()
            }
        })
    }

    /// The skills that it left, taken over. A run does not fail because they cannot be. None when the host goes away
    /// meanwhile.
    async fn skills(&self, journal: &Journal, answer: &str) -> Option<Vec<InstalledSkill>> {
        let record = &journal.state().record;
        let collecting = tokio::time::timeout(ARTIFACTS, self.environment.skills(record, answer));
        let collected = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Some(Vec::new()),
            collected = collecting => collected,
            () = self.closing.cancelled() => return None,
        };
        let problem = match collected {
            Ok(Ok(skills)) => return Some(skills),
            Ok(Err(refusal)) => refusal.reason,
            Err(_) => "it takes too long".to_owned(),
        };
        tracing::warn!(run = %self.run, %problem, "no skill of the run's workspace was taken over");
        Some(vec![InstalledSkill::lost("skills", problem)])
    }

    /// Storage failed, the history is not one, or something panicked. The run is ended cleanly if that can be written;
    /// if not, it stays as it was last durable, and the host lives on (SPEC DUR-5).
    async fn give_up(&self, error: JournalError) -> (DriverOutcome, Option<Journal>) {
        tracing::error!(run = %self.run, error = &error as &dyn std::error::Error, "the run cannot go on");
        let refusal = Refusal::from(error);
        let ended = async {
            let (mut journal, _) = Journal::open(self.books.clone(), self.live.clone(), self.run.clone())?;
            // Its result may be the data that could not be stored.
            self.close_in_flight(&mut journal).await?;
            let error = self.located(&journal, RunError::refused(refusal.clone()));
            let failed = RunEnding {
                status: RunStatus::Failed,
                summary: journal.state().conversation.last_text().map(str::to_owned),
                failure: Some(self.summed_up(&journal, &error)),
                error: Some(error),
                artifacts: Vec::new(),
                installed_skills: Vec::new(),
            };
            journal.finish(failed).await?;
            Ok::<_, JournalError>(journal)
        };
        match ended.await {
            Ok(journal) => (DriverOutcome::Finished(Box::new(journal.state().record.clone())), Some(journal)),
            Err(error) if error.is_unreadable_history() => (self.abandon(error).await, None),
            Err(error) => (self.suspended(&error, refusal), None),
        }
    }

    /// A run whose history cannot be read cannot go on, but it must not keep its agent from working: it is ended
    /// by its head alone, as a cancel if a cancel was requested.
    async fn abandon(&self, error: JournalError) -> DriverOutcome {
        let refusal = Refusal::from(error);
        let reason = format!("the run's history cannot be read: {}", refusal.reason);
        let remedy = refusal.remedy.clone();
        let error = RunError::refused(Refusal { code: RefusalCode::StateUnusable, reason, remedy, key: None });
        let status = if self.cancel.is_cancelled() { RunStatus::Cancelled } else { RunStatus::Failed };
        match self.books.abandon(&self.run, status, error).await {
            Ok(record) => {
                let at = record.completed_at.unwrap_or_else(|| self.books.clock.now());
                let RunRecord { status, summary, error, installed_skills, .. } = record.clone();
                self.live.publish_durable(LiveEvent::Finished { at, status, summary, error, installed_skills });
                DriverOutcome::Finished(Box::new(record))
            }
            Err(error) => self.suspended(&error, refusal),
        }
    }

    fn suspended(&self, error: &JournalError, refusal: Refusal) -> DriverOutcome {
        tracing::error!(run = %self.run, error = error as &dyn std::error::Error, "the run is suspended");
        DriverOutcome::Suspended { refusal, again: matches!(error, JournalError::Store(StoreError::Full)) }
    }

    /// Starts a new run, or settles the open call of a stopped host, and then goes on to the end. `ordered`: nothing was
    /// interrupted, a command continues the run.
    async fn begin(&self, journal: &mut Journal, ordered: bool) -> Result<LoopExit, JournalError> {
        if self.cancel.is_cancelled() {
            return self.conclude(journal, LoopExit::Cancelled, None).await;
        }
        if journal.state().record.status == RunStatus::Created {
            journal.stage(RunEvent::Started)?;
            journal.commit().await?;
        } else if !ordered {
            journal.stage(RunEvent::Resumed)?;
            if let Some(exit) = self.close_in_flight(journal).await? {
                return self.conclude(journal, exit, None).await;
            }
        }
        let record = journal.state().record.clone();
        let prepared = self.unless_interrupted(journal, async {
            let toolbox = self.toolbox(&record, &journal.state().trace).await?;
            Ok::<_, Refusal>((toolbox, self.environment.model(&record).await?))
        });
        match prepared.await {
            Ok(Ok((toolbox, model))) => {
                let exit = self.go_on(journal, toolbox.as_ref(), model.as_ref()).await?;
                self.conclude(journal, exit, Some(model.as_ref())).await
            }
            Ok(Err(refusal)) => self.conclude(journal, LoopExit::Failing(RunError::refused(refusal)), None).await,
            Err(interrupt) => {
                let exit = self.stop(journal, interrupt).await?;
                self.conclude(journal, exit, None).await
            }
        }
    }

    /// Gives a result to the calls that were in flight and may not be made again: their outcome is unknown.
    async fn close_in_flight(&self, journal: &mut Journal) -> Result<Option<LoopExit>, JournalError> {
        let state = journal.state();
        // A call that the owner consented to is made once, also if its tool declares itself repeatable.
        let is_consented = !state.ledger.consents().leases.is_empty();
        let is_repeatable =
            |call: &OpenCall| call.intent.as_ref().is_some_and(|intent| intent.effects.repeatable()) && !is_consented;
        let lost = state.conversation.in_flight().into_iter().filter(|call| !is_repeatable(call));
        let unknown = lost.map(|call| (call, CallOutcome::of(outcome_unknown())));
        self.returned(journal, unknown.collect(), true).await
    }

    /// The run's tools. Watchers hear of slow preparations.
    async fn toolbox(&self, record: &RunRecord, trace: &RunTrace) -> Result<Arc<dyn Toolbox>, Refusal> {
        let mut preparing = self.environment.preparing();
        preparing.mark_changed();
        let mut making = self.environment.toolbox(record, trace);
        loop {
            tokio::select! {
                biased;
                made = &mut making => return made,
                Ok(()) = preparing.changed() => {
                    if let Some(preparing) = preparing.borrow_and_update().clone() {
                        self.live.publish_hint(LiveEvent::Preparing { at: self.books.clock.now(), preparing });
                    }
                }
            }
        }
    }

    async fn go_on(
        &self,
        journal: &mut Journal,
        toolbox: &dyn Toolbox,
        model: &dyn Model,
    ) -> Result<LoopExit, JournalError> {
        // Least privilege holds here too, even if the toolbox offers more (SPEC RUN-1).
        let granted = &journal.state().record.tools;
        let offered = toolbox.tools().iter().filter(|tool| granted.contains(&tool.spec.name));
        let mut tools: Vec<_> = offered.filter(|tool| !is_host_tool(&tool.spec.name)).collect();
        if journal.state().record.may_ask {
            tools.extend(host_tools::of(journal.state().record.settled));
        }
        let specs: Vec<_> = tools.iter().map(|tool| tool.spec.clone()).collect();
        loop {
            if let Some(interrupt) = self.interrupt(journal) {
                return self.stop(journal, interrupt).await;
            }
            self.take_messages(journal).await?;
            let exit = match journal.state().conversation.next() {
                NextStep::AskModel { step } => {
                    journal.commit().await?;
                    self.ask(journal, model, toolbox, &specs, step).await?
                }
                NextStep::Judge(reply) => self.judged(journal, &reply, &specs)?,
                NextStep::Call(call) => self.call(journal, toolbox, &tools, *call).await?,
                NextStep::InFlight => self.execute(journal, toolbox, &tools, true).await?,
            };
            if let Some(exit) = exit {
                return Ok(exit);
            }
        }
    }

    /// The interrupt that stops the run now, if any.
    fn interrupt(&self, journal: &Journal) -> Option<Interrupt> {
        if self.cancel.is_cancelled() {
            Some(Interrupt::Cancelled)
        } else if journal.time_left().is_zero() {
            Some(Interrupt::Deadline)
        } else {
            self.closing.is_cancelled().then_some(Interrupt::Closing)
        }
    }

    pub(crate) async fn unless_interrupted<T>(
        &self,
        journal: &Journal,
        work: impl Future<Output = T>,
    ) -> Result<T, Interrupt> {
        self.within(journal.time_left(), work).await
    }

    /// Does `work` for as long as is left of the attempt's time.
    pub(crate) async fn within<T>(&self, left: Duration, work: impl Future<Output = T>) -> Result<T, Interrupt> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Interrupt::Cancelled),
            () = self.closing.cancelled() => Err(Interrupt::Closing),
            done = work => Ok(done),
            () = tokio::time::sleep(left) => Err(Interrupt::Deadline),
        }
    }

    /// How the loop is left because of an interrupt. When the host goes away that is at a durable point.
    pub(crate) async fn stop(&self, journal: &mut Journal, interrupt: Interrupt) -> Result<LoopExit, JournalError> {
        Ok(match interrupt {
            Interrupt::Cancelled => LoopExit::Cancelled,
            Interrupt::Deadline => {
                let error = reached(CeilingKind::Time, &journal.state().record);
                self.at_ceiling(journal, CeilingKind::Time, 0, error).await?
            }
            Interrupt::Closing => {
                journal.commit().await?;
                LoopExit::Closing
            }
        })
    }

    fn located(&self, journal: &Journal, error: RunError) -> RunError {
        RunError { last_step: journal.state().conversation.last_step(), ..error }
    }
}

fn closing() -> Refusal {
    Refusal::new(RefusalCode::TryLater, "the host is shutting down; the run goes on when it starts again")
}

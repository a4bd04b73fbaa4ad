//! The loop: what a driver does with one run, from wherever its history leaves off to its end.
//!
//! It is a state machine over the history: look at what comes next, do that, stage what came of it, and commit before
//! anything that others can notice. A step with one tool call takes two commits: reply and intent, then the result. It
//! survives a stop of the host at every point between, because it starts from the same history the same way.

use std::sync::Arc;

use base::{Refusal, RefusalCode, RunId};
use llm::Model;
use tokio_util::sync::CancellationToken;

use crate::call::{Executed, Interrupt, outcome_unknown};
use crate::config::span;
use crate::conversation::Next;
use crate::event::{RunEvent, StoredEvent};
use crate::failure::{FailureCategory, RunError};
use crate::journal::{Books, Ending, Journal, JournalError};
use crate::live::{LiveEvent, LiveLog};
use crate::motor::Environment;
use crate::record::RunRecord;
use crate::status::RunStatus;
use crate::toolbox::{ToolReply, Toolbox};

/// What a driver works with.
pub(crate) struct Driver {
    pub(crate) books: Books,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) run: RunId,
    pub(crate) live: Arc<LiveLog>,
    pub(crate) cancel: CancellationToken,
    pub(crate) closing: CancellationToken,
}

/// How a driver leaves its run.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// The run is over, and that is durable.
    Finished(Box<RunRecord>),
    /// The run is as it was last durable, and nobody drives it.
    Suspended(Refusal),
}

/// Why the loop was left.
pub(crate) enum Exit {
    Finished,
    Closing,
}

impl Driver {
    /// Drives the run until it is over, or until it cannot be driven.
    pub(crate) async fn drive(&self) -> (Outcome, Option<Journal>) {
        match self.take_up().await {
            Ok((Exit::Finished, journal)) => {
                (Outcome::Finished(Box::new(journal.state().record.clone())), Some(journal))
            }
            Ok((Exit::Closing, _)) => (Outcome::Suspended(closing()), None),
            Err(error) => self.give_up(error).await,
        }
    }

    /// Ends a run whose driver panicked: nobody knows what it would do if it were driven again.
    pub(crate) async fn broke_off(&self) -> (Outcome, Option<Journal>) {
        self.give_up(JournalError::Panicked { run: self.run.clone() }).await
    }

    async fn take_up(&self) -> Result<(Exit, Journal), JournalError> {
        let (mut journal, events) = Journal::open(self.books.clone(), self.live.clone(), self.run.clone())?;
        self.live.load(history(&self.run, &events));
        let exit =
            if journal.state().record.status.is_terminal() { Exit::Finished } else { self.begin(&mut journal).await? };
        Ok((exit, journal))
    }

    /// Storage failed, the history is not one, or something panicked. The run is ended cleanly if that can be written;
    /// if not, it stays as it was last durable, and the host lives on (SPEC DUR-5).
    async fn give_up(&self, error: JournalError) -> (Outcome, Option<Journal>) {
        tracing::error!(run = %self.run, error = &error as &dyn std::error::Error, "the run cannot go on");
        let refusal = Refusal::from(error);
        let ended = async {
            let (mut journal, _) = Journal::open(self.books.clone(), self.live.clone(), self.run.clone())?;
            let failed = Ending {
                status: RunStatus::Failed,
                summary: journal.state().conversation.last_text().map(str::to_owned),
                error: Some(self.located(&journal, RunError::refused(refusal.clone()))),
            };
            journal.finish(failed).await?;
            Ok::<_, JournalError>(journal)
        };
        match ended.await {
            Ok(journal) => (Outcome::Finished(Box::new(journal.state().record.clone())), Some(journal)),
            Err(error) if error.is_unreadable_history() => (self.abandon(error).await, None),
            Err(error) => (self.suspended(&error, refusal), None),
        }
    }

    /// Nobody can go on with a run whose history cannot be read, but it must not keep its agent from working: it is ended
    /// by its head alone, as a cancel if that is what was asked.
    async fn abandon(&self, error: JournalError) -> Outcome {
        let refusal = Refusal::from(error);
        let reason = format!("the run's history cannot be read: {}", refusal.reason);
        let remedy = refusal.remedy.clone();
        let error = RunError::refused(Refusal { code: RefusalCode::StateUnusable, reason, remedy });
        let status = if self.cancel.is_cancelled() { RunStatus::Cancelled } else { RunStatus::Failed };
        match self.books.abandon(&self.run, status, error).await {
            Ok(record) => {
                let at = record.completed_at.unwrap_or_else(|| self.books.clock.now());
                let RunRecord { status, summary, error, .. } = record.clone();
                self.live.publish_durable(LiveEvent::Finished { at, status, summary, error });
                Outcome::Finished(Box::new(record))
            }
            Err(error) => self.suspended(&error, refusal),
        }
    }

    fn suspended(&self, error: &JournalError, refusal: Refusal) -> Outcome {
        tracing::error!(run = %self.run, error = error as &dyn std::error::Error, "the run is suspended");
        Outcome::Suspended(refusal)
    }

    /// Starts a new run, or settles what a stopped host left open, and then goes on.
    async fn begin(&self, journal: &mut Journal) -> Result<Exit, JournalError> {
        if self.cancel.is_cancelled() {
            return self.stop(journal, Interrupt::Cancelled).await;
        }
        if journal.state().record.status == RunStatus::Created {
            journal.stage(RunEvent::Started)?;
            journal.commit().await?;
        } else {
            journal.stage(RunEvent::Resumed)?;
            if let Next::InFlight(call) = journal.state().conversation.next()
                && !call.intent.as_ref().is_some_and(|intent| intent.effects.repeatable())
            {
                let reply = ToolReply::of(outcome_unknown());
                let executed = Executed { reply: Some(reply), notes: Vec::new(), retried: false, interrupt: None };
                if let Some(exit) = self.returned(journal, &call, executed, true).await? {
                    return Ok(exit);
                }
            }
        }
        let record = journal.state().record.clone();
        let prepared = self.unless_interrupted(journal, async {
            let toolbox = self.environment.toolbox(&record).await?;
            Ok::<_, Refusal>((toolbox, self.environment.model(&record).await?))
        });
        match prepared.await {
            Ok(Ok((toolbox, model))) => self.go_on(journal, toolbox.as_ref(), model.as_ref()).await,
            Ok(Err(refusal)) => self.fail(journal, RunError::refused(refusal)).await,
            Err(interrupt) => self.stop(journal, interrupt).await,
        }
    }

    async fn go_on(
        &self,
        journal: &mut Journal,
        toolbox: &dyn Toolbox,
        model: &dyn Model,
    ) -> Result<Exit, JournalError> {
        // Least privilege holds here too, whatever else the toolbox offers (SPEC RUN-1).
        let granted = &journal.state().record.tools;
        let tools: Vec<_> = toolbox.tools().iter().filter(|tool| granted.contains(&tool.spec.name)).collect();
        let specs: Vec<_> = tools.iter().map(|tool| tool.spec.clone()).collect();
        loop {
            if let Some(interrupt) = self.interrupt(journal) {
                return self.stop(journal, interrupt).await;
            }
            let exit = match journal.state().conversation.next() {
                Next::AskModel { step } => {
                    journal.commit().await?;
                    self.ask(journal, model, toolbox, &specs, step).await?
                }
                Next::Judge { text } => self.judged(journal, &text, &specs).await?,
                Next::Call(call) => self.call(journal, toolbox, &tools, call).await?,
                Next::InFlight(call) => self.execute(journal, toolbox, &tools, call, true).await?,
            };
            if let Some(exit) = exit {
                return Ok(exit);
            }
        }
    }

    /// What stops the run now, if anything does.
    fn interrupt(&self, journal: &Journal) -> Option<Interrupt> {
        if self.cancel.is_cancelled() {
            Some(Interrupt::Cancelled)
        } else if journal.state().record.time_left(self.books.clock.now()).is_zero() {
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
        let left = journal.state().record.time_left(self.books.clock.now());
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Interrupt::Cancelled),
            () = self.closing.cancelled() => Err(Interrupt::Closing),
            done = work => Ok(done),
            () = tokio::time::sleep(left) => Err(Interrupt::Deadline),
        }
    }

    /// Ends the run early, or leaves it for the next host at a durable point.
    pub(crate) async fn stop(&self, journal: &mut Journal, interrupt: Interrupt) -> Result<Exit, JournalError> {
        match interrupt {
            Interrupt::Cancelled => {
                let summary = journal.state().conversation.last_text().map(str::to_owned);
                journal.finish(Ending { status: RunStatus::Cancelled, summary, error: None }).await?;
                Ok(Exit::Finished)
            }
            Interrupt::Deadline => {
                let limit = span(journal.state().record.timeout());
                let message = format!("the run reached its time limit of {limit}");
                self.fail(journal, RunError::new(FailureCategory::BudgetExhausted, message)).await
            }
            Interrupt::Closing => {
                journal.commit().await?;
                Ok(Exit::Closing)
            }
        }
    }

    /// Ends the run without an answer; what the model said last is the partial result.
    pub(crate) async fn fail(&self, journal: &mut Journal, error: RunError) -> Result<Exit, JournalError> {
        let summary = journal.state().conversation.last_text().map(str::to_owned);
        let error = Some(self.located(journal, error));
        journal.finish(Ending { status: RunStatus::Failed, summary, error }).await?;
        Ok(Exit::Finished)
    }

    fn located(&self, journal: &Journal, error: RunError) -> RunError {
        RunError { last_step: journal.state().conversation.last_step(), ..error }
    }
}

/// The events of a history that watchers see.
pub(crate) fn history<'a>(run: &'a RunId, events: &'a [StoredEvent]) -> impl Iterator<Item = LiveEvent> + 'a {
    events.iter().filter_map(move |stored| LiveEvent::of(run, stored))
}

fn closing() -> Refusal {
    Refusal::new(RefusalCode::TryLater, "the host is shutting down; the run goes on when it starts again")
}

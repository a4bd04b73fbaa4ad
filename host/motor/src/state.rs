//! The state a driver has of its run: record, conversation, guard and trace, all folded from the same events.

use base::RunId;

use crate::config::MAX_CALLS_PER_REPLY;
use crate::conversation::Conversation;
use crate::event::{RunEvent, StoredEvent};
use crate::guard::{GuardVerdict, LoopGuard};
use crate::ledger::Ledger;
use crate::record::RunRecord;
use crate::status::IllegalTransition;
use crate::trace::RunTrace;

/// A run, as its events tell it.
#[derive(Debug, Clone)]
pub(crate) struct RunState {
    pub(crate) record: RunRecord,
    pub(crate) conversation: Conversation,
    pub(crate) trace: RunTrace,
    pub(crate) ledger: Ledger,
    guard: LoopGuard,
}

/// A history that cannot have been written by this loop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum HistoryError {
    #[error("the history of run `{run}` does not begin with its creation")]
    NoBeginning { run: RunId },
    #[error("the history of run `{run}` has {found} events where its record counts {counted}")]
    Incomplete { run: RunId, found: u64, counted: u64 },
    #[error(transparent)]
    Illegal(#[from] IllegalTransition),
}

impl RunState {
    /// The state after the first event.
    pub(crate) fn created(run: &RunId, first: &StoredEvent) -> Result<Self, HistoryError> {
        let no_beginning = || HistoryError::NoBeginning { run: run.clone() };
        let RunEvent::Created { task, .. } = &first.event else { return Err(no_beginning()) };
        let record = RunRecord::created(run.clone(), first).ok_or_else(no_beginning)?;
        let mut conversation = Conversation::default();
        conversation.apply(&first.event);
        let trace = RunTrace::created(&record, task);
        let guard = LoopGuard::new(record.rules);
        Ok(Self { record, conversation, trace, ledger: Ledger::default(), guard })
    }

    /// The state after a whole history.
    pub(crate) fn fold(run: &RunId, events: &[StoredEvent]) -> Result<Self, HistoryError> {
        let (first, rest) = events.split_first().ok_or_else(|| HistoryError::NoBeginning { run: run.clone() })?;
        let mut state = Self::created(run, first)?;
        for event in rest {
            state.apply(event)?;
        }
        Ok(state)
    }

    /// The answer of an attempt that is out of iterations after it was told to answer because of many refusals: its last
    /// words and the refused actions.
    pub(crate) fn answer_despite_refusals(&self) -> Option<String> {
        let refused = self.guard.enough_refused()?;
        let said = self.conversation.last_text().map(|text| format!("{text}\n\n")).unwrap_or_default();
        Some(format!("{said}Not done, because it was refused: {}.", refused.join("; ")))
    }

    /// Applies an event and returns the loop guard's verdict on it.
    ///
    /// # Errors
    /// If the event may not happen now; the state is unchanged then.
    pub(crate) fn apply(&mut self, stored: &StoredEvent) -> Result<GuardVerdict, IllegalTransition> {
        self.record.apply(stored)?;
        self.trace.apply(stored, &self.record);
        self.ledger.apply(&self.record.id, &stored.event);
        if matches!(stored.event, RunEvent::Retried { .. }) {
            // A new attempt is judged by its own actions.
            self.guard = LoopGuard::new(self.record.rules);
        }
        let closed = self.conversation.apply(&stored.event);
        let (RunEvent::ToolReturned { tool, result, refused, .. }, Some(call)) = (&stored.event, closed) else {
            return Ok(GuardVerdict::Continue);
        };
        // A call above the number that a reply may make is told so and no more.
        if call.index < MAX_CALLS_PER_REPLY {
            self.guard.record(tool, &call.arguments(), result, refused);
        }
        let is_last = self.conversation.open_calls().next().is_none();
        Ok(if is_last { self.guard.judge() } else { GuardVerdict::Continue })
    }
}

//! Ceilings of a run that ask its owner whether it may go on (SPEC RUN-16).
//!
//! A ceiling is a question of the host: no call of the model stands behind it, and only an answer with the owner's authority
//! raises it. The answer and the raise are one batch, and the head remembers a refusal, so a crash neither asks again nor
//! raises twice. A run that may not ask ends at its ceiling.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::text::counted;
use base::{ConsentRecord, Door, Refusal, RefusalCode};
use consent::AnswerAuthority;
use llm::MicroUsd;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::{BudgetExhausted, CreditBudget};
use crate::config::{ITERATION_CEILING, span};
use crate::drive::{Driver, LoopExit};
use crate::event::RunEvent;
use crate::failure::{FailureCategory, RunError};
use crate::journal::{Journal, JournalError};
use crate::money::{capped_day, capped_run};
use crate::record::RunRecord;
use crate::wait::{Question, waiting_id};

/// The part of the budget, as one over this number, at which the owner is asked before it is used up.
const LAST_PART: u64 = 10;

/// A ceiling that can be raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CeilingKind {
    /// Model calls of an attempt.
    Calls,
    /// Working time of an attempt, in milliseconds.
    Time,
    /// Credits of the run, over all its attempts.
    Credits,
    /// Money of the run, over all its attempts, in millionths of a US dollar.
    Usd,
    /// Money of the run's agent in a day; raised for this run only, in millionths of a US dollar.
    UsdDay,
}

impl CeilingKind {
    /// Whether a new attempt starts with the ceiling that the first one had.
    fn is_of_attempt(self) -> bool {
        matches!(self, Self::Calls | Self::Time)
    }

    /// An amount of it, for people.
    pub(crate) fn amount(self, amount: u64) -> String {
        match self {
            Self::Calls => counted(amount, "model call"),
            Self::Time => format!("{} of working time", span(Duration::from_millis(amount))),
            Self::Credits => counted(amount, "credit"),
            Self::Usd => MicroUsd::from_micros(amount).to_string(),
            Self::UsdDay => format!("{} for this run today", MicroUsd::from_micros(amount)),
        }
    }

    fn current(self, record: &RunRecord, day: Option<MicroUsd>) -> u64 {
        match self {
            Self::Calls => u64::from(record.max_iterations),
            Self::Time => record.timeout_ms,
            Self::Credits => record.budget.as_ref().map_or(0, CreditBudget::limit),
            Self::Usd => record.money.cap.map_or(0, MicroUsd::micros),
            Self::UsdDay => day.map_or(0, |day| record.ceilings.of_day(day).micros()),
        }
    }

    /// The amount by which a yes raises the ceiling: as much as it was at first, within the bounds of all runs.
    fn step(self, record: &RunRecord, day: Option<MicroUsd>) -> u64 {
        let first = self.current(record, day).saturating_sub(record.ceilings.raised(self));
        match self {
            Self::Calls => first.min(u64::from(ITERATION_CEILING.saturating_sub(record.max_iterations))),
            Self::Time | Self::Credits | Self::Usd | Self::UsdDay => first,
        }
    }
}

/// A ceiling that a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CeilingRaise {
    /// The ceiling to raise.
    pub kind: CeilingKind,
    /// The amount by which a yes raises it: model calls, milliseconds, credits, or millionths of a US dollar.
    pub by: u64,
}

/// The answers of the owner about the ceilings of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ceilings {
    /// The sum by which each was raised.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub raised: BTreeMap<CeilingKind, u64>,
    /// The ceilings that the owner would not raise.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub refused: BTreeSet<CeilingKind>,
}

impl Ceilings {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    fn raised(&self, kind: CeilingKind) -> u64 {
        self.raised.get(&kind).copied().unwrap_or_default()
    }

    /// The cap of a day as it is for this run.
    pub(crate) fn of_day(&self, cap: MicroUsd) -> MicroUsd {
        cap.plus(MicroUsd::from_micros(self.raised(CeilingKind::UsdDay)))
    }
}

impl RunRecord {
    /// Counts a question about a ceiling as refused until the raise follows, in the same batch.
    pub(crate) fn ceiling_answered(&mut self, raise: CeilingRaise) {
        self.ceilings.refused.insert(raise.kind);
    }

    pub(crate) fn raise(&mut self, raise: CeilingRaise) {
        let CeilingRaise { kind, by } = raise;
        match kind {
            CeilingKind::Calls => {
                self.max_iterations = self.max_iterations.saturating_add(u32::try_from(by).unwrap_or(u32::MAX));
            }
            CeilingKind::Time => self.timeout_ms = self.timeout_ms.saturating_add(by),
            CeilingKind::Credits => {
                if let Some(budget) = &mut self.budget {
                    budget.raise(by);
                }
            }
            CeilingKind::Usd => self.money.cap = self.money.cap.map(|cap| cap.plus(MicroUsd::from_micros(by))),
            // The cap itself is a setting, which stays as it is.
            CeilingKind::UsdDay => {}
        }
        self.ceilings.refused.remove(&kind);
        let raised = self.ceilings.raised.entry(kind).or_default();
        *raised = raised.saturating_add(by);
    }

    /// A new attempt has its own model calls, and the time that the run was given; a cap that the owner gives with it
    /// (`usd`) takes the place of the raised one. All questions may be asked again.
    pub(crate) fn reset_ceilings(&mut self, usd: Option<MicroUsd>) {
        self.timeout_ms = self.timeout_ms.saturating_sub(self.ceilings.raised(CeilingKind::Time));
        let stays = |kind: CeilingKind| !kind.is_of_attempt() && (kind != CeilingKind::Usd || usd.is_none());
        self.ceilings.raised.retain(|kind, _| stays(*kind));
        self.money.cap = usd.or(self.money.cap);
        self.ceilings.refused.clear();
    }
}

/// The error of a run that ends at this ceiling.
pub(crate) fn reached(kind: CeilingKind, record: &RunRecord) -> RunError {
    let message = match kind {
        CeilingKind::Calls => format!("the run reached the iteration cap of {}", record.max_iterations),
        CeilingKind::Time => format!("the run reached its time limit of {}", span(record.timeout())),
        CeilingKind::Credits => {
            let (left, limit) = record.budget.as_ref().map_or((0, 0), |budget| (budget.left(), budget.limit()));
            format!("the run's budget is used up: {left} of {limit} credits are left, and no more were allowed")
        }
        CeilingKind::Usd => {
            let (spent, cap) = (record.spent(), record.money.cap.unwrap_or_default());
            return capped_run(record, format!("{spent} are spent, and no more were allowed"), cap);
        }
        CeilingKind::UsdDay => {
            let reason = format!("the cap of a day of agent `{}` is reached, and no more was allowed", record.agent);
            return capped_day(reason);
        }
    };
    RunError::new(FailureCategory::BudgetExhausted, message)
}

/// The question, with the work done so far and the effect of each answer. `error`: the end of the run without a yes.
fn question(raise: CeilingRaise, record: &RunRecord, error: &RunError) -> String {
    let CeilingRaise { kind, by } = raise;
    let more = kind.amount(by);
    let at = match kind {
        CeilingKind::Calls => {
            format!("{} made; {by} more?", counted(record.attempt_iterations().into(), "model call"))
        }
        CeilingKind::Time => {
            format!("{} of working time are over; {} more?", span(record.timeout()), span(Duration::from_millis(by)))
        }
        CeilingKind::Credits => {
            let budget = record.budget.as_ref();
            let (left, limit) = budget.map_or((0, 0), |budget| (budget.left(), budget.limit()));
            format!("{left} of {limit} credits are left; {by} more?")
        }
        CeilingKind::Usd | CeilingKind::UsdDay => format!("{}; {more} more?", error.message),
    };
    let cost = record.cost_usd.map(|_| format!(", {}", record.spent())).unwrap_or_default();
    format!(
        "{at} Done so far: {}, {} ({} failed). Spent: {}{cost}. \
         `yes` allows {more}; `no` ends the run as failed.",
        counted(record.iterations.into(), "step"),
        counted(record.tool_calls.into(), "tool call"),
        record.errors,
        counted(record.input_tokens.saturating_add(record.output_tokens), "token"),
    )
}

/// The events of an answer to a question about a ceiling.
///
/// # Errors
/// `consent_needed` if it is not the owner's own, `invalid_request` if it is neither a yes nor a no. The question stays
/// open then.
pub(crate) fn answered(
    question: &Question,
    raise: CeilingRaise,
    text: &str,
    authority: &AnswerAuthority,
) -> Result<Vec<RunEvent>, Refusal> {
    let consent: ConsentRecord = authority.clone().into();
    if !matches!(consent.door, Door::Terminal | Door::Token | Door::Web | Door::Message) {
        let reason = "only the owner lets a run go on beyond a ceiling";
        return Err(
            Refusal::new(RefusalCode::ConsentNeeded, reason).with_remedy("the owner answers with `motor task respond`")
        );
    }
    let is_raised = match text.trim().trim_end_matches(['.', '!']).to_lowercase().as_str() {
        "yes" | "y" => true,
        "no" | "n" | "deny" => false,
        _ => {
            return Err(Refusal::new(
                RefusalCode::InvalidRequest,
                format!("`{}` asks whether the run may go on: the answer is neither yes nor no", question.id),
            )
            .with_remedy("answer `yes` or `no`"));
        }
    };
    let mut events = vec![RunEvent::Answered { question: question.id.clone(), answer: text.to_owned(), consent }];
    if is_raised {
        events.push(RunEvent::CeilingRaised { raise });
    }
    Ok(events)
}

impl Driver {
    /// Parks the run with the question whether it may go on beyond a ceiling, or ends it with `error` if there is no one to
    /// ask, the owner has refused, or a call is in flight.
    pub(crate) async fn at_ceiling(
        &self,
        journal: &mut Journal,
        kind: CeilingKind,
        least: u64,
        error: RunError,
    ) -> Result<LoopExit, JournalError> {
        let state = journal.state();
        let record = &state.record;
        let by = match kind.step(record, self.config.budget.usd_day) {
            0 => 0,
            by => by.max(least),
        };
        if by == 0
            || !record.may_ask
            || record.ceilings.refused.contains(&kind)
            || !state.conversation.in_flight().is_empty()
        {
            return Ok(LoopExit::Failing(error));
        }
        let raise = CeilingRaise { kind, by };
        let now = self.books.clock.now();
        let question = Question {
            id: waiting_id("ask", &self.run, record.next_sequence),
            step: record.iterations,
            call_id: String::new(),
            question: question(raise, record, &error),
            choices: vec!["yes".to_owned(), "no".to_owned()],
            asked_at: now,
            expires_at: now.after(self.config.input_timeout(record)),
            // The host's own words: no content of the run is in them.
            sources: Vec::new(),
            ceiling: Some(raise),
        };
        journal.park(RunEvent::Asked { question }).await?;
        Ok(LoopExit::Parked)
    }

    /// How the loop is left if the budget does not reach for a request of up to `cost` credits, or, where the owner can be asked,
    /// if its last tenth has begun.
    pub(crate) async fn at_budget(&self, journal: &mut Journal, cost: u64) -> Result<Option<LoopExit>, JournalError> {
        let record = &journal.state().record;
        let Some(budget) = &record.budget else { return Ok(None) };
        let (left, limit) = (budget.left(), budget.limit());
        let error = match budget.affords(cost) {
            Err(exhausted @ BudgetExhausted { .. }) => {
                RunError::new(FailureCategory::BudgetExhausted, exhausted.to_string())
            }
            Ok(_) if record.may_ask && left < limit / LAST_PART => reached(CeilingKind::Credits, record),
            Ok(_) => return Ok(None),
        };
        // A yes covers the request, and leaves more than the last tenth.
        let least = cost.saturating_sub(left);
        self.at_ceiling(journal, CeilingKind::Credits, least, error).await.map(Some)
    }
}

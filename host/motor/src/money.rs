//! Caps on the money of a run, and of its agent in a day (SPEC EN-4).
//!
//! The prices of the models that a run may use are in its first event, so later settings do not change its bill. A cap is checked
//! before each request, with the price of its prompt; the reply is paid for afterwards, so a cap is exceeded by the price of one
//! reply at the most. At a cap the owner is asked where a run may ask (`ceiling.rs`); a cap
//! that cannot be measured ends the run.

use base::RefusalCode;
use llm::{MicroUsd, Model, PriceTable};
use serde::{Deserialize, Serialize};

use crate::budget::tokens;
use crate::ceiling::CeilingKind;
use crate::drive::{Driver, LoopExit};
use crate::failure::{FailureCategory, RunError};
use crate::journal::{Journal, JournalError};
use crate::record::RunRecord;
use crate::spend::SpendBook;

/// The cap of a run, and its prices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunMoney {
    /// The most that the run may spend, over all its attempts; `None`: any amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<MicroUsd>,
    /// The prices of its models when it started, by `provider/model`.
    #[serde(default = "PriceTable::empty", skip_serializing_if = "PriceTable::is_empty")]
    pub prices: PriceTable,
}

impl Default for RunMoney {
    fn default() -> Self {
        Self { cap: None, prices: PriceTable::empty() }
    }
}

impl RunMoney {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Driver {
    /// Whether the run, or its agent today, is under a cap.
    pub(crate) fn is_capped(&self, journal: &Journal) -> bool {
        journal.state().record.money.cap.is_some() || self.config.budget.usd_day.is_some()
    }

    /// How the loop is left if the caps do not allow a request of `bytes` bytes: with a question, or at its end.
    pub(crate) async fn at_cap(
        &self,
        journal: &mut Journal,
        model: &dyn Model,
        bytes: usize,
    ) -> Result<Option<LoopExit>, JournalError> {
        if !self.is_capped(journal) {
            return Ok(None);
        }
        let record = &journal.state().record;
        if record.unpriced_replies > 0 {
            return Ok(Some(LoopExit::Failing(unmeasured(&record.id, model.name()))));
        }
        let price = record.money.prices.of(model.name());
        let prompt = price.map_or(MicroUsd::ZERO, |price| price.prompt(tokens(bytes)));
        let exceeds =
            |spent: MicroUsd, cap: MicroUsd| spent >= cap.max(MicroUsd::from_micros(1)) || spent.plus(prompt) > cap;
        // A yes covers at least the request.
        let least =
            |spent: MicroUsd, cap: MicroUsd| spent.plus(prompt).micros().saturating_add(1).saturating_sub(cap.micros());
        if let Some(cap) = record.money.cap {
            let spent = record.spent();
            if exceeds(spent, cap) {
                let detail = format!("{spent} are spent, and the next request costs {prompt} or more");
                let error = capped_run(record, detail, cap);
                return self.at_ceiling(journal, CeilingKind::Usd, least(spent, cap), error).await.map(Some);
            }
        }
        if let Some(cap) = self.config.budget.usd_day.map(|cap| record.ceilings.of_day(cap)) {
            let spent = SpendBook::new(self.books.store.clone()).of_day(&record.agent, self.books.clock.now())?.usd;
            if exceeds(spent, cap) {
                let error = capped_day(format!(
                    "the cap of {cap} a day is reached: agent `{}` has spent {spent} today, and the next request costs \
                     {prompt} or more",
                    record.agent
                ));
                return self.at_ceiling(journal, CeilingKind::UsdDay, least(spent, cap), error).await.map(Some);
            }
        }
        Ok(None)
    }
}

/// The end of a run at its own cap.
pub(crate) fn capped_run(record: &RunRecord, detail: String, cap: MicroUsd) -> RunError {
    let remedy = format!("`motor task retry {} --budget-usd USD` with a higher cap", record.id);
    capped(format!("the run's cap of {cap} is reached: {detail}"), remedy)
}

/// The end of a run at the cap of its agent's day.
pub(crate) fn capped_day(reason: String) -> RunError {
    capped(reason, "raise `budget.usd_day` and retry the run, or retry it after midnight UTC".to_owned())
}

fn capped(reason: String, remedy: String) -> RunError {
    RunError {
        code: Some(RefusalCode::SpendCapReached),
        remedy: Some(remedy),
        ..RunError::new(FailureCategory::BudgetExhausted, reason)
    }
}

fn unmeasured(run: &base::RunId, model: &str) -> RunError {
    let reason = format!("the price of a reply of `{model}` is unknown, so the cap on spending cannot be kept");
    RunError {
        code: Some(RefusalCode::PriceUnknown),
        remedy: Some(format!(
            "set the price of the model (`motor config set 'prices.{model}' '{{ input = 1, output = 2 }}'`) and start a new run in place of `{run}`"
        )),
        ..RunError::new(FailureCategory::BudgetExhausted, reason)
    }
}

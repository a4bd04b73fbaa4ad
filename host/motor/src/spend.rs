//! The money spent by agents, by day (SPEC EN-4).
//!
//! Each source of calls of models (a run, a conversation, the cortex) has one record for each day, and is its only writer: it is
//! committed together with the reply that was paid for, so a crash neither loses nor doubles it. The sum of a day is the sum of
//! its records. Days are those of UTC. Deleting a run leaves its records.

use base::{AgentName, Timestamp};
use llm::{MicroUsd, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Batch, Scan, Store, StoreError, Table};

const DAY_MS: u64 = 24 * 3_600_000;
/// Before the keys of all records.
const PREFIX: &str = "spend/";

/// The sum of calls of models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spend {
    /// US dollars of the replies whose price is known.
    pub usd: MicroUsd,
    /// The number of replies of models.
    pub replies: u64,
    /// Those of them whose price is unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced: u64,
    /// Tokens of the prompts.
    pub input_tokens: u64,
    /// Those of them that providers had in their caches.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_input_tokens: u64,
    /// Tokens of the replies.
    pub output_tokens: u64,
}

impl Spend {
    /// Adds a reply with its cost; `None`: unknown.
    fn count(&mut self, usage: &Usage, cost: Option<MicroUsd>) {
        *self = self.plus(&Self {
            usd: cost.unwrap_or_default(),
            replies: 1,
            unpriced: u64::from(cost.is_none()),
            input_tokens: usage.input_tokens,
            cached_input_tokens: usage.cached_input_tokens.min(usage.input_tokens),
            output_tokens: usage.output_tokens,
        });
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            usd: self.usd.plus(other.usd),
            replies: self.replies.saturating_add(other.replies),
            unpriced: self.unpriced.saturating_add(other.unpriced),
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_input_tokens: self.cached_input_tokens.saturating_add(other.cached_input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
        }
    }
}

/// The spending of one source on one day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpendOfDay {
    /// Days since 1970-01-01, in UTC.
    pub day: u64,
    /// The spending of that day.
    pub spend: Spend,
}

impl SpendOfDay {
    /// Adds a reply; the first of another day begins anew.
    pub(crate) fn count(&mut self, at: Timestamp, usage: &Usage, cost: Option<MicroUsd>) {
        let day = day_of(at);
        if day != self.day {
            *self = Self { day, ..Self::default() };
        }
        self.spend.count(usage, cost);
    }
}

/// The spending of an agent on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentSpend {
    /// The day in UTC, as `YYYY-MM-DD`.
    pub day: String,
    /// The agent that spent it.
    pub agent: AgentName,
    /// The spending of that day.
    #[serde(flatten)]
    pub spend: Spend,
}

/// The day of a moment: days since 1970-01-01, in UTC.
#[must_use]
pub fn day_of(at: Timestamp) -> u64 {
    at.as_millis() / DAY_MS
}

fn date(day: u64) -> String {
    let text = Timestamp::from_millis(day.saturating_mul(DAY_MS)).to_string();
    text.get(..10).unwrap_or(&text).to_owned()
}

fn agent_prefix(agent: &AgentName) -> String {
    format!("{PREFIX}{agent}/")
}

fn day_prefix(agent: &AgentName, day: u64) -> String {
    format!("{}{day:08}/", agent_prefix(agent))
}

/// The agent and the day of a key.
fn parsed(key: &[u8]) -> Option<(AgentName, u64)> {
    let mut parts = std::str::from_utf8(key).ok()?.strip_prefix(PREFIX)?.splitn(3, '/');
    Some((AgentName::parse(parts.next()?).ok()?, parts.next()?.parse().ok()?))
}

/// The records of a home. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SpendBook(Store);

impl SpendBook {
    /// Over a home's store.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self(store)
    }

    /// Puts the sum of a source for a day into `batch`, in place of the one before.
    pub(crate) fn put(
        batch: &mut Batch,
        agent: &AgentName,
        source: &str,
        SpendOfDay { day, spend }: &SpendOfDay,
    ) -> Result<(), StoreError> {
        batch.put(Table::Meta, format!("{}{source}", day_prefix(agent, *day)), spend)
    }

    /// Adds a reply at `at` to the record of `source` in `batch`. One batch of a source is committed before the next is begun.
    ///
    /// # Errors
    /// If the store fails.
    pub fn add(
        &self,
        batch: &mut Batch,
        agent: &AgentName,
        source: &str,
        at: Timestamp,
        usage: &Usage,
    ) -> Result<(), StoreError> {
        let key = format!("{}{source}", day_prefix(agent, day_of(at)));
        let mut spend = self.0.get::<Spend>(Table::Meta, &key)?.unwrap_or_default();
        spend.count(usage, usage.cost());
        batch.put(Table::Meta, key, &spend)
    }

    /// The spending of an agent on the day of `at`.
    ///
    /// # Errors
    /// If the store fails.
    pub fn of_day(&self, agent: &AgentName, at: Timestamp) -> Result<Spend, StoreError> {
        let records = self.0.scan::<Spend>(Table::Meta, &Scan::prefix(day_prefix(agent, day_of(at))))?;
        Ok(records.iter().fold(Spend::default(), |sum, (_, spend)| sum.plus(spend)))
    }

    /// The spending of the last `days` days, today included, by day and agent, the latest day first.
    ///
    /// # Errors
    /// If the store fails.
    pub fn days(&self, agent: Option<&AgentName>, now: Timestamp, days: u32) -> Result<Vec<AgentSpend>, StoreError> {
        let first = (day_of(now) + 1).saturating_sub(days.into());
        let prefix = agent.map_or_else(|| PREFIX.to_owned(), agent_prefix);
        let mut sums = std::collections::BTreeMap::<(std::cmp::Reverse<u64>, AgentName), Spend>::new();
        for (key, spend) in self.0.scan::<Spend>(Table::Meta, &Scan::prefix(prefix))? {
            let Some((agent, day)) = parsed(&key).filter(|(_, day)| *day >= first) else { continue };
            let sum = sums.entry((std::cmp::Reverse(day), agent)).or_default();
            *sum = sum.plus(&spend);
        }
        let told = sums.into_iter();
        Ok(told.map(|((day, agent), spend)| AgentSpend { day: date(day.0), agent, spend }).collect())
    }

    /// Deletes the records of days that are more than `days` before today.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn forget(&self, now: Timestamp, days: u32) -> Result<(), StoreError> {
        let first = day_of(now).saturating_sub(days.into());
        let mut batch = Batch::new();
        for (key, _) in self.0.scan::<Spend>(Table::Meta, &Scan::prefix(PREFIX))? {
            if parsed(&key).is_some_and(|(_, day)| day < first) {
                batch.delete(Table::Meta, key);
            }
        }
        if batch.is_empty() { Ok(()) } else { self.0.commit(batch).await }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(cost_usd: Option<f64>) -> Usage {
        Usage { input_tokens: 100, cached_input_tokens: 40, output_tokens: 10, cost_usd, ..Usage::default() }
    }

    fn on(day: u64) -> Timestamp {
        Timestamp::from_millis(day * DAY_MS + 5)
    }

    async fn add(store: &Store, agent: &str, source: &str, at: Timestamp, cost: Option<f64>) {
        let mut batch = Batch::new();
        let agent = AgentName::parse(agent).unwrap();
        SpendBook::new(store.clone()).add(&mut batch, &agent, source, at, &usage(cost)).unwrap();
        store.commit(batch).await.unwrap();
    }

    #[tokio::test]
    async fn days_and_agents_are_kept_apart_and_unknown_is_not_zero() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("state")).unwrap();
        let book = SpendBook::new(store.clone());
        let main = AgentName::default();
        for (source, day, cost) in [
            ("run_1", 20_000, Some(0.25)),
            ("chat-1", 20_000, Some(0.5)),
            ("chat-1", 20_000, None),
            ("run_2", 19_999, Some(1.0)),
        ] {
            add(&store, "main", source, on(day), cost).await;
        }
        add(&store, "mai", "run_3", on(20_000), Some(9.0)).await;
        let today = book.of_day(&main, on(20_000)).unwrap();
        assert_eq!((today.usd, today.replies, today.unpriced), (MicroUsd::from_micros(750_000), 3, 1));
        assert_eq!((today.input_tokens, today.cached_input_tokens, today.output_tokens), (300, 120, 30));
        let told = |agent, days| -> Vec<String> {
            let all = book.days(agent, on(20_000), days).unwrap();
            all.iter().map(|sum| format!("{} {} {}", sum.day, sum.agent, sum.spend.usd)).collect()
        };
        assert_eq!(told(Some(&main), 1), ["2024-10-04 main $0.75"]);
        assert_eq!(told(None, 2), ["2024-10-04 mai $9.00", "2024-10-04 main $0.75", "2024-10-03 main $1.00"]);
        book.forget(on(20_000), 0).await.unwrap();
        assert_eq!(told(None, 400), ["2024-10-04 mai $9.00", "2024-10-04 main $0.75"]);
        // Other values of the table stay.
        let mut batch = Batch::new();
        batch.put(Table::Meta, "spender", &1).unwrap();
        store.commit(batch).await.unwrap();
        book.forget(on(30_000), 1).await.unwrap();
        assert_eq!((told(None, 400).len(), store.get::<u32>(Table::Meta, "spender").unwrap()), (0, Some(1)));
    }

    #[test]
    fn a_run_begins_anew_on_another_day() {
        let mut of_day = SpendOfDay::default();
        let mut count = |at, cost: Option<f64>| of_day.count(at, &usage(cost), usage(cost).cost());
        count(on(5), Some(0.1));
        count(on(5), Some(0.2));
        assert_eq!((of_day.day, of_day.spend.usd.micros()), (5, 300_000));
        of_day.count(on(6), &usage(None), None);
        assert_eq!((of_day.day, of_day.spend.usd.micros(), of_day.spend.unpriced), (6, 0, 1));
    }
}

//! One budget for all costs of a run: model tokens, fuel, host calls, browser steps (SPEC EN-2).
//!
//! Credits are whole numbers, so the same events give the same sums everywhere. A cost is reserved
//! first and settled after; a reservation that a crash left open is settled in full, because its actual cost is unknown.
//! It survives numbers of any size: the remainder is never negative, and the spent amount never shrinks.
//!
//! Nothing in here knows events or runs. An event carries the credits it reserved or was charged, so a change of prices
//! does not change the amount that a run has spent.

use llm::{MicroUsd, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::toolbox::SandboxUsage;

/// Bytes of text that are taken for one token: English prose has about four, program text and other languages fewer, which
/// is settled when the provider has counted.
const BYTES_PER_TOKEN: u64 = 4;

/// The budget of a run, and the prices. All amounts are credits; a price of 0 makes a thing free.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prices {
    /// Whether runs have a budget. Default true.
    pub enabled: bool,
    /// Credits of a run, over all its attempts. Default 20,000,000: fifty requests of 100,000 tokens in each of three
    /// attempts, and a quarter of that for everything else.
    pub credits: u64,
    /// Credits for a token of a request. Default 1.
    pub input_token: u64,
    /// Credits for a token of a reply. Default 4: about the ratio at which providers charge the two.
    pub output_token: u64,
    /// Tokens of a reply that are reserved before it comes. Default 16,000; a longer one is charged all the same.
    pub reply_tokens: u64,
    /// Units of fuel that one credit buys, begun ones counted. Default 1,000,000, about a millisecond of processor time; 0:
    /// fuel is free.
    pub fuel_per_credit: u64,
    /// Calls from a sandbox into the host that one credit buys, begun ones counted. Default 10,000; 0: they are free.
    pub host_calls_per_credit: u64,
    /// Credits for a step of a browser. Default 500.
    pub browser_step: u64,
    /// US dollars that a run may spend on models, over all its attempts. Default: any amount (SPEC EN-4).
    pub usd: Option<MicroUsd>,
    /// US dollars that an agent may spend on models in a day of UTC, by runs, conversations and reflection. Default: any
    /// amount (SPEC EN-4).
    pub usd_day: Option<MicroUsd>,
}

impl Default for Prices {
    fn default() -> Self {
        Self {
            enabled: true,
            credits: 20_000_000,
            input_token: 1,
            output_token: 4,
            reply_tokens: 16_000,
            fuel_per_credit: 1_000_000,
            host_calls_per_credit: 10_000,
            browser_step: 500,
            usd: None,
            usd_day: None,
        }
    }
}

impl Prices {
    /// The most a model request of `bytes` bytes is expected to cost.
    #[must_use]
    pub fn request(&self, bytes: usize) -> u64 {
        self.tokens(tokens(bytes), self.reply_tokens)
    }

    /// The cost of a model call, by the provider's count. Missing counts are estimated: a provider that is silent is
    /// not free.
    #[must_use]
    pub fn reply(&self, usage: &Usage, request_bytes: usize, reply_bytes: usize) -> u64 {
        let counted = |count: u64, bytes| if count == 0 { tokens(bytes) } else { count };
        self.tokens(counted(usage.input_tokens, request_bytes), counted(usage.output_tokens, reply_bytes))
    }

    /// The most a call can cost in a sandbox with these limits.
    #[must_use]
    pub fn call(&self, fuel: u64, host_calls: u64) -> u64 {
        let begun = |count: u64, each: u64| if each == 0 { 0 } else { count.div_ceil(each) };
        begun(fuel, self.fuel_per_credit).saturating_add(begun(host_calls, self.host_calls_per_credit))
    }

    /// The cost of a tool call.
    #[must_use]
    pub fn spent(&self, usage: &SandboxUsage) -> u64 {
        self.call(usage.fuel, usage.host_calls)
    }

    /// The cost of `steps` steps of a browser.
    #[must_use]
    pub fn browser(&self, steps: u64) -> u64 {
        steps.saturating_mul(self.browser_step)
    }

    fn tokens(&self, input: u64, output: u64) -> u64 {
        input.saturating_mul(self.input_token).saturating_add(output.saturating_mul(self.output_token))
    }
}

/// Tokens of a text, estimated.
pub(crate) fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX).div_ceil(BYTES_PER_TOKEN)
}

/// The limit of a run, its spending, and the reservation for its current activity.
///
/// JSON: `{ limit, spent, reserved }`, credits. A fold of the run's events: the loop does one thing after another, so
/// the reservation belongs to the one call in flight.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreditBudget {
    limit: u64,
    spent: u64,
    reserved: u64,
}

/// There is not enough left.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the run's budget does not reach: this may cost {cost} credits, and {left} of {limit} are left")]
pub struct BudgetExhausted {
    /// The requested amount, in credits.
    pub cost: u64,
    /// The remaining amount, in credits.
    pub left: u64,
    /// The budget at the run's start, in credits.
    pub limit: u64,
}

impl CreditBudget {
    /// A budget of which nothing is spent.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self { limit, spent: 0, reserved: 0 }
    }

    /// The budget at the run's start.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Raises the limit by so many credits.
    pub fn raise(&mut self, by: u64) {
        self.limit = self.limit.saturating_add(by);
    }

    /// The spent amount; never more than the limit.
    #[must_use]
    pub fn spent(&self) -> u64 {
        self.spent.min(self.limit)
    }

    /// The amount that is neither spent nor reserved.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.spent).saturating_sub(self.reserved)
    }

    /// Whether `cost` may be reserved; gives it back, for the event that reserves it.
    ///
    /// # Errors
    /// When so much is not left.
    pub fn affords(&self, cost: u64) -> Result<u64, BudgetExhausted> {
        let left = self.left();
        if cost > left { Err(BudgetExhausted { cost, left, limit: self.limit }) } else { Ok(cost) }
    }

    /// Reserves an amount that [`CreditBudget::affords`] allowed.
    pub fn reserve(&mut self, cost: u64) {
        self.reserved = self.reserved.saturating_add(cost.min(self.left()));
    }

    /// Charges the actual cost, and releases the reservation for it. An excess over the reservation is charged too, as far as
    /// credits are left.
    pub fn settle(&mut self, actual: u64) {
        self.release();
        self.spent = self.spent.saturating_add(actual.min(self.left()));
    }

    /// Releases the reservation of an activity that did not happen.
    pub fn release(&mut self) {
        self.reserved = 0;
    }

    /// Charges the full reservation of a call whose outcome is unknown.
    pub fn forfeit(&mut self) {
        self.settle(self.reserved);
    }

    /// The share that is left, for the model: `at least 40 %`. Nothing while half of it is left: there is no need to save yet.
    #[must_use]
    pub fn share_left(&self) -> Option<String> {
        let tenths = (u128::from(self.left()) * 10).checked_div(u128::from(self.limit)).unwrap_or_default();
        match tenths {
            0 => Some("less than 10 %".to_owned()),
            1..=4 => Some(format!("at least {tenths}0 %")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_things_cost() {
        let prices = Prices::default();
        let usage = |input_tokens, output_tokens| Usage { input_tokens, output_tokens, ..Usage::default() };
        for (what, cost, expected) in [
            ("request", prices.request(400_000), 100_000 + 64_000),
            ("short request", prices.request(1), 1 + 64_000),
            ("reply", prices.reply(&usage(1_000, 10), 9, 9), 1_040),
            ("uncounted reply", prices.reply(&usage(0, 0), 400, 41), 100 + 44),
            ("whole call", prices.call(20_000_000_000, 100_000_000), 30_000),
            ("small call", prices.spent(&SandboxUsage { fuel: 1, host_calls: 1, peak_memory_bytes: 1 << 30 }), 2),
            ("idle call", prices.call(0, 0), 0),
            ("browser", prices.browser(3), 1_500),
            ("overflow", prices.reply(&usage(u64::MAX, u64::MAX), 0, 0), u64::MAX),
            ("endless request", prices.request(usize::MAX), (u64::MAX / 4 + 1) + 64_000),
            ("endless browser", prices.browser(u64::MAX), u64::MAX),
        ] {
            assert_eq!(cost, expected, "{what}");
        }
        let free = Prices { fuel_per_credit: 0, host_calls_per_credit: 0, input_token: 0, output_token: 0, ..prices };
        assert_eq!((free.call(u64::MAX, u64::MAX), free.request(usize::MAX)), (0, 0));
    }

    #[test]
    fn settings_are_read_strictly() {
        let read = serde_json::from_str::<Prices>;
        assert_eq!(read("{}").unwrap(), Prices::default());
        assert_eq!(read(r#"{"credits": 5}"#).unwrap().credits, 5);
        assert!(read(r#"{"credit": 5}"#).is_err());
        assert!(read(r#"{"credits": -5}"#).is_err());
    }

    #[test]
    fn reserved_then_settled() {
        let mut budget = CreditBudget::new(100);
        budget.reserve(budget.affords(60).unwrap());
        assert_eq!(budget.left(), 40);
        let refused = budget.affords(41).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the run's budget does not reach: this may cost 41 credits, and 40 of 100 are left"
        );
        budget.settle(10);
        assert_eq!((budget.spent(), budget.left()), (10, 90));
        budget.reserve(20);
        budget.release();
        assert_eq!((budget.spent(), budget.left()), (10, 90));
        // The host died: the cost is unknown.
        budget.reserve(20);
        let stored = serde_json::to_string(&budget).unwrap();
        assert_eq!(stored, r#"{"limit":100,"spent":10,"reserved":20}"#);
        let mut budget: CreditBudget = serde_json::from_str(&stored).unwrap();
        budget.forfeit();
        assert_eq!((budget.spent(), budget.left()), (30, 70));
        // It cost more than anybody thought.
        budget.reserve(10);
        budget.settle(1_000);
        assert_eq!((budget.spent(), budget.left()), (100, 0));
        assert!(budget.affords(0).is_ok() && budget.affords(1).is_err());
    }

    #[test]
    fn what_is_left_in_words() {
        let words = |limit, spent| CreditBudget { limit, spent, reserved: 0 }.share_left();
        for (limit, spent, expected) in [
            (100, 0, None),
            (100, 50, None),
            (100, 51, Some("at least 40 %")),
            (100, 90, Some("at least 10 %")),
            (100, 91, Some("less than 10 %")),
            (0, 0, Some("less than 10 %")),
            (u64::MAX, 1, None),
        ] {
            assert_eq!(words(limit, spent).as_deref(), expected, "{spent} of {limit}");
        }
        let all: std::collections::BTreeSet<_> = (0..=1_000).map(|spent| words(1_000, spent)).collect();
        assert_eq!(all.len(), 6);
    }

    #[derive(Debug, Clone)]
    enum Act {
        /// The loop's own order: ask first.
        Begin(u64),
        /// A reservation that a history may hold without a request.
        Reserve(u64),
        Settle(u64),
        Release,
        Forfeit,
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let credits = || prop_oneof![0..2_000_u64, any::<u64>(), Just(u64::MAX)];
        let act = prop_oneof![
            credits().prop_map(Act::Begin),
            credits().prop_map(Act::Reserve),
            credits().prop_map(Act::Settle),
            Just(Act::Release),
            Just(Act::Forfeit),
        ];
        proptest::collection::vec(act, 0..60)
    }

    proptest! {
        #[test]
        fn nothing_is_spent_twice_or_given_back(
            limit in prop_oneof![Just(0), 0..10_000_u64, any::<u64>(), Just(u64::MAX)],
            acts in acts(),
        ) {
            let mut budget = CreditBudget::new(limit);
            for act in acts {
                let before = budget.clone();
                match act {
                    Act::Begin(cost) => match budget.affords(cost) {
                        Ok(cost) => {
                            budget.reserve(cost);
                            prop_assert_eq!(budget.left(), before.left() - cost);
                        }
                        Err(refused) => prop_assert!(refused.left == before.left() && refused.left < cost),
                    },
                    Act::Reserve(cost) => budget.reserve(cost),
                    Act::Settle(actual) => {
                        budget.settle(actual);
                        let room = limit - before.spent();
                        prop_assert_eq!(budget.spent() - before.spent(), actual.min(room));
                    }
                    Act::Release => budget.release(),
                    Act::Forfeit => {
                        budget.forfeit();
                        // Exactly the reservation is spent, to the last credit.
                        prop_assert_eq!(budget.left(), before.left());
                    }
                }
                prop_assert!(budget.spent() >= before.spent());
                // Every credit is spent, set aside or left.
                prop_assert_eq!(u128::from(budget.spent) + u128::from(budget.reserved) + u128::from(budget.left()), limit.into());
            }
        }

        /// A record that something else has written must not bring the host down.
        #[test]
        fn any_stored_budget_is_survived(limit: u64, spent: u64, reserved: u64, acts in acts()) {
            let mut budget = CreditBudget { limit, spent, reserved };
            for act in acts {
                match act {
                    Act::Begin(cost) => drop(budget.affords(cost)),
                    Act::Reserve(cost) => budget.reserve(cost),
                    Act::Settle(actual) => budget.settle(actual),
                    Act::Release => budget.release(),
                    Act::Forfeit => budget.forfeit(),
                }
                prop_assert!(budget.spent() <= limit && budget.left() <= limit);
                prop_assert_eq!(budget.share_left().is_none(), u128::from(budget.left()) * 2 >= u128::from(budget.limit) && budget.limit > 0);
            }
        }
    }
}

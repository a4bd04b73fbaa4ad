//! The prices of models, and the cost of a call in whole millionths of a US dollar.
//!
//! Amounts are integers, so the same counts give the same sums everywhere. A model without a price has an unknown cost, which is
//! not zero: a cap on spending cannot be kept with it. Models on this machine, and replays, cost nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::Sum;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Usage;
use crate::reference::{ModelRef, Provider};

/// The prices that ship with the program. They change: `[prices]` overrides them.
const SHIPPED: &str = include_str!("prices.json");
/// Micro-dollars in a dollar, and tokens in the unit of a price.
const MILLION: u64 = 1_000_000;
/// No amount in settings is larger: a billion dollars.
const MOST_USD: f64 = 1e9;

/// Millionths of a US dollar. JSON and TOML: a number of dollars, such as `0.25`; sums saturate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MicroUsd(u64);

impl MicroUsd {
    /// No money at all.
    pub const ZERO: Self = Self(0);

    /// An amount of so many millionths.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// The amount nearest to so many dollars; `None` if it is negative, not a number, or above a billion.
    #[must_use]
    pub fn from_usd(usd: f64) -> Option<Self> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 10^15")]
        (0.0..=MOST_USD).contains(&usd).then(|| Self((usd * 1e6).round() as u64))
    }

    /// Dollars. Exact to the millionth below nine billion.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "2^53 millionths are nine billion dollars")]
    pub fn usd(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Millionths of a dollar.
    #[must_use]
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// The sum; it saturates at the largest amount.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for MicroUsd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::plus)
    }
}

/// `$1.25`, `$0.0031`: at least two decimals, and no more than are needed.
impl fmt::Display for MicroUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:06}", self.0 % MILLION);
        let needed = fraction.trim_end_matches('0').len().max(2);
        write!(f, "${}.{}", self.0 / MILLION, fraction.get(..needed).unwrap_or(&fraction))
    }
}

impl Serialize for MicroUsd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.usd())
    }
}

impl<'de> Deserialize<'de> for MicroUsd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let usd = f64::deserialize(deserializer)?;
        Self::from_usd(usd).ok_or_else(|| de::Error::custom("use US dollars from 0 to 1000000000, such as 0.25"))
    }
}

impl JsonSchema for MicroUsd {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Usd".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "number", "minimum": 0, "maximum": MOST_USD, "description": "US dollars, exact to the millionth." })
    }
}

/// The price of a model, in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    /// Tokens of the prompt.
    pub input: MicroUsd,
    /// Tokens of the prompt that the provider had in its cache. Default: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<MicroUsd>,
    /// Tokens of the prompt that the provider put into its cache. Default: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<MicroUsd>,
    /// Tokens of the reply.
    pub output: MicroUsd,
}

impl ModelPrice {
    /// The price of a model that costs nothing.
    pub const FREE: Self = Self { input: MicroUsd::ZERO, cached: None, cache_write: None, output: MicroUsd::ZERO };

    /// The cost of a call, begun millionths counted; `None` if the provider counted no tokens: it was not free.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Option<MicroUsd> {
        if usage.input_tokens == 0 && usage.output_tokens == 0 && *self != Self::FREE {
            return None;
        }
        let cached = usage.cached_input_tokens.min(usage.input_tokens);
        let written = usage.cache_write_tokens.min(usage.input_tokens - cached);
        let parts = [
            (usage.input_tokens - cached - written, self.input),
            (cached, self.cached.unwrap_or(self.input)),
            (written, self.cache_write.unwrap_or(self.input)),
            (usage.output_tokens, self.output),
        ];
        // Below 2^130 only in theory: counts of tokens come from endpoints, so the sum saturates.
        let sum = parts.into_iter().fold(0_u128, |sum, (tokens, MicroUsd(price))| {
            sum.saturating_add(u128::from(tokens).saturating_mul(price.into()))
        });
        Some(MicroUsd(u64::try_from(sum.div_ceil(MILLION.into())).unwrap_or(u64::MAX)))
    }

    /// The cost of a prompt of so many tokens of which none is cached.
    #[must_use]
    pub fn prompt(&self, tokens: u64) -> MicroUsd {
        let usage = Usage { input_tokens: tokens, ..Usage::default() };
        self.cost(&usage).unwrap_or_default()
    }
}

/// Prices by `provider/model`. The default is the table that ships with the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct PriceTable(BTreeMap<String, ModelPrice>);

#[derive(Deserialize)]
struct ShippedPrices {
    date: String,
    models: BTreeMap<String, ModelPrice>,
}

static SHIPPED_PRICES: LazyLock<ShippedPrices> = LazyLock::new(|| {
    // A file that cannot be read, which a test excludes, leaves every price unknown.
    let nothing = |_| ShippedPrices { date: String::new(), models: BTreeMap::new() };
    serde_json::from_str(SHIPPED).unwrap_or_else(nothing)
});

impl Default for PriceTable {
    fn default() -> Self {
        Self(SHIPPED_PRICES.models.clone())
    }
}

/// Each name is checked, so that a typing error does not leave a model without a price.
impl<'de> Deserialize<'de> for PriceTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let models = BTreeMap::<String, ModelPrice>::deserialize(deserializer)?;
        models.keys().try_for_each(|name| name.parse::<ModelRef>().map(drop)).map_err(de::Error::custom)?;
        Ok(Self(models))
    }
}

impl PriceTable {
    /// A table without prices.
    #[must_use]
    pub const fn empty() -> Self {
        Self(BTreeMap::new())
    }

    /// When the prices that ship with the program were read from the pages of the providers, as `YYYY-MM-DD`.
    #[must_use]
    pub fn shipped_on() -> &'static str {
        &SHIPPED_PRICES.date
    }

    /// Whether it has no prices.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it has prices, and all of them are nothing.
    #[must_use]
    pub fn is_free(&self) -> bool {
        !self.is_empty() && self.0.values().all(|price| *price == ModelPrice::FREE)
    }

    /// Sets the price of a model, in place of another.
    pub fn insert(&mut self, model: impl Into<String>, price: ModelPrice) {
        self.0.insert(model.into(), price);
    }

    /// Sets all prices of another table.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.iter().map(|(model, price)| (model.clone(), *price)));
    }

    /// The price of `provider/model`: its own, that of its name without a date at the end, or nothing for models that run
    /// on this machine and for replays. `None`: unknown.
    #[must_use]
    pub fn of(&self, model: &str) -> Option<ModelPrice> {
        let listed = self.0.get(model).or_else(|| self.0.get(undated(model)));
        let is_local = || {
            model.parse::<ModelRef>().is_ok_and(|model| matches!(model.provider, Provider::Ollama | Provider::Replay))
        };
        listed.copied().or_else(|| is_local().then_some(ModelPrice::FREE))
    }
}

/// The name without a date of its version: `-20250929`, `-2025-04-14`, or `-latest`.
fn undated(model: &str) -> &str {
    let is_date = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(name) = model.strip_suffix("-latest") {
        return name;
    }
    match model.rsplit_once('-') {
        Some((name, day)) if day.len() == 8 && is_date(day) => name,
        Some((rest, day)) if day.len() == 2 && is_date(day) => match rest.rsplitn(3, '-').collect::<Vec<_>>()[..] {
            [month, year, name] if month.len() == 2 && is_date(month) && year.len() == 4 && is_date(year) => name,
            _ => model,
        },
        _ => model,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn usd(text: &str) -> MicroUsd {
        serde_json::from_str(text).unwrap()
    }

    fn price(input: &str, output: &str) -> ModelPrice {
        ModelPrice { input: usd(input), cached: None, cache_write: None, output: usd(output) }
    }

    #[test]
    fn amounts_are_written_and_read_as_dollars() {
        for (text, micros, shown) in [
            ("0.25", 250_000, "$0.25"),
            ("0.003", 3_000, "$0.003"),
            ("0.0375", 37_500, "$0.0375"),
            ("3", 3_000_000, "$3.00"),
            ("0", 0, "$0.00"),
            ("0.000001", 1, "$0.000001"),
            ("0.1", 100_000, "$0.10"),
        ] {
            assert_eq!((usd(text).micros(), usd(text).to_string().as_str()), (micros, shown), "{text}");
        }
        for wrong in ["-1", "1e10", "\"1\"", "null"] {
            assert!(serde_json::from_str::<MicroUsd>(wrong).is_err(), "{wrong}");
        }
        assert_eq!(MicroUsd::from_usd(f64::NAN), None);
    }

    #[test]
    fn what_calls_cost() {
        let usage = |input_tokens, output_tokens| Usage { input_tokens, output_tokens, ..Usage::default() };
        let plain = price("2.0", "10.0");
        assert_eq!(plain.cost(&usage(1_000, 100)), Some(MicroUsd(3_000)));
        assert_eq!(price("0.05", "0.4").cost(&usage(1, 0)), Some(MicroUsd(1)), "a begun millionth counts");
        let caching = ModelPrice { cached: Some(usd("0.2")), cache_write: Some(usd("2.5")), ..plain };
        let cached = Usage { cached_input_tokens: 600, cache_write_tokens: 300, ..usage(1_000, 0) };
        assert_eq!(caching.cost(&cached), Some(MicroUsd(100 * 2 + 600 / 5 + 750)));
        assert_eq!(plain.cost(&cached), plain.cost(&usage(1_000, 0)));
        // An endpoint that counted nothing was not free; a model on this machine is.
        assert_eq!((plain.cost(&usage(0, 0)), ModelPrice::FREE.cost(&usage(0, 0))), (None, Some(MicroUsd::ZERO)));
        // Counts that cannot be are survived.
        let most = Usage { cached_input_tokens: u64::MAX, cache_write_tokens: u64::MAX, ..usage(u64::MAX, u64::MAX) };
        assert!(caching.cost(&most).is_some_and(|cost| cost > MicroUsd(1 << 60)));
        assert_eq!(plain.prompt(500), MicroUsd(1_000));
    }

    #[test]
    fn the_shipped_table_has_the_best_known_models_and_its_date() {
        let table = PriceTable::default();
        assert_eq!(PriceTable::shipped_on().len(), 10);
        assert!(table.0.len() > 20);
        for (name, price) in &table.0 {
            let model: ModelRef = name.parse().unwrap();
            assert!(matches!(model.provider, Provider::OpenAi | Provider::Anthropic | Provider::Gemini), "{name}");
            assert!(price.input > MicroUsd::ZERO && price.output > price.input, "{name}");
            assert!(price.cached.is_none_or(|cached| cached < price.input), "{name}");
            assert!(price.cache_write.is_none_or(|write| write > price.input), "{name}");
        }
        assert_eq!(serde_json::from_value::<PriceTable>(serde_json::to_value(&table).unwrap()).unwrap(), table);
    }

    #[test]
    fn a_price_is_found_by_name_and_unknown_is_not_free() {
        let table = PriceTable::default();
        let sonnet = table.of("anthropic/claude-sonnet-4-5").unwrap();
        for name in ["anthropic/claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4-5-latest"] {
            assert_eq!(table.of(name), Some(sonnet), "{name}");
        }
        assert_eq!(table.of("openai/gpt-4.1-2025-04-14"), table.of("openai/gpt-4.1"));
        assert_eq!(table.of("ollama/qwen3:4b"), Some(ModelPrice::FREE));
        assert_eq!(table.of("replay/a.jsonl"), Some(ModelPrice::FREE));
        for name in ["openai/unheard-of", "compatible/qwen", "openrouter/openai/gpt-5", "x", "", "openai/gpt-5-11"] {
            assert_eq!(table.of(name), None, "{name}");
        }
        let mut own = table;
        own.insert("openai/gpt-5", price("1", "2"));
        assert_eq!(own.of("openai/gpt-5"), Some(price("1", "2")));
        let mut local = PriceTable::empty();
        assert!(!local.is_free());
        local.insert("ollama/a", ModelPrice::FREE);
        assert!(local.is_free());
        local.insert("openai/a", price("1", "2"));
        assert!(!local.is_free());
    }

    #[test]
    fn prices_are_read_strictly() {
        let read = |json: &str| serde_json::from_str::<PriceTable>(json).map_err(|error| error.to_string());
        assert!(read(r#"{"openai/x":{"input":1,"output":2.5}}"#).is_ok());
        assert!(read(r#"{"opnai/x":{"input":1,"output":2}}"#).unwrap_err().contains("did you mean"));
        for wrong in [
            r#"{"openai/x":{"input":1}}"#,
            r#"{"openai/x":{"input":-1,"output":2}}"#,
            r#"{"openai/x":{"input":1,"output":2,"x":1}}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn sums_are_exact_to_the_millionth(micros in 0..1_000_000_000_000_u64) {
            prop_assert_eq!(MicroUsd::from_usd(MicroUsd(micros).usd()), Some(MicroUsd(micros)));
        }

        #[test]
        fn any_name_is_survived(name in ".*") {
            prop_assert_eq!(PriceTable::default().of(&name), PriceTable::default().of(&name));
        }
    }
}

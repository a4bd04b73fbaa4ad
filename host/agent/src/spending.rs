//! Money: the cap and the prices of a run, and the caps that calls of models outside runs are held to (SPEC EN-4).
//!
//! A cap that cannot be measured refuses: under one, each model that may answer needs a known price.

use base::{AgentName, Refusal, RefusalCode, Timestamp};
use llm::{MicroUsd, PriceTable, Role};
use motor::{AgentSpend, RunMoney};

use crate::Runs;
use crate::api::{ActRequest, Caller};
use crate::config::Config;
use crate::environment::HostEnvironment;

/// Days for which spending is kept.
pub(crate) const KEPT_DAYS: u32 = 400;

/// The cap of a run, and the prices of its models. Only the owner gets more than is configured.
pub(crate) fn money_of(config: &Config, request: &ActRequest, by: Caller) -> RunMoney {
    let (asked, configured) = (request.budget_usd, config.budget.usd);
    let cap = match by {
        Caller::Owner => asked.or(configured),
        Caller::Model | Caller::Local => [asked, configured].into_iter().flatten().min(),
    };
    let table = config.price_table();
    let mut prices = PriceTable::empty();
    for model in models_of(config, request.model.as_deref()) {
        if let Some(price) = table.of(&model) {
            prices.insert(model, price);
        }
    }
    RunMoney { cap, prices }
}

/// The models that may answer a run: the one it names, otherwise the chain of the role.
pub(crate) fn models_of(config: &Config, named: Option<&str>) -> Vec<String> {
    match named {
        Some(model) => vec![model.trim().to_owned()],
        None => chain(config, Role::Motor),
    }
}

fn chain(config: &Config, role: Role) -> Vec<String> {
    config.models.roles().fallbacks(role).into_iter().map(ToString::to_string).collect()
}

/// The models of the first of `roles` that has one.
pub(crate) fn models_of_roles(config: &Config, roles: &[Role]) -> Vec<String> {
    roles.iter().map(|role| chain(config, *role)).find(|models| !models.is_empty()).unwrap_or_default()
}

impl HostEnvironment {
    /// Whether a run with this money may start.
    ///
    /// # Errors
    /// `price_unknown` if a cap cannot be measured, `spend_cap_reached` if the agent's day allows no more, or an error of the
    /// store.
    pub(crate) fn check_money(&self, agent: &AgentName, money: &RunMoney, models: &[String]) -> Result<(), Refusal> {
        let day = self.config().budget.usd_day;
        check(agent, &[money.cap, day], &money.prices, models)?;
        check_day(agent, day, self.spend.of_day(agent, self.clock.now())?.usd)
    }

    /// Whether an agent may call these models outside runs.
    ///
    /// # Errors
    /// As [`HostEnvironment::check_money`].
    pub(crate) fn check_call(&self, agent: &AgentName, models: &[String]) -> Result<(), Refusal> {
        check_call(&self.config(), &self.spend, agent, models, self.clock.now())
    }
}

/// Whether an agent may call these models outside runs.
///
/// # Errors
/// As [`HostEnvironment::check_money`].
pub(crate) fn check_call(
    config: &Config,
    spend: &motor::SpendBook,
    agent: &AgentName,
    models: &[String],
    now: Timestamp,
) -> Result<(), Refusal> {
    let Some(day) = config.budget.usd_day else { return Ok(()) };
    check(agent, &[Some(day)], &config.price_table(), models)?;
    check_day(agent, Some(day), spend.of_day(agent, now)?.usd)
}

fn check(agent: &AgentName, caps: &[Option<MicroUsd>], prices: &PriceTable, models: &[String]) -> Result<(), Refusal> {
    let unknown = models.iter().find(|model| prices.of(model).is_none());
    let (Some(cap), Some(model)) = (caps.iter().flatten().min(), unknown) else { return Ok(()) };
    let reason = format!(
        "spending of agent `{agent}` is capped at {cap}, and the price of `{model}` is unknown, so the cap cannot be kept"
    );
    let remedy = format!(
        "set its price in US dollars for a million tokens: `motor config set 'prices.{model}' '{{ input = 1.0, output = 2.0 }}'`"
    );
    Err(Refusal::new(RefusalCode::PriceUnknown, reason).with_remedy(remedy))
}

fn check_day(agent: &AgentName, cap: Option<MicroUsd>, spent: MicroUsd) -> Result<(), Refusal> {
    match cap {
        Some(cap) if spent >= cap.max(MicroUsd::from_micros(1)) => {
            let reason = format!("the cap of {cap} a day is reached: agent `{agent}` has spent {spent} today");
            Err(Refusal::new(RefusalCode::SpendCapReached, reason)
                .with_remedy("raise `budget.usd_day`, or ask again after midnight UTC"))
        }
        _ => Ok(()),
    }
}

impl Runs {
    /// The spending of the last `days` days, today included, by day and agent, the latest day first. 1 to 400 days.
    ///
    /// # Errors
    /// If `days` is out of range, or the store fails.
    pub fn spend(&self, agent: Option<&AgentName>, days: u32) -> Result<Vec<AgentSpend>, Refusal> {
        if !(1..=KEPT_DAYS).contains(&days) {
            let reason = format!("spending is kept for {KEPT_DAYS} days: ask for 1 to {KEPT_DAYS}, not {days}");
            return Err(Refusal::new(RefusalCode::InvalidRequest, reason));
        }
        Ok(self.environment.spend.days(agent, self.environment.clock.now(), days)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(dollars: f64) -> MicroUsd {
        MicroUsd::from_usd(dollars).unwrap()
    }

    #[test]
    fn only_the_owner_gets_more_than_is_configured() {
        let mut config = Config::default();
        let request = |cap: Option<f64>| ActRequest { budget_usd: cap.map(usd), ..ActRequest::default() };
        let cap = |config: &Config, asked, by| money_of(config, &request(asked), by).cap;
        assert_eq!(cap(&config, None, Caller::Model), None);
        assert_eq!(cap(&config, Some(3.0), Caller::Model), Some(usd(3.0)));
        config.budget.usd = Some(usd(1.0));
        for (asked, by, expected) in [
            (None, Caller::Owner, 1.0),
            (Some(3.0), Caller::Owner, 3.0),
            (Some(3.0), Caller::Model, 1.0),
            (Some(3.0), Caller::Local, 1.0),
            (Some(0.5), Caller::Model, 0.5),
            (None, Caller::Model, 1.0),
        ] {
            assert_eq!(cap(&config, asked, by), Some(usd(expected)), "{asked:?} {by:?}");
        }
    }

    #[test]
    fn prices_are_those_of_the_models_that_may_answer() {
        let mut config = Config::default();
        config.models.motor = Some("openai/gpt-5".parse().unwrap());
        config.models.fast = Some("ollama/small".parse().unwrap());
        config.models.default = Some("compatible/other".parse().unwrap());
        let money = money_of(&config, &ActRequest::default(), Caller::Owner);
        assert_eq!(money.prices.of("openai/gpt-5"), config.prices.of("openai/gpt-5"));
        assert_eq!(money.prices.of("openai/gpt-4.1"), None);
        let agent = AgentName::default();
        let models = models_of(&config, None);
        assert_eq!(models, ["openai/gpt-5", "ollama/small", "compatible/other"]);
        assert_eq!(check(&agent, &[None, None], &money.prices, &models), Ok(()));
        let refusal = check(&agent, &[None, Some(usd(2.0))], &money.prices, &models).unwrap_err();
        assert_eq!(refusal.code, RefusalCode::PriceUnknown);
        assert!(refusal.remedy.unwrap().contains("'prices.compatible/other'"));
        assert_eq!(check(&agent, &[Some(usd(2.0))], &money.prices, &models[..2]), Ok(()));
    }

    #[test]
    fn the_day_is_over_at_its_cap() {
        let agent = AgentName::default();
        assert_eq!(check_day(&agent, None, usd(9.0)), Ok(()));
        assert_eq!(check_day(&agent, Some(usd(1.0)), usd(0.99)), Ok(()));
        assert_eq!(check_day(&agent, Some(usd(1.0)), usd(1.0)).unwrap_err().code, RefusalCode::SpendCapReached);
        // A cap of nothing allows models that cost nothing.
        assert_eq!(check_day(&agent, Some(MicroUsd::ZERO), MicroUsd::ZERO), Ok(()));
    }
}

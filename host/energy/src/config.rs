//! The costs of acts and the speed of recovery. A level is a share of 1.0, and so is every cost.

use serde::{Deserialize, Serialize};

/// The energy model's settings: the section `[energy]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnergyConfig {
    /// Whether acting costs anything. Default true.
    pub enabled: bool,
    /// Recovery in an hour awake. Default 0.25: from the floor to full in about four hours.
    pub recharge_per_hour: f64,
    /// Recovery in an hour within the sleep window. Default 0.5.
    pub sleep_recharge_per_hour: f64,
    /// When the agent sleeps. Default: never.
    pub sleep_window: Option<SleepWindow>,
    /// A single act without a loop. Default 0.05 (SPEC EN-1).
    pub oneshot: f64,
    /// A single act that may use the network. Default 0.15.
    pub network_oneshot: f64,
    /// Starting an agentic run. Default 0.10 (SPEC EN-1).
    pub agentic_base: f64,
    /// Each turn of an agentic run beyond the free ones. Default 0.01 (SPEC EN-1).
    pub agentic_per_iteration: f64,
    /// Turns of an agentic run that its start pays for. Default 5 (SPEC EN-1).
    pub free_iterations: u32,
    /// Starting an agentic run with a browser. Default 0.20 (SPEC EN-1).
    pub browser_base: f64,
    /// Each turn of such a run beyond the free ones. Default 0.02 (SPEC EN-1).
    pub browser_per_iteration: f64,
    /// A call of a model outside runs. Default 0.02 (SPEC EN-1).
    pub llm: f64,
    /// A message. Default 0.01 (SPEC EN-1).
    pub message: f64,
    /// The lowest level that is shown. Below it at most the price of a single act is owed, and recovered first. Default 0.05
    /// (SPEC EN-1).
    pub floor: f64,
    /// The levels at which acts are refused.
    pub thresholds: Thresholds,
}

impl Default for EnergyConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            recharge_per_hour: 0.25,
            sleep_recharge_per_hour: 0.5,
            sleep_window: None,
            oneshot: 0.05,
            network_oneshot: 0.15,
            agentic_base: 0.10,
            agentic_per_iteration: 0.01,
            free_iterations: 5,
            browser_base: 0.20,
            browser_per_iteration: 0.02,
            llm: 0.02,
            message: 0.01,
            floor: 0.05,
            thresholds: Thresholds::default(),
        }
    }
}

/// The level that each kind of act needs (SPEC EN-3).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Thresholds {
    /// A run with a browser needs more than this. Default 0.5.
    pub browser: f64,
    /// An agentic run needs at least this. Default 0.3.
    pub agentic: f64,
    /// A single act with the network needs at least this. Default 0.3.
    pub network: f64,
    /// A single act, and a call of a model that a model asks for, need more than this. Default 0.05, which is the floor:
    /// there the agent is too tired to act.
    pub oneshot: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { browser: 0.5, agentic: 0.3, network: 0.3, oneshot: 0.05 }
    }
}

/// When the agent sleeps: each day from one hour, UTC, to another, over midnight when the second is the smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SleepWindow {
    /// The hour it begins, 0 to 23.
    pub from_hour: u8,
    /// The hour it ends, 0 to 23; not the hour it begins.
    pub to_hour: u8,
}

/// A setting that cannot be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`energy.{key}` is {value}: {expected}")]
pub struct InvalidConfig {
    /// The key within `[energy]`.
    pub key: &'static str,
    /// The value it was set to.
    pub value: String,
    /// The values it may have.
    pub expected: &'static str,
}

impl EnergyConfig {
    /// Checks that every number is one that it can be.
    ///
    /// # Errors
    /// With the first that is not.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let shares = [
            ("oneshot", self.oneshot),
            ("network_oneshot", self.network_oneshot),
            ("agentic_base", self.agentic_base),
            ("agentic_per_iteration", self.agentic_per_iteration),
            ("browser_base", self.browser_base),
            ("browser_per_iteration", self.browser_per_iteration),
            ("llm", self.llm),
            ("message", self.message),
            ("floor", self.floor),
            ("thresholds.browser", self.thresholds.browser),
            ("thresholds.agentic", self.thresholds.agentic),
            ("thresholds.network", self.thresholds.network),
            ("thresholds.oneshot", self.thresholds.oneshot),
        ];
        if let Some((key, value)) = shares.into_iter().find(|(_, value)| !(0.0..=1.0).contains(value)) {
            return Err(InvalidConfig { key, value: value.to_string(), expected: "use a number from 0 to 1" });
        }
        let rates =
            [("recharge_per_hour", self.recharge_per_hour), ("sleep_recharge_per_hour", self.sleep_recharge_per_hour)];
        if let Some((key, value)) = rates.into_iter().find(|(_, value)| !value.is_finite() || *value < 0.0) {
            return Err(InvalidConfig { key, value: value.to_string(), expected: "use a number that is not negative" });
        }
        match self.sleep_window {
            Some(SleepWindow { from_hour, to_hour }) if from_hour > 23 || to_hour > 23 || from_hour == to_hour => {
                let value = format!("{from_hour} to {to_hour}");
                Err(InvalidConfig { key: "sleep_window", value, expected: "use two different hours from 0 to 23" })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: Result<(), &str>) {
        let found = serde_json::from_str::<EnergyConfig>(json)
            .map_err(|error| error.to_string())
            .and_then(|config| config.validate().map_err(|error| error.to_string()));
        match expected {
            Ok(()) => assert_eq!(found, Ok(())),
            Err(expected) => assert!(found.as_ref().is_err_and(|found| found.contains(expected)), "{found:?}"),
        }
    }

    #[test]
    fn settings_are_checked() {
        check("{}", Ok(()));
        check(r#"{"enabled":false,"sleep_window":{"from_hour":22,"to_hour":6}}"#, Ok(()));
        check(r#"{"oneshot":-0.1}"#, Err("`energy.oneshot` is -0.1: use a number from 0 to 1"));
        check(r#"{"thresholds":{"browser":1.5}}"#, Err("energy.thresholds.browser"));
        check(r#"{"recharge_per_hour":-1}"#, Err("energy.recharge_per_hour"));
        check(r#"{"sleep_window":{"from_hour":24,"to_hour":6}}"#, Err("energy.sleep_window"));
        check(r#"{"sleep_window":{"from_hour":6,"to_hour":6}}"#, Err("two different hours"));
        check(r#"{"one_shot":0.1}"#, Err("unknown field"));
    }

    #[test]
    fn numbers_that_are_none_are_refused() {
        let config = EnergyConfig { llm: f64::NAN, ..EnergyConfig::default() };
        assert_eq!(config.validate().unwrap_err().key, "llm");
        let config = EnergyConfig { sleep_recharge_per_hour: f64::INFINITY, ..EnergyConfig::default() };
        assert_eq!(config.validate().unwrap_err().key, "sleep_recharge_per_hour");
    }
}

//! The section `[neurons]`, read when the host starts.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The settings of neurons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NeuronsConfig {
    /// Whether neurons tick and can be proposed. Default true.
    pub enabled: bool,
    /// Completed runs with the same code that a proposal needs. Default 5.
    pub min_successes: u64,
    /// Different simulated signals of a quarantine, at least. Default 3.
    pub min_scenarios: u64,
    /// Hours of a trial, at least. Default 24.
    pub trial_hours: u64,
    /// Signals that a neuron processes in its trial, at least. Default 50.
    pub trial_events: u64,
    /// Neurons of a home on trial or active; others wait for a place. Default 5.
    pub max_running: u64,
    /// Ticks with an error in an hour, at most: one more disables the neuron. Default 3.
    pub max_errors_per_hour: u64,
    /// Ticks that exceed the energy budget in an hour, at most: one more disables the neuron. Default 1.
    pub max_overruns_per_hour: u64,
    /// Signals that a neuron emits in an hour, at most: one more disables it. Default 60.
    pub max_signals_per_hour: u64,
    /// Emitted signals of all neurons that are kept; the oldest goes first. Default 1,000.
    pub kept_signals: u64,
}

impl Default for NeuronsConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            min_successes: 5,
            min_scenarios: 3,
            trial_hours: 24,
            trial_events: 50,
            max_running: 5,
            max_errors_per_hour: 3,
            max_overruns_per_hour: 1,
            max_signals_per_hour: 60,
            kept_signals: 1_000,
        }
    }
}

/// A setting outside of its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`neurons.{key}` is {value}: use a whole number from {least} to {most}")]
pub struct InvalidConfig {
    /// The key within `[neurons]`.
    pub key: &'static str,
    /// The value it was set to.
    pub value: u64,
    least: u64,
    most: u64,
}

impl NeuronsConfig {
    /// Checks that every number is within its range.
    ///
    /// # Errors
    /// With the first that is not.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        let ranges = [
            ("min_successes", self.min_successes, 1, 100),
            ("min_scenarios", self.min_scenarios, 3, 20),
            ("trial_hours", self.trial_hours, 0, 8_760),
            ("trial_events", self.trial_events, 1, 100_000),
            ("max_running", self.max_running, 0, 5),
            ("max_errors_per_hour", self.max_errors_per_hour, 0, 1_000),
            ("max_overruns_per_hour", self.max_overruns_per_hour, 0, 1_000),
            ("max_signals_per_hour", self.max_signals_per_hour, 1, 10_000),
            ("kept_signals", self.kept_signals, 100, 100_000),
        ];
        let outside = ranges.into_iter().find(|(_, value, least, most)| value < least || value > most);
        outside.map_or(Ok(()), |(key, value, least, most)| Err(InvalidConfig { key, value, least, most }))
    }

    pub(crate) fn trial(&self) -> Duration {
        Duration::from_secs(self.trial_hours.saturating_mul(3_600))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_ranges() {
        let read = |json: &str| -> Result<NeuronsConfig, String> {
            let config: NeuronsConfig = serde_json::from_str(json).map_err(|error| error.to_string())?;
            config.validate().map_err(|error| error.to_string()).map(|()| config)
        };
        assert_eq!(read("{}").unwrap(), NeuronsConfig::default());
        assert!(read(r#"{"trial_hours":0,"trial_events":3}"#).is_ok());
        for (json, reason) in [
            (r#"{"min_scenarios":2}"#, "`neurons.min_scenarios` is 2: use a whole number from 3 to 20"),
            (r#"{"max_running":6}"#, "`neurons.max_running`"),
            (r#"{"trial_hour":1}"#, "unknown field"),
        ] {
            assert!(read(json).unwrap_err().contains(reason), "{json}");
        }
    }
}

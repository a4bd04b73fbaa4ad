//! The activities that cost energy, their costs, and the levels at which they are refused.

use crate::EnergyConfig;

/// Something that costs energy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// A single act without a loop, isolated.
    Oneshot,
    /// A single act that may use the network.
    NetworkOneshot,
    /// The start of an agentic run.
    Agentic {
        /// Whether it may use a browser.
        browser: bool,
    },
    /// The turns of an agentic run, charged at its end: those beyond the free ones cost.
    Iterations {
        /// All the turns that the run made.
        count: u32,
        /// Whether the run could use a browser.
        browser: bool,
    },
    /// A call of a model outside runs.
    Llm,
    /// A message to an agent.
    Message,
    /// The ticks of an agent's neurons at one signal.
    Ticks {
        /// The energy that they spent, in millionths of a full level.
        micros: u32,
    },
}

/// The level that an act needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum EnergyGate {
    /// This level or more.
    AtLeast(f64),
    /// More than this level.
    Above(f64),
}

impl EnergyGate {
    pub(crate) fn is_open_at(self, level: f64) -> bool {
        match self {
            Self::AtLeast(needed) => level >= needed,
            Self::Above(needed) => level > needed,
        }
    }
}

impl Activity {
    /// Its cost, as a share of a full level.
    pub(crate) fn cost(self, config: &EnergyConfig) -> f64 {
        let cost = match self {
            Self::Oneshot => config.oneshot,
            Self::NetworkOneshot => config.network_oneshot,
            Self::Agentic { browser: false } => config.agentic_base,
            Self::Agentic { browser: true } => config.browser_base,
            Self::Iterations { count, browser } => {
                let each = if browser { config.browser_per_iteration } else { config.agentic_per_iteration };
                f64::from(count.saturating_sub(config.free_iterations)) * each
            }
            Self::Llm => config.llm,
            Self::Message => config.message,
            Self::Ticks { micros } => f64::from(micros) / 1e6,
        };
        // Also when the settings were never checked: a drain never gives, and never turns the level into no number.
        if cost > 0.0 { cost } else { 0.0 }
    }

    /// The level at which it may begin, for acts; consequences of an act are not gated.
    pub(crate) fn gate(self, config: &EnergyConfig) -> Option<EnergyGate> {
        let thresholds = &config.thresholds;
        match self {
            Self::Oneshot => Some(EnergyGate::Above(thresholds.oneshot)),
            Self::NetworkOneshot => Some(EnergyGate::AtLeast(thresholds.network)),
            Self::Agentic { browser: false } => Some(EnergyGate::AtLeast(thresholds.agentic)),
            Self::Agentic { browser: true } => Some(EnergyGate::Above(thresholds.browser)),
            // At the floor nothing that a model asks for begins (SPEC EN-3).
            Self::Llm => Some(EnergyGate::Above(thresholds.oneshot)),
            // Nor does anything that would end below it.
            Self::Ticks { .. } => Some(EnergyGate::Above(thresholds.oneshot + self.cost(config))),
            Self::Iterations { .. } | Self::Message => None,
        }
    }

    /// The act in the words of a refusal.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Oneshot => "a single act",
            Self::NetworkOneshot => "a single act with the network",
            Self::Agentic { browser: false } | Self::Iterations { .. } => "an agentic run",
            Self::Agentic { browser: true } => "an agentic run with a browser",
            Self::Llm => "a model call",
            Self::Message => "a message",
            Self::Ticks { .. } => "a neuron",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(activity: Activity, expected: f64) {
        let found = activity.cost(&EnergyConfig::default());
        assert!((found - expected).abs() < 1e-12, "{activity:?}: {found}");
    }

    #[test]
    fn costs_are_the_specified_ones() {
        check(Activity::Oneshot, 0.05);
        check(Activity::NetworkOneshot, 0.15);
        check(Activity::Agentic { browser: false }, 0.10);
        check(Activity::Agentic { browser: true }, 0.20);
        check(Activity::Iterations { count: 0, browser: false }, 0.0);
        check(Activity::Iterations { count: 5, browser: false }, 0.0);
        check(Activity::Iterations { count: 6, browser: false }, 0.01);
        check(Activity::Iterations { count: 15, browser: true }, 0.20);
        check(Activity::Llm, 0.02);
        check(Activity::Message, 0.01);
        check(Activity::Ticks { micros: 40 }, 0.000_04);
    }

    #[test]
    fn gates_are_the_specified_ones() {
        let open = |level: f64| {
            [
                Activity::Oneshot,
                Activity::NetworkOneshot,
                Activity::Agentic { browser: false },
                Activity::Agentic { browser: true },
            ]
            .map(|activity| activity.gate(&EnergyConfig::default()).is_some_and(|gate| gate.is_open_at(level)))
        };
        assert_eq!(open(1.0), [true, true, true, true]);
        assert_eq!(open(0.501), [true, true, true, true]);
        assert_eq!(open(0.5), [true, true, true, false]);
        assert_eq!(open(0.3), [true, true, true, false]);
        assert_eq!(open(0.299), [true, false, false, false]);
        assert_eq!(open(0.051), [true, false, false, false]);
        assert_eq!(open(0.05), [false, false, false, false]);
        let llm = |level| Activity::Llm.gate(&EnergyConfig::default()).is_some_and(|gate| gate.is_open_at(level));
        assert!(llm(0.051) && !llm(0.05));
        let ticks = |micros, level| {
            let gate = Activity::Ticks { micros }.gate(&EnergyConfig::default());
            gate.is_some_and(|gate| gate.is_open_at(level))
        };
        assert!(ticks(0, 0.051) && ticks(20_000, 0.071) && !ticks(20_000, 0.069) && !ticks(0, 0.05));
        assert_eq!(Activity::Message.gate(&EnergyConfig::default()), None);
    }

    #[test]
    fn a_cost_is_never_negative_nor_no_number() {
        let config = EnergyConfig { oneshot: -1.0, llm: f64::NAN, ..EnergyConfig::default() };
        assert_eq!(Activity::Oneshot.cost(&config), 0.0);
        assert_eq!(Activity::Llm.cost(&config), 0.0);
    }
}

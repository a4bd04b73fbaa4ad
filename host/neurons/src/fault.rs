//! Why a neuron fails, as stable codes.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a neuron was refused or stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fault {
    /// The stable code that callers compare.
    pub code: FaultCode,
    /// One sentence for people, with text of the neuron escaped.
    pub reason: String,
}

impl Fault {
    pub(crate) fn new(code: FaultCode, reason: impl fmt::Display) -> Self {
        Self { code, reason: base::text::cut(&reason.to_string(), 300) }
    }
}

/// The stable codes of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultCode {
    /// The static guard for code refuses it.
    Blocked,
    /// It threw an error, returned one, or trapped.
    Threw,
    /// It took too long by the clock.
    TimedOut,
    /// It spent more than its energy for one tick.
    OverBudget,
    /// It returned something else than signals.
    InvalidOutput,
    /// It emitted a kind that it did not declare.
    UndeclaredSignal,
    /// A scenario ended with other kinds than expected, or a declared kind never occurred.
    OutputMismatch,
    /// The same signal gave different results.
    NonDeterministic,
    /// There are too few different scenarios.
    TooFewScenarios,
    /// It emitted more signals than it may.
    SignalSpam,
    /// Its component is missing, is not the one of the version, or cannot be used.
    InvalidComponent,
}

impl FaultCode {
    /// As JSON has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Threw => "threw",
            Self::TimedOut => "timed_out",
            Self::OverBudget => "over_budget",
            Self::InvalidOutput => "invalid_output",
            Self::UndeclaredSignal => "undeclared_signal",
            Self::OutputMismatch => "output_mismatch",
            Self::NonDeterministic => "non_deterministic",
            Self::TooFewScenarios => "too_few_scenarios",
            Self::SignalSpam => "signal_spam",
            Self::InvalidComponent => "invalid_component",
        }
    }
}

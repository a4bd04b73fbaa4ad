//! Names of neurons, and the kinds of signals that they read and emit.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use signals::SignalStatus;

/// Characters of a name or a kind.
const MAX_NAME: usize = 64;

/// The spelling of a kind.
const KIND: &str = r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$";

/// Names a neuron of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("pattern" = r"^[a-z0-9][a-z0-9-]{0,63}$"))]
pub struct NeuronName(String);

/// The error for a text that is not the name of a neuron.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a name of a neuron: use 1 to 64 lower-case letters, digits and `-`")]
pub struct InvalidNeuronName(String);

impl NeuronName {
    /// Parses a name that came from outside.
    ///
    /// # Errors
    /// If it is not 1 to 64 lower-case letters, digits and `-`, or begins with `-`.
    pub fn parse(text: &str) -> Result<Self, InvalidNeuronName> {
        let is_allowed = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
        if text.is_empty() || text.len() > MAX_NAME || text.starts_with('-') || !text.chars().all(is_allowed) {
            return Err(InvalidNeuronName(base::text::Foreign(text).escaped(80)));
        }
        Ok(Self(text.to_owned()))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The kind of a signal that neurons emit: words with `.` between them. Kinds of the host's own signals are reserved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("maxLength" = MAX_NAME, "pattern" = KIND, "not" = reserved()))]
pub struct OutputKind(String);

/// The error for a text that is not a kind which a neuron may emit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOutputKind {
    /// It is not written as a kind.
    #[error("`{0}` is not a kind of signal: use words of lower-case letters, digits and `_` with `.` between them")]
    Spelling(String),
    /// The host itself speaks in this kind.
    #[error("signals of the kind `{0}` are the host's own: choose a first word that is about the subject")]
    Reserved(String),
}

/// First words of the kinds of the host, its runs, its owner and its requests for consent.
const RESERVED: [&str; 14] = [
    "run",
    "motor",
    "motor_result",
    "cortex",
    "core",
    "host",
    "owner",
    "peer",
    "message",
    "approval",
    "consent",
    "ask",
    "question",
    "neuron",
];

/// The schema of the kinds of the host.
fn reserved() -> Value {
    json!({ "pattern": format!(r"^({})(\.|$)", RESERVED.join("|")) })
}

impl OutputKind {
    /// Parses a kind that came from outside.
    ///
    /// # Errors
    /// If it is not a kind of at most 64 characters, or one of the host's own.
    pub fn parse(text: &str) -> Result<Self, InvalidOutputKind> {
        let shown = || base::text::Foreign(text).escaped(80);
        let is_word = |word: &str| {
            word.starts_with(|sign: char| sign.is_ascii_lowercase())
                && word.chars().all(|sign| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '_')
        };
        if text.len() > MAX_NAME || !text.split('.').all(is_word) {
            return Err(InvalidOutputKind::Spelling(shown()));
        }
        if text.split('.').next().is_some_and(|first| RESERVED.contains(&first)) {
            return Err(InvalidOutputKind::Reserved(shown()));
        }
        Ok(Self(text.to_owned()))
    }

    /// The kind as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The kind of a signal that neurons read: the end of a run, or a kind that other neurons emit. Signals of waiting runs are not
/// among them: they ask for answers and consent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum InputKind {
    /// A run ended with an answer: `run.completed`.
    RunCompleted,
    /// A run ended without an answer: `run.failed`.
    RunFailed,
    /// A person stopped a run: `run.cancelled`.
    RunCancelled,
    /// A neuron of the same agent emitted a signal of this kind.
    Emitted(OutputKind),
}

impl InputKind {
    /// The kinds of the ends of runs.
    pub const RUNS: [Self; 3] = [Self::RunCompleted, Self::RunFailed, Self::RunCancelled];

    /// Parses a kind that came from outside.
    ///
    /// # Errors
    /// If it is neither the end of a run nor a kind that a neuron may emit.
    pub fn parse(text: &str) -> Result<Self, InvalidOutputKind> {
        match Self::RUNS.into_iter().find(|kind| kind.as_str() == text) {
            Some(kind) => Ok(kind),
            None => OutputKind::parse(text).map(Self::Emitted),
        }
    }

    /// The kind of a run's signal; `None` while the run waits for a person.
    #[must_use]
    pub fn of(status: SignalStatus) -> Option<Self> {
        match status {
            SignalStatus::Completed => Some(Self::RunCompleted),
            SignalStatus::Failed => Some(Self::RunFailed),
            SignalStatus::Cancelled => Some(Self::RunCancelled),
            SignalStatus::AwaitingInput | SignalStatus::AwaitingApproval => None,
        }
    }

    /// As JSON has it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::RunCompleted => "run.completed",
            Self::RunFailed => "run.failed",
            Self::RunCancelled => "run.cancelled",
            Self::Emitted(kind) => kind.as_str(),
        }
    }
}

impl JsonSchema for InputKind {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "InputKind".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let runs = Self::RUNS.map(|kind| kind.as_str().to_owned());
        let emitted = json!({ "maxLength": MAX_NAME, "pattern": KIND, "not": reserved() });
        schemars::json_schema!({ "type": "string", "anyOf": [{ "enum": runs }, emitted] })
    }
}

impl fmt::Display for InputKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<InputKind> for String {
    fn from(kind: InputKind) -> Self {
        kind.as_str().to_owned()
    }
}

impl TryFrom<String> for InputKind {
    type Error = InvalidOutputKind;

    fn try_from(text: String) -> Result<Self, InvalidOutputKind> {
        Self::parse(&text)
    }
}

impl fmt::Display for NeuronName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<NeuronName> for String {
    fn from(name: NeuronName) -> Self {
        name.0
    }
}

impl TryFrom<String> for NeuronName {
    type Error = InvalidNeuronName;

    fn try_from(text: String) -> Result<Self, InvalidNeuronName> {
        Self::parse(&text)
    }
}

impl std::str::FromStr for NeuronName {
    type Err = InvalidNeuronName;

    fn from_str(text: &str) -> Result<Self, InvalidNeuronName> {
        Self::parse(text)
    }
}

impl fmt::Display for OutputKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<OutputKind> for String {
    fn from(kind: OutputKind) -> Self {
        kind.0
    }
}

impl TryFrom<String> for OutputKind {
    type Error = InvalidOutputKind;

    fn try_from(text: String) -> Result<Self, InvalidOutputKind> {
        Self::parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_path_and_a_kind_is_not_the_hosts() {
        assert_eq!(NeuronName::parse("bitcoin-price").unwrap().as_str(), "bitcoin-price");
        for text in ["", "-a", "../a", "a/b", "A", "a b", "a\0", "é", &"a".repeat(65)] {
            assert!(NeuronName::parse(text).is_err(), "{text}");
        }
        for kind in ["price.changed", "bitcoin", "a_1.b2", "runner.done", "messages.read"] {
            assert!(OutputKind::parse(kind).is_ok(), "{kind}");
        }
        for kind in ["", ".", "a.", ".a", "A", "1a", "a b", "a..b", "a-b", "é", &"a".repeat(65)] {
            assert!(matches!(OutputKind::parse(kind), Err(InvalidOutputKind::Spelling(_))), "{kind}");
        }
        for kind in ["motor_result", "run.completed", "owner.message", "approval", "consent.given", "core.act"] {
            assert!(matches!(OutputKind::parse(kind), Err(InvalidOutputKind::Reserved(_))), "{kind}");
        }
    }

    #[test]
    fn signals_that_ask_a_person_are_not_read() {
        for status in [SignalStatus::AwaitingInput, SignalStatus::AwaitingApproval] {
            assert_eq!(InputKind::of(status), None);
        }
        for kind in InputKind::RUNS {
            assert_eq!(serde_json::to_value(&kind).unwrap(), kind.as_str());
            assert!(OutputKind::parse(kind.as_str()).is_err(), "the end of a run is never an output: {kind}");
        }
        let emitted: InputKind = serde_json::from_str(r#""price.seen""#).unwrap();
        assert_eq!(emitted, InputKind::Emitted(OutputKind::parse("price.seen").unwrap()));
        assert_eq!(serde_json::to_value(&emitted).unwrap(), "price.seen");
        for kind in ["run.awaiting_input", "motor_result", "approval", "consent.given", "owner.message", "message", ""]
        {
            assert!(InputKind::parse(kind).is_err(), "{kind}");
        }
    }
}

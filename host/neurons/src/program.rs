//! The program of a tick, and the signals in its result.
//!
//! In a run, the code begins with a line `const signal = {…};` that holds a sample as JSON. That line is the only part that a neuron
//! replaces: runs with other samples are runs of the same code.

use std::collections::BTreeSet;

use base::{Refusal, RefusalCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use signals::Signal;

use crate::fault::{Fault, FaultCode};
use crate::names::{InputKind, OutputKind};

/// Bytes of a signal's data as JSON, read or emitted.
pub const MAX_DATA_BYTES: usize = 2 << 10;
/// Signals of one tick.
const MAX_SIGNALS: usize = 8;
/// Characters of a run's text in a signal.
const MAX_TEXT: usize = 1_000;
/// The beginning of code that can become a neuron.
const SAMPLE: &str = "const signal =";

/// A signal as a neuron reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NeuronInput {
    /// The kind of the signal.
    pub kind: InputKind,
    /// Its content: for the end of a run `runId`, and `summary` or `error`; for a neuron's signal its data.
    #[serde(default)]
    pub data: Value,
}

impl NeuronInput {
    /// The signal of a run as neurons read it; `None` while the run waits for a person.
    #[must_use]
    pub fn of(signal: &Signal) -> Option<Self> {
        let kind = InputKind::of(signal.body.status)?;
        let cut = |text: &String| base::text::cut(text, MAX_TEXT);
        let mut data = Map::from_iter([("runId".to_owned(), json!(signal.body.run_id))]);
        if let Some(result) = &signal.body.result {
            data.insert("summary".to_owned(), json!(cut(&result.summary)));
        }
        if let Some(error) = &signal.body.error {
            data.insert("error".to_owned(), json!(cut(&error.message)));
        }
        Some(Self { kind, data: data.into() })
    }

    /// The program that gives this signal to the code of a neuron. The signal arrives as text, so nothing in it is code.
    pub(crate) fn program(&self, source: &str) -> String {
        // A text is valid JSON, and JSON with the two separators escaped is a valid literal.
        let text = serde_json::to_string(&json!(self).to_string()).unwrap_or_default();
        let text = text.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
        format!("{SAMPLE} JSON.parse({text});\n{source}")
    }
}

/// A signal in the result of a tick.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmittedSignal {
    /// One of the declared kinds.
    pub kind: OutputKind,
    /// Its content: any JSON, which may repeat text of the signal that was read.
    #[serde(default)]
    pub data: Value,
}

/// Splits the code of a run into its sample and the source of a neuron.
///
/// # Errors
/// `invalid_request` if it does not begin with a sample.
pub fn split_sample(code: &str) -> Result<(NeuronInput, String), Refusal> {
    let wrong = |reason: &str| {
        let form = "const signal = {\"kind\":\"run.completed\",\"data\":{\"summary\":\"…\"}};";
        Refusal::new(RefusalCode::InvalidRequest, format!("code that becomes a neuron {reason}"))
            .with_remedy(format!("begin it with `{form}` as JSON, and return a list of `{{kind, data}}`"))
    };
    let rest = code.trim_start().strip_prefix(SAMPLE).ok_or_else(|| wrong("begins with a sample of its signal"))?;
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<NeuronInput>();
    let sample = values.next().and_then(Result::ok).ok_or_else(|| wrong("has a sample that is a signal as JSON"))?;
    if json!(sample.data).to_string().len() > MAX_DATA_BYTES {
        return Err(wrong("has a small sample"));
    }
    let source = rest.get(values.byte_offset()..).unwrap_or_default().trim_start();
    let source = source.strip_prefix(';').ok_or_else(|| wrong("ends its sample with `;`"))?;
    Ok((sample, source.trim().to_owned()))
}

/// Reads the signals in a result: a list, or `null` for none.
///
/// # Errors
/// `invalid_output` if it is something else or too large, `undeclared_signal` for a kind that is not among the declared,
/// `signal_spam` for too many.
pub fn emitted_by(result: &str, declared: &BTreeSet<OutputKind>) -> Result<Vec<EmittedSignal>, Fault> {
    let invalid = |reason: &str| Fault::new(FaultCode::InvalidOutput, reason);
    let listed: Option<Vec<Value>> =
        serde_json::from_str(result).map_err(|_| invalid("it did not return a list of signals"))?;
    let listed = listed.unwrap_or_default();
    check_count(listed.len())?;
    listed.into_iter().map(|value| read_signal(value, declared)).collect()
}

/// Reads the signals that a component returned: for each its kind, and its data as JSON text.
///
/// # Errors
/// As [`emitted_by`].
pub fn emitted_as_text(
    signals: Vec<(String, String)>,
    declared: &BTreeSet<OutputKind>,
) -> Result<Vec<EmittedSignal>, Fault> {
    check_count(signals.len())?;
    let read = |(kind, data): (String, String)| {
        let data = serde_json::from_str::<Value>(&data)
            .map_err(|_| Fault::new(FaultCode::InvalidOutput, "it returned a signal whose data is not JSON"))?;
        read_signal(json!({ "kind": kind, "data": data }), declared)
    };
    signals.into_iter().map(read).collect()
}

fn check_count(signals: usize) -> Result<(), Fault> {
    if signals > MAX_SIGNALS {
        return Err(Fault::new(FaultCode::SignalSpam, format!("it emitted more than {MAX_SIGNALS} signals at once")));
    }
    Ok(())
}

fn read_signal(value: Value, declared: &BTreeSet<OutputKind>) -> Result<EmittedSignal, Fault> {
    let invalid = |reason: &str| Fault::new(FaultCode::InvalidOutput, reason);
    let is_declared = |kind: &str| declared.iter().any(|declared| declared.as_str() == kind);
    match value.get("kind").and_then(Value::as_str) {
        Some(kind) if !is_declared(kind) => {
            let kind = base::text::Foreign(kind).escaped(80);
            return Err(Fault::new(FaultCode::UndeclaredSignal, format!("it emitted `{kind}`, which is not declared")));
        }
        Some(_) => {}
        None => return Err(invalid("it returned a signal without a kind")),
    }
    let signal: EmittedSignal =
        serde_json::from_value(value).map_err(|_| invalid("it returned a signal that cannot be read"))?;
    if signal.data.to_string().len() > MAX_DATA_BYTES {
        return Err(invalid("it returned a signal that is too large"));
    }
    Ok(signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = r#"
const signal = {"kind": "run.completed", "data": {"summary": "Bitcoin is at $97,500; fine"}};
const price = Number(signal.data.summary.match(/[0-9,]+/)[0].replaceAll(",", ""));
return [{ kind: "bitcoin.price", data: { price } }];
"#;

    #[test]
    fn only_the_sample_differs_between_runs_of_the_same_code() {
        let (sample, source) = split_sample(CODE).unwrap();
        assert_eq!(
            (sample.kind, &sample.data["summary"]),
            (InputKind::RunCompleted, &json!("Bitcoin is at $97,500; fine"))
        );
        assert!(source.starts_with("const price") && source.ends_with("}];"), "{source}");
        let other = CODE.replace("97,500", "3");
        assert_eq!(split_sample(&other).unwrap().1, source);
        for code in [
            "return 1",
            "const signal = 1; return []",
            "const signal = {kind: 'run.completed'}; return []",
            r#"const signal = {"kind":"run.completed"} return []"#,
            r#"const signal = {"kind":"motor_result"}; return []"#,
            r#"let signal = {"kind":"run.completed"}; return []"#,
        ] {
            assert!(split_sample(code).is_err(), "{code}");
        }
    }

    #[test]
    fn a_signal_cannot_end_its_literal() {
        let data = json!({ "summary": "\"); evil(); (\"\u{2028}\\\n`${evil()}`</script>" });
        let program = NeuronInput { kind: InputKind::RunCompleted, data }.program("return []");
        assert_eq!(program.lines().count(), 2, "{program}");
        let (first, _) = program.split_once('\n').unwrap();
        let literal = first.strip_prefix("const signal = JSON.parse(").unwrap().strip_suffix(");").unwrap();
        let text: String = serde_json::from_str(literal).unwrap();
        assert!(serde_json::from_str::<NeuronInput>(&text).is_ok());
    }

    #[test]
    fn a_result_is_a_list_of_declared_signals() {
        let declared = BTreeSet::from([OutputKind::parse("price.seen").unwrap()]);
        let code =
            |result: &str| emitted_by(result, &declared).map(|signals| signals.len()).map_err(|fault| fault.code);
        assert_eq!(code("null"), Ok(0));
        assert_eq!(code(r#"[{"kind":"price.seen","data":{"n":1}},{"kind":"price.seen"}]"#), Ok(2));
        let long = format!(r#"[{{"kind":"price.seen","data":"{}"}}]"#, "x".repeat(MAX_DATA_BYTES));
        let many = format!("[{}]", [r#"{"kind":"price.seen"}"#; MAX_SIGNALS + 1].join(","));
        for (result, expected) in [
            ("1", FaultCode::InvalidOutput),
            ("[1]", FaultCode::InvalidOutput),
            (r#"[{"data":1}]"#, FaultCode::InvalidOutput),
            (r#"[{"kind":"price.seen""#, FaultCode::InvalidOutput),
            (r#"[{"kind":"motor_result"}]"#, FaultCode::UndeclaredSignal),
            (r#"[{"kind":"price.seen"},{"kind":"price.other"}]"#, FaultCode::UndeclaredSignal),
            (&long, FaultCode::InvalidOutput),
            (&many, FaultCode::SignalSpam),
        ] {
            assert_eq!(code(result), Err(expected), "{result:.80}");
        }
    }

    #[test]
    fn the_signals_of_a_component_have_the_same_bounds() {
        let declared = BTreeSet::from([OutputKind::parse("price.seen").unwrap()]);
        let code = |signals: &[(&str, &str)]| {
            let signals = signals.iter().map(|(kind, data)| ((*kind).to_owned(), (*data).to_owned())).collect();
            emitted_as_text(signals, &declared).map(|signals| signals.len()).map_err(|fault| fault.code)
        };
        assert_eq!(code(&[]), Ok(0));
        assert_eq!(code(&[("price.seen", r#"{"n":1}"#), ("price.seen", "null")]), Ok(2));
        let (long, deep) = (json!("x".repeat(MAX_DATA_BYTES)).to_string(), "[".repeat(1_000));
        assert_eq!(code(&[("price.seen", "1"); MAX_SIGNALS + 1]), Err(FaultCode::SignalSpam));
        for data in ["", "{", "1 2", &long, &deep] {
            assert_eq!(code(&[("price.seen", data)]), Err(FaultCode::InvalidOutput), "{data:.80}");
        }
        for kind in ["", "price.other", "motor_result", "price.seen\0"] {
            assert_eq!(code(&[("price.seen", "1"), (kind, "1")]), Err(FaultCode::UndeclaredSignal), "{kind}");
        }
    }
}

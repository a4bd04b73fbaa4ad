//! The function of a neuron by hand, as a tool is called: JSON in, JSON out, under the limits of a tick (SPEC HOST-9, NEU-1).
//!
//! The same linking, limits and reading of its signals as in a home. Only the declared kinds are not known here: any kind that a
//! neuron may declare counts as declared.

use neurons::{NeuronInput, OutputKind, emitted_as_text};
use runtime::{CallUsage, Component, LoadError, NeuronComponent, Outcome, Runtime, SignalText, ToolError};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::function::{failed, only_argument, settled};
use crate::neuron::{ENERGY_MICROS, signal_text, tick_limits};

/// Calls `tick` within the default energy.
///
/// # Errors
/// If the component is not a usable neuron.
pub(super) async fn call(
    runtime: &Runtime,
    component: &Component,
    (name, arguments): (&str, &str),
    cancel: CancellationToken,
) -> Result<(Outcome<String, ToolError>, CallUsage), LoadError> {
    let neuron = NeuronComponent::link(runtime, component)?;
    let refused = |error| Ok((Outcome::Refused(error), CallUsage::default()));
    if name != "tick" {
        return refused(ToolError::Missing("a neuron has `tick`, which takes `signal`".to_owned()));
    }
    let signal = match signal(arguments) {
        Ok(signal) => signal,
        Err(message) => return refused(ToolError::BadInput(message)),
    };
    let report = neuron.tick(signal_text(&signal), &tick_limits(ENERGY_MICROS), &cancel).await;
    let outcome = match settled(report.outcome) {
        Outcome::Returned(signals) => emitted(signals),
        other => other.map(|_| String::new()),
    };
    Ok((outcome, report.usage))
}

/// The only argument: a signal that a neuron may read.
fn signal(arguments: &str) -> Result<NeuronInput, String> {
    let signal = only_argument(arguments, "signal", "`{\"kind\": …, \"data\": …}`, with any JSON as its data")?;
    serde_json::from_value(signal).map_err(|error| format!("`signal` is not a signal that a neuron reads: {error}"))
}

/// The signals as JSON, unless a home would refuse them.
fn emitted(signals: Vec<SignalText>) -> Outcome<String, ToolError> {
    let declared = signals.iter().filter_map(|signal| OutputKind::parse(&signal.kind).ok()).collect();
    let signals = signals.into_iter().map(|SignalText { kind, data }| (kind, data)).collect();
    match emitted_as_text(signals, &declared) {
        Ok(signals) => Outcome::Returned(json!(signals).to_string()),
        // Its reason has the guest's text escaped.
        Err(fault) => Outcome::Refused(failed(format!("{}: {}", fault.code.as_str(), fault.reason))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_argument_is_a_signal_that_a_neuron_may_read() {
        let read = |arguments: &str| signal(arguments).map(|signal| signal_text(&signal));
        let text =
            |kind: &str, data: &str| Ok::<_, String>(SignalText { kind: kind.to_owned(), data: data.to_owned() });
        let completed = r#"{"signal": {"kind": "run.completed", "data": {"summary": "a\nb"}}}"#;
        assert_eq!(read(completed), text("run.completed", r#"{"summary":"a\nb"}"#));
        assert_eq!(read(r#"{"signal": {"kind": "price.high", "data": [1]}}"#), text("price.high", "[1]"));
        assert_eq!(read(r#"{"signal": {"kind": "price.high"}}"#), text("price.high", "null"));
        for wrong in [
            "[]",
            "{}",
            r#"{"signal": "x"}"#,
            r#"{"signal": {"kind": "run.waiting"}}"#,
            r#"{"signal": {"kind": "price.high", "more": 1}}"#,
            r#"{"signal": {"kind": "price.high"}, "more": 1}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn signals_that_a_home_would_refuse_are_refused() {
        let one = |kind: &str, data: &str| SignalText { kind: kind.to_owned(), data: data.to_owned() };
        let code = |signals: Vec<SignalText>| match emitted(signals) {
            Outcome::Refused(ToolError::Failed { message, retryable: false }) => {
                message.split_once(':').map(|(code, _)| code.to_owned())
            }
            _ => None,
        };
        let shown = emitted(vec![one("price.high", "{\"price\": 1}"), one("price.seen", "null")]);
        let Outcome::Returned(text) = &shown else { panic!("{shown:?}") };
        let expected =
            json!([{ "kind": "price.high", "data": { "price": 1 } }, { "kind": "price.seen", "data": null }]);
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), expected);
        assert_eq!(code(vec![one("price.high", "{")]).as_deref(), Some("invalid_output"));
        assert_eq!(
            code(vec![one("price.high", &json!("x".repeat(3_000)).to_string())]).as_deref(),
            Some("invalid_output")
        );
        assert_eq!(code(vec![one("motor_result", "1")]).as_deref(), Some("undeclared_signal"));
        assert_eq!(code(vec![one("price.high", "1"); 9]).as_deref(), Some("signal_spam"));
    }
}

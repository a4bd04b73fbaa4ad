//! The functions of a reflector by hand, as a tool is called: JSON in, JSON out, under the limits of a cycle (SPEC HOST-9, CX-3).
//!
//! The same linking, limits and bound of the prompt as in a cycle: a reflector that passes its cases is not refused there.

use runtime::{
    AssessmentProposal, BeliefProposal, CallUsage, CommitmentProposal, Component, DirectiveProposal, GuidanceProposals,
    LoadError, NoteSink, Outcome, ReflectionPrompt, ReflectionProposals, ReflectorCall, ReflectorComponent, Runtime,
    ToolError,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::function::{only_argument, settled};
use crate::reflection::reflector_limits;

/// Calls one function of the interfaces `reflection` and `guidance`.
///
/// # Errors
/// If the component is not a usable reflector.
pub(super) async fn call(
    runtime: &Runtime,
    component: &Component,
    (name, arguments): (&str, &str),
    notes: NoteSink,
    cancel: CancellationToken,
) -> Result<(Outcome<String, ToolError>, CallUsage), LoadError> {
    let reflector = ReflectorComponent::link(runtime, component)?;
    let call = ReflectorCall { limits: reflector_limits(), notes, cancel };
    let refused = |error| Ok((Outcome::Refused(error), CallUsage::default()));
    let parameter = match name {
        "compose" => "facts",
        "interpret" | "guide" => "reply",
        _ => {
            let message =
                "a reflector has `compose`, which takes `facts`, and `interpret` and `guide`, which take `reply`";
            return refused(ToolError::Missing(message.to_owned()));
        }
    };
    let text = match text(arguments, parameter) {
        Ok(text) => text,
        Err(message) => return refused(ToolError::BadInput(message)),
    };
    Ok(match name {
        "compose" => {
            let report = reflector.compose(&text, call).await;
            let outcome = match settled(report.outcome) {
                Outcome::Returned(prompt) => prompt_of(prompt),
                other => other.map(|_| String::new()),
            };
            (outcome, report.usage)
        }
        "interpret" => {
            let report = reflector.interpret(&text, call).await;
            (settled(report.outcome).map(|read| proposals(read).to_string()), report.usage)
        }
        _ => match reflector.guide(&text, call).await {
            Some(report) => (settled(report.outcome).map(|read| guidance(read).to_string()), report.usage),
            None => {
                let message = "this reflector has no `guide`: build it for the world `guiding-reflector`";
                return refused(ToolError::Missing(message.to_owned()));
            }
        },
    })
}

/// The only argument: text, or the JSON text of any other value.
fn text(arguments: &str, parameter: &str) -> Result<String, String> {
    only_argument(arguments, parameter, "text, or any JSON in place of its text").map(|argument| match argument {
        Value::String(text) => text,
        value => value.to_string(),
    })
}

/// The prompt as JSON, unless a cycle would refuse it.
fn prompt_of(ReflectionPrompt { system, user }: ReflectionPrompt) -> Outcome<String, ToolError> {
    let prompt = cortex::Prompt { system, user };
    match prompt.system_tokens() {
        Ok(_) => Outcome::Returned(json!({ "system": prompt.system, "user": prompt.user }).to_string()),
        Err(error) => Outcome::Refused(ToolError::Limit(error.reason)),
    }
}

fn proposals(ReflectionProposals { assessments, beliefs, summary }: ReflectionProposals) -> Value {
    let assessment = |AssessmentProposal { peer, trust, rationale }| {
        // JSON has no form for the numbers that a cycle refuses.
        let trust = if trust.is_finite() { json!(trust) } else { json!(trust.to_string()) };
        json!({ "peer": peer, "trust": trust, "rationale": rationale })
    };
    let belief = |BeliefProposal { key, value, rationale, peer }| json!({ "key": key, "value": value, "rationale": rationale, "peer": peer });
    let assessments: Vec<Value> = assessments.into_iter().map(assessment).collect();
    let beliefs: Vec<Value> = beliefs.into_iter().map(belief).collect();
    json!({ "assessments": assessments, "beliefs": beliefs, "summary": summary })
}

fn guidance(GuidanceProposals { commitments, closings, directives, drift }: GuidanceProposals) -> Value {
    let commitment = |CommitmentProposal { key, text, by_peer, peer, due_in_minutes }| {
        let by = if by_peer { "peer" } else { "agent" };
        json!({ "key": key, "text": text, "by": by, "peer": peer, "due-in-minutes": due_in_minutes })
    };
    let closing = |(key, kept)| json!({ "key": key, "kept": kept });
    let directive = |DirectiveProposal { key, text, peer }| json!({ "key": key, "text": text, "peer": peer });
    let commitments: Vec<Value> = commitments.into_iter().map(commitment).collect();
    let closings: Vec<Value> = closings.into_iter().map(closing).collect();
    let directives: Vec<Value> = directives.into_iter().map(directive).collect();
    json!({ "commitments": commitments, "closings": closings, "directives": directives, "drift": drift })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_is_text_or_any_json() {
        assert_eq!(text(r#"{"reply": "{\"a\": 1}"}"#, "reply").unwrap(), r#"{"a": 1}"#);
        assert_eq!(text(r#"{"facts": {"b": [1], "a": "x\ny"}}"#, "facts").unwrap(), r#"{"b":[1],"a":"x\ny"}"#);
        for wrong in ["[]", "{}", r#"{"reply": "x"}"#, r#"{"facts": {}, "more": 1}"#] {
            assert!(text(wrong, "facts").is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_prompt_that_a_cycle_would_refuse_is_refused() {
        let prompt = |length: usize| prompt_of(ReflectionPrompt { system: "x".repeat(length), user: "u".to_owned() });
        assert!(matches!(prompt(2_000), Outcome::Returned(_)));
        assert!(matches!(prompt(2_001), Outcome::Refused(ToolError::Limit(reason)) if reason.contains("501 tokens")));
    }

    #[test]
    fn proposals_have_the_names_of_the_wit() {
        let assessment = AssessmentProposal { peer: "p".into(), trust: f64::NAN, rationale: "r".into() };
        let read = ReflectionProposals { assessments: vec![assessment], beliefs: Vec::new(), summary: "s".into() };
        let expected = json!({ "assessments": [{ "peer": "p", "trust": "NaN", "rationale": "r" }], "beliefs": [], "summary": "s" });
        assert_eq!(proposals(read), expected);
        let commitment = CommitmentProposal {
            key: "k".into(),
            text: "t".into(),
            by_peer: true,
            peer: "p".into(),
            due_in_minutes: -1,
        };
        let read = GuidanceProposals { commitments: vec![commitment], ..GuidanceProposals::default() };
        assert_eq!(guidance(read)["commitments"][0]["by"], "peer");
    }
}

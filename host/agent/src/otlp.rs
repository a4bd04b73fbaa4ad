//! A trace as an OTLP request in its JSON encoding, with the GenAI semantic conventions of OpenTelemetry.
//!
//! The run is a span `invoke_agent`, each reply a span `chat`, each call a span `execute_tool`. Texts, arguments and
//! results are left out, as the conventions ask for by default. Ids are derived from the run's: an export that is sent
//! twice is the same trace.

use base::{ContentHash, Refusal, RefusalCode, RunId};
use deliveries::TraceSource;
use motor::{Motor, RunStatus, RunTrace, StepTrace, ToolCallTrace};
use serde_json::{Value, json};
use store::blocking;

/// The kind of a span within a process.
const INTERNAL: u8 = 1;
/// The kind of a span that waits for a remote service.
const CLIENT: u8 = 3;
/// The status code of a span that failed.
const ERROR: u8 = 2;
/// Hex digits of a trace's id, and of a span's.
const ID_DIGITS: (usize, usize) = (32, 16);

/// The body of a request to `/v1/traces` of a collector.
#[must_use]
pub fn request(trace: &RunTrace) -> Value {
    let resource = [attribute("service.name", "motor"), attribute("service.version", env!("CARGO_PKG_VERSION"))];
    let mut spans = vec![agent(trace)];
    for step in &trace.steps {
        spans.push(chat(trace, step));
        let mut began = step.timestamp.as_millis();
        for call in &step.tool_calls {
            spans.push(tool(trace, step, call, began));
            began += call.duration_ms;
        }
    }
    json!({ "resourceSpans": [{
        "resource": { "attributes": resource },
        "scopeSpans": [{ "scope": { "name": "motor" }, "spans": spans }],
    }] })
}

fn agent(trace: &RunTrace) -> Value {
    let began = trace.created_at.as_millis();
    let ended = trace.completed_at.map_or(began + trace.total_duration_ms, base::Timestamp::as_millis);
    let mut attributes = vec![
        attribute("gen_ai.operation.name", "invoke_agent"),
        attribute("gen_ai.agent.name", trace.agent.as_str()),
        attribute("gen_ai.conversation.id", trace.run_id.as_str()),
        count("gen_ai.usage.input_tokens", trace.total_usage.input_tokens),
        count("gen_ai.usage.output_tokens", trace.total_usage.output_tokens),
    ];
    let failed = matches!(trace.status, RunStatus::Failed | RunStatus::Cancelled);
    if failed {
        attributes.push(attribute("error.type", trace.status.as_str()));
    }
    let name = format!("invoke_agent {}", trace.agent);
    span(trace, ("run", None), &name, INTERNAL, (began, ended), attributes, failed)
}

fn chat(trace: &RunTrace, step: &StepTrace) -> Value {
    let (provider, model) = step.llm_model.split_once('/').unwrap_or(("_OTHER", &step.llm_model));
    let attributes = vec![
        attribute("gen_ai.operation.name", "chat"),
        attribute("gen_ai.provider.name", provider),
        attribute("gen_ai.request.model", model),
        count("gen_ai.usage.input_tokens", step.usage.input_tokens),
        count("gen_ai.usage.output_tokens", step.usage.output_tokens),
    ];
    let ended = step.timestamp.as_millis();
    let began = ended.saturating_sub(step.duration_ms);
    let id = format!("step/{}", step.iteration);
    span(trace, (&id, Some("run")), &format!("chat {model}"), CLIENT, (began, ended), attributes, false)
}

fn tool(trace: &RunTrace, step: &StepTrace, call: &ToolCallTrace, began: u64) -> Value {
    let mut attributes = vec![
        attribute("gen_ai.operation.name", "execute_tool"),
        attribute("gen_ai.tool.name", &call.tool),
        attribute("gen_ai.tool.call.id", &call.call_id),
        attribute("gen_ai.tool.type", "function"),
    ];
    let failed = call.result.as_ref().is_some_and(|result| !result.ok);
    if let Some(code) = call.result.as_ref().and_then(|result| result.error_code.as_ref()) {
        attributes
            .push(attribute("error.type", serde_json::to_value(code).unwrap_or_default().as_str().unwrap_or("_OTHER")));
    }
    if let Some(fuel) = call.fuel {
        attributes.push(count("motor.sandbox.fuel", fuel));
    }
    let id = format!("call/{}/{}", step.iteration, call.call_id);
    let times = (began, began + call.duration_ms);
    span(trace, (&id, Some("run")), &format!("execute_tool {}", call.tool), INTERNAL, times, attributes, failed)
}

fn span(
    trace: &RunTrace,
    (id, parent): (&str, Option<&str>),
    name: &str,
    kind: u8,
    (began, ended): (u64, u64),
    attributes: Vec<Value>,
    failed: bool,
) -> Value {
    let hash = |part: &str, digits: usize| {
        let hash = ContentHash::of(format!("{}/{part}", trace.run_id).as_bytes()).hex();
        hash.chars().take(digits).collect::<String>()
    };
    json!({
        "traceId": hash("", ID_DIGITS.0),
        "spanId": hash(id, ID_DIGITS.1),
        // Empty for the root.
        "parentSpanId": parent.map(|parent| hash(parent, ID_DIGITS.1)).unwrap_or_default(),
        "name": name,
        "kind": kind,
        "startTimeUnixNano": format!("{began}000000"),
        "endTimeUnixNano": format!("{ended}000000"),
        "attributes": attributes,
        "status": if failed { json!({ "code": ERROR }) } else { json!({}) },
    })
}

fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// Integers of 64 bits are texts in this encoding.
fn count(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

/// Traces of runs for deliveries to a collector.
pub(crate) struct TraceExports(pub Motor);

#[async_trait::async_trait]
impl TraceSource for TraceExports {
    async fn export(&self, run: &RunId) -> Result<Option<Value>, Refusal> {
        let (motor, run) = (self.0.clone(), run.clone());
        blocking(move || match motor.status(&run) {
            Ok(trace) => Ok(Some(request(&trace))),
            // Deleted, or unreadable for this version and any attempt of it.
            Err(Refusal { code: RefusalCode::NotFound | RefusalCode::StateUnusable, .. }) => Ok(None),
            Err(refusal) => Err(refusal),
        })
        .await
    }
}

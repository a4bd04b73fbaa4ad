//! The steps of a run on a line of time: the model, the tools, and the waiting for people.

use base::Timestamp;
use maud::{Markup, html};
use motor::{OutgoingRequest, RunTrace, StepTrace, ToolCallTrace, ToolNote};

use super::layout::{shown, word};
use crate::output::text;

/// The largest text that is shown of an argument or a result, in bytes. The files of the run hold the rest.
const MAX_TEXT: usize = 16 << 10;
/// The narrowest bar, in percent.
const MIN_BAR: f64 = 0.4;

/// One thing that took time.
struct Row<'a> {
    kind: &'static str,
    label: String,
    began: u64,
    took: u64,
    detail: Detail<'a>,
}

enum Detail<'a> {
    Step(&'a StepTrace),
    Call(&'a ToolCallTrace),
    Waited { asked: &'a str, answer: String },
}

/// The timeline of a run until `now`.
pub(super) fn timeline(trace: &RunTrace, now: Timestamp) -> Markup {
    let rows = rows(trace, now);
    let began = trace.created_at.as_millis();
    let end = trace.completed_at.unwrap_or(now).as_millis();
    let end = rows.iter().map(|row| row.began + row.took).max().unwrap_or(end).max(began + 1);
    let share = |millis: u64| millis as f64 / (end - began) as f64 * 100.0;
    html! {
        @if rows.is_empty() { p.faint { "The model has not answered yet." } }
        ol.timeline {
            @for (index, row) in rows.iter().enumerate() {
                li class=(row.kind) {
                    details id=(format!("row-{index}")) {
                        summary {
                            span.kind { (row.kind) }
                            span.label { (shown(&row.label)) }
                            svg.bar viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
                                rect x=(format!("{:.2}", share(row.began.saturating_sub(began)).min(100.0 - MIN_BAR))) y="0" width=(format!("{:.2}", share(row.took).max(MIN_BAR))) height="8" {}
                            }
                            span.number { (text::whole_millis(row.took)) }
                        }
                        (detail(&row.detail))
                    }
                }
            }
        }
    }
}

fn rows(trace: &RunTrace, now: Timestamp) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for step in &trace.steps {
        let replied = step.timestamp.as_millis();
        let label = text::brief(if step.text.is_empty() { &step.llm_model } else { &step.text }, 90);
        let began = replied.saturating_sub(step.duration_ms);
        rows.push(Row { kind: "model", label, began, took: step.duration_ms, detail: Detail::Step(step) });
        let mut at = replied;
        for call in &step.tool_calls {
            let arguments = text::brief(&call.args.to_string(), 60);
            let label = format!("{} {arguments}", call.tool);
            let kind = if call.result.as_ref().is_some_and(|result| !result.ok) { "failed" } else { "tool" };
            rows.push(Row { kind, label, began: at, took: call.duration_ms, detail: Detail::Call(call) });
            at += call.duration_ms;
        }
    }
    let until = |consent: Option<Timestamp>, asked: Timestamp| {
        consent.unwrap_or_else(|| trace.completed_at.unwrap_or(now)).since(asked).as_millis() as u64
    };
    for asked in &trace.questions {
        let question = &asked.question;
        rows.push(Row {
            kind: "waiting",
            label: text::brief(&question.question, 90),
            began: question.asked_at.as_millis(),
            took: until(asked.consent.as_ref().map(|consent| consent.at), question.asked_at),
            detail: Detail::Waited {
                asked: &question.question,
                answer: asked.answer.clone().unwrap_or_else(|| "no answer yet".to_owned()),
            },
        });
    }
    for told in &trace.owner_messages {
        rows.push(Row {
            kind: "waiting",
            label: format!("told: {}", text::brief(&told.text, 90)),
            began: told.at.as_millis(),
            took: 0,
            detail: Detail::Waited { asked: "A message of the owner", answer: told.text.clone() },
        });
    }
    for asked in &trace.approvals {
        let approval = &asked.approval;
        let answer = match asked.granted {
            Some(true) => format!("allowed, {}", asked.scope.unwrap_or_default().as_str()),
            Some(false) => format!("refused {}", asked.why.clone().unwrap_or_default()),
            None => "not decided yet".to_owned(),
        };
        rows.push(Row {
            kind: "waiting",
            label: text::brief(&approval.reason, 90),
            began: approval.asked_at.as_millis(),
            took: until(asked.consent.as_ref().map(|consent| consent.at), approval.asked_at),
            detail: Detail::Waited { asked: &approval.reason, answer },
        });
    }
    rows.sort_by_key(|row| row.began);
    rows
}

fn detail(detail: &Detail<'_>) -> Markup {
    match detail {
        Detail::Step(step) => html! {
            dl.facts {
                dt { "Model" } dd { (shown(&step.llm_model)) }
                dt { "Tokens" } dd { (text::thousands(step.usage.input_tokens)) " in, " (text::thousands(step.usage.output_tokens)) " out"
                    @if let Some(cost) = step.usage.cost_usd { ", $" (format!("{cost:.5}")) } }
                @if step.retries > 0 { dt { "Tried again" } dd { (step.retries) } }
            }
            @if !step.text.is_empty() { (block("Said", &step.text)) }
            @if let Some(reasoning) = &step.reasoning { (block("Reasoning", reasoning)) }
            @for message in &step.host_messages { (block("The host added", message)) }
        },
        Detail::Call(call) => html! {
            (block("Arguments", &serde_json::to_string_pretty(&call.args).unwrap_or_default()))
            @match &call.result {
                Some(result) => {
                    @let outcome = if result.ok { "Result" } else { "Failed" };
                    (block(outcome, &result.output))
                    dl.facts {
                        dt { "Provenance" } dd { (word(&result.provenance)) }
                        @if let Some(fuel) = call.fuel { dt { "Fuel" } dd { (text::count(fuel)) } }
                        @if let Some(memory) = call.peak_memory_bytes { dt { "Memory" } dd { (text::bytes(memory)) } }
                        @if let Some(component) = call.component { dt { "Component" } dd { code { (component.short()) } } }
                        @if let Some(saved) = &result.saved { dt { "Saved" } dd { (shown(saved)) } }
                    }
                }
                None => p.faint { "It has no result." },
            }
            @if !call.requests.is_empty() {
                table {
                    thead { tr { th scope="col" { "Request" } th scope="col" { "Answer" } th.number scope="col" { "Received" } th.number scope="col" { "Took" } } }
                    tbody { @for request in &call.requests { (request_row(request)) } }
                }
            }
            @for note in &call.notes { p.faint { (shown(&note_text(note))) } }
        },
        Detail::Waited { asked, answer } => html! { (block("Asked", asked)) (block("Answer", answer)) },
    }
}

fn request_row(request: &OutgoingRequest) -> Markup {
    let answer = match (&request.error, request.status) {
        (Some(error), _) => error.clone(),
        (None, Some(status)) => status.to_string(),
        (None, None) => "none".to_owned(),
    };
    html! {
        tr {
            td { (request.method) " " (shown(&request.url)) @if !request.credentials.is_empty() { span.faint { " with " (request.credentials.join(", ")) } } }
            td { (shown(&answer)) }
            td.number { (text::bytes(request.received_bytes)) }
            td.number { (text::millis(request.duration_ms)) }
        }
    }
}

fn note_text(note: &ToolNote) -> String {
    match note {
        ToolNote::Log { level, message } => format!("{level}: {message}"),
        ToolNote::Notice { message } | ToolNote::Progress { message, .. } => message.clone(),
    }
}

/// A text of a stranger's under a heading, cut if it is long.
pub(super) fn block(heading: &str, text: &str) -> Markup {
    let shortened = text.get(..text.floor_char_boundary(MAX_TEXT)).unwrap_or_default();
    html! {
        p.heading { (heading) }
        pre tabindex="0" { (shown(shortened)) }
        @if shortened.len() < text.len() {
            p.faint { "Only " (text::thousands(shortened.len() as u64)) " of " (text::thousands(text.len() as u64)) " bytes are shown." }
        }
    }
}

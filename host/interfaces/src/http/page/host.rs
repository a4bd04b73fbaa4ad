//! *Signals*, *Health* and *Settings* (SPEC WEB-1).

use agent::doctor::Severity;
use axum::extract::State;
use base::Refusal;
use maud::html;

use super::super::ApiState;
use super::layout::{Page, PageError, shown, time};
use super::session::Visitor;
use crate::output::text;

/// Signals on the page, newest first.
const SIGNALS: u64 = 100;

pub(super) async fn signals(_: Visitor, State(api): State<ApiState>) -> Result<Page, PageError> {
    let latest = api.host.signals.latest();
    let after = latest.saturating_sub(SIGNALS);
    let mut signals = api.host.signals.since(after, SIGNALS as usize).map_err(Refusal::from)?;
    signals.reverse();
    let body = html! {
        h1 { "Signals" }
        p { "What runs reported to their agents, newest first." }
        section id="signals" data-part {
            @if signals.is_empty() { p.faint { "No run has reported yet. Each does when it ends, or waits for a person." } }
            @else { table {
                thead { tr { th.number scope="col" { "Id" } th scope="col" { "Time" } th scope="col" { "Run" } th scope="col" { "Status" } th scope="col" { "Says" } } }
                tbody { @for signal in &signals {
                    @let body = &signal.body;
                    @let says = body.error.as_ref().map(|error| error.message.as_str()).or(body.question.as_deref()).or(body.result.as_ref().map(|result| result.summary.as_str()));
                    tr {
                        td.number { (signal.id) }
                        td { (time(signal.created_at)) }
                        td { a href=(format!("/runs/{}", signal.body.run_id)) { (signal.body.run_id) } }
                        td { (body.status) }
                        td { (shown(&text::brief(says.unwrap_or_default(), 100))) }
                    }
                } }
            } }
        }
    };
    Ok(Page::new("Signals", "/signals", body).live("/live"))
}

pub(super) async fn health(_: Visitor, State(api): State<ApiState>) -> Result<Page, PageError> {
    let findings = api.host.examine().await?;
    let status = api.host.status();
    let body = html! {
        h1 { "Health" }
        dl.facts {
            dt { "Version" } dd { (status.version) }
            dt { "Home" } dd { (shown(&status.home.display().to_string())) }
            dt { "Process" } dd { (status.pid) }
            dt { "Running since" } dd { (time(status.started_at)) }
            dt { "Runs in flight" } dd { (status.running.len()) }
        }
        h2 { "Examination" }
        ul.findings { @for finding in &findings {
            @let (class, word) = match finding.status {
                Severity::Ok | Severity::Fixed => ("calm", "ok"),
                Severity::Skipped => ("faint", "not looked at"),
                Severity::Warning => ("warning", "warning"),
                Severity::Problem => ("alarm", "problem"),
            };
            li {
                span class=(format!("badge {class}")) { (word) } " " strong { (finding.name) } " " (shown(&finding.message))
                @if let Some(fix) = &finding.fix { p.faint { code { (shown(fix)) } } }
            }
        } }
    };
    Ok(Page::new("Health", "/health", body))
}

pub(super) async fn settings(_: Visitor, State(api): State<ApiState>) -> Page {
    let body = html! {
        h1 { "Settings" }
        p { "The values in force, and where each comes from. Most are read when the host starts; those of runs and of the cortex also when they are changed by " code { "motor config" } "." }
        table {
            thead { tr { th scope="col" { "Key" } th scope="col" { "Value" } th scope="col" { "From" } } }
            tbody { @for entry in &api.host.settings.entries() {
                tr { td { code { (entry.key) } } td { code { (shown(&entry.value.to_string())) } } td { (shown(&entry.origin.to_string())) } }
            } }
        }
    };
    Page::new("Settings", "/settings", body)
}

//! *Now*: the inbox, the runs, energy and cost (SPEC WEB-1).

use agent::{TaskFilter, TaskSummary};
use axum::extract::State;
use base::{Refusal, Timestamp};
use maud::{Markup, html};
use motor::{RunStatus, Waiting};

use super::super::ApiState;
use super::layout::{Page, PageError, shown, time};
use super::run::ask;
use super::session::Visitor;
use crate::output::text;
use crate::words::cost;

/// Runs in the list, and in the charts.
const RUNS: usize = 40;
/// The height of a chart, in its own units.
const HEIGHT: f64 = 40.0;

pub(super) async fn show(_: Visitor, State(api): State<ApiState>) -> Result<Page, PageError> {
    let runs = api.host.runs.list(TaskFilter { limit: RUNS, ..TaskFilter::default() })?;
    let waiting = waiting(&api)?;
    let now = api.host.now();
    let body = html! {
        h1 { "Now" }
        section id="inbox" aria-labelledby="inbox-title" data-part {
            h2 id="inbox-title" { "Inbox" @if !waiting.is_empty() { " " span.count { (waiting.len()) } } }
            @if waiting.is_empty() { p.faint { "Nothing waits for you. Questions and requests for approval appear here, with exactly what would be done." } }
            @for trace in &waiting {
                article.ask id=(format!("ask-{}", trace.run_id)) data-key=[trace.waiting.as_ref().map(Waiting::id)] {
                    h3 { a href=(format!("/runs/{}", trace.run_id)) { (trace.run_id) } }
                    (ask(trace, now, "/"))
                }
            }
        }
        section id="runs" aria-labelledby="runs-title" data-part {
            h2 id="runs-title" { "Runs" }
            @if runs.is_empty() { (first_steps()) } @else { (list(&runs, now)) }
        }
        section id="spend" aria-labelledby="spend-title" data-part {
            h2 id="spend-title" { "Energy and cost" }
            @for agent in agents(&runs) {
                @let report = api.host.energy.report(&agent).ok();
                @if let Some(report) = report {
                    p { "Agent " strong { (agent) } ": energy " strong.number { (format!("{:.2}", report.level)) }
                        @if !report.enabled { " (switched off)" }
                        @for today in api.host.runs.spend(Some(&agent), 1).unwrap_or_default() {
                            "; today " (cost::shown(Some(today.spend.usd), today.spend.unpriced, today.spend.replies))
                        } }
                    meter min="0" max="1" low="0.2" optimum="1" value=(report.level) aria-label=(format!("Energy of agent {agent}")) {}
                }
            }
            @if !runs.is_empty() { (charts(&runs)) }
        }
    };
    Ok(Page::new("Now", "/", body).live("/live"))
}

fn first_steps() -> Markup {
    html! {
        div.empty {
            p { "No run yet. A run does one task with exactly the tools you grant it." }
            p { a.button.primary href="/start" { "Start the first one" } " or, in a terminal: " code { "motor act \"count the words\" --tools filesystem --file notes.txt" } }
        }
    }
}

fn agents(runs: &[TaskSummary]) -> std::collections::BTreeSet<base::AgentName> {
    let default = base::AgentName::default();
    runs.iter().map(|run| run.agent.clone()).chain([default]).collect()
}

/// The runs that wait for a person, those that expire first before the others.
fn waiting(api: &ApiState) -> Result<Vec<motor::RunTrace>, Refusal> {
    let mut waiting = Vec::new();
    for status in RunStatus::ALL.into_iter().filter(|status| status.is_waiting()) {
        let filter = TaskFilter { status: Some(status), limit: RUNS, ..TaskFilter::default() };
        waiting.extend(api.host.runs.list(filter)?);
    }
    waiting.sort_by_key(|run| run.waiting.as_ref().map(Waiting::expires_at));
    waiting.iter().map(|run| api.host.runs.trace(&run.run_id)).collect()
}

pub(super) fn badge(status: RunStatus) -> Markup {
    html! { span class=(format!("badge {}", status.as_str())) { (status.as_str().replace('_', " ")) } }
}

fn list(runs: &[TaskSummary], now: Timestamp) -> Markup {
    html! {
        table.runs {
            thead { tr { th scope="col" { "Status" } th scope="col" { "Task" } th scope="col" { "Last" } th.number scope="col" { "Steps" } th.number scope="col" { "Took" } th.number scope="col" { "Spent" } th.number scope="col" { "Started" } } }
            tbody {
                @for run in runs {
                    tr {
                        td { (badge(run.status)) }
                        td.task { a href=(format!("/runs/{}", run.run_id)) { (shown(&run.task)) } @if run.agent != base::AgentName::default() { " " span.faint { (run.agent) } } }
                        td.last.faint { (shown(&last(run))) }
                        td.number { (run.iterations) }
                        td.number { (took(run, now)) }
                        td.number { (spent(run)) }
                        td.number { (text::age(now.since(run.created_at))) " ago" }
                    }
                }
            }
        }
    }
}

/// The last thing that happened, in short.
fn last(run: &TaskSummary) -> String {
    let line = match (&run.waiting, &run.error, &run.summary) {
        (Some(Waiting::Input(question)), ..) => question.question.as_str(),
        (Some(Waiting::Approval(approval)), ..) => approval.reason.as_str(),
        (None, Some(error), _) => error.message.as_str(),
        (None, None, Some(summary)) => summary.as_str(),
        (None, None, None) => return format!("{} tool calls", run.tool_calls),
    };
    text::brief(line, 80)
}

fn took(run: &TaskSummary, now: Timestamp) -> String {
    run.started_at.map_or_else(
        || "–".to_owned(),
        |started| text::millis(run.completed_at.unwrap_or(now).since(started).as_secs_f64() * 1_000.0),
    )
}

fn spent(run: &TaskSummary) -> String {
    match run.cost_usd {
        Some(_) => cost::brief(run.cost_usd, run.unpriced_replies.into()),
        None => format!("{} tokens", text::thousands(run.input_tokens + run.output_tokens)),
    }
}

/// Energy and tokens of the latest runs over time, with the numbers in a table.
fn charts(runs: &[TaskSummary]) -> Markup {
    let oldest_first: Vec<&TaskSummary> = runs.iter().rev().collect();
    let energy: Vec<f64> = oldest_first.iter().map(|run| run.energy).collect();
    let tokens: Vec<f64> = oldest_first.iter().map(|run| (run.input_tokens + run.output_tokens) as f64).collect();
    html! {
        div.charts {
            figure { (bars(&energy)) figcaption { "Energy of the last " (text::plural(runs.len() as u64, "run")) ", oldest first" } }
            figure { (bars(&tokens)) figcaption { "Tokens of the same runs" } }
        }
        details id="numbers" {
            summary { "The numbers" }
            table {
                thead { tr { th scope="col" { "Run" } th scope="col" { "Started" } th.number scope="col" { "Energy" } th.number scope="col" { "Tokens" } th.number scope="col" { "Cost" } } }
                tbody {
                    @for run in runs {
                        tr {
                            td { a href=(format!("/runs/{}", run.run_id)) { (run.run_id) } }
                            td { (time(run.created_at)) }
                            td.number { (format!("{:.3}", run.energy)) }
                            td.number { (text::thousands(run.input_tokens + run.output_tokens)) }
                            td.number { (cost::brief(run.cost_usd, run.unpriced_replies.into())) }
                        }
                    }
                }
            }
        }
    }
}

/// Bars from the left, the highest as high as the chart.
fn bars(values: &[f64]) -> Markup {
    let most = values.iter().copied().fold(0.0, f64::max);
    let step = 100.0 / RUNS as f64;
    html! {
        svg.bars viewBox=(format!("0 0 100 {HEIGHT}")) preserveAspectRatio="none" aria-hidden="true" {
            @for (index, value) in values.iter().enumerate() {
                @let height = if most > 0.0 { (value / most * HEIGHT).max(0.5) } else { 0.5 };
                rect x=(format!("{:.2}", index as f64 * step)) y=(format!("{:.2}", HEIGHT - height)) width=(format!("{:.2}", step * 0.8)) height=(format!("{height:.2}")) {}
            }
        }
    }
}

//! A run: its state, its question, its timeline, its files, its receipt (SPEC WEB-1).

use agent::{ApproveTask, RespondRequest, RetryTask, TellRequest};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Redirect};
use base::{ContentHash, Refusal, Timestamp};
use maud::{Markup, html};
use motor::{RunTrace, Scope, Waiting};

use super::super::reply::run_id;
use super::super::{ApiState, Path};
use super::form::{Form, value};
use super::layout::{Page, PageError, card, shown, time};
use super::now::badge;
use super::session::Visitor;
use super::timeline::{block, timeline};
use crate::output::text;
use crate::words::card::Card;
use crate::words::cost;

/// The largest file that is previewed, in bytes.
const MAX_PREVIEW: usize = 256 << 10;

pub(super) async fn show(_: Visitor, State(api): State<ApiState>, Path(id): Path<String>) -> Result<Page, PageError> {
    let trace = api.host.runs.trace(&run_id(&id)?)?;
    let now = api.host.now();
    let over = trace.status.is_terminal();
    let at_work = trace.status == motor::RunStatus::Running;
    let at = format!("/runs/{}", trace.run_id);
    let staged = if trace.staged > 0 { Some(api.host.runs.staged(&trace.run_id)?) } else { None };
    let body = html! {
        p.crumb { a href="/" { "Now" } " / " (trace.run_id) }
        h1.task { (shown(&text::brief(&trace.task, 120))) }
        div.columns {
            div {
                section id="state" data-part {
                    (state(&trace))
                }
                section id="asks" data-part data-key=[trace.waiting.as_ref().map(Waiting::id)] {
                    @if trace.waiting.is_some() { article.ask { h2 { "It waits for you" } (ask(&trace, now, &at)) } }
                }
                @if let Some(task) = &staged {
                    section id="staged" aria-labelledby="staged-title" data-part { (super::staged::section(task)) }
                }
                section id="timeline" aria-labelledby="timeline-title" data-part {
                    h2 id="timeline-title" { "Timeline" }
                    (timeline(&trace, now))
                }
            }
            aside {
                section id="totals" aria-labelledby="totals-title" data-part {
                    h2 id="totals-title" { "Totals" }
                    (totals(&trace))
                    @if !over {
                        form method="post" action=(format!("{at}/cancellation")) { button { "Cancel the run" } }
                    }
                }
                section id="tell" data-part data-key=[at_work.then_some("tell")] {
                    @if at_work {
                        form method="post" action=(format!("{at}/messages")) {
                            label for="message" { "Tell it something, for its next step" }
                            textarea id="message" name="message" rows="2" required {}
                            button { "Tell it" }
                        }
                    }
                }
                section id="files" aria-labelledby="files-title" data-part {
                    h2 id="files-title" { "Files" }
                    @if trace.artifacts.is_empty() { p.faint { "It produced no files." } }
                    ul.files {
                        @for file in &trace.artifacts {
                            @let path = encoded(&file.path);
                            li { a href=(format!("{at}/preview/{path}")) { (shown(&file.path)) } " " span.faint { (text::bytes(file.bytes)) } " "
                                a href=(format!("{at}/files/{path}")) download aria-label=(format!("Download {}", file.path)) { "Download" } }
                        }
                    }
                }
                section id="receipt" aria-labelledby="receipt-title" data-part {
                    h2 id="receipt-title" { "Receipt" }
                    @if over {
                        (receipt_facts(&api, &trace).await)
                    } @else { p.faint { "A run that is over has a signed receipt of what it did." } }
                }
                @if over && trace.status != motor::RunStatus::Completed {
                    section id="retry" aria-labelledby="retry-title" data-part {
                        h2 id="retry-title" { "Try again" }
                        form method="post" action=(format!("{at}/retry")) {
                            label for="guidance" { "Guidance for the next attempt" }
                            textarea id="guidance" name="guidance" rows="3" {}
                            button.primary { "Try again" }
                        }
                    }
                }
            }
        }
    };
    let page = Page::new(text::brief(&trace.task, 60), "/", body);
    Ok(if over { page } else { page.live(format!("/live?run={}", trace.run_id)) })
}

/// The task of a run, its status, its answer or error.
fn state(trace: &RunTrace) -> Markup {
    html! {
                    p { (badge(trace.status)) " " span.faint { "agent " (trace.agent) ", begun " (time(trace.created_at)) } }
                    @if trace.task.chars().count() > 120 { (block("Task", &trace.task)) }
                    @if let Some(error) = &trace.error { div.notice.alarm { p { strong { (shown(&error.message)) } } } }
                    @for notice in &trace.notices { div.notice { p { (shown(notice)) } } }
                    @for unknown in &trace.unknown_outcomes { div.notice.alarm { p { "The outcome is unknown, please check: " (shown(unknown)) } } }
                    @if let Some(summary) = &trace.summary { (block("Answer", summary)) }
    }
}

fn totals(trace: &RunTrace) -> Markup {
    html! {
                    dl.facts {
                        dt { "Took" } dd { (text::whole_millis(trace.total_duration_ms)) }
                        dt { "Model" } dd { (trace.llm_calls) " requests" }
                        dt { "Tools" } dd { (trace.tool_calls) " calls, " (trace.errors) " failed" }
                        dt { "Tokens" } dd { (text::thousands(trace.total_usage.input_tokens)) " in" @if trace.total_usage.cached_input_tokens > 0 { " (" (text::thousands(trace.total_usage.cached_input_tokens)) " cached)" } ", " (text::thousands(trace.total_usage.output_tokens)) " out" }
                        @let cost = cost::brief(trace.total_usage.cost_usd, trace.unpriced_replies.into());
                        @if !cost.is_empty() { dt { "Cost" } dd { (cost) @if let Some(cap) = trace.usd_cap { " of at most " (cap) } } }
                        dt { "Energy" } dd { (format!("{:.3}", trace.total_energy_cost)) }
                        @if let Some(budget) = &trace.budget { dt { "Credits" } dd { (text::thousands(budget.spent())) " of " (text::thousands(budget.limit())) } }
                        @if let Some(skill) = &trace.skill { dt { "Skill" } dd { (shown(&skill.name)) } }
                        dt { "Granted" } dd { @if trace.tools.is_empty() { "no tools" } @else { (shown(&trace.tools.join(", "))) } }
                    }
    }
}

/// A run without anything to press.
pub(super) fn record(trace: &RunTrace, now: Timestamp) -> Markup {
    html! {
        h1.task { (shown(&text::brief(&trace.task, 120))) }
        (state(trace))
        h2 { "Timeline" }
        (timeline(trace, now))
        h2 { "Totals" }
        (totals(trace))
        @if !trace.artifacts.is_empty() {
            h2 { "Files" }
            ul { @for file in &trace.artifacts { li { (shown(&file.path)) " " span.faint { (text::bytes(file.bytes)) } " " code { (file.hash.short()) } } } }
        }
    }
}

/// The question or request for approval of a run, with the form that answers it.
pub(super) fn ask(trace: &RunTrace, now: Timestamp, back: &str) -> Markup {
    let Some(waiting) = &trace.waiting else { return Markup::default() };
    let at = format!("/runs/{}", trace.run_id);
    html! {
        (card(&Card::of(trace, waiting, now)))
        @match waiting {
            Waiting::Input(question) => {
                form method="post" action=(format!("{at}/answer")) {
                    input type="hidden" name="question" value=(question.id);
                    input type="hidden" name="back" value=(back);
                    @if !question.choices.is_empty() {
                        div.choices { @for choice in &question.choices { button name="choice" value=(choice) formnovalidate { (shown(choice)) } } }
                    }
                    label for=(format!("answer-{}", question.id)) { "Your answer" }
                    input id=(format!("answer-{}", question.id)) name="answer" required autocomplete="off";
                    button.primary { "Answer" }
                }
            }
            Waiting::Approval(approval) => {
                form method="post" action=(format!("{at}/approval")) {
                    input type="hidden" name="approval" value=(approval.id);
                    input type="hidden" name="back" value=(back);
                    @for item in &approval.items { input type="hidden" name="action" value=(item.action_hash); }
                    @if approval.items.len() > 1 {
                        fieldset {
                            legend { "Which of them" }
                            @for (index, item) in approval.items.iter().enumerate() {
                                label.option { input type="checkbox" name="only" value=(item.action_hash) checked; (index + 1) ". " (shown(&text::brief(&item.summary, 120))) }
                            }
                        }
                    }
                    fieldset {
                        legend { @if approval.items.len() > 1 { "Allow them" } @else { "Allow it" } }
                        @for (index, scope) in approval.choices.iter().enumerate() {
                            label.option { input type="radio" name="scope" value=(scope.as_str()) checked[index == 0]; (lasting(*scope)) }
                        }
                    }
                    label for=(format!("reason-{}", approval.id)) { "Reason, or what to do instead: for the model (optional)" }
                    input id=(format!("reason-{}", approval.id)) name="reason" autocomplete="off";
                    div.actions {
                        button.primary name="grant" value="yes" { "Approve" }
                        button.danger name="grant" value="no" { "Refuse" }
                    }
                }
            }
        }
    }
}

fn lasting(scope: Scope) -> &'static str {
    match scope {
        Scope::Once => "this one time",
        Scope::Run => "for the rest of this run",
        Scope::Session => "for the agent's runs until the host ends",
        Scope::Always => "for the agent's runs, for good",
    }
}

async fn receipt_facts(api: &ApiState, trace: &RunTrace) -> Markup {
    match api.host.runs.receipt(&trace.run_id).await {
        Ok(receipt) => html! {
            p { "Signed by " code { (text::brief(&receipt.key().to_string(), 24)) } }
            p { a href=(format!("/runs/{}/receipt", trace.run_id)) download=(format!("{}.receipt.json", trace.run_id)) { "Download the receipt" } }
            p.faint { "Anyone verifies it with " code { "motor receipt verify FILE" } "." }
        },
        Err(refusal) => super::layout::problem(&refusal),
    }
}

/// A path in a URL: its parts encoded, the slashes between them kept.
fn encoded(path: &str) -> String {
    percent_encoding::utf8_percent_encode(path, percent_encoding::NON_ALPHANUMERIC).to_string().replace("%2F", "/")
}

/// A file as bytes that a browser saves and runs nothing of.
pub(super) async fn download(
    _: Visitor,
    state: State<ApiState>,
    Path((id, path)): Path<(String, String)>,
) -> Result<impl IntoResponse, PageError> {
    let bytes = state.host.runs.artifact(&run_id(&id)?, &path).await?;
    Ok(super::super::tasks::SavedFile(bytes))
}

/// A file as text.
pub(super) async fn preview(
    _: Visitor,
    State(api): State<ApiState>,
    Path((id, path)): Path<(String, String)>,
) -> Result<Page, PageError> {
    let run = run_id(&id)?;
    let bytes = api.host.runs.artifact(&run, &path).await?;
    let shortened = bytes.get(..bytes.len().min(MAX_PREVIEW)).unwrap_or_default();
    let is_text = !shortened.contains(&0);
    let body = html! {
        p.crumb { a href="/" { "Now" } " / " a href=(format!("/runs/{run}")) { (run) } " / " (shown(&path)) }
        h1 { (shown(&path)) }
        p { (text::bytes(bytes.len() as u64)) " · " a href=(format!("/runs/{run}/files/{}", encoded(&path))) download { "Download" } }
        @if is_text {
            pre.preview tabindex="0" { (shown(&String::from_utf8_lossy(shortened))) }
            @if shortened.len() < bytes.len() { p.faint { "Only the beginning is shown." } }
        } @else { p.faint { "It is not text: download it to look at it." } }
    };
    Ok(Page::new(path.clone(), "/", body))
}

pub(super) async fn receipt(
    _: Visitor,
    State(api): State<ApiState>,
    Path(id): Path<String>,
) -> Result<impl IntoResponse, PageError> {
    let receipt = api.host.runs.receipt(&run_id(&id)?).await?;
    let text = receipt.text().map_err(|error| Refusal::new(base::RefusalCode::Failed, error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, "application/json"), (header::CONTENT_DISPOSITION, "attachment")], text))
}

/// Where a form leads back to.
fn back(form: &Form, id: &str) -> Redirect {
    Redirect::to(if form.text("back") == "/" { "/".to_owned() } else { format!("/runs/{id}") }.as_str())
}

pub(super) async fn answer(
    Visitor(consent): Visitor,
    State(api): State<ApiState>,
    Path(id): Path<String>,
    form: Form,
) -> Result<Redirect, PageError> {
    let _attachment = api.attached.attach();
    let answer = form.given("choice").unwrap_or_else(|| form.text("answer").to_owned());
    let request = RespondRequest { answer, question: form.given("question"), key: None };
    api.host.runs.respond(&run_id(&id)?, request, consent).await?;
    Ok(back(&form, &id))
}

pub(super) async fn approve(
    Visitor(consent): Visitor,
    State(api): State<ApiState>,
    Path(id): Path<String>,
    form: Form,
) -> Result<Redirect, PageError> {
    let _attachment = api.attached.attach();
    let grant = match form.text("grant") {
        "yes" => true,
        "no" => false,
        _ => return Err(missing("whether it is allowed").into()),
    };
    let approval = form.given("approval").ok_or_else(|| missing("which approval it decides"))?;
    let actions: Vec<_> = form.all("action").map(|hash| value("action", hash)).collect::<Result<_, _>>()?;
    if grant && actions.is_empty() {
        // To the facade an empty list means that nothing was shown.
        return Err(missing("which actions were shown").into());
    }
    let only = if grant && actions.len() > 1 { selected(&form, &actions)? } else { Vec::new() };
    let request = ApproveTask {
        approval: Some(approval),
        actions,
        grant,
        only,
        scope: if grant && form.is_set("scope") { form.parsed("scope")? } else { Scope::Once },
        reason: form.given("reason"),
        key: None,
    };
    api.host.runs.approve(&run_id(&id)?, request, consent).await?;
    Ok(back(&form, &id))
}

/// The selected actions of several; none if all of them are selected, as the facade has it.
fn selected(form: &Form, shown: &[ContentHash]) -> Result<Vec<ContentHash>, Refusal> {
    let only: Vec<ContentHash> = form.all("only").map(|hash| value("only", hash)).collect::<Result<_, _>>()?;
    if only.is_empty() {
        let refusal = Refusal::new(base::RefusalCode::InvalidRequest, "none of the actions is selected");
        return Err(refusal.with_remedy("select those to allow, or refuse the request"));
    }
    Ok(if shown.iter().all(|action| only.contains(action)) { Vec::new() } else { only })
}

fn missing(part: &str) -> Refusal {
    Refusal::new(base::RefusalCode::InvalidRequest, format!("the form does not say {part}"))
}

pub(super) async fn cancel(
    _: Visitor,
    State(api): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Redirect, PageError> {
    let _attachment = api.attached.attach();
    api.host.runs.cancel(&run_id(&id)?).await?;
    Ok(Redirect::to(&format!("/runs/{id}")))
}

pub(super) async fn tell(
    Visitor(consent): Visitor,
    State(api): State<ApiState>,
    Path(id): Path<String>,
    form: Form,
) -> Result<Redirect, PageError> {
    let _attachment = api.attached.attach();
    let request = TellRequest { text: form.text("message").to_owned(), key: None };
    api.host.runs.tell(&run_id(&id)?, request, consent).await?;
    Ok(Redirect::to(&format!("/runs/{id}")))
}

pub(super) async fn retry(
    Visitor(consent): Visitor,
    State(api): State<ApiState>,
    Path(id): Path<String>,
    form: Form,
) -> Result<Redirect, PageError> {
    let _attachment = api.attached.attach();
    let request = RetryTask { guidance: form.given("guidance"), ..RetryTask::default() };
    api.host.runs.retry(&run_id(&id)?, request, Some(consent)).await?;
    Ok(Redirect::to(&format!("/runs/{id}")))
}

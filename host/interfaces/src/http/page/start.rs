//! *Start*: a task and its grants, explained before it starts (SPEC WEB-1, RUN-13).

use agent::{ActRequest, Caller, Explanation};
use axum::extract::State;
use axum::response::{IntoResponse as _, Redirect, Response};
use base::Refusal;
use consent::OwnerToken;
use maud::{Markup, html};

use super::super::ApiState;
use super::form::Form;
use super::layout::{Page, PageError, problem, shown};
use super::session::Visitor;
use crate::words::explanation::rows;

/// Tools that are offered by a box each. A single one of an alias is named in a field.
const TOOLS: [(&str, &str); 4] = [
    ("filesystem", "read and write files of its workspace"),
    ("code", "run JavaScript in a sandbox"),
    ("bash", "run shell commands in a sandbox"),
    ("fetch", "make HTTP requests to the domains below"),
];

pub(super) async fn form(visitor: Visitor, state: State<ApiState>) -> Result<Page, PageError> {
    page(visitor, &state, &Form::of_query(""), None).await
}

pub(super) async fn submit(visitor: Visitor, State(api): State<ApiState>, form: Form) -> Result<Response, PageError> {
    let _attachment = api.attached.attach();
    let request = match request(&form) {
        Ok(request) => request,
        Err(refusal) => return Ok(page(visitor, &api, &form, Some(Err(refusal))).await?.into_response()),
    };
    if form.text("do") == "start" {
        match api.host.runs.act(request, Caller::Owner).await {
            Ok(reply) => return Ok(Redirect::to(&format!("/runs/{}", reply.run_id)).into_response()),
            Err(refusal) => return Ok(page(visitor, &api, &form, Some(Err(refusal))).await?.into_response()),
        }
    }
    let explained = api.host.runs.explain(&request, Caller::Owner).await;
    Ok(page(visitor, &api, &form, Some(explained)).await?.into_response())
}

fn request(form: &Form) -> Result<ActRequest, Refusal> {
    let mut tools: Vec<String> = form.all("tool").map(str::to_owned).collect();
    tools.extend(form.words("tools"));
    Ok(ActRequest {
        task: form.text("task").to_owned(),
        tools,
        agent: if form.is_set("agent") { form.parsed("agent")? } else { base::AgentName::default() },
        domains: form.words("domains"),
        credentials: form.words("credentials"),
        skill: form.given("skill"),
        approval_required: form.is_set("approval"),
        unattended: form.is_set("unattended"),
        key: form.given("key"),
        ..ActRequest::default()
    })
}

async fn page(
    _: Visitor,
    api: &ApiState,
    form: &Form,
    explained: Option<Result<Explanation, Refusal>>,
) -> Result<Page, PageError> {
    let skills = api.host.skills.list().await?;
    let mut credentials = api.host.credentials.list().await?;
    credentials.retain(|known| known.pending.is_none());
    // A form that is sent twice starts one run.
    let key = match form.given("key") {
        Some(key) => key,
        None => format!("page-{}", OwnerToken::random()?.hash().short()),
    };
    let granted: Vec<&str> = form.all("tool").collect();
    let field = |name: &'static str, label: &str, hint: &str| {
        html! {
            label for=(name) { (label) }
            input id=(name) name=(name) value=(form.text(name)) placeholder=(hint) autocomplete="off" spellcheck="false";
        }
    };
    let body = html! {
        h1 { "Start something" }
        form.start method="post" action="/start" {
            div {
                input type="hidden" name="key" value=(key);
                label for="task" { "Task" }
                textarea id="task" name="task" rows="5" required autofocus placeholder="What is to be done, in plain language" { (form.text("task")) }
                fieldset {
                    legend { "Tools it may use: exactly these" }
                    @for (tool, purpose) in TOOLS {
                        label.option { input type="checkbox" name="tool" value=(tool) checked[granted.contains(&tool)]; strong { (tool) } span.faint { (purpose) } }
                    }
                }
                (field("tools", "Single tools", "read, grep, or those of a skill"))
                (field("domains", "Domains it may reach", "none: example.com, *.example.org"))
                (field("credentials", "Credentials it may use", "names"))
                @if !credentials.is_empty() { p.faint { "There are: " (credentials.iter().map(|known| known.name.to_string()).collect::<Vec<_>>().join(", ")) } }
                label for="skill" { "Skill to work by" }
                select id="skill" name="skill" {
                    option value="" { "none" }
                    @for skill in skills.iter().filter(|skill| skill.readable) {
                        @let place = skill.place.to_string();
                        option value=(place) selected[form.text("skill") == place] { (shown(skill.name.as_deref().unwrap_or(&place))) " (" (skill.status) ")" }
                    }
                }
                fieldset {
                    legend { "When it needs you" }
                    label.option { input type="checkbox" name="approval" value="yes" checked[form.is_set("approval")]; "Ask before anything irreversible" }
                    label.option { input type="checkbox" name="unattended" value="yes" checked[form.is_set("unattended")]; "Nobody is there: never ask, refuse instead" }
                }
                (field("agent", "Agent", "main"))
                div.actions {
                    button name="do" value="explain" { "Show what it could touch" }
                    button.primary name="do" value="start" { "Start" }
                }
            }
            aside aria-live="polite" { (explanation(explained)) }
        }
    };
    Ok(Page::new("Start something", "/start", body))
}

fn explanation(explained: Option<Result<Explanation, Refusal>>) -> Markup {
    match explained {
        None => {
            html! { p.faint { "“Show what it could touch” lists every tool, domain, credential, file and limit of the run before it starts." } }
        }
        Some(Err(refusal)) => problem(&refusal),
        Some(Ok(explanation)) => {
            let mut last = "";
            html! {
                h2 { "What it could touch" }
                @for refusal in &explanation.problems { (problem(refusal)) }
                @for warning in &explanation.warnings { div.notice { p { (shown(warning)) } } }
                dl.facts.explained {
                    @for (label, line) in rows(&explanation) {
                        @if std::mem::replace(&mut last, label) != label { dt { (label) } }
                        dd { (shown(&line)) }
                    }
                }
            }
        }
    }
}

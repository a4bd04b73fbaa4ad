//! *Skills*: their state, their review, the owner's decision, other versions, and adding one (SPEC WEB-1, SKILL-9).

use agent::Caller;
use agent::api::skills::{ApproveRequest, DiffRequest, RejectRequest, ReviewRequest, RollbackRequest, SkillVersion};
use axum::extract::{DefaultBodyLimit, FromRequest as _, Multipart, RawQuery, Request, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use base::{AgentName, Refusal, RefusalCode};
use maud::{Markup, html};
use skills::policy::PolicyChange;
use skills::{Policy, SkillStatus, SkillSummary};

use super::super::ApiState;
use super::super::reply::in_time;
use super::form::Form;
use super::layout::{Page, PageError, card, shown, time};
use super::session::Visitor;
use super::timeline::block;
use crate::output::Palette;
use crate::words::approval::question_card;
use crate::words::facts::{tone, unavailable};
use crate::words::review::{review as review_text, risks as risk_text};

/// Columns of the review's text.
const COLUMNS: usize = 100;
/// Room for the parts of a form around the file, in bytes.
const FRAME: usize = 64 << 10;

pub(super) async fn list(_: Visitor, State(api): State<ApiState>) -> Result<Page, PageError> {
    let skills = api.host.skills.list().await?;
    let body = html! {
        h1 { "Skills" }
        section aria-labelledby="add-title" {
            h2 id="add-title" { "Add one" }
            form.drop method="post" action="/skills" enctype="multipart/form-data" data-drop {
                label for="file" { "Drop a " code { ".skill" } " or " code { ".wasm" } " file here, or choose one. Adding grants nothing: you review it next." }
                input id="file" name="file" type="file" accept=".skill,.zip,.wasm,.md" required;
                button.primary { "Add" }
            }
        }
        section aria-labelledby="all-title" {
            h2 id="all-title" { "All skills" }
            @if skills.is_empty() { p.faint { "There are none yet. " code { "motor new skill" } " writes one to begin with." } }
            ul.skills { @for skill in &skills { (entry(skill)) } }
        }
    };
    Ok(Page::new("Skills", "/skills", body))
}

fn badge(status: SkillStatus) -> Markup {
    html! { span class=(format!("badge {}", tone(status).name())) { (status.as_str().replace('_', " ")) } }
}

fn entry(skill: &SkillSummary) -> Markup {
    let place = skill.place.to_string();
    html! {
        li {
            p { (badge(skill.status)) " " a href=(review_path(&place)) { strong { (shown(skill.name.as_deref().unwrap_or(&place))) } } }
            @if !skill.description.is_empty() { p { (shown(&skill.description)) } }
            @if let Some(written) = &skill.written_name { p.faint { "Its author calls it “" (shown(written)) "”." } }
            p.faint { (shown(&skill.reason)) }
            @if !skill.unavailable.is_empty() { p.faint { (shown(&unavailable(skill))) } }
        }
    }
}

fn review_path(skill: &str) -> String {
    format!("/skills/review?{}", form_urlencoded::Serializer::new(String::new()).append_pair("skill", skill).finish())
}

pub(super) async fn review(
    _: Visitor,
    State(api): State<ApiState>,
    RawQuery(query): RawQuery,
) -> Result<Page, PageError> {
    let _attachment = api.attached.attach();
    let skill = Form::of_query(&query.unwrap_or_default()).text("skill").to_owned();
    let request = ReviewRequest { skill: skill.clone(), advisory: false };
    let versions = api.host.skills.versions(&skill).await?;
    let reviewed = match api.host.skills.review(request, &AgentName::default(), Caller::Owner).await {
        Ok(reply) => reply.review,
        // The way back from files that cannot be read.
        Err(refusal) if refusal.code == RefusalCode::SkillUntrusted => {
            let body = html! {
                p.crumb { a href="/skills" { "Skills" } " / " (shown(&skill)) }
                h1 { (shown(&skill)) }
                (super::layout::problem(&refusal))
                (versions_of(&skill, &versions))
            };
            return Ok(Page::new(skill, "/skills", body));
        }
        Err(refusal) => return Err(refusal.into()),
    };
    let question = api.host.skills.question(asked(&skill)).await;
    let body = html! {
        p.crumb { a href="/skills" { "Skills" } " / " (shown(&skill)) }
        h1 { (shown(reviewed.name.as_str())) " " (badge(reviewed.status)) }
        p { (shown(&reviewed.description)) }
        p.faint { (shown(&reviewed.reason)) }
        @if !reviewed.risks.is_empty() {
            section aria-labelledby="first-title" {
                h2 id="first-title" { "Lines to read first" }
                pre tabindex="0" { (risk_text(&reviewed.risks, COLUMNS, Palette::new(false))) }
            }
        }
        section aria-labelledby="powers-title" {
            h2 id="powers-title" { @if reviewed.status == SkillStatus::Approved { "What it may do" } @else { "What approving would grant" } }
            @match &question {
                Ok(question) => {
                    (card(&question_card(question)))
                    @if reviewed.status != SkillStatus::Approved {
                        form method="post" action="/skills/approval" {
                            input type="hidden" name="skill" value=(skill);
                            input type="hidden" name="hash" value=(question.hash);
                            input type="hidden" name="policy" value=(serde_json::to_string(&question.policy).unwrap_or_default());
                            div.actions { button.primary { "Approve exactly this" } }
                        }
                    }
                }
                Err(refusal) => (super::layout::problem(refusal)),
            }
            form method="post" action="/skills/rejection" {
                input type="hidden" name="skill" value=(skill);
                label for="reason" { "Reason (optional)" }
                input id="reason" name="reason" autocomplete="off";
                button.danger { "Reject" }
            }
        }
        (differences(&api, &skill, &reviewed).await)
        section aria-labelledby="review-title" {
            h2 id="review-title" { "The whole review" }
            pre tabindex="0" { (review_text(&reviewed, &skill, COLUMNS, Palette::new(false))) }
        }
        (versions_of(&skill, &versions))
    };
    Ok(Page::new(reviewed.name.to_string(), "/skills", body))
}

/// The known versions, with the way back to each.
fn versions_of(skill: &str, versions: &[SkillVersion]) -> Markup {
    html! {
        section aria-labelledby="versions-title" {
            h2 id="versions-title" { "Versions" }
            @if versions.is_empty() { p.faint { "No version of it was decided on yet." } }
            @else { table {
                thead { tr { th scope="col" { "Version" } th scope="col" { "Status" } th scope="col" { "Changed" } td {} } }
                tbody { @for version in versions {
                    tr {
                        td { code { (version.hash.short()) } @if version.in_place { " in place" } }
                        td { (badge(version.status)) }
                        td { (time(version.changed_at)) }
                        td { @if version.kept && !version.in_place {
                            form method="post" action="/skills/rollback" {
                                input type="hidden" name="skill" value=(skill);
                                input type="hidden" name="to" value=(version.hash.hex());
                                button { "Roll back to it" }
                            }
                        } }
                    }
                } }
            } }
        }
    }
}

/// The text of the files that changed since the version approved last.
async fn differences(api: &ApiState, skill: &str, reviewed: &skills::review::SkillReview) -> Markup {
    if reviewed.changes.is_none() {
        return Markup::default();
    }
    let request = DiffRequest { skill: skill.to_owned(), from: None, to: None };
    match api.host.skills.diff(request).await {
        Ok(diff) => html! {
            section aria-labelledby="diff-title" {
                h2 id="diff-title" { "Changed files" }
                @for file in &diff.files { (block(&file.path, file.text.as_deref().unwrap_or("it is not text"))) }
            }
        },
        Err(refusal) => super::layout::problem(&refusal),
    }
}

fn asked(skill: &str) -> ApproveRequest {
    ApproveRequest {
        skill: skill.to_owned(),
        hash: None,
        policy: PolicyChange::default(),
        proposed: false,
        shown: None,
        saved: Vec::new(),
    }
}

pub(super) async fn approve(
    Visitor(consent): Visitor,
    State(api): State<ApiState>,
    form: Form,
) -> Result<Redirect, PageError> {
    let _attachment = api.attached.attach();
    let unreadable = || Refusal::new(RefusalCode::InvalidRequest, "the form does not say what was shown");
    let hash = form.parsed("hash")?;
    let shown: Policy = serde_json::from_str(form.text("policy")).map_err(|_| unreadable())?;
    let request = ApproveRequest { hash: Some(hash), shown: Some(shown), ..asked(form.text("skill")) };
    api.host.skills.approve(request, consent).await?;
    Ok(Redirect::to(&review_path(form.text("skill"))))
}

pub(super) async fn reject(
    Visitor(consent): Visitor,
    State(api): State<ApiState>,
    form: Form,
) -> Result<Redirect, PageError> {
    let _attachment = api.attached.attach();
    let request = RejectRequest { skill: form.text("skill").to_owned(), reason: form.given("reason") };
    api.host.skills.reject(request, consent).await?;
    Ok(Redirect::to("/skills"))
}

pub(super) async fn rollback(
    Visitor(consent): Visitor,
    State(api): State<ApiState>,
    form: Form,
) -> Result<Response, PageError> {
    let _attachment = api.attached.attach();
    let request = RollbackRequest { skill: form.text("skill").to_owned(), to: form.given("to") };
    let back = api.host.skills.rollback(request, consent).await?;
    let review = review_path(form.text("skill"));
    let Some(path) = back.put_aside else { return Ok(Redirect::to(&review).into_response()) };
    let body = html! {
        h1 { "Rolled back" }
        p { "Its unreadable files are kept at " code { (shown(&path)) } ". Remove them when you need them no more." }
        p { a href=(review) { "Review the skill" } }
    };
    Ok(Page::new("Rolled back", "/skills", body).into_response())
}

/// Adds a file that the owner dropped on the page.
pub(super) async fn add(_: Visitor, State(api): State<ApiState>, mut request: Request) -> Result<Redirect, PageError> {
    let _attachment = api.attached.attach();
    let most = usize::try_from(api.host.skills.max_bytes()).unwrap_or(usize::MAX);
    DefaultBodyLimit::max(most.saturating_add(FRAME)).apply(&mut request);
    let (name, bytes) = in_time(file(request, &api)).await??;
    let added = api.host.skills.add_file(&name, bytes).await?;
    Ok(Redirect::to(&review_path(&added.place.to_string())))
}

/// The name and bytes of the field `file`.
async fn file(request: Request, api: &ApiState) -> Result<(String, Vec<u8>), Refusal> {
    let refused = |reason: String| Refusal::new(RefusalCode::InvalidRequest, reason);
    let mut form = Multipart::from_request(request, api).await.map_err(|error| refused(error.body_text()))?;
    while let Some(field) = form.next_field().await.map_err(|error| refused(error.body_text()))? {
        if field.name() == Some("file") {
            let name = file_name(field.file_name().unwrap_or_default()).map_err(refused)?;
            let bytes = field.bytes().await.map_err(|error| refused(error.body_text()))?;
            return Ok((name, bytes.into()));
        }
    }
    Err(refused("the form has no file".to_owned()))
}

/// The file's own name; the browser may send a path.
fn file_name(sent: &str) -> Result<String, String> {
    let name = sent.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = !name.is_empty() && name.len() <= 255 && !name.starts_with('.') && !name.contains(char::is_control);
    if plain { Ok(name.to_owned()) } else { Err("the file has no usable name".to_owned()) }
}

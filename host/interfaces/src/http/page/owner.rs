//! *Credentials* by name, and *Network* decisions (SPEC WEB-1, VAULT-1, NET-2).

use agent::{Decision, DecisionLevel, DomainVerdict, PendingDecision, SetCredential};
use axum::extract::State;
use axum::response::Redirect;
use base::{CredentialName, Refusal, RefusalCode, Timestamp};
use maud::html;

use super::super::ApiState;
use super::form::Form;
use super::layout::{Page, PageError, shown, time};
use super::session::Visitor;

pub(super) async fn credentials(_: Visitor, State(api): State<ApiState>) -> Result<Page, PageError> {
    let (waiting, credentials): (Vec<_>, Vec<_>) =
        api.host.credentials.list().await?.into_iter().partition(|known| known.pending.is_some());
    let body = html! {
        h1 { "Credentials" }
        p { "Runs use them by name. Their values reach the domains below and nothing else, and are shown nowhere." }
        @if credentials.is_empty() { p.faint { "There are none yet." } }
        @else { table {
            thead { tr { th scope="col" { "Name" } th scope="col" { "For" } th scope="col" { "Sent to" } th scope="col" { "Kept in" } th scope="col" { "Set" } td {} } }
            tbody { @for known in &credentials {
                tr {
                    td { code { (known.name) } @if known.unreadable { " " span.badge.alarm { "unreadable" } } @if known.raw { " " span.badge.alarm { "components may see its value" } } }
                    td { (shown(known.skill.as_deref().unwrap_or("all"))) }
                    td { @if known.domains.is_empty() { "nowhere" } @else { (shown(&known.domains.join(", "))) } }
                    td { @if known.set_at.is_some() { "vault" } @else { "environment" } }
                    td { @if let Some(at) = known.set_at { (time(at)) } @else { "–" } }
                    td { @if known.set_at.is_some() {
                        form method="post" action="/credentials/deletion" {
                            input type="hidden" name="name" value=(known.name);
                            input type="hidden" name="skill" value=(known.skill.as_deref().unwrap_or_default());
                            button.danger aria-label=(format!("Delete {}", known.name)) { "Delete" }
                        }
                    } }
                }
            } }
        } }
        @if !waiting.is_empty() { section aria-labelledby="saved-title" {
            h2 id="saved-title" { "Saved by runs" }
            p { "No run can use one of these before you agree to it. Then it belongs to its skill." }
            table {
                thead { tr { th scope="col" { "Name" } th scope="col" { "Skill" } th scope="col" { "Sent to" } th scope="col" { "Saved by" } th scope="col" { "Waits until" } td {} } }
                tbody { @for known in &waiting { @if let Some(facts) = &known.pending {
                    tr {
                        td { code { (known.name) } " (" (facts.bytes) " bytes)" }
                        td { (shown(known.skill.as_deref().unwrap_or_default())) }
                        td { (shown(&known.domains.join(", "))) }
                        td { code { (facts.run_id) } }
                        td { @if facts.expired { "expired " } (time(facts.expires_at)) }
                        td {
                            @if !facts.expired { form method="post" action="/credentials/acceptance" {
                                input type="hidden" name="name" value=(known.name);
                                input type="hidden" name="skill" value=(known.skill.as_deref().unwrap_or_default());
                                input type="hidden" name="saved_at" value=(known.set_at.map(|at| at.as_millis().to_string()).unwrap_or_default());
                                button aria-label=(format!("Accept {}", known.name)) { "Accept" }
                            } }
                            form method="post" action="/credentials/rejection" {
                                input type="hidden" name="name" value=(known.name);
                                input type="hidden" name="skill" value=(known.skill.as_deref().unwrap_or_default());
                                button.danger aria-label=(format!("Reject {}", known.name)) { "Reject" }
                            }
                        }
                    }
                } } }
            }
        } }
        section aria-labelledby="set-title" {
            h2 id="set-title" { "Set one" }
            form.narrow method="post" action="/credentials" {
                label for="name" { "Name" } input id="name" name="name" required autocomplete="off" spellcheck="false";
                label for="value" { "Value" } input id="value" name="value" type="password" required autocomplete="off";
                label for="domains" { "Domains it may be sent to" } input id="domains" name="domains" placeholder="api.example.com" autocomplete="off" spellcheck="false";
                label for="skill" { "For one skill alone (optional)" } input id="skill" name="skill" autocomplete="off";
                button.primary { "Keep it" }
            }
        }
    };
    Ok(Page::new("Credentials", "/credentials", body))
}

pub(super) async fn set_credential(
    Visitor(consent): Visitor,
    State(api): State<ApiState>,
    form: Form,
) -> Result<Redirect, PageError> {
    let _attachment = api.attached.attach();
    let credential = SetCredential {
        name: name(&form)?,
        value: form.text("value").to_owned(),
        domains: form.words("domains"),
        skill: form.given("skill"),
        raw: false,
    };
    api.host.credentials.set(credential, consent).await?;
    Ok(Redirect::to("/credentials"))
}

pub(super) async fn delete_credential(
    Visitor(consent): Visitor,
    State(api): State<ApiState>,
    form: Form,
) -> Result<Redirect, PageError> {
    let _attachment = api.attached.attach();
    api.host.credentials.delete(&name(&form)?, form.given("skill").as_deref(), consent).await?;
    Ok(Redirect::to("/credentials"))
}

pub(super) async fn accept_credential(
    Visitor(consent): Visitor,
    State(api): State<ApiState>,
    form: Form,
) -> Result<Redirect, PageError> {
    let _attachment = api.attached.attach();
    let saved_at = Some(Timestamp::from_millis(form.parsed("saved_at")?));
    let decision = PendingDecision { name: name(&form)?, skill: form.given("skill"), saved_at };
    api.host.credentials.accept(decision, consent).await?;
    Ok(Redirect::to("/credentials"))
}

pub(super) async fn reject_credential(
    Visitor(consent): Visitor,
    State(api): State<ApiState>,
    form: Form,
) -> Result<Redirect, PageError> {
    let _attachment = api.attached.attach();
    let decision = PendingDecision { name: name(&form)?, skill: form.given("skill"), saved_at: None };
    api.host.credentials.reject(decision, consent).await?;
    Ok(Redirect::to("/credentials"))
}

fn name(form: &Form) -> Result<CredentialName, Refusal> {
    CredentialName::parse(form.text("name"))
        .map_err(|error| Refusal::new(RefusalCode::InvalidRequest, error.to_string()))
}

pub(super) async fn network(_: Visitor, State(api): State<ApiState>) -> Result<Page, PageError> {
    let decisions = api.host.domains.list()?;
    let body = html! {
        h1 { "Network" }
        p { "A run reaches the domains that it was granted, and nothing else. These are your standing decisions." }
        @if decisions.is_empty() { p.faint { "There are none yet. An approval “for good” makes one, and so does the form." } }
        @else { table {
            thead { tr { th scope="col" { "Requests" } th scope="col" { "Decision" } th scope="col" { "Lasts" } th scope="col" { "Agent" } th scope="col" { "Since" } td {} } }
            tbody { @for decision in &decisions {
                tr {
                    td { code { (shown(&decision.pattern.to_string())) } }
                    td { (verdict(decision.verdict)) }
                    td { (level(decision.level)) @if let Some(run) = &decision.run { " " a href=(format!("/runs/{run}")) { (run) } } }
                    td { (decision.agent) }
                    td { @if let Some(at) = decision.decided_at { (time(at)) } }
                    td {
                        form method="post" action="/network/withdrawal" {
                            input type="hidden" name="decision" value=(serde_json::to_string(decision).unwrap_or_default());
                            button.danger aria-label=(format!("Withdraw the decision about {}", decision.pattern)) { "Withdraw" }
                        }
                    }
                }
            } }
        } }
        section aria-labelledby="decide-title" {
            h2 id="decide-title" { "Decide" }
            form.narrow method="post" action="/network" {
                label for="pattern" { "Domain" } input id="pattern" name="pattern" required placeholder="example.com or *.example.com" autocomplete="off" spellcheck="false";
                fieldset {
                    legend { "Runs" }
                    label.option { input type="radio" name="verdict" value="allow" checked; "may reach it" }
                    label.option { input type="radio" name="verdict" value="allow_writes"; "may reach it, and write to it after reading from the web" }
                    label.option { input type="radio" name="verdict" value="deny"; "may not reach it, even if granted" }
                }
                fieldset {
                    legend { "For" }
                    label.option { input type="radio" name="level" value="always" checked; "good" }
                    label.option { input type="radio" name="level" value="session"; "as long as this host runs" }
                }
                label for="agent" { "Agent" } input id="agent" name="agent" placeholder="main" autocomplete="off";
                button.primary { "Decide" }
            }
        }
    };
    Ok(Page::new("Network", "/network", body))
}

fn verdict(verdict: DomainVerdict) -> &'static str {
    match verdict {
        DomainVerdict::Allow => "may be reached",
        DomainVerdict::AllowWrites => "may be reached and written to",
        DomainVerdict::Deny => "refused",
    }
}

fn level(level: DecisionLevel) -> &'static str {
    match level {
        DecisionLevel::Run => "for the run",
        DecisionLevel::Session => "until the host ends",
        DecisionLevel::Always => "for good",
    }
}

pub(super) async fn decide(
    Visitor(consent): Visitor,
    State(api): State<ApiState>,
    form: Form,
) -> Result<Redirect, PageError> {
    let _attachment = api.attached.attach();
    let decision = Decision {
        pattern: form.parsed("pattern")?,
        verdict: form.parsed("verdict")?,
        level: form.parsed("level")?,
        agent: if form.is_set("agent") { form.parsed("agent")? } else { base::AgentName::default() },
        run: None,
        decided_at: None,
        consent: None,
    };
    api.host.domains.decide(decision, consent).await?;
    Ok(Redirect::to("/network"))
}

pub(super) async fn withdraw(
    Visitor(consent): Visitor,
    State(api): State<ApiState>,
    form: Form,
) -> Result<Redirect, PageError> {
    let _attachment = api.attached.attach();
    let unreadable = |_| Refusal::new(RefusalCode::InvalidRequest, "the form does not name a decision");
    let decision: Decision = serde_json::from_str(form.text("decision")).map_err(unreadable)?;
    api.host.domains.forget(decision, consent).await?;
    Ok(Redirect::to("/network"))
}

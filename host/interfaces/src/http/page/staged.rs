//! The staged writes of a run: each in full, with the forms that send or discard them (SPEC LAND-5, WEB-1).

use agent::{DiscardStaged, SendStaged, ShownWrite, StagedStatus, StagedTask, StagedWrite};
use axum::extract::State;
use axum::response::Redirect;
use base::{Refusal, RefusalCode};
use maud::{Markup, html};

use super::super::reply::run_id;
use super::super::{ApiState, Path};
use super::form::{Form, value};
use super::layout::{PageError, card, shown};
use super::session::Visitor;
use crate::output::text;
use crate::words::staged::{card as card_of, line};

/// The section of a run's page.
pub(super) fn section(task: &StagedTask) -> Markup {
    let at = format!("/runs/{}/staged", task.run_id);
    let is_open = |write: &&StagedWrite| matches!(write.status, StagedStatus::Held | StagedStatus::OutcomeUnknown);
    html! {
        h2 id="staged-title" { "Staged writes" }
        p { (text::plural(task.held.into(), "write")) " held and not sent." }
        (card(&card_of(String::new(), task, task.writes.iter())))
        @if task.writes.iter().any(|write| is_open(&write)) {
            form method="post" action=(at) {
                fieldset {
                    legend { "Which of them" }
                    @for write in task.writes.iter().filter(is_open) {
                        label.option {
                            input type="checkbox" name="write" value=(format!("{} {}", write.number, write.hash)) checked[write.status == StagedStatus::Held];
                            (shown(&text::brief(&line(write), 120)))
                        }
                    }
                }
                @if task.writes.iter().any(|write| write.status == StagedStatus::OutcomeUnknown) {
                    label.option { input type="checkbox" name="again" value="yes"; "also those that may have been sent already" }
                }
                div.actions {
                    button.primary name="send" value="yes" { "Send" }
                    button.danger name="send" value="no" { "Discard" }
                }
            }
        }
    }
}

pub(super) async fn decide(
    Visitor(consent): Visitor,
    State(api): State<ApiState>,
    Path(id): Path<String>,
    form: Form,
) -> Result<Redirect, PageError> {
    let _attachment = api.attached.attach();
    let run = run_id(&id)?;
    let writes = form.all("write").map(named).collect::<Result<Vec<_>, _>>()?;
    if writes.is_empty() {
        let refusal = Refusal::new(RefusalCode::InvalidRequest, "none of the writes is selected");
        return Err(refusal.with_remedy("select those to send or to discard").into());
    }
    match form.text("send") {
        "yes" => {
            let request = SendStaged { writes, again: form.text("again") == "yes" };
            api.host.runs.send_staged(&run, request, consent).await?;
        }
        "no" => {
            let writes = writes.into_iter().map(|write| write.number).collect();
            api.host.runs.discard_staged(&run, &DiscardStaged { writes }, consent).await?;
        }
        _ => {
            let reason = "the form does not say whether they are sent";
            return Err(Refusal::new(RefusalCode::InvalidRequest, reason).into());
        }
    }
    Ok(Redirect::to(&format!("/runs/{run}")))
}

/// A write as its checkbox names it: number and hash.
fn named(text: &str) -> Result<ShownWrite, Refusal> {
    let (number, hash) = text.split_once(' ').unwrap_or((text, ""));
    let number = number.parse().map_err(|_| {
        Refusal::new(RefusalCode::InvalidRequest, "the field `write` does not hold the number of a write")
    })?;
    Ok(ShownWrite { number, hash: value("write", hash)? })
}

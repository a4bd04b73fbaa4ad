//! A plan in the owner's editor: a small commented file, checked when it comes back.

use agent::{ActRequest, AgreedPlan, TaskPlan};
use base::{Refusal, RefusalCode};

use super::super::consent::gone;
use super::super::context::Context;
use super::super::editor::{EditedText, edited};
use super::super::terminal::Terminal;
use super::{check, file};
use crate::output::text;
use crate::session::Session;

const OF_PLAN: EditedText =
    EditedText { prefix: "motor-plan-", otherwise: "set `EDITOR`, or edit the file of `motor plan TASK --print`" };

/// Lets the owner edit the plan. An invalid file is named with its line and can be edited again; giving up leaves the plan as
/// it was.
///
/// # Errors
/// If the editor does not start, or the terminal or the host is gone.
pub(super) async fn edit(
    plan: TaskPlan,
    terminal: &Terminal,
    session: &mut Session,
    context: &Context,
) -> Result<TaskPlan, Refusal> {
    let mut written = file::write(&plan)?;
    let drafting = plan.request.plan.as_ref().and_then(|plan| plan.drafting.clone());
    loop {
        written = edited(written, OF_PLAN, context).await?;
        let wrong = match file::read(&written) {
            Err(reason) => reason,
            Ok(request) => match check(&kept(request, drafting.clone()), session, context).await {
                Ok(checked) => return Ok(TaskPlan { reason: plan.reason, ..checked }),
                Err(refusal)
                    if refusal.code == RefusalCode::InvalidRequest || refusal.code == RefusalCode::UnknownTool =>
                {
                    file::located(&written, &refusal.reason)
                }
                Err(refusal) => return Err(refusal),
            },
        };
        let shown = text::revealed(&wrong).into_owned();
        terminal.write(&format!("the plan is invalid: {shown}\n")).map_err(|error| gone(&error))?;
        let again = terminal.ask("edit it again? [Y/n] ").await.map_err(|error| gone(&error))?;
        if !again.is_some_and(|said| matches!(said.trim(), "" | "y" | "Y" | "yes")) {
            return Ok(plan);
        }
    }
}

/// The request with the cost of its draft, which the file does not hold.
fn kept(request: ActRequest, drafting: Option<grants::Drafting>) -> ActRequest {
    let Some(drafting) = drafting else { return request };
    // The host replaces the hash.
    let plan = Some(AgreedPlan { hash: base::ContentHash::of(b""), drafting: Some(drafting) });
    ActRequest { plan, ..request }
}

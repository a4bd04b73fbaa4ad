//! A plan in the owner's editor: a small commented file, checked when it comes back.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use agent::{ActRequest, AgreedPlan, TaskPlan};
use base::{Refusal, RefusalCode};

use super::super::consent::gone;
use super::super::context::Context;
use super::super::input;
use super::super::terminal::Terminal;
use super::{check, file};
use crate::output::text;
use crate::session::Session;

/// The editor if neither `VISUAL` nor `EDITOR` is set.
const EDITOR: &str = "vi";

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
        written = edited(written, context).await?;
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

/// The text after the editor has ended.
async fn edited(written: String, context: &Context) -> Result<String, Refusal> {
    let editor =
        ["VISUAL", "EDITOR"].into_iter().find_map(|name| (context.env)(name).filter(|value| !value.is_empty()));
    let editor = editor.unwrap_or_else(|| EDITOR.to_owned());
    let editing = tokio::task::spawn_blocking(move || run(&editor, &written));
    editing.await.unwrap_or_else(|_| Err(failed("the editor was interrupted")))
}

fn run(editor: &str, written: &str) -> Result<String, Refusal> {
    let io = |error: std::io::Error| failed(&format!("the plan cannot be edited: {error}"));
    // Readable by its user alone: the task may be private.
    let mut place = tempfile::Builder::new().prefix("motor-plan-").suffix(".toml").tempfile().map_err(io)?;
    place.write_all(written.as_bytes()).map_err(io)?;
    let tty = OpenOptions::new().read(true).write(true).open("/dev/tty").map_err(io)?;
    let path: PathBuf = place.path().to_owned();
    // Through the shell, because the variable may hold arguments. The streams of this command may be files.
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("sh")
        .arg(&path)
        .stdin(tty.try_clone().map_err(io)?)
        .stdout(tty.try_clone().map_err(io)?)
        .stderr(tty)
        .status()
        .map_err(io)?;
    if !status.success() {
        return Err(failed(&format!("the editor `{editor}` failed: {status}")));
    }
    // By name: an editor may have put another file in its place.
    input::text_file(&path)
}

fn failed(reason: &str) -> Refusal {
    Refusal::new(RefusalCode::Failed, reason).with_remedy("set `EDITOR`, or edit the file of `motor plan TASK --print`")
}

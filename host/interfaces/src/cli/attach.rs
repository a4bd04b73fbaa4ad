//! `motor attach`: watches a run that another process drives, and leaves it alone (SPEC OBS-1).

use std::time::Duration;

use base::{Refusal, RefusalCode, RunId};
use clap::Args;
use motor::{LiveEvent, RunStatus, RunTrace};

use super::Done;
use super::context::Context;
use super::live::LiveView;
use super::task::or_newest;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::session::Session;

/// Between two pictures of the spinner.
const TICK: Duration = Duration::from_millis(100);

/// Arguments of `motor attach`.
#[derive(Debug, Args)]
pub(super) struct AttachArgs {
    /// The run [default: the newest]
    run: Option<RunId>,
}

pub(super) async fn run(arguments: AttachArgs, context: &Context) -> Done {
    let mut session = Session::open(context.place()?).await?;
    let done = attached(arguments, &mut session, context).await;
    context.leave(session, done).await
}

async fn attached(arguments: AttachArgs, session: &mut Session, context: &Context) -> Done {
    let run = or_newest(arguments.run, session, context).await?;
    let trace: RunTrace = session.ask(&Call::get(format!("/v1/tasks/{run}"))).await?;
    if session.is_own() && !trace.status.is_terminal() {
        let refusal =
            Refusal::new(RefusalCode::TryLater, format!("run {run} is {}, and no host drives it", trace.status));
        return Err(refusal.with_remedy(format!("`motor act --resume {run}` goes on with it")).into());
    }
    context.wishes.listen().await;
    let mut live = LiveView::new(&context.output, context.globals.verbose > 0);
    let ended = watch(&run, &mut live, session, context).await;
    live.end();
    match ended? {
        Some(RunStatus::Completed) => Ok(CommandExit::Ok),
        Some(_) => Ok(CommandExit::Failed),
        None => {
            context.output.say(&format!("detached: run {run} goes on; `motor task cancel {run}` ends it"));
            Ok(CommandExit::Interrupted)
        }
    }
}

/// Shows the events of a run until it is over. `None`: the user detached.
async fn watch(
    run: &RunId,
    live: &mut LiveView<'_>,
    session: &mut Session,
    context: &Context,
) -> Result<Option<RunStatus>, super::CliError> {
    let path = format!("/v1/tasks/{run}/events");
    let (mut last, mut over) = (None, None);
    let mut tick = tokio::time::interval(TICK);
    loop {
        let mut events = session.events(&path, last).await?;
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                _ = tick.tick() => {
                    live.tick();
                    continue;
                }
                _ = context.wishes.next() => return Ok(None),
            };
            let Some(event) = event else { break };
            last = event.id.or(last);
            // An event of a newer host that this client does not know: nothing it could show.
            let Ok(event) = serde_json::from_str::<LiveEvent>(&event.data) else { continue };
            match context.output.is_json() {
                true => context.output.print_json_line(&event)?,
                false => live.show(&event),
            }
            match &event {
                LiveEvent::Finished { status, summary, .. } => {
                    over = Some(*status);
                    if let Some(answer) =
                        summary.as_ref().filter(|answer| !context.output.is_json() && !live.has_shown(answer))
                    {
                        live.end();
                        context.output.print_answer(answer)?;
                    }
                }
                LiveEvent::Retried { .. } => over = None,
                _ => {}
            }
        }
        if over.is_some() {
            return Ok(over);
        }
        if !session.succeed().await? {
            let refusal = Refusal::new(RefusalCode::TryLater, format!("the host stopped; run {run} is not over"));
            return Err(refusal.with_remedy(format!("`motor act --resume {run}` goes on with it")).into());
        }
    }
}

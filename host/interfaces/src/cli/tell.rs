//! `motor task tell`: a message of the owner to a run that works.

use agent::{TaskSummary, TellRequest};
use base::{Refusal, RefusalCode, RunId};
use clap::Args;
use motor::TellReply;

use super::Done;
use super::answer::{goes_on, key};
use super::consent::confirm;
use super::context::Context;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::session::Session;
use crate::words::card::Card;

/// Arguments of `motor task tell`.
#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub(super) struct TellArgs {
    /// Id of the run [default: the newest that works]
    run: Option<RunId>,
    /// The message: guidance for the model, which grants nothing
    #[arg(required = true)]
    text: String,
}

/// Runs the command `motor task tell`.
pub(super) async fn tell(arguments: TellArgs, session: &mut Session, context: &Context) -> Done {
    let TellArgs { run, text } = arguments;
    let run = match run {
        Some(run) => run,
        None => at_work(session, context).await?,
    };
    let card = Card::new(format!("{run} is to be told")).with("message", &text);
    let word = confirm(&card, context).await?;
    let request = TellRequest { text, key: Some(key()) };
    let told: TellReply = session.ask(&Call::post(format!("/v1/tasks/{run}/messages"), &request)?.with(word)).await?;
    context.answer(&told, || format!("{run} is told, and its model with the next request"))?;
    goes_on(&run, session, context);
    Ok(CommandExit::Ok)
}

/// The agent's newest run that works.
async fn at_work(session: &mut Session, context: &Context) -> Result<RunId, Refusal> {
    let path = format!("/v1/tasks?status=running&limit=1&agent={}", context.agent());
    let newest: Vec<TaskSummary> = session.ask(&Call::get(path)).await?;
    newest.into_iter().next().map(|run| run.run_id).ok_or_else(|| {
        Refusal::new(RefusalCode::NotFound, format!("no run of agent `{}` is at work", context.agent()))
            .with_remedy("`motor task list` shows its runs; `motor task respond` answers one that waits")
    })
}

//! `motor signals`: what runs reported (SPEC SIG-1).

use ::signals::{Signal, SignalStatus};
use base::Timestamp;
use clap::Args;
use serde_json::json;

use super::context::Context;
use super::{CliError, Done};
use crate::client::Call;
use crate::exit::Exit;
use crate::http::Resumed;
use crate::output::text;
use crate::session::Session;

/// Signals shown when nothing else is said.
const LATEST: u64 = 20;
/// Columns for what a run said.
const SAID: usize = 100;
/// Signals asked for at a time.
const PAGE: usize = 500;

/// Arguments of `motor signals`.
#[derive(Debug, Args)]
pub(super) struct SignalsArgs {
    /// Goes on with what comes
    #[arg(long, short)]
    follow: bool,
    /// Those after this id; 0 for all [default: the last 20, and with --follow what comes]
    #[arg(long, value_name = "ID")]
    since: Option<u64>,
}

pub(super) async fn run(arguments: SignalsArgs, context: &Context) -> Done {
    context
        .with_host(async |session| {
            let latest = session.status().latest_signal;
            let before = if arguments.follow { latest } else { latest.saturating_sub(LATEST) };
            let mut after = arguments.since.unwrap_or(before);
            if arguments.follow {
                if session.is_own() {
                    // A host that stays for a while takes up what an earlier one left: there is nothing to follow else.
                    session.ask::<Resumed>(&Call::post("/v1/resume", &json!({}))?).await?;
                }
                follow(session, after, context).await
            } else {
                list(session, &mut after, context).await
            }
        })
        .await
}

async fn list(session: &mut Session, after: &mut u64, context: &Context) -> Done {
    loop {
        let path = format!("/v1/signals?after={after}&limit={PAGE}");
        let page: Vec<Signal> = session.ask(&Call::get(path)).await?;
        for signal in &page {
            show(signal, context)?;
            *after = signal.id;
        }
        if page.len() < PAGE {
            return Ok(Exit::Ok);
        }
    }
}

async fn follow(session: &mut Session, mut after: u64, context: &Context) -> Done {
    loop {
        let mut events = session.events("/v1/signals/events", Some(after)).await?;
        while let Some(event) = events.next().await {
            let Ok(signal) = serde_json::from_str::<Signal>(&event.data) else { continue };
            show(&signal, context)?;
            after = signal.id;
        }
        if !session.succeed().await? {
            context.output.say("the host stopped");
            return Ok(Exit::TryLater);
        }
    }
}

fn show(signal: &Signal, context: &Context) -> Result<(), CliError> {
    if context.output.is_json() {
        context.output.print_json_line(signal)?;
    } else {
        context.output.print(&line(signal))?;
    }
    Ok(())
}

fn line(signal: &Signal) -> String {
    let body = &signal.body;
    let said = match (&body.result, &body.error, &body.question) {
        (Some(result), _, _) => result.summary.as_str(),
        (_, Some(error), _) => error.message.as_str(),
        (_, _, Some(question)) => question.as_str(),
        _ => "",
    };
    let status = match body.status {
        SignalStatus::Completed => "completed",
        SignalStatus::Failed => "failed",
        SignalStatus::Cancelled => "cancelled",
        SignalStatus::AwaitingInput => "awaiting_input",
        SignalStatus::AwaitingApproval => "awaiting_approval",
    };
    let said = text::brief(said, SAID);
    format!("{:>4}  {}  {}  {status}  {said}", signal.id, seconds(signal.created_at), signal.run)
}

/// A time without milliseconds: `2026-01-02 03:04:05`.
pub(super) fn seconds(at: Timestamp) -> String {
    at.to_string().chars().take(19).collect::<String>().replace('T', " ")
}

//! `motor signals`: prints the signals of runs (SPEC SIG-1).

use std::fmt::Write as _;

use ::signals::{Signal, SignalSkill};
use clap::Args;

use super::answer::{APPROVE, RESPOND};
use super::context::Context;
use super::skill::left_behind;
use super::{CliError, Done};
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::text;
use crate::session::Session;

/// Signals shown by default.
const LATEST: u64 = 20;
/// Columns for the text of a signal.
const SAID: usize = 100;
/// Columns of indentation for the continuation lines of a signal.
const BELOW: usize = 6;
/// Signals asked for at a time.
const PAGE: usize = 500;

/// Arguments of `motor signals`.
#[derive(Debug, Args)]
pub(super) struct SignalsArgs {
    /// Follow new signals
    #[arg(long, short)]
    follow: bool,
    /// Signals after this id; 0 for all [default: the last 20; with --follow those of runs that wait, and new ones]
    #[arg(long, value_name = "ID")]
    since: Option<u64>,
    /// Signals of runs that wait for an answer or an approval
    #[arg(long, conflicts_with_all = ["follow", "since"])]
    waiting: bool,
}

pub(super) async fn run(arguments: SignalsArgs, context: &Context) -> Done {
    context
        .with_host(async |session| {
            let latest = session.status().latest_signal;
            if arguments.waiting {
                return list(session, SignalList::waiting(u64::MAX), context).await;
            }
            if !arguments.follow {
                let after = arguments.since.unwrap_or_else(|| latest.saturating_sub(LATEST));
                return list(session, SignalList { path: "/v1/signals", after, end: u64::MAX }, context).await;
            }
            // A host that stays for a while resumes the runs of an earlier one: otherwise there is nothing to follow.
            session.take_up_runs().await?;
            if arguments.since.is_none() {
                // Up to where the stream begins: of the others each comes with the stream.
                list(session, SignalList::waiting(latest), context).await?;
            }
            follow(session, arguments.since.unwrap_or(latest), context).await
        })
        .await
}

/// The signals to list, by path and ids.
struct SignalList {
    path: &'static str,
    /// Ids behind this one.
    after: u64,
    /// Ids up to this one.
    end: u64,
}

impl SignalList {
    fn waiting(end: u64) -> Self {
        Self { path: "/v1/signals/waiting", after: 0, end }
    }
}

async fn list(session: &mut Session, listed: SignalList, context: &Context) -> Done {
    let SignalList { path, mut after, end } = listed;
    loop {
        let page: Vec<Signal> = session.ask(&Call::get(format!("{path}?after={after}&limit={PAGE}"))).await?;
        for signal in page.iter().filter(|signal| signal.id <= end) {
            show(signal, context)?;
        }
        match page.last() {
            Some(last) if page.len() == PAGE && last.id < end => after = last.id,
            _ => return Ok(CommandExit::Ok),
        }
    }
}

async fn follow(session: &mut Session, mut after: u64, context: &Context) -> Done {
    loop {
        let mut events = session.events("/v1/signals/events", Some(after)).await?;
        session.take_up_runs().await?;
        while let Some(event) = events.next().await {
            let Ok(signal) = serde_json::from_str::<Signal>(&event.data) else { continue };
            show(&signal, context)?;
            after = signal.id;
        }
        if !session.succeed().await? {
            context.output.say("the host stopped");
            return Ok(CommandExit::TryLater);
        }
    }
}

fn show(signal: &Signal, context: &Context) -> Result<(), CliError> {
    if context.output.is_json() {
        context.output.print_json_line(signal)?;
    } else {
        context.output.print_page(&line(signal, context.output.row_columns()))?;
    }
    Ok(())
}

fn line(signal: &Signal, columns: usize) -> String {
    let body = &signal.body;
    let said = match (&body.result, &body.error, &body.question, &body.approval) {
        (Some(result), ..) => result.summary.as_str(),
        (_, Some(error), ..) => error.message.as_str(),
        (_, _, Some(question), _) => question.as_str(),
        (.., Some(approval)) => approval.summaries.first().unwrap_or(&approval.reason),
        _ => "",
    };
    let said = text::brief(said, SAID);
    let mut lines =
        format!("{:>4}  {}  {}  {}", signal.id, text::seconds(signal.created_at), signal.body.run_id, body.status);
    // If there is no room for the text, it has rows of its own.
    let gap = if lines.len() + 2 + text::width(&said) > columns { format!("\n{:BELOW$}", "") } else { "  ".to_owned() };
    lines.push_str(gap.as_str());
    lines.push_str(&said);
    let command = body.question.as_ref().map(|_| RESPOND).or(body.approval.as_ref().map(|_| APPROVE));
    if let Some(command) = command {
        write!(lines, "\n{:BELOW$}`{command} {}` answers", "", signal.body.run_id).ok();
    }
    for SignalSkill { name, created, problem, .. } in &body.installed_skills {
        write!(lines, "\n{:BELOW$}skill {}", "", left_behind(name, *created, problem.as_deref())).ok();
    }
    lines
}

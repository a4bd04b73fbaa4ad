//! `motor task`: lists, shows, answers, tells, retries and cancels runs (SPEC RUN-7).

use std::fmt::Write as _;
use std::time::Duration;

use agent::TaskSummary;
use base::{Refusal, RefusalCode, RunId, Timestamp};
use clap::{Subcommand, value_parser};
use motor::{CancelReply, RunStatus, RunTrace, Waiting};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::context::{Context, now};
use super::newest::{Choice, Fitting, or_fitting};
use super::{Done, answer, files, staged, status, tell};
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::table::TextTable;
use crate::output::text;
use crate::session::Session;
use crate::words::cost;

/// Subcommands of `motor task`.
#[derive(Debug, Subcommand)]
pub(super) enum TaskCommand {
    /// List runs, newest first
    List {
        /// Only runs in this status, such as `running` or `failed`
        #[arg(long, value_parser = parse_status)]
        status: Option<RunStatus>,
        /// Of every agent, not only of `--agent`
        #[arg(long)]
        all: bool,
        /// At most so many, up to 1000
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = value_parser!(u16).range(1..=1000))]
        limit: u16,
        /// Only runs that wait for an answer or for consent, with their questions
        #[arg(long, conflicts_with = "status")]
        waiting: bool,
    },
    /// Show a run with every call: arguments, result, time, fuel and the source of the result
    Status {
        /// The run [default: the newest]
        run: Option<RunId>,
        /// Show arguments, results and texts in full
        #[arg(long)]
        full: bool,
    },
    /// Print the end of a run's log
    Log {
        /// The run [default: the newest]
        run: Option<RunId>,
    },
    /// Answer a run's question. Without an answer, ask on the terminal
    Respond(answer::RespondArgs),
    /// Show the actions a run asks for, and allow or refuse them
    Approve(answer::ApproveTaskArgs),
    /// Tell a run something while it works: its model gets it with its next request
    Tell(tell::TellArgs),
    /// Retry a failed run, with advice and with more domains if wanted
    Retry(answer::RetryArgs),
    /// Show the writes that a run staged, in full, with the fate of each
    Staged(staged::StagedArgs),
    /// Show staged writes, and send them after the owner's consent: each is sent once
    Send(staged::SendArgs),
    /// Discard staged writes: they are never sent
    Discard(staged::DiscardArgs),
    /// Delete runs that are over, with their workspaces, artifacts and traces, irrecoverably
    Delete {
        /// Ids of the runs
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<RunId>,
    },
    /// Cancel a run, and stop the guest that works for it
    Cancel {
        /// Id of the run [default: the newest that is not over]
        run: Option<RunId>,
    },
}

fn parse_status(text: &str) -> Result<RunStatus, String> {
    RunStatus::ALL.into_iter().find(|status| status.as_str() == text).ok_or_else(|| {
        let known = RunStatus::ALL.map(RunStatus::as_str).join(", ");
        format!("expected one of {known}")
    })
}

pub(super) async fn run(command: TaskCommand, context: &Context) -> Done {
    context
        .with_host(async |session| match command {
            TaskCommand::Respond(arguments) => answer::respond(arguments, session, context).await,
            TaskCommand::Approve(arguments) => answer::approve(arguments, session, context).await,
            TaskCommand::Tell(arguments) => tell::tell(arguments, session, context).await,
            TaskCommand::Retry(arguments) => answer::retry(arguments, session, context).await,
            TaskCommand::Staged(arguments) => staged::show(arguments, session, context).await,
            TaskCommand::Send(arguments) => staged::send(arguments, session, context).await,
            TaskCommand::Discard(arguments) => staged::discard(arguments, session, context).await,
            TaskCommand::List { waiting: true, all, limit, status: _ } => waiting(all, limit, session, context).await,
            TaskCommand::List { status, all, limit, waiting: false } => {
                let mut path = format!("/v1/tasks?limit={limit}");
                if let Some(status) = status {
                    write!(path, "&status={status}").ok();
                }
                if !all {
                    write!(path, "&agent={}", context.agent()).ok();
                }
                let records: Vec<TaskSummary> = session.ask(&Call::get(path)).await?;
                if records.is_empty() && !context.output.is_json() {
                    context.output.say("no runs; `motor act \"…\"` starts one");
                    return Ok(CommandExit::Ok);
                }
                context.answer(&records, || list(&records, now(), context.output.columns))?;
                Ok(CommandExit::Ok)
            }
            TaskCommand::Status { run, full } => {
                let run = or_newest(run, session, context).await?;
                let mut trace: RunTrace = session.ask(&Call::get(format!("/v1/tasks/{run}"))).await?;
                let (files, output) = (files::produced(&trace, context)?, &context.output);
                if output.is_json() {
                    output.print_json(&ShownRun { trace: &trace, files: &files })?;
                    return Ok(CommandExit::Ok);
                }
                for (artifact, file) in trace.artifacts.iter_mut().zip(files) {
                    artifact.path = file.path;
                }
                if full {
                    // As it is, on a terminal too: lines of files and results are not to be broken.
                    output.print_trusted(&status::render(&trace, now(), usize::MAX, output.out))?;
                } else {
                    output.print_page(&status::render(&trace, now(), output.columns, output.out))?;
                }
                Ok(CommandExit::Ok)
            }
            TaskCommand::Log { run } => {
                let run = or_newest(run, session, context).await?;
                let log: LogText = session.ask(&Call::get(format!("/v1/tasks/{run}/log"))).await?;
                if context.output.is_json() {
                    context.output.print_json(&RunLog { run_id: run, log: log.log })?;
                } else {
                    context.output.print(&log.log)?;
                }
                Ok(CommandExit::Ok)
            }
            TaskCommand::Delete { runs } => {
                let (mut deleted, mut refused) = (Vec::new(), None);
                for run in runs {
                    let call = Call::delete(format!("/v1/tasks/{run}"));
                    match session.delete(&call).await {
                        Ok(()) => deleted.push(run),
                        Err(refusal) => {
                            // About this run alone: the others are deleted all the same.
                            let goes_on = matches!(refusal.code, RefusalCode::NotFound | RefusalCode::IllegalState);
                            if let Some(before) = refused.replace(refusal) {
                                context.output.say(&before.reason);
                            }
                            if !goes_on {
                                break;
                            }
                        }
                    }
                }
                if let Some(refusal) = refused {
                    // It was deleted by the request before.
                    deleted.iter().for_each(|run| context.output.say(&format!("{run} is deleted")));
                    return Err(refusal.into());
                }
                let answer = DeletedRuns { deleted };
                context.answer(&answer, || {
                    answer.deleted.iter().map(|run| format!("{run} is deleted")).collect::<Vec<_>>().join("\n")
                })?;
                Ok(CommandExit::Ok)
            }
            TaskCommand::Cancel { run } => {
                let run = or_fitting(run, Fitting::Open, Choice::Asked, session, context).await?;
                let call = Call::post(format!("/v1/tasks/{run}/cancellation"), &json!({}))?;
                let cancelled: CancelReply = session.ask(&call).await?;
                context.answer(&cancelled, || format!("{run} was {} and is cancelled", cancelled.previous_status))?;
                Ok(CommandExit::Ok)
            }
        })
        .await
}

/// A run as `motor task status --json` prints it.
#[derive(Serialize, JsonSchema)]
pub(super) struct ShownRun<'a> {
    #[serde(flatten)]
    trace: &'a RunTrace,
    /// The files that it produced, where the owner can open them; absent without any.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    files: &'a [files::ProducedFile],
}

/// The end of a run's log.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunLog {
    /// Id of the run.
    run_id: RunId,
    /// The last 16 KiB of the log.
    log: String,
}

/// Runs that were deleted.
#[derive(Serialize, JsonSchema)]
pub(super) struct DeletedRuns {
    /// Ids of the runs.
    deleted: Vec<RunId>,
}

#[derive(Debug, Deserialize)]
struct LogText {
    log: String,
}

/// The named run, or the newest of the agent, which is named on stderr.
///
/// # Errors
/// `not_found` if the agent has no run.
pub(super) async fn or_newest(run: Option<RunId>, session: &mut Session, context: &Context) -> Result<RunId, Refusal> {
    if let Some(run) = run {
        return Ok(run);
    }
    let path = format!("/v1/tasks?limit=1&agent={}", context.agent());
    let newest: Vec<TaskSummary> = session.ask(&Call::get(path)).await?;
    let newest = newest.into_iter().next().map(|record| record.run_id).ok_or_else(|| {
        Refusal::new(RefusalCode::NotFound, format!("agent `{}` has no runs", context.agent()))
            .with_remedy("`motor act \"…\"` starts one; `motor task list --all` shows those of other agents")
    })?;
    context.output.say(&format!("run {newest}"));
    Ok(newest)
}

/// The runs that wait for a person, the oldest question first.
async fn waiting(all: bool, limit: u16, session: &mut Session, context: &Context) -> Done {
    let mut records = Vec::new();
    for status in RunStatus::ALL.into_iter().filter(|status| status.is_waiting()) {
        let mut path = format!("/v1/tasks?limit={limit}&status={status}");
        if !all {
            write!(path, "&agent={}", context.agent()).ok();
        }
        let found: Vec<TaskSummary> = session.ask(&Call::get(path)).await?;
        records.extend(found);
    }
    records
        .sort_by_key(|record| record.waiting.as_ref().map(|waiting| (waiting.expires_at(), record.run_id.to_string())));
    records.truncate(usize::from(limit));
    if records.is_empty() && !context.output.is_json() {
        context.output.say("no run waits for anybody");
        return Ok(CommandExit::Ok);
    }
    context.answer(&records, || asking(&records, now(), context.output.columns))?;
    Ok(CommandExit::Ok)
}

fn asking(records: &[TaskSummary], now: Timestamp, columns: usize) -> String {
    let mut table = TextTable::new(&["RUN", "WAITS FOR", ">LEFT", "ASKS"]);
    for record in records {
        let Some(waiting) = &record.waiting else { continue };
        let (what, asks) = match waiting {
            Waiting::Input(question) => ("answer", question.question.clone()),
            Waiting::Approval(approval) => {
                let actions: Vec<_> = approval.items.iter().map(|item| item.summary.as_str()).collect();
                ("consent", actions.join("; "))
            }
        };
        let left = text::left(waiting.expires_at().since(now)).unwrap_or_else(|| "no limit".to_owned());
        table.row([record.run_id.to_string(), what.to_owned(), left, text::revealed(&asks).into_owned()]);
    }
    table.render(columns)
}

fn list(records: &[TaskSummary], now: Timestamp, columns: usize) -> String {
    let first = records.first().map(|record| &record.agent);
    // Agents are worth a column only if there are several.
    let several = records.iter().any(|record| Some(&record.agent) != first);
    // So are costs: models on this machine have none.
    let costs: Vec<_> =
        records.iter().map(|record| cost::brief(record.cost_usd, record.unpriced_replies.into())).collect();
    let has_costs = records.iter().any(|record| record.cost_usd.is_some_and(|cost| cost > 0.0));
    let mut columns_of = vec!["RUN", "STATUS", ">AGE", ">TOOK", ">STEPS", "TASK"];
    if has_costs {
        columns_of.insert(5, ">COST");
    }
    let mut table = TextTable::new(&columns_of);
    for (record, cost) in records.iter().zip(costs) {
        let took =
            record.started_at.map_or(Duration::ZERO, |started| record.completed_at.unwrap_or(now).since(started));
        let task = if several { format!("[{}] {}", record.agent, record.task) } else { record.task.clone() };
        let [run, status, age, took, steps] = [
            record.run_id.to_string(),
            record.status.to_string(),
            text::age(now.since(record.created_at)),
            text::millis(took.as_secs_f64() * 1_000.0),
            record.iterations.to_string(),
        ];
        if has_costs {
            table.row([run, status, age, took, steps, cost, task]);
        } else {
            table.row([run, status, age, took, steps, task]);
        }
    }
    table.render(columns)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn record(id: &str, status: &str, task: &str) -> TaskSummary {
        serde_json::from_value(json!({
            "runId": id, "agent": "main", "status": status, "task": task, "tools": [],
            "maxIterations": 20, "timeoutMs": 600_000, "createdAt": 1_000, "startedAt": 1_000, "completedAt": 14_200,
            "iterations": 5, "modelCalls": 5, "toolCalls": 4, "errors": 0, "inputTokens": 0, "outputTokens": 0,
            "energy": 0.1, "resumes": 0,
        }))
        .unwrap()
    }

    #[test]
    fn a_listing_fits_80_columns() {
        let long = "Work out the totals of every region\nand write them to a report, then say which is best";
        let records = [
            record("run_01khzabcdefghijk", "completed", long),
            record("run_01khzabcdefghijm", "awaiting_approval", "short"),
        ];
        let text = list(&records, Timestamp::from_millis(200_000), 80);
        expect![[r#"
            RUN                   STATUS               AGE    TOOK  STEPS  TASK
            run_01khzabcdefghijk  completed          3 min  13.2 s      5  Work out the tot…
            run_01khzabcdefghijm  awaiting_approval  3 min  13.2 s      5  short
        "#]]
        .assert_eq(&text);
        assert!(text.lines().all(|line| text::width(line) <= 80));
    }

    #[test]
    fn costs_have_a_column_if_there_are_any() {
        let mut costly = record("run_01khzabcdefghijk", "completed", "x");
        (costly.cost_usd, costly.unpriced_replies) = (Some(0.25), 1);
        let mut unknown = record("run_01khzabcdefghijm", "completed", "y");
        unknown.unpriced_replies = 2;
        expect![[r#"
            RUN                   STATUS       AGE    TOOK  STEPS     COST  TASK
            run_01khzabcdefghijk  completed  3 min  13.2 s      5   $0.25+  x
            run_01khzabcdefghijm  completed  3 min  13.2 s      5  unknown  y
        "#]]
        .assert_eq(&list(&[costly, unknown], Timestamp::from_millis(200_000), 80));
    }

    #[test]
    fn who_waits_is_listed_with_what_is_asked() {
        let mut first = record("run_01khzabcdefghijk", "awaiting_input", "x");
        let question = json!({ "kind": "input", "id": "ask_1", "step": 1, "callId": "c", "askedAt": 0,
            "question": "Which room?\n\u{202e}x", "expiresAt": 800_000 });
        first.waiting = serde_json::from_value(question).unwrap();
        let mut second = record("run_01khzabcdefghijm", "awaiting_approval", "x");
        second.waiting = serde_json::from_value(crate::words::card::tests::approval(json!({}))).unwrap();
        let text = asking(&[first, second], Timestamp::from_millis(200_000), 80);
        expect![[r#"
            RUN                   WAITS FOR    LEFT  ASKS
            run_01khzabcdefghijk  answer     10 min  Which room? <U+202E>x
            run_01khzabcdefghijm  consent    11 min  POST https://rooms.example.com/book
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn statuses_are_those_there_are() {
        assert_eq!(parse_status("running"), Ok(RunStatus::Running));
        assert!(parse_status("Running").unwrap_err().contains("awaiting_input"));
    }
}

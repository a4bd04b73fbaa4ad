//! `motor act`: delegates a task, shows its steps, prints its answer.

use std::path::Path;

use agent::{ActReply, ActRequest};
use base::{Random, Refusal, RefusalCode, RunId};
use clap::Args;
use llm::Role;
use motor::RunStatus;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::context::{Context, usage};
use super::follow::{FollowOutcome, RunEnd, follow};
use super::grants::{GrantArgs, absolute};
use super::plan::AgreedRequest;
use super::skill::left_behind;
use super::terminal::Terminal;
use super::{CliError, Done, consent, diff, files, input, land, plan, setup, staged};
use crate::client::{Call, OwnerProof};
use crate::exit::CommandExit;
use crate::http::ResumeReply;
use crate::session::Session;
use crate::words::landing::{summary, trusted_card};
use crate::words::staged as held;

/// Arguments of `motor act`.
#[derive(Debug, Args)]
pub(super) struct ActArgs {
    /// The task in plain language, or `-` to read it from standard input [default: asked on the terminal]
    #[arg(conflicts_with_all = ["resume", "plan"])]
    task: Option<String>,
    #[command(flatten)]
    grants: GrantArgs,
    /// Record the model's turns in a file, to replay them with `--model replay/FILE`
    #[arg(long, value_name = "FILE")]
    record: Option<std::path::PathBuf>,
    /// Start the run of a plan, after the owner agreed to it: the file that `motor plan --print` or `--json` printed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resume", "record", "approval", "unattended"])]
    plan: Option<std::path::PathBuf>,
    /// Ask the owner before each action that reaches outside or cannot be undone
    #[arg(long, conflicts_with = "resume")]
    approval: bool,
    /// Land the run's changes in the directories of `--on` when it completes: the question comes first, and no other
    #[arg(long, requires = "directories", conflicts_with_all = ["resume", "detach", "plan"])]
    land: bool,
    /// Never ask: the run has no questions, and anything that would need approval is refused
    #[arg(long, conflicts_with_all = ["resume", "approval"])]
    unattended: bool,
    /// Seed the random numbers of programs and tools, and set their clock by the steps: the same replies give the same results
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["resume", "plan"])]
    seed: Option<u32>,
    /// Print the run's id at once and leave the run to a running host
    #[arg(long, conflicts_with = "resume")]
    detach: bool,
    /// Resume an interrupted run, or all of this home
    #[arg(long, value_name = "RUN", num_args = 0..=1)]
    resume: Option<Option<RunId>>,
    /// Idempotency key: the same key names the same run
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

pub(super) async fn run(arguments: ActArgs, context: &Context) -> Done {
    if let Some(wanted) = arguments.resume {
        let mut session = Session::open(context.place()?).await?;
        let done = resume(wanted, &mut session, context).await;
        return context.leave(session, done).await;
    }
    let detach = arguments.detach;
    if let Some(file) = &arguments.plan {
        arguments.grants.check_none(context)?;
        let mut session = if detach { staying(context).await? } else { Session::open(context.place()?).await? };
        let done = of_plan(file, detach, &mut session, context).await;
        return context.leave(session, done).await;
    }
    let lands = arguments.land;
    let request = request(arguments, context).await?;
    with_model(&request, context).await?;
    // Asked before a token is spent. A flag alone is no consent.
    let changes =
        if lands { Changes::Landed(consent::confirm(&trusted_card(&request), context).await?) } else { Changes::Kept };
    if detach {
        return detached(&request, None, &mut staying(context).await?, context).await;
    }
    let mut session = Session::open(context.place()?).await?;
    let done = attached(&request, None, changes, &mut session, context).await;
    context.leave(session, done).await
}

async fn of_plan(file: &Path, detach: bool, session: &mut Session, context: &Context) -> Done {
    let AgreedRequest { request, proof } = plan::from_file(file, session, context).await?;
    let request = ActRequest { detached: detach, ..request };
    if detach {
        return detached(&request, Some(proof), session, context).await;
    }
    attached(&request, Some(proof), Changes::Kept, session, context).await
}

async fn request(arguments: ActArgs, context: &Context) -> Result<ActRequest, Refusal> {
    let task = match arguments.task {
        Some(task) => input::text_or_stdin(&task).await?,
        None => asked(context).await?,
    };
    Ok(ActRequest {
        record: absolute(arguments.record)?,
        approval_required: arguments.approval,
        unattended: arguments.unattended,
        detached: arguments.detach,
        seed: arguments.seed,
        // A request whose answer was lost is sent again: without a key that would be a second run.
        key: Some(arguments.key.unwrap_or_else(|| format!("cli-{:016x}", Random::from_system().next_u64()))),
        ..arguments.grants.request(task, context)?
    })
}

/// The task, from the person at the terminal.
async fn asked(context: &Context) -> Result<String, Refusal> {
    let terminal = Terminal::open().filter(|_| !context.output.is_json());
    let terminal = terminal.ok_or_else(|| usage("there is no task", "`motor act TASK`, or `-` for standard input"))?;
    let said = terminal.ask("what is to be done? ").await.map_err(|error| consent::gone(&error))?;
    said.map(|said| said.trim().to_owned())
        .filter(|task| !task.is_empty())
        .ok_or_else(|| usage("there is no task", "`motor act TASK`, or `-` for standard input"))
}

/// At a terminal, a command that needs a model and has none offers to set one up.
///
/// # Errors
/// If the set-up is begun and not finished.
async fn with_model(request: &ActRequest, context: &Context) -> Result<(), Refusal> {
    if request.model.is_some() || request.unattended || context.output.is_json() {
        return Ok(());
    }
    match Terminal::open() {
        Some(terminal) => setup::offer(&terminal, &[Role::Motor], context).await,
        None => Ok(()),
    }
}

/// A session with a host that outlives this command.
async fn staying(context: &Context) -> Result<Session, Refusal> {
    let stays = Session::connect(context.place()?).await?.filter(|session| session.status().stays);
    stays.ok_or_else(|| {
        Refusal::new(RefusalCode::InvalidRequest, "a detached run needs a host that stays, and there is none")
            .with_remedy("start one in another terminal: `motor serve`")
    })
}

async fn detached(request: &ActRequest, proof: Option<OwnerProof>, session: &mut Session, context: &Context) -> Done {
    let reply = start(request, proof, session, context).await?;
    context.answer(&reply, || reply.run_id.to_string())?;
    Ok(CommandExit::Ok)
}

async fn start(
    request: &ActRequest,
    proof: Option<OwnerProof>,
    session: &mut Session,
    context: &Context,
) -> Result<ActReply, Refusal> {
    let call = Call::post("/v1/tasks", request)?;
    let call = match proof {
        Some(proof) => call.with(proof),
        None => consent::signed(call, context),
    };
    let reply: Result<ActReply, Refusal> = session.ask(&call).await;
    let reply = reply.map_err(|refusal| match (&request.key, refusal.code) {
        // No host answered.
        (Some(key), RefusalCode::OutcomeUnknown) if refusal.key.is_none() => refusal.with_key(key),
        _ => refusal,
    })?;
    for warning in &reply.warnings {
        context.output.warn(warning);
    }
    Ok(reply)
}

/// Starts a run, with the owner's consent if it takes one, and follows it.
pub(super) async fn attached(
    request: &ActRequest,
    proof: Option<OwnerProof>,
    changes: Changes,
    session: &mut Session,
    context: &Context,
) -> Done {
    let (run, followed) = followed(request, proof, session, context).await?;
    let ended = matches!(followed, FollowOutcome::Ended(_));
    let staged = matches!(&followed, FollowOutcome::Ended(ended) if ended.staged > 0);
    let exit = finish(&run, followed, context)?;
    if staged && !context.output.is_json() {
        tell_staged(&run, session, context).await?;
    }
    if ended && !request.directories.is_empty() {
        settle(&run, changes, exit, session, context).await?;
    }
    Ok(exit)
}

/// Starts a run, with the owner's consent if it takes one, and shows it until it ends or is left.
///
/// # Errors
/// If it does not start, or the host cannot be followed.
pub(super) async fn followed(
    request: &ActRequest,
    proof: Option<OwnerProof>,
    session: &mut Session,
    context: &Context,
) -> Result<(RunId, FollowOutcome), CliError> {
    let reply = start(request, proof, session, context).await?;
    context.wishes.listen().await;
    context.output.say_trusted(&context.output.err.dim(&format!("run {}", reply.run_id)));
    let followed = follow(session, &reply.run_id, context).await?;
    Ok((reply.run_id, followed))
}

/// The fate of a run's changes in the owner's directories when it ends.
pub(super) enum Changes {
    /// They stay in the run until the owner lands them.
    Kept,
    /// They are landed if the run completed, with the owner's word for it.
    Landed(OwnerProof),
}

async fn settle(
    run: &RunId,
    wanted: Changes,
    exit: CommandExit,
    session: &mut Session,
    context: &Context,
) -> Result<(), CliError> {
    let changes = diff::of(run, session).await?;
    let output = &context.output;
    output.say(&summary(&changes.files));
    if changes.files.is_empty() {
        return Ok(());
    }
    if let (Changes::Landed(proof), CommandExit::Ok) = (wanted, exit) {
        return land::trusted(run, proof, session, context).await;
    }
    output.say_trusted(&output.err.dim(&format!("`motor diff {run}` shows it, `motor land {run}` applies it")));
    Ok(())
}

async fn resume(wanted: Option<RunId>, session: &mut Session, context: &Context) -> Done {
    let ResumeReply { running, .. } = session.ask(&Call::post("/v1/host/resumption", &json!({}))?).await?;
    let runs = match wanted {
        // Includes a run that is already over: its answer was asked for.
        Some(run) => vec![run],
        None => running,
    };
    if runs.is_empty() {
        context.output.say("no run is under way or waits");
        return Ok(CommandExit::Ok);
    }
    context.wishes.listen().await;
    let mut exit = CommandExit::Ok;
    for run in runs {
        context.output.say_trusted(&context.output.err.dim(&format!("run {run}")));
        let followed = follow(session, &run, context).await?;
        let interrupted = matches!(followed, FollowOutcome::Interrupted { .. });
        // The last that went wrong gives the code.
        exit = match finish(&run, followed, context)? {
            CommandExit::Ok => exit,
            other => other,
        };
        if interrupted {
            break;
        }
    }
    Ok(exit)
}

/// Shows the writes that a run has staged, in full.
async fn tell_staged(run: &RunId, session: &mut Session, context: &Context) -> Result<(), CliError> {
    let (task, output) = (staged::fetch(run, session).await?, &context.output);
    for row in staged::whole(&task).render(output.columns, output.err) {
        output.say_trusted(&row);
    }
    output.say(&held::summary(run, task.held));
    Ok(())
}

/// A run that its command was interrupted in following.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LeftRun {
    /// Id of the run.
    run_id: RunId,
    /// `cancelled`, or `running` if it goes on or waits.
    status: RunStatus,
}

/// Prints the answer and decides on the exit code.
fn finish(run: &RunId, followed: FollowOutcome, context: &Context) -> Done {
    let output = &context.output;
    match followed {
        FollowOutcome::Ended(ended) => {
            if output.is_json() {
                output.print_json(&*ended)?;
            } else {
                say(&ended, context)?;
            }
            Ok(exit(&ended))
        }
        FollowOutcome::Interrupted { cancelled, waiting } => {
            let said = if cancelled { "cancelled".to_owned() } else { format!("not cancelled: {}", on(run, waiting)) };
            output.say(&format!("run {run} {said}"));
            if output.is_json() {
                let status = if cancelled { RunStatus::Cancelled } else { RunStatus::Running };
                output.print_json(&LeftRun { run_id: run.clone(), status })?;
            }
            Ok(CommandExit::Interrupted)
        }
        FollowOutcome::HostGone { reason, waiting } => {
            let reason = reason.unwrap_or_else(|| "the host stopped".to_owned());
            let state = if waiting.is_some() { "waits" } else { "is not over" };
            let refusal = Refusal::new(RefusalCode::TryLater, format!("{reason}; run {run} {state}"));
            Err(refusal.with_remedy(on(run, waiting)).into())
        }
    }
}

/// The command that goes on with a run.
fn on(run: &RunId, waiting: Option<&str>) -> String {
    match waiting {
        Some(command) => format!("`{command} {run}` answers what it waits for"),
        None => format!("`motor act --resume {run}` goes on with it"),
    }
}

fn say(ended: &RunEnd, context: &Context) -> Result<(), CliError> {
    let output = &context.output;
    output.say_trusted(&output.err.dim(&ended.line()));
    match (&ended.error, &ended.result) {
        (Some(error), _) => {
            output.fail(&error.message, error.remedy.as_deref());
            output.say_trusted(&output.err.dim(&format!("`motor task status {}` shows every step", ended.run_id)));
        }
        (None, Some(answer)) if ended.status == RunStatus::Completed && !ended.is_shown => {
            output.print_answer(answer)?
        }
        _ => {}
    }
    for line in files::lines(&ended.files, &ended.run_id) {
        output.say(&line);
    }
    for skill in &ended.installed_skills {
        output.say(&format!("skill {}", left_behind(&skill.name, skill.created, skill.problem.as_deref())));
    }
    Ok(())
}

fn exit(ended: &RunEnd) -> CommandExit {
    match (ended.status, ended.error.as_ref().and_then(|error| error.code)) {
        (RunStatus::Completed, _) => CommandExit::Ok,
        (_, Some(code)) => match CommandExit::from(code) {
            // The command line was right; the run failed.
            CommandExit::Usage => CommandExit::Failed,
            exit => exit,
        },
        (RunStatus::Failed, None) if ended.denied => CommandExit::Consent,
        _ => CommandExit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use base::RefusalCode;
    use motor::{FailureCategory, RunError};

    use super::*;

    fn ended(status: RunStatus, code: Option<RefusalCode>) -> RunEnd {
        let error = (status == RunStatus::Failed)
            .then(|| RunError { code, ..RunError::new(FailureCategory::InfraFailure, "it failed") });
        RunEnd { error, status, ..RunEnd::of(RunId::parse("run_1").unwrap()) }
    }

    #[test]
    fn a_runs_end_is_an_exit_code() {
        for (status, code, expected) in [
            (RunStatus::Completed, None, CommandExit::Ok),
            (RunStatus::Failed, None, CommandExit::Failed),
            (RunStatus::Failed, Some(RefusalCode::CredentialsNeeded), CommandExit::Credentials),
            (RunStatus::Failed, Some(RefusalCode::TryLater), CommandExit::TryLater),
            (RunStatus::Failed, Some(RefusalCode::ConsentNeeded), CommandExit::Consent),
            (RunStatus::Failed, Some(RefusalCode::InvalidRequest), CommandExit::Failed),
            (RunStatus::Cancelled, None, CommandExit::Failed),
        ] {
            assert_eq!(exit(&ended(status, code)), expected, "{status} {code:?}");
        }
        // A refusal changes the exit code of a failed run, and of no other.
        let denied = |status| RunEnd { denied: true, ..ended(status, None) };
        assert_eq!(exit(&denied(RunStatus::Failed)), CommandExit::Consent);
        assert_eq!(exit(&denied(RunStatus::Completed)), CommandExit::Ok);
        assert_eq!(exit(&denied(RunStatus::Cancelled)), CommandExit::Failed);
    }
}

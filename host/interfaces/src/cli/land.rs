//! `motor land` and `motor undo`: the owner's directories take over the changes of a run, or are freed of them again (SPEC
//! LAND-3, LAND-4).

use agent::{
    CommitEffect, CommitRequest, LandReply, LandRequest, LandingPlan, LandingSummary, PlannedCommit, PlannedOutcome,
};
use base::{Refusal, RefusalCode, RunId};
use clap::Args;

use super::Done;
use super::consent;
use super::context::Context;
use super::diff::targets;
use super::task::or_newest;
use crate::client::{Call, OwnerProof};
use crate::exit::CommandExit;
use crate::output::text;
use crate::session::Session;
use crate::words::commit::{in_brief, outcome};
use crate::words::landing::card;

/// Arguments of `motor land`.
#[derive(Debug, Args)]
pub(super) struct LandArgs {
    /// The run [default: the newest], and paths in its workspace [default: all]
    #[arg(value_name = "RUN [PATH")]
    targets: Vec<String>,
    /// Land the rest if some paths conflict
    #[arg(long)]
    skip_conflicts: bool,
    /// Make the landed changes a git commit on the branch that is checked out
    #[arg(long)]
    commit: bool,
    /// Make them a commit on a new branch, and change no file
    #[arg(long, value_name = "NAME", conflicts_with = "commit")]
    branch: Option<String>,
    /// The message of the commit [default: the beginning of the task]
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// List the landings of the run, and land nothing
    #[arg(long, conflicts_with_all = ["skip_conflicts", "commit", "branch", "message"])]
    list: bool,
}

/// Arguments of `motor undo`.
#[derive(Debug, Args)]
pub(super) struct UndoArgs {
    /// The run [default: the newest], and paths in its workspace [default: all]
    #[arg(value_name = "RUN [PATH")]
    targets: Vec<String>,
    /// The landing [default: the last that is in force]
    #[arg(long, value_name = "N")]
    landing: Option<u32>,
}

pub(super) async fn land(arguments: LandArgs, context: &Context) -> Done {
    context
        .with_host(async |session| {
            let (run, paths) = targets(&arguments.targets);
            let run = or_newest(run, session, context).await?;
            if arguments.list {
                return list(&run, session, context).await;
            }
            if arguments.message.is_some() && !arguments.commit && arguments.branch.is_none() {
                return Err(Refusal::new(RefusalCode::InvalidRequest, "a message belongs to a commit")
                    .with_remedy("add `--commit` or `--branch NAME`")
                    .into());
            }
            let commit = arguments.commit || arguments.message.is_some();
            let request = LandRequest {
                paths,
                skip_conflicts: arguments.skip_conflicts,
                commit: commit.then_some(CommitRequest { message: arguments.message }),
                branch: arguments.branch,
                ..LandRequest::default()
            };
            decided(&run, request, session, context).await
        })
        .await
}

pub(super) async fn undo(arguments: UndoArgs, context: &Context) -> Done {
    context
        .with_host(async |session| {
            let (run, paths) = targets(&arguments.targets);
            let run = or_newest(run, session, context).await?;
            let undoes = match arguments.landing {
                Some(landing) => landing,
                None => last(&run, session).await?,
            };
            let request = LandRequest { paths, undoes: Some(undoes), skip_conflicts: true, ..LandRequest::default() };
            decided(&run, request, session, context).await
        })
        .await
}

async fn landings(run: &RunId, session: &mut Session) -> Result<Vec<LandingSummary>, Refusal> {
    session.ask(&Call::get(format!("/v1/tasks/{run}/landings"))).await
}

/// The last landing that is in force and takes nothing back itself.
async fn last(run: &RunId, session: &mut Session) -> Result<u32, Refusal> {
    let landed = landings(run, session).await?.into_iter().rev();
    let last =
        landed.filter(|landing| landing.is_landed() && landing.undoes.is_none()).map(|landing| landing.landing).next();
    last.ok_or_else(|| {
        Refusal::new(RefusalCode::IllegalState, format!("nothing of run `{run}` is landed"))
            .with_remedy(format!("`motor land {run} --list` shows its landings"))
    })
}

async fn list(run: &RunId, session: &mut Session, context: &Context) -> Done {
    let landings = landings(run, session).await?;
    context.answer(&landings, || {
        let line = |landing: &LandingSummary| {
            let LandingSummary { landing, state, paths, undoes, commit, consent } = landing;
            let what = undoes.map(|undone| format!(", takes back {undone}")).unwrap_or_default();
            let commit = commit.as_ref().map(|commit| format!(", {}", in_brief(commit))).unwrap_or_default();
            format!(
                "{landing}  {state}, {}{what}{commit}, {}\n",
                text::plural(*paths as u64, "path"),
                text::seconds(consent.at)
            )
        };
        if landings.is_empty() { "nothing was landed\n".to_owned() } else { landings.iter().map(line).collect() }
    })?;
    Ok(CommandExit::Ok)
}

/// Shows the plan, asks the owner, and lands exactly this plan.
async fn decided(run: &RunId, request: LandRequest, session: &mut Session, context: &Context) -> Done {
    let plan: LandingPlan = session.ask(&Call::post(format!("/v1/tasks/{run}/landings/plans"), &request)?).await?;
    check(&plan, &request)?;
    let proof = consent::confirm(&card(&plan), context).await?;
    let reply = applied(run, LandRequest { hash: Some(plan.hash), ..request }, proof, session).await?;
    said(run, plan.undoes, &reply, context)
}

/// Lands everything: the owner agreed to it when the run was started.
pub(super) async fn trusted(
    run: &RunId,
    proof: OwnerProof,
    session: &mut Session,
    context: &Context,
) -> Result<(), super::CliError> {
    let reply = applied(run, LandRequest::default(), proof, session).await?;
    context.output.say(&line(None, &reply));
    Ok(())
}

async fn applied(
    run: &RunId,
    request: LandRequest,
    proof: OwnerProof,
    session: &mut Session,
) -> Result<LandReply, Refusal> {
    session.ask_once(&Call::post(format!("/v1/tasks/{run}/landings"), &request)?.with(proof)).await
}

/// Refuses a plan that cannot be landed before the owner is asked.
fn check(plan: &LandingPlan, request: &LandRequest) -> Result<(), Refusal> {
    let of = |outcome| plan.paths.iter().filter(move |path| path.outcome == outcome);
    let conflicts: Vec<_> = of(PlannedOutcome::Conflict).collect();
    let takes_back = |commit: &PlannedCommit| matches!(commit.effect, CommitEffect::TakeBack | CommitEffect::Redo);
    let done = of(PlannedOutcome::Clean).chain(of(PlannedOutcome::Merged)).next().is_some()
        || plan.commit.as_ref().is_some_and(takes_back);
    if !(conflicts.is_empty() || request.skip_conflicts && done) {
        let named = conflicts
            .iter()
            .take(5)
            .map(|path| format!("{} ({})", text::quoted(&path.path), path.reason.as_deref().unwrap_or_default()));
        let named: Vec<_> = named.collect();
        let more = conflicts.len().saturating_sub(named.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let reason = format!(
            "{} with your own changes: {}{more}",
            text::plural(conflicts.len() as u64, "conflict"),
            named.join(", ")
        );
        let refusal = Refusal::new(RefusalCode::IllegalState, reason);
        return Err(match request.skip_conflicts {
            true => refusal,
            false => refusal.with_remedy(format!("`motor land {} --skip-conflicts` lands the rest", plan.run_id)),
        });
    }
    if !done {
        let what = if request.undoes.is_some() { "take back" } else { "land" };
        let refusal = Refusal::new(RefusalCode::IllegalState, format!("there is nothing to {what}"));
        return Err(match &plan.commit {
            Some(kept) => refusal.with_remedy(format!(
                "branch `{}` has moved on from the commit, which stays: see `git log`",
                text::one_line(&kept.branch)
            )),
            None => refusal,
        });
    }
    Ok(())
}

fn said(run: &RunId, undoes: Option<u32>, reply: &LandReply, context: &Context) -> Done {
    context.answer(reply, || {
        let mut said = line(undoes, reply);
        if undoes.is_none() {
            said.push_str(&format!("; `motor undo {run}` takes it back"));
        }
        said.push('\n');
        if let Some(commit) = &reply.commit {
            said.push_str(&outcome(commit));
            said.push('\n');
        }
        for path in &reply.kept {
            said.push_str(&format!(
                "kept {}/: there is something in it that the run did not see\n",
                text::one_line(path)
            ));
        }
        for path in &reply.skipped {
            said.push_str(&format!("left {}: it was changed since\n", text::one_line(path)));
        }
        said
    })?;
    Ok(CommandExit::Ok)
}

fn line(undoes: Option<u32>, reply: &LandReply) -> String {
    let paths = text::plural(reply.paths as u64, "path");
    if let (Some(commit), None) = (reply.commit.as_ref().filter(|commit| commit.is_new_branch), undoes) {
        let branch = text::one_line(&commit.branch);
        return format!("{paths} for the branch {branch}, no file is changed (landing {})", reply.landing);
    }
    match undoes {
        Some(landing) => format!("took back landing {landing}: {paths}"),
        None => format!("landed {paths} (landing {})", reply.landing),
    }
}

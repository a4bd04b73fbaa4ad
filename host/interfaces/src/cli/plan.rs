//! `motor plan`: one consent for a task (SPEC LAND-6). A model drafts the access, the owner edits it or agrees once, and the
//! run is held to exactly that.

mod edit;
mod file;
mod rehearse;

use std::path::Path;

use agent::{ActRequest, TaskPlan};
use base::{Random, Refusal};
use clap::Args;

use super::context::Context;
use super::grants::GrantArgs;
use super::terminal::Terminal;
use super::{CliError, Done, act, consent, input};
use crate::client::{Call, OwnerProof};
use crate::exit::CommandExit;
use crate::session::Session;
use crate::words::plan::{card, drafting};

/// Arguments of `motor plan`.
#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    /// The task in plain language, or `-` to read it from standard input. The grants below are bounds of the draft
    task: String,
    #[command(flatten)]
    grants: GrantArgs,
    /// The run has no questions about the task either
    #[arg(long)]
    unattended: bool,
    /// Run the task once with its writes held, and measure the access that it used, instead of asking a model
    #[arg(long)]
    rehearse: bool,
    /// Print the plan, for `motor act --plan FILE`, and start nothing; so does `--json`
    #[arg(long)]
    print: bool,
}

/// A plan that the owner agreed to.
pub(super) struct AgreedRequest {
    pub(super) request: ActRequest,
    pub(super) proof: OwnerProof,
}

pub(super) async fn run(arguments: PlanArgs, context: &Context) -> Done {
    let task = input::text_or_stdin(&arguments.task).await?;
    let request = ActRequest { unattended: arguments.unattended, ..arguments.grants.request(task, context)? };
    let prints = arguments.print || context.output.is_json();
    if !prints && consent::given(context)?.is_none() && Terminal::open().is_none() {
        // Before a token is spent: there is no owner to agree to the draft.
        return Err(consent::nobody().into());
    }
    let mut session = Session::open(context.place()?).await?;
    let done = match arguments.rehearse {
        true => rehearse::rehearse(&request, &mut session, context).await,
        false => draft(&request, &mut session, context).await.map_err(CliError::from),
    };
    let done = match done {
        Ok(plan) => planned(plan, prints, &mut session, context).await,
        Err(error) => Err(error),
    };
    context.leave(session, done).await
}

async fn draft(request: &ActRequest, session: &mut Session, context: &Context) -> Result<TaskPlan, Refusal> {
    session.ask_once(&consent::signed(Call::post("/v1/plans", request)?, context)).await
}

async fn planned(plan: TaskPlan, prints: bool, session: &mut Session, context: &Context) -> Done {
    if prints {
        return print(&plan, context);
    }
    let AgreedRequest { request, proof } = agree(plan, session, context).await?;
    act::attached(&request, Some(proof), act::Changes::Kept, session, context).await
}

fn print(plan: &TaskPlan, context: &Context) -> Done {
    let output = &context.output;
    if output.is_json() {
        output.print_json(plan)?;
    } else {
        output.print_answer(&file::write(plan)?)?;
        if let Some(drafting) = drafting(plan) {
            output.say(&format!("drafted {drafting}"));
        }
        for problem in &plan.explanation.problems {
            output.fail(&problem.reason, problem.remedy.as_deref());
        }
    }
    Ok(plan.explanation.problems.first().map_or(CommandExit::Ok, |problem| problem.code.into()))
}

/// Reads a plan from a file, shows it, and asks the owner.
///
/// # Errors
/// If it is invalid, or the owner does not agree.
pub(super) async fn from_file(path: &Path, session: &mut Session, context: &Context) -> Result<AgreedRequest, Refusal> {
    let request = file::read(&input::text_file(path)?).map_err(|reason| {
        super::context::usage(
            format!("`{}` is not a plan: {reason}", path.display()),
            "`motor plan TASK --print` prints one",
        )
    })?;
    let plan = check(&request, session, context).await?;
    agree(plan, session, context).await
}

async fn check(request: &ActRequest, session: &mut Session, context: &Context) -> Result<TaskPlan, Refusal> {
    session.ask(&consent::signed(Call::post("/v1/plans/checks", request)?, context)).await
}

/// Shows the plan until the owner agrees to it as it is then, or declines.
///
/// # Errors
/// `consent_needed` if there is no owner to ask or the answer is no, and the first problem of a plan that cannot start.
async fn agree(mut plan: TaskPlan, session: &mut Session, context: &Context) -> Result<AgreedRequest, Refusal> {
    if let Some(proof) = consent::given(context)? {
        if let Some(problem) = plan.explanation.problems.into_iter().next() {
            return Err(problem);
        }
        return Ok(agreed(plan.request, proof));
    }
    let terminal = Terminal::open().ok_or_else(consent::nobody)?;
    loop {
        consent::show(&terminal, &card(&plan), context).await?;
        match choice(&terminal, plan.explanation.problems.is_empty()).await? {
            Choice::Agree => {
                let proof = consent::at(&terminal, context).await?;
                return Ok(agreed(plan.request, proof));
            }
            Choice::Edit => plan = edit::edit(plan, &terminal, session, context).await?,
            Choice::Decline => {
                return Err(plan.explanation.problems.into_iter().next().unwrap_or_else(consent::declined));
            }
        }
    }
}

fn agreed(request: ActRequest, proof: OwnerProof) -> AgreedRequest {
    // A request whose answer was lost is sent again: without a key that would be a second run.
    let key = Some(format!("cli-{:016x}", Random::from_system().next_u64()));
    AgreedRequest { request: ActRequest { key, ..request }, proof }
}

enum Choice {
    Agree,
    Edit,
    Decline,
}

/// How often an unclear answer is asked for again.
const QUESTIONS: u32 = 3;

async fn choice(terminal: &Terminal, can_start: bool) -> Result<Choice, Refusal> {
    let prompt = if can_start {
        "start the run with exactly this? yes, edit or no? [y/e/N] "
    } else {
        "it cannot start like this. edit it, or give up? [e/N] "
    };
    for _ in 0..QUESTIONS {
        let said = terminal.ask(prompt).await.map_err(|error| consent::gone(&error))?;
        match said.as_deref().map(str::trim).map(str::to_ascii_lowercase).as_deref() {
            Some("y" | "yes") if can_start => return Ok(Choice::Agree),
            Some("e" | "edit") => return Ok(Choice::Edit),
            Some("n" | "no" | "") | None => return Ok(Choice::Decline),
            Some(_) => {}
        }
    }
    Ok(Choice::Decline)
}

//! `motor skill`: the skills in the skills directories, their possible powers, and the owner's decisions about them
//! (SPEC SKILL-6, SKILL-9, SKILL-12).
//!
//! All of a skill's own words are a stranger's. They are shown in ways that cannot be mistaken for this program's.

mod decide;
mod fetch;
mod grant;
mod list;
mod manage;
mod review;
mod show;
mod verify;
mod versions;

use agent::api::skills::{DiffRequest, ShowSkillRequest};
use clap::Subcommand;
use skills::{SkillStatus, SkillSummary};

use super::Done;
use super::context::Context;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::text;
pub(super) use manage::RemoveReply;
pub(super) use verify::is_broken;

/// Subcommands of `motor skill`.
#[derive(Debug, Subcommand)]
pub(super) enum SkillCommand {
    /// List the skills with their status, and why one may not run
    List,
    /// Show the text of a skill, with hidden characters written out
    Show {
        /// Its name, or its place as `motor skill list` shows it
        skill: String,
        /// A file of the skill [default: SKILL.md]
        file: Option<String>,
    },
    /// Show a skill, its possible powers, and its changes since it was approved
    Review(review::ReviewArgs),
    /// Approve a skill: exactly these bytes, with exactly these powers
    Approve(decide::ApproveArgs),
    /// Update a skill from the source it was added from, or change the powers of an approved one
    Update(decide::UpdateArgs),
    /// Reject a skill that waits
    Reject {
        /// Its name, or its place as `motor skill list` shows it
        skill: String,
        /// Reason for the rejection
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Remove a skill's files, and the decisions about them
    Delete {
        /// Its name, or its place
        skill: String,
    },
    /// Add a skill, not yet trusted
    Add {
        /// A directory, an archive, a `SKILL.md` or a component, or the `https` URL of one
        #[arg(value_name = "PATH|URL")]
        source: String,
    },
    /// List the known versions of a skill
    Versions {
        /// Its name, or its place
        skill: String,
    },
    /// Compare two versions of a skill: powers, then lines
    Diff {
        /// Its name, or its place
        skill: String,
        /// The beginning of the older version's hash [default: the version approved last]
        #[arg(long, value_name = "HASH")]
        from: Option<String>,
        /// The beginning of the newer version's hash [default: the present files]
        #[arg(long, value_name = "HASH")]
        to: Option<String>,
    },
    /// Restore an earlier version of a skill
    Rollback {
        /// Its name, or its place
        skill: String,
        /// The beginning of its hash [default: the version approved before]
        #[arg(long, value_name = "HASH")]
        to: Option<String>,
    },
    /// Compare every byte with the approved version; exit code 5 if something differs
    Verify {
        /// Its name, or its place [default: all]
        skill: Option<String>,
    },
}

/// A skill that a run left, and the owner's next step.
pub(super) fn left_behind(name: &str, created: bool, problem: Option<&str>) -> String {
    let (shown, called) = (text::quoted(name), crate::words::review::shell(name));
    match problem {
        Some(problem) => format!("`{shown}` was not taken over: {}", text::quoted(problem)),
        None => format!(
            "`{shown}` {}: {}; `motor skill review {called}` shows it, `motor skill approve {called}` then allows it",
            if created { "is new" } else { "has changed" },
            SkillStatus::PendingReview.as_str(),
        ),
    }
}

pub(super) async fn run(command: SkillCommand, context: &Context) -> Done {
    let command = match command {
        SkillCommand::Review(arguments) if arguments.is_advisory() => return review::advised(arguments, context).await,
        command => command,
    };
    context
        .with_host(async |session| match command {
            SkillCommand::List => {
                let skills: Vec<SkillSummary> = session.ask(&Call::get("/v1/skills")).await?;
                if skills.is_empty() && !context.output.is_json() {
                    let directory = context.place()?.home.skills();
                    context.output.say(&format!(
                        "no skills; `motor skill add DIR` adds one, or put it into `{}`",
                        directory.display()
                    ));
                    return Ok(CommandExit::Ok);
                }
                context.answer(&skills, || list::skills(&skills, context.output.columns, context.output.out))?;
                if !context.output.is_json() && skills.iter().any(|skill| skill.status != SkillStatus::Approved) {
                    let help = "`motor skill review NAME` shows one, `motor skill approve NAME` lets it act";
                    context.output.say_trusted(&context.output.err.dim(help));
                }
                Ok(CommandExit::Ok)
            }
            SkillCommand::Review(arguments) => review::facts(arguments, session, context).await,
            SkillCommand::Show { skill, file } => show::show(&ShowSkillRequest { skill, file }, session, context).await,
            SkillCommand::Approve(arguments) => decide::approve(arguments, session, context).await,
            SkillCommand::Update(arguments) => decide::update(arguments, session, context).await,
            SkillCommand::Reject { skill, reason } => manage::reject(skill, reason, session, context).await,
            SkillCommand::Delete { skill } => manage::delete(skill, session, context).await,
            SkillCommand::Add { source } => manage::add(source, session, context).await,
            SkillCommand::Versions { skill } => versions::versions(&skill, session, context).await,
            SkillCommand::Diff { skill, from, to } => {
                versions::diff(&DiffRequest { skill, from, to }, session, context).await
            }
            SkillCommand::Rollback { skill, to } => versions::rollback(skill, to.as_deref(), session, context).await,
            SkillCommand::Verify { skill } => verify::verify(skill, session, context).await,
        })
        .await
}

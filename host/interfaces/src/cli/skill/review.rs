//! `motor skill review`: the facts, and with `--advisory` a read-only run's opinion of them (SPEC SKILL-9).

use agent::api::skills::{ApprovalQuestion, ReviewRequest, SkillReviewReply};
use base::{Refusal, RefusalCode, RunId};
use clap::Args;
use serde_json::json;
use skills::SkillSummary;
use skills::review::SkillReview;

use super::super::context::Context;
use super::super::follow::{FollowOutcome, follow};
use super::super::{Done, consent};
use crate::client::Call;
use crate::exit::CommandExit;
use crate::session::Session;
use crate::words::review::review as review_text;

/// Arguments of `motor skill review`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ReviewArgs {
    /// Its name, or its place as `motor skill list` shows it
    skill: String,
    /// Also let a read-only run review it; without a clear verdict it does not pass
    #[arg(long)]
    advisory: bool,
}

impl ReviewArgs {
    /// Whether a run is to be followed, which is another matter than a request.
    pub(super) fn is_advisory(&self) -> bool {
        self.advisory
    }
}

/// Shows the facts about a skill.
pub(super) async fn facts(arguments: ReviewArgs, session: &mut Session, context: &Context) -> Done {
    let reply = ask(&arguments.skill, false, session, context).await?;
    show(&reply, &arguments.skill, context)?;
    Ok(CommandExit::Ok)
}

/// The facts, once a run has looked at them.
pub(super) async fn advised(arguments: ReviewArgs, context: &Context) -> Done {
    let mut session = Session::open(context.place()?).await?;
    let done = looked_at(&arguments.skill, &mut session, context).await;
    context.leave(session, done).await
}

async fn looked_at(skill: &str, session: &mut Session, context: &Context) -> Done {
    let reply = ask(skill, true, session, context).await?;
    let Some(run) = reply.run_id.clone() else {
        show(&reply, skill, context)?;
        return Ok(CommandExit::Ok);
    };
    context.wishes.listen().await;
    context.output.say_trusted(&context.output.err.dim(&format!("run {run}")));
    match follow(session, &run, context).await? {
        FollowOutcome::Ended(_) => {}
        FollowOutcome::Interrupted { .. } => return Ok(CommandExit::Interrupted),
        FollowOutcome::HostGone { .. } => {
            let refusal = Refusal::new(RefusalCode::TryLater, format!("the host stopped; run {run} is not over"));
            return Err(refusal.with_remedy(format!("`motor act --resume {run}` goes on with it")).into());
        }
    }
    let after = SkillReviewReply { review: renewed(reply.review, session).await?, run_id: Some(run.clone()) };
    show(&after, skill, context)?;
    Ok(if passed(&after, &run) { CommandExit::Ok } else { CommandExit::Failed })
}

/// The facts with the run's opinion, and the resulting status. A second review request would complete a review, even if
/// the run objected: so the status is looked up by a question, which changes nothing.
async fn renewed(review: SkillReview, session: &mut Session) -> Result<SkillReview, Refusal> {
    let place = review.place.to_string();
    let question: ApprovalQuestion =
        session.ask(&Call::post("/v1/skills/questions", &json!({ "skill": place }))?).await?;
    let all: Vec<SkillSummary> = session.ask(&Call::get("/v1/skills")).await?;
    let now = all.into_iter().find(|skill| skill.place == review.place && skill.hash == Some(review.hash));
    let Some(now) = now.filter(|_| question.hash == review.hash) else {
        let refusal = Refusal::new(RefusalCode::SkillUntrusted, "the skill changed while the run looked at it");
        return Err(refusal.with_remedy("look at it again"));
    };
    Ok(SkillReview { status: now.status, reason: now.reason, advisory: question.advisory, ..review })
}

async fn ask(
    skill: &str,
    advisory: bool,
    session: &mut Session,
    context: &Context,
) -> Result<SkillReviewReply, Refusal> {
    let request = ReviewRequest { skill: skill.to_owned(), advisory };
    let agent = context.agent();
    session.ask(&consent::signed(Call::post(format!("/v1/skills/reviews?agent={agent}"), &request)?, context)).await
}

fn show(reply: &SkillReviewReply, called: &str, context: &Context) -> Result<(), super::super::CliError> {
    context.answer(reply, || review_text(&reply.review, called, context.output.columns, context.output.out))
}

/// Whether this very run found nothing against these very bytes.
fn passed(reply: &SkillReviewReply, run: &RunId) -> bool {
    reply.review.advisory.as_ref().is_some_and(|advisory| advisory.run_id == *run && advisory.passed)
}

//! `motor skill add`, `reject`, `delete`: adding skills, and taking them away.

use agent::api::skills::{AddRequest, RejectRequest, WhichSkill};
use base::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skills::{SkillPlace, SkillSummary};

use super::super::Done;
use super::super::consent::confirm;
use super::super::context::{Context, usage};
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::text;
use crate::session::Session;
use crate::words::card::{Card, Tone};
use crate::words::facts;
use crate::words::review::shell;

/// Runs `motor skill add`. A local skill is copied without a question, because that gives it no trust; for a download
/// the host wants the owner's word.
pub(super) async fn add(source: String, session: &mut Session, context: &Context) -> Done {
    let fetched = source.contains("://");
    let request = AddRequest { source: if fetched { source } else { absolute(&source)? } };
    let mut call = Call::post("/v1/skills", &request)?;
    if fetched {
        let card = Card::new("fetch a skill?").with("from", text::quoted(&request.source)).toned(
            Tone::Calm,
            "means",
            "it is put beside the others and nobody trusts it: `motor skill approve` comes after",
        );
        call = call.with(confirm(&card, context).await?);
    }
    let added: SkillSummary = session.ask(&call).await?;
    context.answer(&added, || {
        let place = added.place.to_string();
        let name = added.name.as_deref().unwrap_or(&place);
        let review = format!("`motor skill review {}` shows what it could do", shell(&place));
        format!("{} is added and {}; {review}", text::quoted(name), added.status)
    })?;
    Ok(CommandExit::Ok)
}

/// A path made absolute, so that it does not depend on the host's working directory.
fn absolute(path: &str) -> Result<String, Refusal> {
    let wrong = || usage(format!("`{}` is not a path", text::quoted(path)), "write the path of a skill, or its URL");
    let absolute = std::path::absolute(path).map_err(|_| wrong())?;
    absolute.to_str().map(str::to_owned).ok_or_else(wrong)
}

/// Runs `motor skill reject`.
pub(super) async fn reject(skill: String, reason: Option<String>, session: &mut Session, context: &Context) -> Done {
    let mut card = about("reject", &skill, session).await?;
    if let Some(reason) = &reason {
        card = card.with("reason", text::quoted(reason));
    }
    let means = "it waits for another version or another review, and credentials that its runs saved are removed";
    let word = confirm(&card.toned(Tone::Warning, "means", means), context).await?;
    let call = Call::post("/v1/skills/rejections", &RejectRequest { skill: skill.clone(), reason })?.with(word);
    let rejected: SkillSummary = session.ask(&call).await?;
    context.answer(&rejected, || format!("{} is rejected; it is {}", text::quoted(&skill), rejected.status))?;
    Ok(CommandExit::Ok)
}

/// That a skill is gone.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(in crate::cli) struct RemoveReply {
    place: SkillPlace,
}

/// Runs `motor skill delete`. An unreadable skill can be deleted as well, by its place.
pub(super) async fn delete(skill: String, session: &mut Session, context: &Context) -> Done {
    let card = about("delete", &skill, session).await?;
    let card = card.toned(Tone::Alarm, "means", "its files are removed, and what was decided about them is forgotten");
    let word = confirm(&card, context).await?;
    let gone: RemoveReply = session.ask(&Call::post("/v1/skills/deletions", &WhichSkill { skill })?.with(word)).await?;
    context.answer(&gone, || format!("{} is deleted", text::quoted(&gone.place.to_string())))?;
    Ok(CommandExit::Ok)
}

/// The card of a decision about a skill: place, status and hash of each that is called so.
async fn about(verb: &str, skill: &str, session: &mut Session) -> Result<Card, Refusal> {
    let all: Vec<SkillSummary> = session.ask(&Call::get("/v1/skills")).await?;
    let mut card = Card::new(format!("{verb} the skill `{}`?", text::quoted(skill)));
    for one in all.iter().filter(|one| is_called(one, skill)) {
        card = card.with("place", text::quoted(&one.place.to_string()));
        card = card.toned(facts::tone(one.status), "status", one.status.as_str());
        if let Some(hash) = one.hash {
            card = card.with("hash", hash.hex());
        }
    }
    Ok(card)
}

fn is_called(skill: &SkillSummary, selector: &str) -> bool {
    skill.place.to_string() == selector || skill.name.as_deref() == Some(selector)
}

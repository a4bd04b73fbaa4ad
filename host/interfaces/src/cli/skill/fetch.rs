//! `motor skill update` without powers: the files of skills, from the sources they were added from (SPEC SKILL-13).

use agent::api::skills::{FetchOutcome, FetchRequest, SkillFetch, SkillVersion};
use base::Refusal;
use skills::SkillSummary;

use super::super::Done;
use super::super::consent::confirm;
use super::super::context::Context;
use super::versions;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::text;
use crate::session::Session;
use crate::words::card::{Card, Tone};
use crate::words::review::shell;

/// Updates one skill, or every skill with a source (`None`). One that fails does not stop the others.
pub(super) async fn fetch(skill: Option<String>, check: bool, session: &mut Session, context: &Context) -> Done {
    let Some(skill) = skill else { return all(check, session, context).await };
    let fetched = one(&skill, check, session, context).await?;
    context.answer(&fetched, || told(&fetched, &skill, context))?;
    Ok(CommandExit::Ok)
}

async fn all(check: bool, session: &mut Session, context: &Context) -> Done {
    let skills: Vec<SkillSummary> = session.ask(&Call::get("/v1/skills")).await?;
    let (mut found, mut has_failed) = (Vec::new(), false);
    for place in skills.iter().filter(|skill| skill.readable).map(|skill| skill.place.full()) {
        if source(&place, session).await?.is_none() {
            continue;
        }
        match one(&place, check, session, context).await {
            Ok(fetched) => found.push(fetched),
            Err(refusal) => {
                context.output.warn(&format!("{}: {}", text::quoted(&place), text::quoted(&refusal.to_string())));
                has_failed = true;
            }
        }
    }
    let pages = || match found.as_slice() {
        [] if has_failed => "no skill was compared with its source".to_owned(),
        [] => "no skill has a recorded source; `motor skill add` records one".to_owned(),
        found => {
            let pages: Vec<String> =
                found.iter().map(|fetched| told(fetched, &fetched.place.to_string(), context)).collect();
            pages.join("\n")
        }
    };
    context.answer(&found, pages)?;
    Ok(if has_failed { CommandExit::Failed } else { CommandExit::Ok })
}

async fn one(skill: &str, check: bool, session: &mut Session, context: &Context) -> Result<SkillFetch, Refusal> {
    let source = source(skill, session).await?;
    let request = FetchRequest { skill: skill.to_owned(), check };
    let mut call = Call::post("/v1/skills/fetches", &request)?;
    // Reading a local directory changes nothing and takes no question; without a source the host says so.
    if let Some(source) = source.filter(|source| !check || source.contains("://")) {
        let means = match check {
            true => "the source is fetched and compared, and nothing is changed",
            false => {
                "the files of the source replace those in place, which are kept; `motor skill approve` comes after"
            }
        };
        let card = Card::new(format!("get the skill `{}` from its source?", text::quoted(skill)))
            .with("from", text::quoted(&source))
            .toned(Tone::Calm, "means", means);
        call = call.with(confirm(&card, context).await?);
    }
    session.ask(&call).await
}

/// The source of the latest version that has one.
async fn source(skill: &str, session: &mut Session) -> Result<Option<String>, Refusal> {
    let versions: Vec<SkillVersion> = versions::all(skill, session).await?;
    let latest =
        versions.into_iter().max_by_key(|version| (version.source.is_some(), version.in_place, version.changed_at));
    Ok(latest.and_then(|version| version.source))
}

fn told(fetched: &SkillFetch, called: &str, context: &Context) -> String {
    let SkillFetch { source, outcome, from, to, status, .. } = fetched;
    let (name, source) = (fetched.name.as_str(), text::quoted(source));
    let changes = fetched.diff.as_ref();
    let changes = changes.map(|diff| versions::compared(diff, context.output.columns, context.output.out));
    let here = if fetched.changed_here { "; its files were changed here before" } else { "" };
    let called = shell(called);
    let end = match outcome {
        FetchOutcome::Unchanged => format!("{name} is what {source} has, {}", from.short()),
        FetchOutcome::Newer => {
            format!("{name} is {} and {source} has {}; `motor skill update {called}` gets it", from.short(), to.short())
        }
        FetchOutcome::Updated => {
            let next = format!("`motor skill review {called}` shows all of it");
            format!("{name} is now {} from {source}, and {status}; {next}", to.short())
        }
    };
    let end = text::wrapped(&format!("{end}{here}"), context.output.columns).join("\n");
    format!("{}{end}", changes.map(|changes| format!("{changes}\n")).unwrap_or_default())
}

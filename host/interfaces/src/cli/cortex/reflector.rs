//! `motor cortex reflector`: which component builds the prompts and reads the replies (SPEC CX-3).

use agent::{ApproveReflector, ReflectorStatus, ReflectorSummary, RevokeReflector};
use base::text::Foreign;
use base::{ContentHash, Refusal, RefusalCode};
use clap::{Args, Subcommand};
use cortex::ReflectorName;

use super::super::Done;
use super::super::consent::{confirm, unasked};
use super::super::context::Context;
use super::MAX_SHOWN;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::table::TextTable;
use crate::session::Session;
use crate::words::card::{Card, Tone};

/// Subcommands of `motor cortex reflector`.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ReflectorCommand {
    /// List the bundled reflector and those in the home
    List,
    /// Approve the present bytes of a reflector; `cortex.reflector` selects it
    Approve(NamedReflector),
    /// Withdraw the approval of a reflector
    Revoke(NamedReflector),
}

/// Argument of the commands about one reflector.
#[derive(Debug, Args)]
pub(in crate::cli) struct NamedReflector {
    /// Its name: that of its file in `reflectors` of the home, without `.wasm`
    name: ReflectorName,
}

pub(super) async fn run(command: ReflectorCommand, session: &mut Session, context: &Context) -> Done {
    match command {
        ReflectorCommand::List => {
            let found: Vec<ReflectorSummary> = session.ask(&Call::get("/v1/cortex/reflectors")).await?;
            context.answer(&found, || list(&found, context.output.columns))?;
        }
        ReflectorCommand::Approve(NamedReflector { name }) => {
            let found: Vec<ReflectorSummary> = session.ask(&Call::get("/v1/cortex/reflectors")).await?;
            let found = found.into_iter().find(|reflector| reflector.name.as_ref() == Some(&name));
            let (found, hash) = approvable(&name, found)?;
            let word = confirm(&card(&name, &found), context).await?;
            let request = ApproveReflector { name: name.clone(), hash };
            let call = Call::post("/v1/cortex/reflectors/approvals", &request)?.with(word);
            let approved: ReflectorSummary = session.ask(&call).await?;
            context.answer(&approved, || match approved.is_selected {
                true => format!("{name} is approved, and used from the next cycle on"),
                false => format!("{name} is approved; `reflector = \"{name}\"` under `[cortex]` selects it"),
            })?;
        }
        ReflectorCommand::Revoke(NamedReflector { name }) => {
            let request = RevokeReflector { name: name.clone() };
            let call = Call::post("/v1/cortex/reflectors/revocations", &request)?.with(unasked(context).await?);
            let left: Vec<ReflectorSummary> = session.ask(&call).await?;
            context.answer(&left, || format!("{name} is no longer approved"))?;
        }
    }
    Ok(CommandExit::Ok)
}

/// The reflector to ask about, with the hash of its bytes.
fn approvable(
    name: &ReflectorName,
    found: Option<ReflectorSummary>,
) -> Result<(ReflectorSummary, ContentHash), Refusal> {
    let missing = || {
        Refusal::new(RefusalCode::NotFound, format!("there is no reflector `{name}`"))
            .with_remedy(format!("put its component at `reflectors/{name}.wasm` in the home"))
    };
    let found = found.ok_or_else(missing)?;
    match (&found.problem, found.hash) {
        (None, Some(hash)) => Ok((found, hash)),
        (Some(problem), Some(_)) => Err(Refusal::new(RefusalCode::InvalidComponent, problem.clone())),
        (_, None) => Err(missing()),
    }
}

fn card(name: &ReflectorName, found: &ReflectorSummary) -> Card {
    let mut card = Card::new(format!("approve the reflector `{name}`?"));
    if found.status == ReflectorStatus::Changed {
        card = card.toned(Tone::Warning, "changed", "its bytes are not those that were approved before");
    }
    let hash = found.hash.map(|hash| hash.hex()).unwrap_or_default();
    card.with("reaches", "nothing: no files, no network, no clock")
        .with("sees", "summaries of what peers wrote, and the replies of the cortex's model")
        .with("decides", "which proposals a reply has; the host limits each of them")
        .with("size", format!("{} bytes", found.size_bytes))
        .with("hash", hash)
}

fn list(found: &[ReflectorSummary], columns: usize) -> String {
    let mut table = TextTable::new(&["NAME", "STATUS", "HASH", "USED", "PROBLEM"]);
    for ReflectorSummary { name, hash, status, is_selected, problem, .. } in found {
        let name = name.as_ref().map_or_else(|| "(bundled)".to_owned(), ToString::to_string);
        let hash = hash.map_or_else(|| "-".to_owned(), |hash| hash.short());
        let problem = problem.as_deref().map(|problem| Foreign(problem).visible(MAX_SHOWN)).unwrap_or_default();
        let used = if *is_selected { "yes" } else { "" };
        table.row([name, words(*status).to_owned(), hash, used.to_owned(), problem]);
    }
    table.render(columns)
}

fn words(status: ReflectorStatus) -> &'static str {
    match status {
        ReflectorStatus::Bundled => "bundled",
        ReflectorStatus::Approved => "approved",
        ReflectorStatus::Unapproved => "unapproved",
        ReflectorStatus::Changed => "changed",
        ReflectorStatus::Missing => "missing",
        ReflectorStatus::Unusable => "unusable",
    }
}

//! `motor cortex commitments|done|drop|directives|dismiss|signals`: the guidance of reflections (SPEC CX-10).

use base::text::Foreign;
use clap::Args;
use cortex::{Commitment, CortexNotice, CortexSignal, Directive, Promiser};

use super::super::CliError;
use super::super::consent::unasked;
use super::super::context::Context;
use super::MAX_SHOWN;
use crate::client::Call;
use crate::http::{CloseCommitment, RemoveDirective};
use crate::output::table::TextTable;
use crate::output::text;
use crate::session::Session;

/// Arguments of commands about one commitment or directive.
#[derive(Debug, Args)]
pub(in crate::cli) struct KeyArgs {
    /// Key in the list
    #[arg(value_name = "KEY")]
    key: String,
}

pub(super) async fn commitments(session: &mut Session, context: &Context) -> Result<(), CliError> {
    let path = format!("/v1/cortex/commitments?agent={}", context.agent());
    let commitments: Vec<Commitment> = session.ask(&Call::get(path)).await?;
    context.answer(&commitments, || list(&commitments, context.output.columns))
}

pub(super) async fn close(
    KeyArgs { key }: KeyArgs,
    kept: bool,
    session: &mut Session,
    context: &Context,
) -> Result<(), CliError> {
    let request = CloseCommitment { agent: context.agent(), key, kept };
    let call = Call::post("/v1/cortex/commitment-closings", &request)?.with(unasked(context).await?);
    let left: Vec<Commitment> = session.ask(&call).await?;
    context.answer(&left, || list(&left, context.output.columns))
}

pub(super) async fn directives(session: &mut Session, context: &Context) -> Result<(), CliError> {
    let path = format!("/v1/cortex/directives?agent={}", context.agent());
    let directives: Vec<Directive> = session.ask(&Call::get(path)).await?;
    context.answer(&directives, || advice(&directives, context.output.columns))
}

pub(super) async fn dismiss(
    KeyArgs { key }: KeyArgs,
    session: &mut Session,
    context: &Context,
) -> Result<(), CliError> {
    let request = RemoveDirective { agent: context.agent(), key };
    let call = Call::post("/v1/cortex/directive-removals", &request)?.with(unasked(context).await?);
    let left: Vec<Directive> = session.ask(&call).await?;
    context.answer(&left, || advice(&left, context.output.columns))
}

pub(super) async fn signals(limit: usize, session: &mut Session, context: &Context) -> Result<(), CliError> {
    let path = format!("/v1/cortex/signals?agent={}&limit={limit}", context.agent());
    let signals: Vec<CortexSignal> = session.ask(&Call::get(path)).await?;
    context.answer(&signals, || told(&signals, context.output.columns))
}

fn list(commitments: &[Commitment], columns: usize) -> String {
    if commitments.is_empty() {
        return "no commitments".to_owned();
    }
    let mut table = TextTable::new(&["KEY", "STATUS", "DUE", "BY", "PEER", "PROMISE"]);
    for Commitment { key, text: promise, by, peer, due_at, status, .. } in commitments {
        let by = match by {
            Promiser::Agent => "agent",
            Promiser::Peer => "peer",
        };
        table.row([
            key.clone(),
            status.as_str().to_owned(),
            text::seconds(*due_at),
            by.to_owned(),
            peer.to_string(),
            Foreign(promise).visible(MAX_SHOWN),
        ]);
    }
    table.render(columns)
}

fn advice(directives: &[Directive], columns: usize) -> String {
    if directives.is_empty() {
        return "no directives".to_owned();
    }
    let mut table = TextTable::new(&["KEY", "PEER", "GIVEN", "ADVICE"]);
    for Directive { key, text: advice, peer, given_at, .. } in directives {
        let peer = peer.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
        table.row([key.clone(), peer, text::seconds(*given_at), Foreign(advice).visible(MAX_SHOWN)]);
    }
    table.render(columns)
}

fn told(signals: &[CortexSignal], columns: usize) -> String {
    if signals.is_empty() {
        return "no signals".to_owned();
    }
    let mut table = TextTable::new(&["ID", "AT", "KIND", "SIGNAL"]);
    for CortexSignal { id, at, event } in signals {
        let (kind, told) = match event {
            CortexNotice::CommitmentOverdue { key, peer, text: promise, due_at } => {
                let promise = Foreign(promise).visible(MAX_SHOWN);
                ("commitment_overdue", format!("{key} ({peer}), due {}: {promise}", text::seconds(*due_at)))
            }
            CortexNotice::Directive { key, peer, text: advice, .. } => {
                let about = peer.as_ref().map(|peer| format!(" ({peer})")).unwrap_or_default();
                ("directive", format!("{key}{about}: {}", Foreign(advice).visible(MAX_SHOWN)))
            }
            CortexNotice::SoulDrift { finding, cycle } => {
                ("soul_drift", format!("cycle {cycle}: {}", Foreign(finding).visible(MAX_SHOWN)))
            }
            // A newer host at the other end.
            _ => ("unknown", "-".to_owned()),
        };
        table.row([id.to_string(), text::seconds(*at), kind.to_owned(), told]);
    }
    table.render(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_models_stays_on_its_line() {
        let commitments: Vec<Commitment> = serde_json::from_value(serde_json::json!([{
            "key": "ben-table", "text": "the table\n\u{1b}[2J", "by": "peer", "peer": "ben", "channel": "http", "saidAt": 0,
            "dueAt": 60_000, "cycle": 1, "status": "overdue",
        }]))
        .unwrap();
        let shown = list(&commitments, 200);
        assert!(shown.lines().count() == 2 && shown.contains("overdue") && !shown.contains('\u{1b}'), "{shown}");
        assert_eq!((list(&[], 80), advice(&[], 80)), ("no commitments".to_owned(), "no directives".to_owned()));
    }
}

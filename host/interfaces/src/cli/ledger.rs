//! `motor ledger`: the peers of an agent (SPEC LED-1 to LED-3).

use std::fmt::Write as _;

use base::text::Foreign;
use base::{RefusalCode, Timestamp};
use clap::{Args, Subcommand};
use cognition::{MAX_MEMORIES, Memory};
use ledger::{Assessment, AssessmentSource, ChannelName, Direction, ForgottenPeer, PeerId, PeerReport, PeerSummary};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::Done;
use super::consent::{confirm, unasked};
use super::context::Context;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::http::{NewJudgement, NewNote};
use crate::output::table::TextTable;
use crate::output::text;
use crate::words::card::Card;

/// Characters of a summary or a rationale on the screen.
const MAX_SHOWN: usize = 300;

/// Subcommands of `motor ledger`.
#[derive(Debug, Subcommand)]
pub(super) enum LedgerCommand {
    /// List the peers with counts, information score and trust
    List(ListArgs),
    /// Show a peer with its latest interactions and assessments
    Show {
        /// Id of the peer
        peer: PeerId,
    },
    /// Note an interaction that took place outside of this host
    Note(NoteArgs),
    /// Assess a peer; the information score is computed
    Assess {
        /// Id of the peer
        peer: PeerId,
        /// Trust from -10 to 10
        #[arg(allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(-10..=10))]
        trust: i64,
        /// Reasons for the judgement
        #[arg(long, value_name = "TEXT")]
        why: String,
    },
    /// Delete everything about a peer; a note without its id stays
    Forget {
        /// Id of the peer
        peer: PeerId,
    },
}

/// Arguments of `motor ledger list`.
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Number of peers, at most 1000
    #[arg(long, default_value_t = 100, value_name = "N")]
    limit: usize,
    /// Peers after this id
    #[arg(long, value_name = "PEER")]
    after: Option<PeerId>,
    /// When peers were forgotten, instead
    #[arg(long, conflicts_with_all = ["limit", "after"])]
    forgotten: bool,
}

/// Arguments of `motor ledger note`.
#[derive(Debug, Args)]
pub(super) struct NoteArgs {
    /// Id of the peer, such as `npub1x9k` or `@mai:example.org`
    peer: PeerId,
    /// Summary, of which 280 characters are kept
    summary: String,
    /// From the agent to the peer [default: from the peer to the agent]
    #[arg(long)]
    outgoing: bool,
    /// Channel that it went through
    #[arg(long, value_name = "NAME", default_value = "note")]
    channel: ChannelName,
}

pub(super) async fn run(command: LedgerCommand, context: &Context) -> Done {
    context
        .with_host(async |session| {
            let agent = context.agent();
            match command {
                LedgerCommand::List(ListArgs { forgotten: true, .. }) => {
                    let path = format!("/v1/ledger/forgotten?agent={agent}");
                    let notes: Vec<ForgottenPeer> = session.ask(&Call::get(path)).await?;
                    context.answer(&notes, || forgotten(&notes, context.output.columns))?;
                }
                LedgerCommand::List(ListArgs { limit, after, .. }) => {
                    let after = after.map(|after| format!("&after={}", encoded(after.as_str()))).unwrap_or_default();
                    let path = format!("/v1/ledger/peers?agent={agent}&limit={limit}{after}");
                    let peers: Vec<PeerSummary> = session.ask(&Call::get(path)).await?;
                    context.answer(&peers, || list(&peers, context.output.columns))?;
                }
                LedgerCommand::Show { peer } => {
                    let report: PeerReport = session.ask(&Call::get(path(&peer, &format!("?agent={agent}")))).await?;
                    context.answer(&report, || show(&report))?;
                }
                LedgerCommand::Note(NoteArgs { peer, summary, outgoing, channel }) => {
                    let direction = if outgoing { Direction::Outgoing } else { Direction::Incoming };
                    let note = NewNote { agent, direction, channel, summary };
                    let call = Call::post(path(&peer, "/interactions"), &note)?.with(unasked(context).await?);
                    let report: PeerReport = session.ask(&call).await?;
                    context.answer(&report, || format!("noted: {}", counts(&report.summary)))?;
                }
                LedgerCommand::Assess { peer, trust, why } => {
                    let judgement = NewJudgement { agent, trust, rationale: why };
                    let call = Call::post(path(&peer, "/assessments"), &judgement)?.with(unasked(context).await?);
                    let recorded: Assessment = session.ask(&call).await?;
                    context.answer(&recorded, || {
                        format!("{peer}: trust {:+}, info {}/10", recorded.trust, recorded.info_score)
                    })?;
                }
                LedgerCommand::Forget { peer } => {
                    let of_agent = path(&peer, &format!("?agent={agent}"));
                    let source = format!("peer:{peer}");
                    let listing =
                        format!("/v1/memories?agent={agent}&limit={MAX_MEMORIES}&source={}", encoded(&source));
                    // Shown before the question, and an unknown peer is refused without one.
                    let memories: Vec<Memory> = session.ask(&Call::get(listing)).await?;
                    let known = match session.ask::<PeerReport>(&Call::get(of_agent.clone())).await {
                        Ok(report) => Some(report.summary),
                        Err(refusal) if refusal.code == RefusalCode::NotFound && !memories.is_empty() => None,
                        Err(refusal) => return Err(refusal.into()),
                    };
                    let word = confirm(&card(&peer, known.as_ref(), memories.len()), context).await?;
                    let note: ForgottenPeer = session.ask(&Call::delete(of_agent).with(word)).await?;
                    context.answer(&note, || format!("forgotten: {}", deleted(&note)))?;
                }
            }
            Ok(CommandExit::Ok)
        })
        .await
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn path(peer: &PeerId, rest: &str) -> String {
    format!("/v1/ledger/peers/{}{rest}", encoded(peer.as_str()))
}

/// Before a peer is forgotten. `known`: its record, if the ledger has one.
fn card(peer: &PeerId, known: Option<&PeerSummary>, memories: usize) -> Card {
    let card = Card::new("forget a peer?")
        .with("peer", peer.as_str())
        .with("known", known.map_or_else(|| "by memories alone".to_owned(), counts))
        .with("deletes", "its conversations, interactions, assessments and beliefs, for good");
    if memories == 0 {
        return card;
    }
    // A memory has all the sources of its conversation, so that the owner's own words may be among them.
    card.with(
        "and",
        format!("memories kept after text about it: {memories} (`motor memory list --source peer:{peer}`)"),
    )
}

/// The numbers of the records that were deleted with a peer.
fn deleted(note: &ForgottenPeer) -> String {
    let ForgottenPeer { interactions, assessments, conversations, memories, beliefs, .. } = note;
    let of_ledger = format!("{interactions} interactions, {assessments} assessments");
    format!("{of_ledger}, {conversations} conversations, {memories} memories, {beliefs} beliefs")
}

fn counts(peer: &PeerSummary) -> String {
    let PeerSummary { incoming, outgoing, first_seen_at, .. } = peer;
    format!("{incoming} incoming and {outgoing} outgoing interactions since {}", text::seconds(*first_seen_at))
}

fn trust(trust: Option<i8>) -> String {
    trust.map_or_else(|| "-".to_owned(), |trust| format!("{trust:+}"))
}

fn list(peers: &[PeerSummary], columns: usize) -> String {
    if peers.is_empty() {
        return "no peers".to_owned();
    }
    let mut table = TextTable::new(&["PEER", "INFO", "TRUST", "IN", "OUT", "LAST SEEN"]);
    for peer in peers {
        table.row([
            peer.peer.to_string(),
            format!("{}/10", peer.info_score),
            trust(peer.trust),
            peer.incoming.to_string(),
            peer.outgoing.to_string(),
            text::seconds(peer.last_seen_at),
        ]);
    }
    table.render(columns)
}

fn forgotten(notes: &[ForgottenPeer], columns: usize) -> String {
    if notes.is_empty() {
        return "no peer was forgotten".to_owned();
    }
    let mut table = TextTable::new(&["FORGOTTEN", "HASH OF THE PEER", "DELETED"]);
    for note in notes {
        table.row([text::seconds(note.at), note.peer_hash.short(), deleted(note)]);
    }
    table.render(columns)
}

fn show(report: &PeerReport) -> String {
    let PeerReport { summary, recent_assessments, recent_interactions, .. } = report;
    let mut shown = format!(
        "{}: info {}/10, trust {}\n{}, last {}",
        summary.peer,
        summary.info_score,
        trust(summary.trust),
        counts(summary),
        text::seconds(summary.last_seen_at)
    );
    let mut line = |at: Timestamp, words: &str, foreign: &str| {
        // Writing to a string cannot fail.
        write!(shown, "\n  {}  {words}  {}", text::seconds(at), Foreign(foreign).visible(MAX_SHOWN)).ok();
    };
    for Assessment { created_at, trust, info_score, source, rationale, .. } in recent_assessments {
        let author = match source {
            AssessmentSource::Owner => "owner",
            AssessmentSource::Cortex => "cortex",
            _ => "agent",
        };
        line(*created_at, &format!("trust {trust:+} (info {info_score}, by {author})"), rationale);
    }
    for entry in recent_interactions {
        let arrow = if entry.direction == Direction::Incoming { "from" } else { "to" };
        line(entry.at, &format!("{arrow} the peer ({})", entry.channel), &entry.summary);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_strangers_stays_on_its_line() {
        let report: PeerReport = serde_json::from_value(serde_json::json!({
            "peer": "mai", "firstSeenAt": 0, "lastSeenAt": 0, "incoming": 1, "outgoing": 0, "assessments": 1,
            "infoScore": 1, "trust": -3, "trajectory": [], "prompt": "",
            "recentAssessments": [{ "number": 1, "infoScore": 1, "trust": -3, "rationale": "late\u{1b}[2J\nagain",
                "createdAt": 0, "source": "owner" }],
            "recentInteractions": [{ "at": 0, "direction": "incoming", "channel": "note", "summary": "a\nb\u{202e}c" }],
        }))
        .unwrap();
        let shown = show(&report);
        assert_eq!(shown.lines().count(), 4, "{shown}");
        assert!(shown.contains("trust -3 (info 1, by owner)  late\u{fffd}[2J again"), "{shown}");
        assert!(shown.ends_with("from the peer (note)  a b\u{fffd}c"), "{shown}");
    }

    #[test]
    fn ids_are_one_segment_of_a_path() {
        let peer = PeerId::parse("@mai:example.org/x").unwrap();
        assert_eq!(path(&peer, "?agent=main"), "/v1/ledger/peers/%40mai%3Aexample%2Eorg%2Fx?agent=main");
    }
}

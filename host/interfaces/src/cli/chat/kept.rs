//! `motor chat list` and `motor chat forget`: the conversations that are kept (SPEC COG-1).

use base::text::Foreign;
use base::{Refusal, RefusalCode};
use clap::{Args, Subcommand};
use cognition::{ConversationSummary, ForgottenBy, ForgottenConversation};
use ledger::{ChannelName, PeerId};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::cli::Done;
use crate::cli::consent::confirm;
use crate::cli::context::Context;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::table::TextTable;
use crate::output::text;
use crate::words::card::Card;

/// Characters of the last message or reply in a list.
const MAX_LISTED: usize = 100;

/// Subcommands of `motor chat`.
#[derive(Debug, Subcommand)]
pub(super) enum ChatCommand {
    /// List the conversations with their last words and sizes
    List(ListArgs),
    /// Delete a conversation with the memories that were kept in it; a note without the peer's id stays
    Forget {
        /// Channel of the conversation
        channel: ChannelName,
        /// Peer on the other side [default: the owner]
        #[arg(long, value_name = "PEER")]
        peer: Option<PeerId>,
    },
}

/// Arguments of `motor chat list`.
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only those on this channel
    #[arg(long, value_name = "NAME")]
    channel: Option<ChannelName>,
    /// Only those with this peer
    #[arg(long, value_name = "PEER")]
    peer: Option<PeerId>,
    /// When conversations were forgotten, instead
    #[arg(long, conflicts_with_all = ["channel", "peer"])]
    forgotten: bool,
}

pub(super) async fn run(command: &ChatCommand, context: &Context) -> Done {
    context
        .with_host(async |session| {
            let (agent, columns) = (context.agent(), context.output.columns);
            match command {
                ChatCommand::List(ListArgs { forgotten: true, .. }) => {
                    let path = format!("/v1/forgotten-conversations?agent={agent}");
                    let notes: Vec<ForgottenConversation> = session.ask(&Call::get(path)).await?;
                    context.answer(&notes, || forgotten(&notes, columns))?;
                }
                ChatCommand::List(ListArgs { channel, peer, .. }) => {
                    let channel = channel.as_ref().map(|channel| format!("&channel={channel}")).unwrap_or_default();
                    let path = format!("/v1/conversations?agent={agent}{channel}{}", with(peer.as_ref()));
                    let listed: Vec<ConversationSummary> = session.ask(&Call::get(path)).await?;
                    context.answer(&listed, || list(&listed, columns))?;
                }
                ChatCommand::Forget { channel, peer } => {
                    let with = with(peer.as_ref());
                    // Shown before the question, and an unknown conversation is refused without one.
                    let path = format!("/v1/conversations?agent={agent}&channel={channel}{with}");
                    let found: Vec<ConversationSummary> = session.ask(&Call::get(path)).await?;
                    let found = found.iter().find(|one| one.peer == *peer).ok_or_else(|| unknown(channel))?;
                    let word = confirm(&card(found), context).await?;
                    let path = format!("/v1/conversations/{channel}?agent={agent}{with}");
                    let note: ForgottenConversation = session.ask(&Call::delete(path).with(word)).await?;
                    context.answer(&note, || {
                        let memories = if note.memories == 1 { "memory" } else { "memories" };
                        format!(
                            "forgotten: a conversation of {} and {} {memories}",
                            text::bytes(note.bytes),
                            note.memories
                        )
                    })?;
                }
            }
            Ok(CommandExit::Ok)
        })
        .await
}

fn with(peer: Option<&PeerId>) -> String {
    peer.map(|peer| format!("&peer={}", utf8_percent_encode(peer.as_str(), NON_ALPHANUMERIC))).unwrap_or_default()
}

fn unknown(channel: &ChannelName) -> Refusal {
    let refusal = Refusal::new(RefusalCode::NotFound, format!("there is no such conversation on `{channel}`"));
    refusal.with_remedy("see `motor chat list`; a conversation with a peer is named with `--peer`")
}

fn other_side(peer: Option<&PeerId>) -> String {
    peer.map_or_else(|| "owner".to_owned(), ToString::to_string)
}

fn last_text(one: &ConversationSummary) -> String {
    Foreign(one.last_text.as_deref().unwrap_or("-")).visible(MAX_LISTED)
}

fn last_at(one: &ConversationSummary) -> String {
    one.last_at.map_or_else(|| "-".to_owned(), text::seconds)
}

fn card(found: &ConversationSummary) -> Card {
    Card::new("forget a conversation?")
        .with("channel", found.channel.as_str())
        .with("with", other_side(found.peer.as_ref()))
        .with("size", text::bytes(found.bytes))
        .with("last", format!("{}, {}", last_text(found), last_at(found)))
        .with("deletes", "its messages, its summary and its memories for good; runs and the ledger stay")
}

fn list(listed: &[ConversationSummary], columns: usize) -> String {
    if listed.is_empty() {
        return "no conversations".to_owned();
    }
    let mut table = TextTable::new(&["CHANNEL", "WITH", "LAST", "SIZE", "STATE", "LAST WORDS"]);
    for one in listed {
        let is_busy = one.waiting > 0 || !one.runs.is_empty() || !one.questions.is_empty();
        table.row([
            one.channel.to_string(),
            other_side(one.peer.as_ref()),
            last_at(one),
            text::bytes(one.bytes),
            if is_busy { "under way" } else { "idle" }.to_owned(),
            last_text(one),
        ]);
    }
    table.render(columns)
}

fn forgotten(notes: &[ForgottenConversation], columns: usize) -> String {
    if notes.is_empty() {
        return "no conversation was forgotten".to_owned();
    }
    let mut table = TextTable::new(&["FORGOTTEN", "CHANNEL", "WITH", "BY", "SIZE", "MEMORIES", "HASH OF THE NAME"]);
    for note in notes {
        let by = match note.by {
            ForgottenBy::Owner => "owner",
            ForgottenBy::Retention => "retention",
        };
        table.row([
            text::seconds(note.at),
            note.channel.to_string(),
            if note.is_owner { "owner" } else { "peer" }.to_owned(),
            by.to_owned(),
            text::bytes(note.bytes),
            note.memories.to_string(),
            note.conversation_hash.short(),
        ]);
    }
    table.render(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_strangers_stay_on_their_line() {
        let one: ConversationSummary = serde_json::from_value(serde_json::json!({
            "channel": "matrix", "peer": "mai", "lastEvent": 3, "lastAt": 0, "lastText": "a\n\u{1b}[2Jb", "bytes": 2048,
            "waiting": 0, "runs": [], "questions": [],
        }))
        .unwrap();
        let listed = list(std::slice::from_ref(&one), 200);
        assert_eq!(listed.lines().count(), 2, "{listed}");
        assert!(listed.contains("2.0 KiB") && listed.contains("idle") && !listed.contains('\u{1b}'), "{listed}");
        assert_eq!(with(one.peer.as_ref()), "&peer=mai");
        assert_eq!(with(Some(&PeerId::parse("@mai:example.org").unwrap())), "&peer=%40mai%3Aexample%2Eorg");
    }
}

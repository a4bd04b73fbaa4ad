//! `motor memory`: the notes that an agent keeps beyond its conversations (SPEC COG-1).

use base::text::Foreign;
use clap::{Args, Subcommand};
use cognition::{MAX_MEMORIES, Memory};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::Done;
use super::consent::confirm;
use super::context::Context;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::table::TextTable;
use crate::output::text;
use crate::words::card::Card;

/// Characters of a memory in a list.
const MAX_LISTED: usize = 100;
/// Characters of a memory that is shown whole.
const MAX_SHOWN: usize = cognition::MAX_MEMORY;

/// Subcommands of `motor memory`.
#[derive(Debug, Subcommand)]
pub(super) enum MemoryCommand {
    /// List the memories, the newest first
    List(RangeArgs),
    /// Search the memories by words, best match first
    Search {
        /// Words to search for
        words: String,
        #[command(flatten)]
        range: RangeArgs,
    },
    /// Show a memory with its sources
    Show {
        /// Id of the memory
        id: String,
    },
    /// Delete a memory, or all memories with a source
    Forget {
        /// Id of the memory
        #[arg(required_unless_present = "source", conflicts_with = "source")]
        id: Option<String>,
        /// All memories with this source, such as `example.com`
        #[arg(long, value_name = "SOURCE")]
        source: Option<String>,
    },
}

/// Arguments of `motor memory list` and `motor memory search`.
#[derive(Debug, Args)]
pub(super) struct RangeArgs {
    /// Only memories with this source, such as `example.com`
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    /// Number of memories, at most 10000
    #[arg(long, default_value_t = 100, value_name = "N")]
    limit: usize,
}

pub(super) async fn run(command: MemoryCommand, context: &Context) -> Done {
    context
        .with_host(async |session| {
            let of_agent = format!("?agent={}", context.agent());
            let one = |id: &str| format!("/v1/memories/{}{of_agent}", encoded(id));
            let many = |source: &str| format!("/v1/memories{of_agent}&source={}", encoded(source));
            match command {
                MemoryCommand::List(range) => {
                    let memories: Vec<Memory> = session.ask(&Call::get(listing(&of_agent, &range, None))).await?;
                    context.answer(&memories, || list(&memories, context.output.columns))?;
                }
                MemoryCommand::Search { words, range } => {
                    let path = listing(&of_agent, &range, Some(&words));
                    let memories: Vec<Memory> = session.ask(&Call::get(path)).await?;
                    context.answer(&memories, || list(&memories, context.output.columns))?;
                }
                MemoryCommand::Show { id } => {
                    let memory: Memory = session.ask(&Call::get(one(&id))).await?;
                    context.answer(&memory, || show(&memory))?;
                }
                MemoryCommand::Forget { id, source } => {
                    let path = match (&id, &source) {
                        (Some(id), _) => one(id),
                        (None, source) => many(source.as_deref().unwrap_or_default()),
                    };
                    // Shown before the question, and an unknown memory is refused without one.
                    let found: Vec<Memory> = if id.is_some() {
                        vec![session.ask(&Call::get(path.clone())).await?]
                    } else {
                        session.ask(&Call::get(format!("{path}&limit={MAX_MEMORIES}"))).await?
                    };
                    // Memories that may have the source without its name: only the owner can tell.
                    let mut left = None;
                    if let Some(source) = &source {
                        let others = Memory::unnamed(source);
                        let path = format!("{}&limit={MAX_MEMORIES}", many(others));
                        let mut unnamed: Vec<Memory> = session.ask(&Call::get(path)).await?;
                        unnamed.retain(|memory| !memory.sources.contains(source));
                        left = words_about(unnamed.len(), others);
                    }
                    let word = confirm(&card(&found, left.as_deref()), context).await?;
                    let deleted: Vec<Memory> = session.ask(&Call::delete(path).with(word)).await?;
                    context.answer(&deleted, || forgotten(deleted.len(), left.as_deref()))?;
                }
            }
            Ok(CommandExit::Ok)
        })
        .await
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn listing(of_agent: &str, range: &RangeArgs, words: Option<&str>) -> String {
    let part =
        |name: &str, value: Option<&str>| value.map(|value| format!("&{name}={}", encoded(value))).unwrap_or_default();
    let (search, source) = (part("search", words), part("source", range.source.as_deref()));
    format!("/v1/memories{of_agent}&limit={}{search}{source}", range.limit)
}

fn counted(count: usize) -> String {
    if count == 1 { "1 memory".to_owned() } else { format!("{count} memories") }
}

/// The outcome of forgetting, with the memories that stay although they may have the source.
fn forgotten(deleted: usize, left: Option<&str>) -> String {
    let left = left.map(|left| format!("\n{left}")).unwrap_or_default();
    format!("forgotten: {}{left}", counted(deleted))
}

/// Tells of memories that do not name all the sources they have.
fn words_about(unnamed: usize, others: &str) -> Option<String> {
    let has = if unnamed == 1 { "has" } else { "have" };
    let words =
        format!("{} {has} more sources than are named: see `motor memory list --source '{others}'`", counted(unnamed));
    (unnamed > 0).then_some(words)
}

fn card(found: &[Memory], left: Option<&str>) -> Card {
    let first = found.first().map_or_else(String::new, |memory| Foreign(&memory.text).visible(MAX_LISTED));
    let card = Card::new("forget memories of the agent?")
        .with("memories", counted(found.len()))
        .with("the first", first)
        .with("deletes", "the memories for good; conversations that recalled them keep their text");
    match left {
        Some(left) => card.with("keeps", left),
        None => card,
    }
}

fn list(memories: &[Memory], columns: usize) -> String {
    if memories.is_empty() {
        return "no memories".to_owned();
    }
    let mut table = TextTable::new(&["MEMORY", "SINCE", "WEB SOURCES", "TEXT"]);
    for memory in memories {
        let sources = match memory.sources.as_slice() {
            [] => "-".to_owned(),
            [source] => Foreign(source).visible(MAX_LISTED),
            sources => format!("{} sources", sources.len()),
        };
        let text = Foreign(&memory.text).visible(MAX_LISTED);
        table.row([memory.id.clone(), text::seconds(memory.at), sources, text]);
    }
    table.render(columns)
}

fn show(memory: &Memory) -> String {
    let Memory { id, at, text, channel, sources } = memory;
    let mut shown = format!(
        "{id}: remembered {} in a conversation on {channel}\n{}",
        text::seconds(*at),
        Foreign(text).visible(MAX_SHOWN)
    );
    for source in sources {
        shown.push_str("\nafter web content of ");
        shown.push_str(&Foreign(source).visible(MAX_LISTED));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_the_web_stays_on_its_line() {
        let memory: Memory = serde_json::from_value(serde_json::json!({
            "id": "mem_1", "at": 0, "text": "a\n\u{1b}[2Jb", "channel": "chat", "sources": ["evil.example\nmem_2"],
        }))
        .unwrap();
        assert_eq!(show(&memory).lines().count(), 3, "{}", show(&memory));
        assert!(show(&memory).ends_with("after web content of evil.example mem_2"));
        let listed = list(std::slice::from_ref(&memory), 200);
        assert_eq!(listed.lines().count(), 2, "{listed}");
    }

    #[test]
    fn memories_that_may_have_the_source_unnamed_are_counted() {
        assert_eq!(forgotten(1, words_about(0, "o").as_deref()), "forgotten: 1 memory");
        let shown = forgotten(0, words_about(2, Memory::unnamed("peer:mallory")).as_deref());
        assert!(shown.starts_with("forgotten: 0 memories\n2 memories have more sources than are named"), "{shown}");
        assert!(shown.contains("`motor memory list --source 'many other sources'`"), "{shown}");
    }

    #[test]
    fn words_are_one_value_of_a_query() {
        let range = RangeArgs { source: Some("a&b".to_owned()), limit: 5 };
        assert_eq!(
            listing("?agent=main", &range, Some("tea & cake")),
            "/v1/memories?agent=main&limit=5&search=tea%20%26%20cake&source=a%26b"
        );
    }
}

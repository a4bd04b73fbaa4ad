//! `motor help`: the commands, one command, or the meaning of a term.
//!
//! The terms are those of `docs/glossary.md`, which is part of the program.

use base::text::{Foreign, did_you_mean, nearest};
use base::{Refusal, RefusalCode};
use clap::{Args, CommandFactory as _};
use serde_json::json;

use super::context::Context;
use super::{Cli, Done};
use crate::exit::CommandExit;

const GLOSSARY: &str = include_str!("../../../../docs/glossary.md");

/// Columns of a term before its meaning in the list.
const TERM_COLUMNS: usize = 17;

/// Arguments of `motor help`.
#[derive(Debug, Args)]
#[command(after_help = "`motor help terms` lists the terms of these texts with their meaning: energy, fuel, grant, …")]
pub(super) struct HelpArgs {
    /// A command, such as `task list`, a term, such as `energy`, or `terms`
    #[arg(value_name = "WORD")]
    words: Vec<String>,
}

/// A term and its meaning.
struct Term {
    name: &'static str,
    meaning: String,
}

/// The rows of the glossary's table. Links become their text.
fn terms() -> Vec<Term> {
    let rows = GLOSSARY.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let rows = rows.filter(|(name, _)| *name != "term" && !name.starts_with("---"));
    rows.map(|(name, meaning)| Term { name, meaning: without_links(meaning) }).collect()
}

fn without_links(meaning: &str) -> String {
    let mut parts = meaning.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    let text = parts.fold(first, |text, part| text + part.split_once(')').map_or(part, |(_, rest)| rest));
    text.replace('[', "")
}

pub(super) fn run(arguments: &HelpArgs, context: &Context) -> Done {
    let asked = arguments.words.join(" ");
    let mut command = Cli::command();
    command.build();
    if arguments.words.is_empty() {
        context.output.print_trusted(&format!(
            "{}\nMore: `motor help COMMAND`, `motor help terms`, `motor help TERM`.",
            command.render_help()
        ))?;
        return Ok(CommandExit::Ok);
    }
    if let Some(found) = arguments.words.iter().try_fold(&mut command, |found, word| found.find_subcommand_mut(word)) {
        context.output.print_trusted(&found.render_long_help().to_string())?;
        return Ok(CommandExit::Ok);
    }
    let terms = terms();
    if ["terms", "topics", "glossary"].contains(&asked.as_str()) {
        if context.output.is_json() {
            let all: Vec<_> =
                terms.iter().map(|Term { name, meaning }| json!({ "term": name, "meaning": meaning })).collect();
            context.output.print_json(&all)?;
        } else {
            let rows = terms.iter().map(|Term { name, meaning }| format!("{name:TERM_COLUMNS$}  {meaning}\n"));
            context.output.print_page(&rows.collect::<String>())?;
        }
        return Ok(CommandExit::Ok);
    }
    // `runs` for `run`: a reader asks as the term stands in a text.
    let singular = asked.strip_suffix('s').unwrap_or(&asked);
    let is_meant = |term: &&Term| [asked.as_str(), singular].iter().any(|asked| term.name.eq_ignore_ascii_case(asked));
    if let Some(term) = terms.iter().find(is_meant) {
        if context.output.is_json() {
            context.output.print_json(&json!({ "term": term.name, "meaning": term.meaning }))?;
        } else {
            context.output.print_page(&format!("{}: {}", term.name, term.meaning))?;
        }
        return Ok(CommandExit::Ok);
    }
    let commands: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let known = commands.iter().map(String::as_str).chain(terms.iter().map(|term| term.name));
    let meant = did_you_mean(nearest(&asked, known.map(|word| (word, word))));
    let reason = format!("`{}` is no command and no term{meant}", Foreign(&asked).escaped(60));
    Err(Refusal::new(RefusalCode::NotFound, reason)
        .with_remedy("`motor help` lists the commands, `motor help terms` the terms")
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_glossary_is_a_term() {
        let terms = terms();
        let rows = GLOSSARY.lines().filter(|line| line.starts_with("| ")).count();
        assert_eq!(terms.len(), rows - 2);
        for word in ["energy", "fuel", "home", "gate", "grant", "signal", "receipt", "attempt", "approval", "consent"] {
            assert!(terms.iter().any(|term| term.name == word), "{word}");
        }
        assert!(terms.iter().all(|term| !term.meaning.contains('[') && !term.meaning.contains("](")));
    }

    #[test]
    fn links_become_their_text() {
        assert_eq!(without_links("see [a](b.md) and [c](d#e); end"), "see a and c; end");
        assert_eq!(without_links("plain"), "plain");
    }
}

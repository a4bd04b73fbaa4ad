//! `motor help`: the commands, one command, or the meaning of a term.
//!
//! The terms are those of `docs/glossary.md`, which is part of the program.

use base::text::{Foreign, did_you_mean, nearest};
use base::{Refusal, RefusalCode};
use clap::{Args, CommandFactory as _};

use super::answers::Term;
use super::context::Context;
use super::{Cli, Done, documents};
use crate::exit::CommandExit;

const GLOSSARY: &str = include_str!("../../../../docs/glossary.md");

/// Columns of a term before its meaning in the list.
const TERM_COLUMNS: usize = 17;

/// Arguments of `motor help`.
#[derive(Debug, Args)]
#[command(
    after_help = "`motor help terms` lists the terms of these texts with their meaning: energy, fuel, grant, …\n`motor help json --json` prints a JSON Schema for the output of each command"
)]
pub(super) struct HelpArgs {
    /// A command, such as `task list`, a term, such as `energy`, `terms`, or `json`: the outputs with `--json`
    #[arg(value_name = "WORD")]
    words: Vec<String>,
}

/// The rows of the glossary's table. Links become their text.
fn terms() -> Vec<Term> {
    let rows = GLOSSARY.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let rows = rows.filter(|(name, _)| *name != "term" && !name.starts_with("---"));
    rows.map(|(name, meaning)| Term { name, meaning: without_links(meaning) }).collect()
}

/// `[text](address)` becomes its text; other brackets, as of a section of the configuration, stay.
fn without_links(meaning: &str) -> String {
    let (mut text, mut rest) = (String::new(), meaning);
    while let Some((before, after)) = rest.split_once('[') {
        text.push_str(before);
        let link = after.split_once("](").and_then(|(label, after)| Some((label, after.split_once(')')?.1)));
        match link.filter(|(label, _)| !label.contains(']')) {
            Some((label, after)) => {
                text.push_str(label);
                rest = after;
            }
            None => {
                text.push('[');
                rest = after;
            }
        }
    }
    text + rest
}

/// The term that a reader asks for, also as `runs` for `run`: as it stands in a text.
fn term_of<'a>(terms: &'a [Term], asked: &str) -> Option<&'a Term> {
    let singular = asked.strip_suffix('s').unwrap_or(asked);
    terms.iter().find(|term| [asked, singular].iter().any(|asked| term.name.eq_ignore_ascii_case(asked)))
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
    let terms = terms();
    let term = term_of(&terms, &asked);
    if let Some(term) = term.filter(|_| context.output.is_json()) {
        context.output.print_json(term)?;
        return Ok(CommandExit::Ok);
    }
    if let Some(found) = arguments.words.iter().try_fold(&mut command, |found, word| found.find_subcommand_mut(word)) {
        // A word may be a term and a command: `energy`, `skill`.
        if let Some(Term { name, meaning }) = term {
            context.output.print_page(&format!("{name}: {meaning}"))?;
            context.output.print_trusted("\n")?;
        }
        context.output.print_trusted(&found.render_long_help().to_string())?;
        return Ok(CommandExit::Ok);
    }
    if asked == "json" {
        let documents = documents::all();
        context.answer(&documents, || documents.page())?;
        return Ok(CommandExit::Ok);
    }
    if ["terms", "topics", "glossary"].contains(&asked.as_str()) {
        if context.output.is_json() {
            context.output.print_json(&terms)?;
        } else {
            let rows = terms.iter().map(|Term { name, meaning }| format!("{name:TERM_COLUMNS$}  {meaning}\n"));
            context.output.print_page(&rows.collect::<String>())?;
        }
        return Ok(CommandExit::Ok);
    }
    if let Some(Term { name, meaning }) = term {
        context.output.print_page(&format!("{name}: {meaning}"))?;
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
        assert!(terms.iter().all(|term| !term.meaning.contains("](")));
        let section = |name, words| terms.iter().any(|term| term.name == name && term.meaning.contains(words));
        assert!(section("cap", "(`[budget] usd`, `usd_day`)") && section("limit", "(`[limits]`)"));
    }

    #[test]
    fn links_become_their_text() {
        assert_eq!(without_links("see [a](b.md) and [c](d#e); end"), "see a and c; end");
        assert_eq!(without_links("plain"), "plain");
        assert_eq!(without_links("a cap (`[budget] usd`); see [a](b.md)"), "a cap (`[budget] usd`); see a");
        assert_eq!(without_links("a list [1] and [half](open"), "a list [1] and [half](open");
    }
}

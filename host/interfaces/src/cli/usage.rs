//! Usage errors: text as clap writes it, and with `--json` a refusal like every other (SPEC CLI-0).

use std::ffi::OsStr;

use base::Refusal;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use super::context::usage;

/// Whether the arguments ask for JSON. They cannot be parsed, so that only the word itself counts; behind `--` it is a value.
pub(super) fn wants_json<'a>(arguments: impl IntoIterator<Item = &'a OsStr>) -> bool {
    arguments.into_iter().take_while(|argument| *argument != "--").any(|argument| argument == "--json")
}

/// The refusal of a usage error. `None` for the help and the version, which are answers.
pub(super) fn refusal(error: &Error) -> Option<Refusal> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => return None,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            return Some(usage("a command is missing", "`motor help` lists the commands"));
        }
        _ => {}
    }
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n").map(|paragraph| {
        paragraph.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    });
    let first = paragraphs.next().unwrap_or_default();
    let reason = first.strip_prefix("error: ").unwrap_or(&first).replace('\'', "`");
    let others: Vec<String> = paragraphs.collect();
    let after = |prefix: &str| others.iter().find_map(|paragraph| paragraph.strip_prefix(prefix).map(str::to_owned));
    let meant = suggested(error).map(|name| format!("did you mean `{name}`?"));
    let remedy = meant.or_else(|| after("tip: ")).or_else(|| after("Usage: ").map(|usage| format!("usage: {usage}")));
    Some(usage(reason, remedy.unwrap_or_else(|| "`motor help` lists the commands".to_owned())))
}

/// The name that clap found to be the most similar: it lists that one last.
fn suggested(error: &Error) -> Option<String> {
    let kinds = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    kinds.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(name) => Some(name.clone()),
        ContextValue::Strings(names) => names.last().cloned(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use base::RefusalCode;
    use clap::Parser as _;

    use super::super::Cli;
    use super::*;

    fn refused(line: &str) -> Option<Refusal> {
        refusal(&Cli::try_parse_from(line.split(' ')).unwrap_err())
    }

    #[test]
    fn a_usage_error_is_a_refusal_with_a_remedy() {
        for (line, reason, remedy) in [
            ("motor exceute x", "unrecognized subcommand `exceute`", "did you mean `execute`?"),
            ("motor act x --tols code", "unexpected argument `--tols` found", "did you mean `--tools`?"),
            ("motor act x --color alway", "invalid value `alway` for `--color <WHEN>`", "did you mean `always`?"),
            ("motor task lst", "unrecognized subcommand `lst`", "did you mean `list`?"),
            (
                "motor task delete",
                "the following required arguments were not provided: <RUN>...",
                "usage: motor task delete",
            ),
            ("motor", "a command is missing", "`motor help`"),
            ("motor act x --timeout soon", "invalid value `soon` for `--timeout", ""),
        ] {
            let refusal = refused(line).unwrap();
            assert_eq!(refusal.code, RefusalCode::InvalidRequest);
            assert!(refusal.reason.contains(reason) && !refusal.reason.contains('\n'), "{line}: {refusal:?}");
            assert!(refusal.remedy.as_ref().is_some_and(|text| text.contains(remedy)), "{line}: {refusal:?}");
        }
    }

    #[test]
    fn help_and_version_are_answers() {
        for line in ["motor --help", "motor act --help", "motor --version"] {
            assert_eq!(refused(line), None, "{line}");
        }
    }

    #[test]
    fn the_word_counts_anywhere_before_two_dashes() {
        let wants = |line: &str| wants_json(line.split(' ').map(OsStr::new));
        assert!(wants("motor --json act") && wants("motor act --json") && wants("motor act x --json -- y"));
        assert!(!wants("motor act") && !wants("motor act -- --json") && !wants("motor act --jsonl"));
    }
}

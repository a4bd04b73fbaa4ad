//! Command lines: options with and without values, and the other words.

use crate::error::{Fault, Result};

/// The arguments of one command, taken one after the other.
#[derive(Debug)]
pub(crate) struct Arguments {
    rest: std::collections::VecDeque<String>,
    /// Set after `--`: only paths follow.
    only_paths: bool,
    command: &'static str,
}

/// One argument of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Argument {
    /// `-x` or `--name`, without a value attached.
    Option(String),
    /// `--name=value`, or `-x` with more behind it (`-n5`).
    Valued(String, String),
    /// A word that is a revision or a path.
    Word(String),
    /// A path that stands behind `--`.
    Path(String),
}

impl Arguments {
    pub(crate) fn new(command: &'static str, arguments: &[String]) -> Self {
        Self { rest: arguments.iter().cloned().collect(), only_paths: false, command }
    }

    /// The next argument. Letters in `clustered` may stand together behind one dash.
    pub(crate) fn next(&mut self, clustered: &str) -> Option<Argument> {
        let argument = self.rest.pop_front()?;
        if self.only_paths {
            return Some(Argument::Path(argument));
        }
        if argument == "--" {
            self.only_paths = true;
            return self.next(clustered);
        }
        if let Some(long) = argument.strip_prefix("--") {
            return Some(match long.split_once('=') {
                Some((name, value)) => Argument::Valued(format!("--{name}"), value.to_owned()),
                None => Argument::Option(argument),
            });
        }
        let mut letters = argument.strip_prefix('-').unwrap_or_default().chars();
        let Some(letter) = letters.next() else { return Some(Argument::Word(argument)) };
        let more = letters.as_str();
        if more.is_empty() {
            return Some(Argument::Option(argument));
        }
        if clustered.contains(letter) {
            self.rest.push_front(format!("-{more}"));
            return Some(Argument::Option(format!("-{letter}")));
        }
        Some(Argument::Valued(format!("-{letter}"), more.to_owned()))
    }

    /// The value of an option that has it behind it.
    pub(crate) fn value(&mut self, option: &str) -> Result<String> {
        self.rest.pop_front().ok_or_else(|| Fault::usage(format_args!("option `{option}` requires a value")))
    }

    /// Whether the word `--` was met before.
    pub(crate) fn separated(&self) -> bool {
        self.only_paths
    }

    /// Whether `--` is still to come: then a word cannot be a path.
    pub(crate) fn has_separator(&self) -> bool {
        self.only_paths || self.rest.iter().any(|argument| argument == "--")
    }

    /// The refusal of an option that is not known here.
    pub(crate) fn unknown(&self, option: &str) -> Fault {
        Fault::usage(format_args!("unknown option `{option}` for `git {}`: it is not supported here", self.command))
    }
}

/// Reads the number behind an option.
pub(crate) fn number(option: &str, value: &str) -> Result<usize> {
    value.parse().map_err(|_| Fault::fatal(format_args!("'{value}': not an integer (option `{option}`)")))
}

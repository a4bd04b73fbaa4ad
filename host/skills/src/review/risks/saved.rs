//! Files that a text downloads in one line and runs in another: each line for itself is harmless.
//!
//! Names are compared without their directories, since a text may change its directory in between.

use std::collections::VecDeque;

use regex::bytes::{Captures, Regex};

/// Saved names that are remembered at a time, and for how many lines.
const MAX_NAMES: usize = 64;
const MAX_LINES: u64 = 30;

/// Characters between the words of a command.
const SEPARATORS: [char; 4] = [' ', '\t', '\'', '"'];

/// A download with its arguments, up to the end of the command.
pub(super) const DOWNLOAD: &str = r"({GET})\s([^|;`]*)";
/// A file that is run or made executable: by an interpreter or `chmod`, or by its path.
pub(super) const RUN: &str = r"(?:(?:^|[^\w.-]){SHELL}\s+(?:-[\w-]+\s+)*|\bsource\s+|(?:^|[\s;&`(])\.\s+|\bchmod\s+(?:-\w+\s+)*(?:\S*\+\w*x\w*|[0-7]*[1357][0-7]*)\s+)['\x22]?([^\s'\x22`;&|<>)]+)|(?:^\s*(?:[$#>]\s+)?|[;&|`(]\s*|\bsudo\s+)['\x22]?((?:\.{1,2}/|/|~/|\$)[^\s'\x22`;&|<>)]+)";

/// The patterns, compiled once.
pub(super) struct SavedPatterns {
    pub download: Regex,
    pub run: Regex,
}

/// The names that the last lines of a text saved.
#[derive(Default)]
pub(super) struct SavedFiles(VecDeque<(String, u64)>);

impl SavedFiles {
    /// The byte offset in the line at which a downloaded file is run. Remembers the names that the line saves.
    pub(super) fn run_in(&mut self, patterns: &SavedPatterns, number: u64, line: &str) -> Option<usize> {
        let new = downloads(&patterns.download, line);
        if self.0.is_empty() && new.is_empty() {
            return None;
        }
        let is_saved = |name: &str, at: usize| {
            self.0.iter().any(|(saved, of)| saved == name && number.saturating_sub(*of) <= MAX_LINES)
                || new.iter().any(|(saved, end)| saved == name && *end <= at)
        };
        let found = patterns.run.captures_iter(line.as_bytes()).find_map(|captures| {
            let whole = captures.get(0)?.start();
            let target = captures.get(1).or_else(|| captures.get(2))?;
            let target = std::str::from_utf8(target.as_bytes()).ok()?;
            (!target.contains("://") && is_saved(name_of(target)?, whole)).then_some(whole)
        });
        self.0.extend(new.into_iter().map(|(name, _)| (name, number)));
        let surplus = self.0.len().saturating_sub(MAX_NAMES);
        self.0.drain(..surplus);
        found
    }
}

/// The names that a line's downloads save, each with the end of its word in the line.
fn downloads(pattern: &Regex, line: &str) -> Vec<(String, usize)> {
    pattern.captures_iter(line.as_bytes()).flat_map(|captures| names(&captures).unwrap_or_default()).collect()
}

fn names(captures: &Captures<'_>) -> Option<Vec<(String, usize)>> {
    let program = std::str::from_utf8(captures.get(1)?.as_bytes()).ok()?;
    let (at, arguments) = (captures.get(2)?.start(), std::str::from_utf8(captures.get(2)?.as_bytes()).ok()?);
    let arguments = arguments.split("&&").next().unwrap_or_default();
    if !arguments.contains("://") && !arguments.contains('$') {
        return None;
    }
    let is_wget = program.to_ascii_lowercase().starts_with("wget");
    let (mut found, mut addresses) = (Vec::new(), Vec::new());
    // Without the name of a file, `wget` and `curl -O` take that of the address.
    let (mut takes_last, mut is_named) = (is_wget, false);
    let mut next = at;
    for part in arguments.split_inclusive(SEPARATORS) {
        let word = part.trim_end_matches(SEPARATORS);
        let end = next + word.len();
        next += part.len();
        if word.is_empty() {
            continue;
        }
        let named = match word {
            _ if std::mem::take(&mut is_named) => Some(word),
            _ if word.starts_with("--output") && word.contains('=') => word.split_once('=').map(|(_, name)| name),
            ">" => None,
            _ => word.strip_prefix('>'),
        };
        if let Some(name) = named {
            found.extend(name_of(name).map(|name| (name.to_owned(), end)));
            continue;
        }
        let is_short = word.starts_with('-') && !word.starts_with("--");
        let lower = word.to_ascii_lowercase();
        is_named = word == ">"
            || ["--output", "--output-document", "-outfile"].contains(&lower.as_str())
            || is_short && (word.ends_with('o') || is_wget && word.ends_with('O'));
        takes_last |= is_short && word.contains('O') || word == "--remote-name";
        if word.contains("://") {
            addresses.extend(name_of(word).map(|name| (name.to_owned(), end)));
        }
    }
    if takes_last {
        found.append(&mut addresses);
    }
    Some(found)
}

/// The last part of a path or address, without the punctuation of a sentence after it.
fn name_of(word: &str) -> Option<&str> {
    let path = word.split(['?', '#']).next()?.trim_end_matches(['.', ',', ':', ')']);
    let name = path.rsplit('/').next()?;
    (name.len() > 1 && !name.starts_with('-') && !["null", "stdin", "stdout"].contains(&name)).then_some(name)
}

//! `grep`: lines of text files that match a regular expression. The expression comes from a model, so it is matched in
//! linear time and its size is bounded; files are streamed.

use std::{
    collections::VecDeque,
    fs,
    io::{self, BufRead, BufReader},
    ops::ControlFlow,
};

use motor_sdk::ToolError;
use regex::bytes::{Regex, RegexBuilder};

use crate::{
    glob::Pattern,
    limits,
    lines::{self, Line},
    page::Page,
    read,
    walk::{self, Kind, Reach},
    workspace::{Place, Workspace},
};

const BUFFER_BYTES: usize = 64 * 1024;

motor_sdk::arguments! {
    /// Arguments of `grep`.
    pub(crate) struct Grep {
        pattern: String,
        path: Option<String>,
        /// Such files only: `*.py`.
        glob: Option<String>,
        case_insensitive: Option<bool>,
        /// Lines around, at most 20.
        context: Option<usize>,
    }
}

/// Searches the lines of files.
pub(crate) fn grep(workspace: &Workspace, arguments: Grep) -> Result<String, ToolError> {
    let start = workspace.resolve(arguments.path.as_deref().unwrap_or("."))?;
    let filter = arguments.glob.as_deref().map(|glob| Pattern::new(glob, "glob")).transpose()?;
    let ignore_case = arguments.case_insensitive.unwrap_or(false);
    let mut search = Search {
        regex: compile(&arguments.pattern, ignore_case, false)?,
        anywhere: matches_anywhere(&arguments.pattern)
            .then(|| compile(&arguments.pattern, ignore_case, true))
            .transpose()?,
        context: arguments.context.unwrap_or(0).min(limits::CONTEXT_LINES),
        page: Page::default(),
        matches: 0,
        full: false,
        binary: 0,
        unreadable: 0,
        cut: 0,
    };
    let is_directory = fs::symlink_metadata(workspace.path(&start)).is_ok_and(|metadata| metadata.is_dir());
    let mut notes = if is_directory {
        let omitted = walk::walk(workspace, &start, Reach::Tree, &mut |entry| {
            let wanted = filter.as_ref().is_none_or(|filter| filter.matches(entry.place.below(&start)));
            if entry.kind == Kind::File && wanted {
                search.place(workspace, &entry.place);
            }
            if search.full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        omitted.notes()
    } else {
        // So that a missing or irregular file is reported as such.
        read::open(workspace, &start)?;
        search.place(workspace, &start);
        Vec::new()
    };
    search.notes(&mut notes);
    Ok(search.page.finish(&notes))
}

/// Whether a line that matches is also found when the whole text is searched: not by a pattern that asks where the text
/// begins or ends, or sets flags of its own.
fn matches_anywhere(pattern: &str) -> bool {
    !["\\A", "\\z", "(?"].iter().any(|part| pattern.contains(part))
}

/// The expression for single lines, or for a whole text. For a whole text it finds at least all that it finds in lines.
fn compile(pattern: &str, case_insensitive: bool, whole_text: bool) -> Result<Regex, ToolError> {
    if pattern.is_empty() {
        return Err(ToolError::bad_input("`pattern` is empty: it would match every line"));
    }
    if pattern.chars().nth(limits::PATTERN_CHARS).is_some() {
        return Err(ToolError::bad_input(format!("`pattern` is longer than {} characters", limits::PATTERN_CHARS)));
    }
    RegexBuilder::new(pattern)
        .case_insensitive(case_insensitive)
        .multi_line(whole_text)
        .crlf(whole_text)
        .dot_matches_new_line(whole_text)
        .size_limit(limits::PATTERN_BYTES)
        .dfa_size_limit(limits::PATTERN_BYTES)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => ToolError::limit(format!(
                "`pattern` needs more than {} bytes when compiled: use smaller repetitions",
                limits::PATTERN_BYTES
            )),
            error => ToolError::bad_input(format!("`pattern` is not a regular expression: {}", reason(&error))),
        })
}

/// The last line of the parser's report, which names the mistake; those before draw the pattern.
fn reason(error: &regex::Error) -> String {
    let report = error.to_string();
    let last = report.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).chars().take(limits::MATCH_CHARS).collect()
}

struct Search {
    regex: Regex,
    /// The same for a whole text: most files have no match, and one search is quicker than one for each line.
    anywhere: Option<Regex>,
    context: usize,
    page: Page,
    matches: usize,
    /// Nothing more fits the answer, and there is more.
    full: bool,
    binary: usize,
    unreadable: usize,
    cut: usize,
}

impl Search {
    fn place(&mut self, workspace: &Workspace, place: &Place) {
        let path = workspace.path(place);
        if self.anywhere.is_some()
            && direct::beginning(&path, BUFFER_BYTES).is_ok_and(|beginning| self.has_none(&beginning))
        {
            return;
        }
        let searched = fs::File::open(path)
            .and_then(|file| self.file(&mut BufReader::with_capacity(BUFFER_BYTES, file), &place.shown()));
        if searched.is_err() {
            self.unreadable += 1;
        }
    }

    /// Whether a text that was perhaps cut is whole and has no match.
    fn has_none(&self, beginning: &[u8]) -> bool {
        beginning.len() < BUFFER_BYTES
            && !lines::is_binary(beginning)
            && self.anywhere.as_ref().is_some_and(|regex| !regex.is_match(beginning))
    }

    fn file(&mut self, reader: &mut impl BufRead, shown: &str) -> io::Result<()> {
        if lines::is_binary(reader.fill_buf()?) {
            self.binary += 1;
            return Ok(());
        }
        let mut before: VecDeque<(u64, String)> = VecDeque::new();
        let (mut number, mut after, mut last_shown) = (0_u64, 0, 0_u64);
        let mut line = Line::default();
        while lines::next(reader, &mut line, limits::SEARCHED_LINE_BYTES)? {
            number += 1;
            self.cut += usize::from(line.is_cut());
            let found = self.regex.find(&line.kept);
            if found.is_none() && self.context == 0 {
                continue;
            }
            let text = excerpt(&line, found.map_or(0, |found| found.start()));
            if found.is_some() {
                if self.matches == limits::MATCHES {
                    self.full = true;
                    return Ok(());
                }
                let first = before.front().map_or(number, |(number, _)| *number);
                if self.context > 0 && self.matches > 0 && (last_shown == 0 || first > last_shown + 1) {
                    self.full |= !self.page.push("--");
                }
                for (number, text) in before.drain(..) {
                    self.full |= !self.page.push(&format!("{shown}-{number}-{text}"));
                }
                self.full |= !self.page.push(&format!("{shown}:{number}:{text}"));
                self.matches += usize::from(!self.full);
                after = self.context;
                last_shown = number;
            } else if after > 0 {
                self.full |= !self.page.push(&format!("{shown}-{number}-{text}"));
                after -= 1;
                last_shown = number;
            } else {
                before.push_back((number, text));
                if before.len() > self.context {
                    before.pop_front();
                }
            }
            if self.full {
                return Ok(());
            }
        }
        Ok(())
    }

    fn notes(&self, notes: &mut Vec<String>) {
        if self.full {
            notes.insert(
                0,
                format!("the first {} matches; there are more: narrow `pattern`, `path` or `glob`", self.matches),
            );
        } else if self.matches == 0 {
            notes.insert(0, "no matches".to_owned());
        }
        if self.binary > 0 {
            notes.push(format!("not searched: {} binary file{}", self.binary, plural(self.binary)));
        }
        if self.unreadable > 0 {
            notes.push(format!(
                "not searched: {} file{} that could not be read",
                self.unreadable,
                plural(self.unreadable)
            ));
        }
        if self.cut > 0 {
            let (cut, bytes) = (self.cut, limits::SEARCHED_LINE_BYTES);
            notes.push(format!("{cut} line{} searched in the first {bytes} bytes only", plural(cut)));
        }
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// The text shown of a line: all of it, or the part around a match.
fn excerpt(line: &Line, found: usize) -> String {
    // A little before the match, from the start of a character.
    let mut from = if found > limits::MATCH_CHARS / 2 { found - limits::MATCH_CHARS / 4 } else { 0 };
    while from > 0 && line.kept.get(from).is_some_and(|byte| byte & 0xc0 == 0x80) {
        from -= 1;
    }
    let end = line.kept.len().min(from + limits::MATCH_CHARS * 4);
    let (text, _) = lines::text(line.kept.get(from..end).unwrap_or_default(), true, limits::MATCH_CHARS);
    let starts = if from > 0 { "…" } else { "" };
    let ends = if from + text.len() < line.kept.len() || line.is_cut() { "…" } else { "" };
    format!("{starts}{text}{ends}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_text_has_every_match_that_its_lines_have() {
        let patterns = [
            "^b", "b$", "^$", "^b$", r"\bb\b", r"\Bb", r"b\B", ".b", "b.", "[^a]b", r"\s", r"^\s*b", "a|^b", r"\Ab",
            r"b\z", "(?s)^b", "(?-m)^b", "(?-R)b$", "(?R)b$", r"\w$", r"\W", r"^\W*$", "b{1,2}$", "^.$", r"\p{L}+$",
            r"\r", "é$",
        ];
        let texts = [
            "b",
            "a\nb",
            "b\na",
            "a\r\nb\r\nc",
            "b\r\n",
            "ab\n\ncb",
            "\n",
            "\r\n",
            " b ",
            "a\rb\n",
            "xb\u{e9}\nb",
            "bb",
        ];
        for pattern in patterns {
            let of_lines = compile(pattern, false, false).unwrap();
            let of_texts = compile(pattern, false, true).unwrap();
            for text in texts {
                let mut line = Line::default();
                let mut reader = text.as_bytes();
                let mut in_lines = false;
                while lines::next(&mut reader, &mut line, 100).unwrap() {
                    in_lines |= of_lines.is_match(&line.kept);
                }
                let in_text = !matches_anywhere(pattern) || of_texts.is_match(text.as_bytes());
                assert!(in_text || !in_lines, "{pattern:?} in {text:?}");
            }
        }
        assert!(!compile("z", false, true).unwrap().is_match(b"a\nb"));
    }
}

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
        /// A regular expression (no look-around, no back-references); each line is searched by itself.
        pattern: String,
        /// A file or directory, relative to the workspace; without it the workspace itself.
        path: Option<String>,
        /// Only files whose path matches, such as `*.py`.
        glob: Option<String>,
        /// Upper and lower case count as the same.
        case_insensitive: Option<bool>,
        /// Lines to show around each match, at most 20.
        context: Option<usize>,
    }
}

/// Searches the lines of files.
pub(crate) fn grep(workspace: &Workspace, arguments: Grep) -> Result<String, ToolError> {
    let start = workspace.resolve(arguments.path.as_deref().unwrap_or("."))?;
    let filter = arguments.glob.as_deref().map(|glob| Pattern::new(glob, "glob")).transpose()?;
    let mut search = Search {
        regex: compile(&arguments.pattern, arguments.case_insensitive.unwrap_or(false))?,
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

fn compile(pattern: &str, case_insensitive: bool) -> Result<Regex, ToolError> {
    if pattern.is_empty() {
        return Err(ToolError::bad_input("`pattern` is empty: it would match every line"));
    }
    if pattern.chars().nth(limits::PATTERN_CHARS).is_some() {
        return Err(ToolError::bad_input(format!("`pattern` is longer than {} characters", limits::PATTERN_CHARS)));
    }
    RegexBuilder::new(pattern)
        .case_insensitive(case_insensitive)
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
        let searched = fs::File::open(workspace.path(place))
            .and_then(|file| self.file(&mut BufReader::with_capacity(BUFFER_BYTES, file), &place.shown()));
        if searched.is_err() {
            self.unreadable += 1;
        }
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

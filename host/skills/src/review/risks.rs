//! Lines that tell a reader to run hidden or fetched programs, to send data to strangers, or to disable a check.
//!
//! A finding is a fact about the text and grants or denies nothing; the gate and the sandbox hold regardless. It must
//! not know policies. Robust against text that is split over lines, quoted apart, or encoded several times: the work per
//! file is bounded, and a bound that is reached is reported.

use base::text::cut;

use super::text::{self, Text, excerpt, is_markdown, shell_parts};
use super::{FileKind, Hidden, Risk, RiskKind, visible_name};
use crate::{SkillError, Snapshot};

mod blobs;
mod lines;
mod patterns;
mod saved;
#[cfg(test)]
mod tests;

use blobs::{Blob, Budget};
use lines::LogicalLine;
use patterns::Patterns;
use saved::SavedFiles;

/// Maximum findings of one kind in one file; the last one counts the rest.
const MAX_SAME: usize = 20;
/// Maximum findings of a skill.
const MAX_RISKS: usize = 300;
/// Maximum characters of a line or a decoded text that are shown.
const MAX_SHOWN: usize = 240;
/// How often decoded text is decoded again.
const MAX_DEPTH: usize = 3;

/// Findings of a skill, the worst first. `hidden` are its hidden characters.
pub(super) fn of_skill(snapshot: &Snapshot, hidden: &[Hidden]) -> Result<Vec<Risk>, SkillError> {
    let patterns = Patterns::compiled()?;
    let mut found: Vec<Risk> = hidden.iter().filter_map(of_hidden).collect();
    for (path, file) in &snapshot.files {
        let Text { kind, text, .. } = text::read(path, &file.bytes);
        found.extend(text.into_iter().flat_map(|text| find(patterns, path, &text, kind)));
    }
    Ok(ordered(found))
}

/// Findings in the text of one file, in the order of its lines.
fn find(patterns: &Patterns, path: &str, text: &str, kind: FileKind) -> Vec<Risk> {
    let mut found = Vec::new();
    let shell = shell_parts(path, text);
    let mut search = Search { patterns, budget: Budget::new() };
    let (mut unsearched, mut saved) = (None, SavedFiles::default());
    for line in lines::logical(text, is_markdown(path)) {
        let in_shell = shell.iter().any(|part| part.contains(&line.at));
        for (kind, at) in patterns.find(&line.text, in_shell) {
            push(&mut found, path, &line, kind, excerpt(&line.text, at, MAX_SHOWN), None);
        }
        if let Some(at) = saved.run_in(&patterns.saved, line.number, &line.text) {
            push(&mut found, path, &line, RiskKind::DownloadAndRun, excerpt(&line.text, at, MAX_SHOWN), None);
        }
        if kind == FileKind::Text {
            for blob in search.blobs(&line.text) {
                if search.is_worth_reading(&blob.decoded, MAX_DEPTH) {
                    let decoded = visible_name(&cut(&search.innermost(&blob.decoded), MAX_SHOWN));
                    let shown = excerpt(&line.text, blob.at, MAX_SHOWN);
                    push(&mut found, path, &line, RiskKind::EncodedText, shown, Some(decoded));
                }
            }
        }
        if unsearched.is_none() && (line.is_cut || search.budget.is_exceeded()) {
            unsearched = Some(line);
        }
    }
    if let Some(line) = unsearched {
        push(&mut found, path, &line, RiskKind::NotSearched, excerpt(&line.text, 0, MAX_SHOWN), None);
    }
    found
}

/// The finding for hidden characters, if they are of a kind that has no use in a line of text.
fn of_hidden(hidden: &Hidden) -> Option<Risk> {
    let smuggles = ["TAG ", "OVERRIDE", "EMBEDDING", "ISOLATE", "ZERO WIDTH", "WORD JOINER", "INVISIBLE"];
    let is_word = hidden.what.contains("looks like") || hidden.what.contains("mixes scripts");
    (hidden.line > 0 && !is_word && smuggles.iter().any(|name| hidden.what.contains(name))).then(|| Risk {
        kind: RiskKind::HiddenText,
        path: hidden.path.clone(),
        line: hidden.line,
        shown: hidden.shown.clone(),
        decoded: Some(hidden.what.clone()),
        count: hidden.count,
    })
}

/// The worst first; within a kind by path and line. Those beyond [`MAX_RISKS`] are counted in the last one.
fn ordered(mut found: Vec<Risk>) -> Vec<Risk> {
    found.sort_by(|one, other| (one.kind, &one.path, one.line).cmp(&(other.kind, &other.path, other.line)));
    let more: u64 = found.iter().skip(MAX_RISKS).map(|risk| risk.count).sum();
    found.truncate(MAX_RISKS);
    if let Some(last) = found.last_mut() {
        last.count += more;
    }
    found
}

fn push(found: &mut Vec<Risk>, path: &str, line: &LogicalLine, kind: RiskKind, shown: String, decoded: Option<String>) {
    let same = found.iter().filter(|risk| risk.kind == kind).count();
    let known = found.iter_mut().rfind(|risk| risk.kind == kind);
    match known {
        // One line is one finding of a kind, unless it carries another decoded text.
        Some(last) if last.line == line.number && last.decoded == decoded => {}
        Some(last) if same >= MAX_SAME => last.count += 1,
        _ => found.push(Risk { kind, path: path.to_owned(), line: line.number, shown, decoded, count: 1 }),
    }
}

/// The search for encoded texts in one file.
struct Search<'a> {
    patterns: &'a Patterns,
    budget: Budget,
}

impl Search<'_> {
    fn blobs(&mut self, line: &str) -> Vec<Blob> {
        self.patterns.encodings.find(line, &mut self.budget)
    }

    /// Whether a decoded text has anything that a person should read: a command, an address, or more encoded text that
    /// ends in one.
    fn is_worth_reading(&mut self, decoded: &str, depth: usize) -> bool {
        let lines = || lines::logical(decoded, false);
        if lines().any(|line| !self.patterns.find(&line.text, true).is_empty()) {
            return true;
        }
        // The header and claims of a token are JSON, and common in examples.
        if !decoded.trim_start().starts_with(['{', '[']) && self.patterns.has_command(decoded) {
            return true;
        }
        lines().any(|line| {
            let inner = self.blobs(&line.text);
            // A text that is encoded more often than this has no innocent reason.
            (depth == 0 && !inner.is_empty())
                || inner.iter().any(|blob| depth > 0 && self.is_worth_reading(&blob.decoded, depth - 1))
        })
    }

    /// The text at the end of a chain of encodings.
    fn innermost(&mut self, decoded: &str) -> String {
        let mut text = decoded.to_owned();
        for _ in 0..MAX_DEPTH {
            let next = lines::logical(&text, false).find_map(|line| self.blobs(&line.text).into_iter().next());
            let Some(blob) = next else { break };
            text = blob.decoded;
        }
        text
    }
}

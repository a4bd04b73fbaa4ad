//! Lines that tell a reader to run hidden or fetched programs, to send data to strangers, or to disable a check.
//!
//! A finding is a fact about the text and grants or denies nothing; the gate and the sandbox hold regardless. It must
//! not know policies. Robust against text that is split over lines, quoted apart, or encoded several times: the work per
//! file is bounded, and a bound that is reached is reported.

use base::text::cut;

use super::text::{is_markdown, shell_parts};
use super::{FileKind, Hidden, Risk, RiskKind, visible_name};

mod blobs;
mod lines;
mod patterns;
#[cfg(test)]
mod tests;

use lines::LogicalLine;

/// Maximum findings of one kind in one file; the last one counts the rest.
const MAX_SAME: usize = 20;
/// Maximum findings of a skill.
pub(super) const MAX_RISKS: usize = 300;
/// Maximum characters of a line or a decoded text that are shown.
const MAX_SHOWN: usize = 240;
/// Characters shown before the matching part of a long line.
const SHOWN_BEFORE: usize = 60;
/// How often decoded text is decoded again.
const MAX_DEPTH: usize = 3;

/// Findings in the text of one file, in the order of its lines.
pub(super) fn find(path: &str, text: &str, kind: FileKind) -> Vec<Risk> {
    let mut found = Vec::new();
    let shell = shell_parts(path, text);
    let mut budget = blobs::MAX_DECODED;
    for line in lines::logical(text, is_markdown(path)) {
        let in_shell = shell.iter().any(|part| part.contains(&line.at));
        for (kind, at) in patterns::find(&line.text, in_shell) {
            push(&mut found, path, &line, kind, excerpt(&line.text, at), None);
        }
        if kind != FileKind::Text {
            continue;
        }
        for blob in blobs::find(&line.text, &mut budget) {
            if is_worth_reading(&blob.decoded, &mut budget, MAX_DEPTH) {
                let decoded = visible_name(&cut(&innermost(&blob.decoded), MAX_SHOWN));
                push(&mut found, path, &line, RiskKind::EncodedText, excerpt(&line.text, blob.at), Some(decoded));
            }
        }
    }
    found
}

/// The finding for hidden characters, if they are of a kind that has no use in a line of text.
pub(super) fn of_hidden(hidden: &Hidden) -> Option<Risk> {
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
pub(super) fn ordered(mut found: Vec<Risk>) -> Vec<Risk> {
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

/// Whether a decoded text has anything that a person should read: a command, an address, or more encoded text.
fn is_worth_reading(decoded: &str, budget: &mut usize, depth: usize) -> bool {
    let lines = || lines::logical(decoded, false);
    if lines().any(|line| patterns::find(&line.text, true).next().is_some()) {
        return true;
    }
    // The header and claims of a token are JSON, and common in examples.
    if !decoded.trim_start().starts_with(['{', '[']) && patterns::has_command(decoded) {
        return true;
    }
    depth > 0
        && lines().any(|line| {
            blobs::find(&line.text, budget).iter().any(|blob| is_worth_reading(&blob.decoded, budget, depth - 1))
        })
}

/// The text at the end of a chain of encodings.
fn innermost(decoded: &str) -> String {
    let mut text = decoded.to_owned();
    let mut budget = blobs::MAX_DECODED;
    for _ in 0..MAX_DEPTH {
        let next =
            lines::logical(&text, false).find_map(|line| blobs::find(&line.text, &mut budget).into_iter().next());
        match next {
            Some(blob) => text = blob.decoded,
            None => break,
        }
    }
    text
}

/// The line around a finding, on one line and with hidden characters written out.
fn excerpt(line: &str, at: usize) -> String {
    let line = line.trim_end();
    let skipped = line.get(..at).map_or(0, |before| before.chars().count()).saturating_sub(SHOWN_BEFORE);
    let from = if line.chars().count() <= MAX_SHOWN { 0 } else { skipped };
    let rest: String = line.chars().skip(from).collect();
    let shown = visible_name(&cut(rest.trim_start().replace('\t', " ").as_str(), MAX_SHOWN));
    if from > 0 { format!("…{shown}") } else { shown }
}

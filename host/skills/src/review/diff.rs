//! What changed in the files of a skill, line by line, for people.
//!
//! What it survives: texts that are made so that comparing them takes forever, or that fill a screen or a reply.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use base::ContentHash;
use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff, TextDiffConfig};

use super::changes::{kind, order};
use super::hidden::{visible, visible_name};
use super::{FileChangeKind, FileKind, text};
use crate::{SkillFile, Snapshot};

/// Bytes of one file's difference.
const MAX_BYTES: usize = 200 << 10;
/// Bytes of all of them.
const MAX_BYTES_IN_ALL: usize = 4 << 20;
/// Bytes of a file that is compared by lines.
const MAX_FILE_BYTES: usize = 4 << 20;
/// How long lines are compared, over all files. After that the rest is shown as replaced as a whole: true, but coarse.
const PATIENCE: Duration = Duration::from_secs(2);

/// How a file changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileDiff {
    /// Its path.
    pub path: String,
    /// What happened.
    pub kind: FileChangeKind,
    /// What it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<FileSide>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<FileSide>,
    /// A unified diff with hidden characters written out, cut at 200 KiB; none for what is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A file on one side of a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileSide {
    /// Bytes.
    pub bytes: u64,
    /// Of these bytes.
    pub hash: ContentHash,
    /// Permission bits.
    pub mode: u32,
}

/// What changed from one version to another, what a run executes first.
#[must_use]
pub fn diff(old: &Snapshot, new: &Snapshot) -> Vec<FileDiff> {
    let deadline = Deadline::soon();
    let paths: BTreeSet<&String> = old.files.keys().chain(new.files.keys()).collect();
    let mut found = Vec::new();
    for path in paths {
        let (before, after) = (old.files.get(path), new.files.get(path));
        if let Some(kind) = kind(before, after) {
            let order = before.into_iter().chain(after).map(|file| order(path, file)).min().unwrap_or(u8::MAX);
            found.push((order, path, kind, before, after));
        }
    }
    found.sort_by_key(|(order, ..)| *order);
    let mut left = MAX_BYTES_IN_ALL;
    let side = |file: &SkillFile| FileSide { bytes: file.bytes.len() as u64, hash: file.hash, mode: file.mode };
    let shown = found.into_iter().map(|(_, path, kind, before, after)| {
        let text = unified(path, before, after, &deadline, left.min(MAX_BYTES));
        left = left.saturating_sub(text.as_ref().map_or(0, String::len));
        FileDiff { path: path.clone(), kind, before: before.map(side), after: after.map(side), text }
    });
    shown.collect()
}

/// When comparing lines gives up.
pub(super) struct Deadline(Instant);

impl Deadline {
    #[expect(clippy::disallowed_methods, reason = "`similar` compares with it")]
    pub fn soon() -> Self {
        Self(Instant::now() + PATIENCE)
    }

    fn comparison(&self) -> TextDiffConfig {
        let mut comparison = TextDiff::configure();
        comparison.newline_terminated(true).deadline(self.0);
        comparison
    }
}

/// Lines that were added and removed; none when there is no text to compare.
pub(super) fn lines(
    path: &str,
    before: Option<&SkillFile>,
    after: Option<&SkillFile>,
    deadline: &Deadline,
) -> Option<(u64, u64)> {
    let (old, new) = texts(path, before, after)?;
    let (old, new) = (split(&old), split(&new));
    let diff = deadline.comparison().diff_slices(&old, &new);
    let count = |tag: ChangeTag| diff.iter_all_changes().filter(|change| change.tag() == tag).count() as u64;
    Some((count(ChangeTag::Insert), count(ChangeTag::Delete)))
}

fn unified(
    path: &str,
    before: Option<&SkillFile>,
    after: Option<&SkillFile>,
    deadline: &Deadline,
    most: usize,
) -> Option<String> {
    let (old, new) = texts(path, before, after)?;
    let (old_lines, new_lines) = (split(&old), split(&new));
    let diff = deadline.comparison().diff_slices(&old_lines, &new_lines);
    let text = diff.unified_diff().context_radius(3).to_string();
    if text.is_empty() {
        return Some(text);
    }
    let shown = visible_name(path);
    let name = |file: Option<&SkillFile>| if file.is_some() { shown.as_str() } else { "/dev/null" };
    let mut text = format!("--- {}\n+++ {}\n{}", name(before), name(after), visible(&text));
    if old.contains("\r\n") != new.contains("\r\n") {
        // Otherwise lines that differ in nothing else would look the same.
        text = text.replace("\r\n", "<U+000D>\n");
    }
    Some(cut(text, most))
}

fn cut(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let end = text.floor_char_boundary(most);
    let kept = text.get(..end).unwrap_or_default();
    let kept = kept.rfind('\n').and_then(|at| kept.get(..=at)).unwrap_or_default();
    format!("{kept}… {} more bytes\n", text.len() - kept.len())
}

fn texts(path: &str, before: Option<&SkillFile>, after: Option<&SkillFile>) -> Option<(String, String)> {
    let text = |file: Option<&SkillFile>| -> Option<String> {
        let Some(file) = file else { return Some(String::new()) };
        let read = text::read(path, &file.bytes);
        let fits = file.bytes.len() <= MAX_FILE_BYTES && read.kind == FileKind::Text;
        read.text.filter(|_| fits).map(std::borrow::Cow::into_owned)
    };
    Some((text(before)?, text(after)?))
}

/// Only where a line feed is: another separator of lines is content, and is written out.
fn split(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

#[cfg(test)]
mod tests;

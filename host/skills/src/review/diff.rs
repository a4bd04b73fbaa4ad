//! Changes in the files of a skill or of a directory, line by line, for people.
//!
//! Robust against texts crafted to make the comparison endless or to fill a screen or a reply.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use base::ContentHash;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff, TextDiffConfig};

use super::changes::{kind, order};
use super::hidden::{visible, visible_name};
use super::{FileChangeKind, FileKind, text};
use crate::{SkillFile, Snapshot};

/// Maximum bytes of one file's diff.
const MAX_BYTES: usize = 200 << 10;
/// Maximum bytes of all diffs together.
const MAX_BYTES_IN_ALL: usize = 4 << 20;
/// Maximum bytes of a file that is compared by lines.
const MAX_FILE_BYTES: usize = 4 << 20;
/// Time for comparing lines, over all files. After that the rest is shown as replaced as a whole: true, but coarse.
const PATIENCE: Duration = Duration::from_secs(2);

/// How a file changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileDiff {
    /// Path relative to the skill's root.
    pub path: String,
    /// How the file changed.
    pub kind: FileChangeKind,
    /// The old file; absent if it was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<FileSide>,
    /// The new file; absent if it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<FileSide>,
    /// A unified diff with hidden characters written out, cut at 200 KiB; absent if a side is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A file on one side of a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileSide {
    /// File size in bytes.
    pub bytes: u64,
    /// Hash of the file's bytes.
    pub hash: ContentHash,
    /// Unix permission bits of the file.
    pub mode: u32,
}

/// A change of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextChange {
    /// A unified diff with hidden characters written out, cut at 200 KiB.
    pub diff: String,
    /// Number of lines added.
    pub added: u64,
    /// Number of lines removed.
    pub removed: u64,
}

/// Compares many files, within one budget of time and length.
pub struct Comparison {
    deadline: Deadline,
    left: usize,
}

impl Default for Comparison {
    fn default() -> Self {
        Self { deadline: Deadline::soon(), left: MAX_BYTES_IN_ALL }
    }
}

impl Comparison {
    /// Maximum bytes of a file that is compared by lines.
    pub const MAX_FILE_BYTES: usize = MAX_FILE_BYTES;

    /// The change of a file at a path; `None` if a side is not text, or too long. A missing side is a file that is not
    /// there.
    pub fn text(&mut self, path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Option<TextChange> {
        let change = change(path, before, after, &self.deadline, self.left.min(MAX_BYTES))?;
        self.left = self.left.saturating_sub(change.diff.len());
        Some(change)
    }
}

/// Differences between two versions, executable files first.
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
        let change = change(path, bytes(before), bytes(after), &deadline, left.min(MAX_BYTES));
        let text = change.map(|change| change.diff);
        left = left.saturating_sub(text.as_ref().map_or(0, String::len));
        FileDiff { path: path.clone(), kind, before: before.map(side), after: after.map(side), text }
    });
    shown.collect()
}

/// Deadline for comparing lines.
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

pub(super) fn bytes(file: Option<&SkillFile>) -> Option<&[u8]> {
    file.map(|file| &*file.bytes)
}

/// Numbers of lines added and removed; `None` if there is no text to compare.
pub(super) fn lines(
    path: &str,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    deadline: &Deadline,
) -> Option<(u64, u64)> {
    let (old, new) = texts(path, before, after)?;
    let (old, new) = (split(&old), split(&new));
    Some(counted(&deadline.comparison().diff_slices(&old, &new)))
}

/// Numbers of lines added and removed.
fn counted<'a>(diff: &TextDiff<'a, 'a, 'a, str>) -> (u64, u64) {
    let count = |tag: ChangeTag| diff.iter_all_changes().filter(|change| change.tag() == tag).count() as u64;
    (count(ChangeTag::Insert), count(ChangeTag::Delete))
}

fn change(
    path: &str,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    deadline: &Deadline,
    most: usize,
) -> Option<TextChange> {
    let (old, new) = texts(path, before, after)?;
    let (old_lines, new_lines) = (split(&old), split(&new));
    let diff = deadline.comparison().diff_slices(&old_lines, &new_lines);
    let (added, removed) = counted(&diff);
    let text = diff.unified_diff().context_radius(3).to_string();
    if text.is_empty() {
        return Some(TextChange { diff: text, added, removed });
    }
    let shown = visible_name(path);
    let name = |file: Option<&[u8]>| if file.is_some() { shown.as_str() } else { "/dev/null" };
    let mut text = format!("--- {}\n+++ {}\n{}", name(before), name(after), visible(&text));
    if old.contains("\r\n") != new.contains("\r\n") {
        // Otherwise lines that differ only in their line end would look the same.
        text = text.replace("\r\n", "<U+000D>\n");
    }
    Some(TextChange { diff: cut(text, most), added, removed })
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

fn texts(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Option<(String, String)> {
    let text = |file: Option<&[u8]>| -> Option<String> {
        let Some(file) = file else { return Some(String::new()) };
        let read = text::read(path, file);
        let fits = file.len() <= MAX_FILE_BYTES && read.kind == FileKind::Text;
        read.text.filter(|_| fits).map(std::borrow::Cow::into_owned)
    };
    Some((text(before)?, text(after)?))
}

/// Splits at line feeds only: any other line separator is content, and is written out.
fn split(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

#[cfg(test)]
mod tests;

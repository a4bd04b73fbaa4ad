//! The rules for a skill's tree (SPEC SKILL-3): one set for directories, archives and the output of runs, so that a
//! tree that one of them accepts is not refused by another.
//!
//! It survives paths that lead out of the skill, names that collide on a system where case or normalisation does not
//! count, and trees made to fill memory.

use std::collections::HashMap;

use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfkc_quick};

use super::error::shown;
use super::{SkillBounds, SkillForm, SnapshotError, is_component, is_manifest};

/// Bytes of one part of a path: the limit of common file systems.
const MAX_PART_BYTES: usize = 255;
/// Bytes of a path. Far below the limits of systems, because a workspace's own path comes before it.
const MAX_PATH_BYTES: usize = 1_024;
/// Parts of a path.
const MAX_PARTS: usize = 64;
const TOO_DEEP: &str = "is nested more than 64 deep";

/// Checks a whole tree: paths with `/` between the parts and sizes in bytes. Directories are those that files are in.
///
/// # Errors
/// If the tree breaks a rule; the error is the first.
pub fn check_tree<'a>(
    form: SkillForm,
    files: impl IntoIterator<Item = (&'a str, u64)>,
    bounds: &SkillBounds,
) -> Result<(), SnapshotError> {
    let mut rules = Rules::new(bounds);
    for (path, bytes) in files {
        rules.file(path)?;
        rules.sized(path, bytes)?;
    }
    rules.finish(form)
}

/// The rules, applied while a tree is explored, so that nothing is read that will be refused.
pub(super) struct Rules<'a> {
    bounds: &'a SkillBounds,
    /// Paths seen so far, by folded path.
    seen: HashMap<String, Seen>,
    text_bytes: u64,
    total_bytes: u64,
    has_manifest: bool,
}

struct Seen {
    path: String,
    is_directory: bool,
}

impl<'a> Rules<'a> {
    pub(super) fn new(bounds: &'a SkillBounds) -> Self {
        Self { bounds, seen: HashMap::new(), text_bytes: 0, total_bytes: 0, has_manifest: false }
    }

    /// Adds a file of that path.
    pub(super) fn file(&mut self, path: &str) -> Result<(), SnapshotError> {
        check_path(path)?;
        self.parents(path)?;
        self.has_manifest |= is_manifest(path);
        self.note(path, false)
    }

    /// Adds a directory of that path.
    pub(super) fn directory(&mut self, path: &str) -> Result<(), SnapshotError> {
        check_path(path)?;
        // Something may be in it.
        if path.split('/').count() >= MAX_PARTS {
            return Err(SnapshotError::path(path, TOO_DEEP));
        }
        self.parents(path)?;
        self.note(path, true)
    }

    /// The most bytes that a file of that path may have, given the files read before.
    pub(super) fn room(&self, path: &str) -> u64 {
        let bounds = self.bounds;
        let all = bounds.total_bytes.saturating_sub(self.total_bytes);
        if is_component(path) {
            bounds.component_bytes.min(all)
        } else {
            bounds.file_bytes.min(bounds.text_bytes.saturating_sub(self.text_bytes)).min(all)
        }
    }

    /// Adds the size of the file of that path. The same rules as [`Rules::room`].
    pub(super) fn sized(&mut self, path: &str, bytes: u64) -> Result<(), SnapshotError> {
        let bounds = self.bounds;
        let component = is_component(path);
        let limit = if component { bounds.component_bytes } else { bounds.file_bytes };
        if bytes > limit {
            return Err(SnapshotError::TooLarge { path: path.to_owned(), limit });
        }
        if !component {
            self.text_bytes = self.text_bytes.saturating_add(bytes);
            if self.text_bytes > bounds.text_bytes {
                let what = "files that are no components";
                return Err(SnapshotError::TooMuch { what, limit: bounds.text_bytes });
            }
        }
        self.total_bytes = self.total_bytes.saturating_add(bytes);
        if self.total_bytes > bounds.total_bytes {
            return Err(SnapshotError::TooMuch { what: "files", limit: bounds.total_bytes });
        }
        Ok(())
    }

    /// Checks the rest, after the last file.
    pub(super) fn finish(self, form: SkillForm) -> Result<(), SnapshotError> {
        match form {
            SkillForm::Directory | SkillForm::Archive if !self.has_manifest => Err(SnapshotError::NoManifest),
            _ => Ok(()),
        }
    }

    fn parents(&mut self, path: &str) -> Result<(), SnapshotError> {
        for (at, _) in path.match_indices('/') {
            if let Some(parent) = path.get(..at) {
                self.note(parent, true)?;
            }
        }
        Ok(())
    }

    fn note(&mut self, path: &str, is_directory: bool) -> Result<(), SnapshotError> {
        let key = folded(path);
        match self.seen.get(&key) {
            None => {}
            Some(seen) if seen.path != path => {
                return Err(SnapshotError::Twins { one: shown(&seen.path), other: shown(path) });
            }
            Some(seen) if seen.is_directory != is_directory => {
                return Err(SnapshotError::FileAndDirectory { path: shown(path) });
            }
            Some(_) if is_directory => return Ok(()),
            Some(_) => return Err(SnapshotError::Twice { path: shown(path) }),
        }
        if self.seen.len() as u64 >= self.bounds.entries {
            return Err(SnapshotError::TooMany { limit: self.bounds.entries });
        }
        self.seen.insert(key, Seen { path: path.to_owned(), is_directory });
        Ok(())
    }
}

fn check_path(path: &str) -> Result<(), SnapshotError> {
    path_fault(path).map_or(Ok(()), |fault| Err(SnapshotError::path(path, fault)))
}

/// Why a text is not a path inside a skill, if it is not.
pub(super) fn path_fault(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("is an empty path");
    }
    if path.len() > MAX_PATH_BYTES {
        return Some("is a path of more than 1,024 bytes");
    }
    if path.chars().any(|c| c.is_control() || is_directing(c)) {
        return Some("has a control character in its name");
    }
    if path.contains('\\') {
        return Some("has a backslash in its name");
    }
    if path.starts_with('/') {
        return Some("is an absolute path");
    }
    if matches!(path.as_bytes(), [drive, b':', ..] if drive.is_ascii_alphabetic()) {
        return Some("begins with the letter of a drive");
    }
    let mut parts = 0;
    for part in path.split('/') {
        parts += 1;
        match part {
            "" => return Some("has an empty part"),
            "." | ".." => return Some("leads out of its place with `.` or `..`"),
            _ if part.len() > MAX_PART_BYTES => return Some("has a name of more than 255 bytes"),
            _ => {}
        }
    }
    (parts > MAX_PARTS).then_some(TOO_DEEP)
}

/// Characters that turn the direction of writing or break a line: they make a list of files show other names.
fn is_directing(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Invisible characters that some systems ignore when they compare names.
fn is_ignored(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}'
            | '\u{206a}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// One key for all texts that some system takes for the same name: compatibility forms, case both ways (`ß` is `SS`,
/// `ς` is `σ`), and without invisible characters.
fn folded(path: &str) -> String {
    if path.is_ascii() {
        return path.to_ascii_lowercase();
    }
    let once = |text: &str| -> String {
        let seen = text.chars().filter(|&c| !is_ignored(c));
        seen.nfkc().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfkc().collect()
    };
    // The result may fold again: repeated until nothing changes, which is soon.
    let mut key = once(path);
    for _ in 0..3 {
        let next = once(&key);
        if next == key && is_nfkc_quick(key.chars()) != IsNormalized::No {
            break;
        }
        key = next;
    }
    key
}

//! What a skill's tree may look like, whatever it was read from (SPEC SKILL-3). One set of rules for directories, archives
//! and what a run leaves behind, so that what one of them lets through another does not refuse.
//!
//! What it survives: paths that lead out of the skill, names that become one on a system where case or normalisation does not
//! count, and trees made to fill memory.

use std::collections::HashMap;

use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfkc_quick};

use super::error::shown;
use super::{SkillBounds, SkillForm, SnapshotError, is_component, is_manifest};

/// Bytes of one part of a path: what common file systems take.
const MAX_PART_BYTES: usize = 255;
/// Bytes of a path. Far below what systems take, because a workspace's own path comes before it.
const MAX_PATH_BYTES: usize = 1_024;
/// Parts of a path.
const MAX_PARTS: usize = 64;
const TOO_DEEP: &str = "is nested more than 64 deep";

/// Checks a whole tree: paths with `/` between the parts and sizes in bytes. Directories are those that files are in.
///
/// # Errors
/// The first rule that it breaks.
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

/// The rules, applied as a tree is found out, so that nothing is read that will be refused.
pub(super) struct Rules<'a> {
    bounds: &'a SkillBounds,
    /// By folded path.
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

    /// A file of that path.
    pub(super) fn file(&mut self, path: &str) -> Result<(), SnapshotError> {
        check_path(path)?;
        self.parents(path)?;
        self.has_manifest |= is_manifest(path);
        self.note(path, false)
    }

    /// A directory of that path.
    pub(super) fn directory(&mut self, path: &str) -> Result<(), SnapshotError> {
        check_path(path)?;
        // Something may be in it.
        if path.split('/').count() >= MAX_PARTS {
            return Err(SnapshotError::path(path, TOO_DEEP));
        }
        self.parents(path)?;
        self.note(path, true)
    }

    /// The most bytes that a file of that path may have, by what was read before.
    pub(super) fn room(&self, path: &str) -> u64 {
        let bounds = self.bounds;
        let all = bounds.total_bytes.saturating_sub(self.total_bytes);
        if is_component(path) {
            bounds.component_bytes.min(all)
        } else {
            bounds.file_bytes.min(bounds.text_bytes.saturating_sub(self.text_bytes)).min(all)
        }
    }

    /// How many bytes the file of that path has. The same rules as [`Rules::room`].
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

    /// After the last file.
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

/// What keeps a text from being a path inside a skill.
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

/// Characters that some systems do not count when they compare names, and nobody sees.
fn is_ignored(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}'
            | '\u{206a}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// One text for all that some system takes for the same name: compatibility forms, case both ways (`ß` is `SS`, `ς` is `σ`),
/// and without what is not seen.
fn folded(path: &str) -> String {
    if path.is_ascii() {
        return path.to_ascii_lowercase();
    }
    let once = |text: &str| -> String {
        let seen = text.chars().filter(|&c| !is_ignored(c));
        seen.nfkc().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfkc().collect()
    };
    // Folding can make what folds again: till nothing changes, which is soon.
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

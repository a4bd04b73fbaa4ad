//! The parts of a version, as a file: form, paths, permission bits, sizes, hashes.
//!
//! It must not read or write. It survives a tree file of any content; the reader of the objects checks its claims.

use base::ContentHash;
use serde::{Deserialize, Serialize};

use crate::{SkillBounds, SkillError, SkillForm, Snapshot};

/// The format version of tree files.
const VERSION: u32 = 1;
/// A larger tree file is not read and not written.
pub(super) const MAX_BYTES: usize = 32 << 20;

/// The bounds of a version: above any configuration of [`SkillBounds`], so that approved versions can be read back.
pub(super) const BOUNDS: SkillBounds = SkillBounds {
    file_bytes: 1 << 30,
    text_bytes: 1 << 30,
    component_bytes: 1 << 30,
    entries: 100_000,
    total_bytes: 1 << 30,
};

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tree {
    version: u32,
    pub(super) form: SkillForm,
    pub(super) files: Vec<TreeFile>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TreeFile {
    pub(super) path: String,
    pub(super) mode: u32,
    pub(super) bytes: u64,
    pub(super) hash: ContentHash,
}

impl Tree {
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let file = |(path, file): (&String, &crate::SkillFile)| TreeFile {
            path: path.clone(),
            mode: file.mode,
            bytes: file.bytes.len() as u64,
            hash: file.hash,
        };
        Self { version: VERSION, form: snapshot.form, files: snapshot.files.iter().map(file).collect() }
    }

    /// The text of the file, the same for the same version.
    pub(super) fn text(&self) -> Result<String, SkillError> {
        let text = serde_json::to_string(self).unwrap_or_default();
        if text.is_empty() || text.len() > MAX_BYTES || self.files.len() as u64 > BOUNDS.entries {
            return Err(SkillError::Invalid {
                reason: "the skill has too many files for a version of it to be kept".to_owned(),
            });
        }
        Ok(text)
    }

    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let tree: Self = serde_json::from_slice(text).ok()?;
        (tree.version == VERSION && tree.files.len() as u64 <= BOUNDS.entries).then_some(tree)
    }
}

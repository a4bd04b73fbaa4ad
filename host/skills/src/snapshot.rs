//! A skill's bytes, read once: the hashed bytes are the used bytes (SPEC SKILL-3, SKILL-5, HOST-8).
//!
//! It does not know trust. It survives links, pipes, hard links, twins, bombs, archives whose headers contradict their
//! content, and files that change while they are read.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use base::{ContentHash, ContentHasher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Links, read_regular};

use crate::Manifest;
use crate::manifest::{self, ManifestError};

mod archive;
mod directory;
mod error;
mod rules;
mod stamp;

pub use archive::read_archive;
pub use directory::read;
pub(crate) use directory::read_kept;
pub use error::SnapshotError;
pub use receipts::{HISTORY, is_history};
pub use rules::check_tree;
pub use stamp::{Stamp, stamp};

/// The largest `policy.json` that is read, in bytes.
pub const PROPOSAL_BYTES: u64 = 256 << 10;
/// Permission bits of files without their own, such as those of archives.
pub const PLAIN_MODE: u32 = 0o644;

/// The form in which a skill was dropped in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkillForm {
    /// A directory with `SKILL.md`.
    Directory,
    /// A `.zip` or `.skill` archive of one.
    Archive,
    /// A bare `NAME.wasm`.
    Component,
}

impl SkillForm {
    /// The form of a plain file, by its name; `None` if it is not a skill.
    #[must_use]
    pub fn of_file(entry: &str) -> Option<Self> {
        let (stem, extension) = entry.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            _ if stem.is_empty() => None,
            "zip" | "skill" => Some(Self::Archive),
            "wasm" => Some(Self::Component),
            _ => None,
        }
    }
}

/// The size limits of a skill (SPEC SKILL-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkillBounds {
    /// Bytes of one file that is not a component. Default 1 MiB.
    pub file_bytes: u64,
    /// Bytes of all files that are not components. Default 10 MiB.
    pub text_bytes: u64,
    /// Bytes of one component. Default 64 MiB.
    pub component_bytes: u64,
    /// Files and directories. Default 2,000.
    pub entries: u64,
    /// Bytes of everything together. Default 256 MiB.
    pub total_bytes: u64,
}

impl Default for SkillBounds {
    fn default() -> Self {
        Self {
            file_bytes: 1 << 20,
            text_bytes: 10 << 20,
            component_bytes: 64 << 20,
            entries: 2_000,
            total_bytes: 256 << 20,
        }
    }
}

/// One file of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// The file's whole content.
    pub bytes: Arc<[u8]>,
    /// Its permission bits, `0o7777`; `0o644` in archives.
    pub mode: u32,
    /// The content hash of `bytes`.
    pub hash: ContentHash,
}

/// A whole skill in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The form it was read from.
    pub form: SkillForm,
    /// Its files but `policy.json`, by path with `/` between the parts.
    pub files: BTreeMap<String, SkillFile>,
    /// The content hash (SPEC SKILL-5).
    pub hash: ContentHash,
    /// A hash over paths and permission bits: a fact about this machine, kept beside the content hash and not in it.
    pub modes: ContentHash,
    /// `policy.json`, if there was one: only a proposal, regardless of its claims. At most 256 KiB are read.
    pub proposal: Option<Arc<[u8]>>,
    /// Whether `.git` lay beside the files. It is no part of the skill and is not read.
    pub has_history: bool,
}

impl Snapshot {
    /// A skill of these files: content and permission bits by path. `policy.json` at the top becomes the proposal, if
    /// none is given. The caller applies the rules of [`check_tree`].
    #[must_use]
    pub fn of<B: Into<Arc<[u8]>>>(
        form: SkillForm,
        files: BTreeMap<String, (B, u32)>,
        mut proposal: Option<Arc<[u8]>>,
    ) -> Self {
        let mut kept = BTreeMap::new();
        for (path, (bytes, mode)) in files {
            let bytes = bytes.into();
            if is_proposal(&path) {
                proposal.get_or_insert(bytes);
                continue;
            }
            let hash = ContentHash::of(&bytes);
            kept.insert(path, SkillFile { bytes, mode: mode & 0o7777, hash });
        }
        let hash = receipts::files_hash(kept.iter().map(|(path, file)| (path.as_str(), &file.hash)));
        Self { form, hash, modes: modes_hash(&kept), files: kept, proposal, has_history: false }
    }

    /// The skill's description of itself. `entry` is the name of its entry: `pdf`, `pdf.zip`, `pdf.wasm`.
    ///
    /// # Errors
    /// If `SKILL.md` is missing or invalid, or a component's name is invalid.
    pub fn manifest(&self, entry: &str) -> Result<Manifest, ManifestError> {
        if self.form == SkillForm::Component {
            return manifest::of_component(entry);
        }
        let file = self.files.iter().find_map(|(path, file)| is_manifest(path).then_some(file));
        let directory = match self.form {
            SkillForm::Archive => entry.rsplit_once('.').map_or(entry, |(stem, _)| stem),
            _ => entry,
        };
        manifest::read(&file.ok_or(ManifestError::Missing)?.bytes, directory)
    }
}

/// A bare component: a skill of one file, whose name is its entry's.
///
/// # Errors
/// If it is larger than a component may be, or its name is invalid.
pub fn read_component(
    bytes: impl Into<Arc<[u8]>>,
    entry: &str,
    mode: u32,
    bounds: &SkillBounds,
) -> Result<Snapshot, SnapshotError> {
    let bytes = bytes.into();
    check_tree(SkillForm::Component, [(entry, bytes.len() as u64)], bounds)?;
    Ok(Snapshot::of(SkillForm::Component, BTreeMap::from([(entry.to_owned(), (bytes, mode))]), None))
}

/// The policy that is proposed for a tool: `weather.json` beside `weather.wasm`. A link, and a file over 256 KiB, become
/// an empty proposal, which counts as unreadable and grants nothing.
#[must_use]
pub fn proposal_beside(component: &Path) -> Option<Arc<[u8]>> {
    match read_regular(&component.with_extension("json"), Links::Refused, PROPOSAL_BYTES) {
        Ok(bytes) => Some(bytes.into()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(_) => Some(Arc::from([])),
    }
}

/// Whether a file of that path is a component.
#[must_use]
pub fn is_component(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("wasm"))
}

/// Whether that path is the skill's description: `SKILL.md` at the top. Other letter cases are read too; two of them
/// are twins, so there is one.
#[must_use]
pub fn is_manifest(path: &str) -> bool {
    path.eq_ignore_ascii_case("SKILL.md")
}

fn is_proposal(path: &str) -> bool {
    path == receipts::POLICY
}

fn modes_hash(files: &BTreeMap<String, SkillFile>) -> ContentHash {
    let mut hasher = ContentHasher::default();
    hasher.update(b"motor modes 1\n");
    for (path, file) in files {
        hasher.update(&(path.len() as u64).to_be_bytes());
        hasher.update(path.as_bytes());
        hasher.update(&file.mode.to_be_bytes());
    }
    hasher.finish()
}

#[cfg(test)]
mod tests;

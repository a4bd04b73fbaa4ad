//! `[skills]`: the directories of skills, and the bounds of one.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use skills::place::HOME;
use skills::{SkillBounds, SkillsRoot};

use crate::Home;

/// The directories of skills, and the bounds of one (SPEC SKILL-2, SKILL-3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SkillsConfig {
    /// The directory that new skills go to. Default: `skills` in the home; `--skills-dir` sets it.
    pub directory: Option<PathBuf>,
    /// More directories whose entries are skills: absolute paths. Default none.
    pub roots: Vec<PathBuf>,
    /// Bytes of one file that is not a component. Default 1 MiB.
    pub file_bytes: u64,
    /// Bytes of all files that are not components. Default 10 MiB.
    pub text_bytes: u64,
    /// Files and directories of one skill. Default 2,000.
    pub entries: u64,
    /// Bytes of one skill including components. Default 256 MiB.
    pub total_bytes: u64,
}

impl Default for SkillsConfig {
    fn default() -> Self {
        let SkillBounds { file_bytes, text_bytes, entries, total_bytes, .. } = SkillBounds::default();
        Self { directory: None, roots: Vec::new(), file_bytes, text_bytes, entries, total_bytes }
    }
}

impl SkillsConfig {
    /// The bounds of a skill; `component_bytes` is the engine's.
    #[must_use]
    pub fn bounds(&self, component_bytes: u64) -> SkillBounds {
        let Self { file_bytes, text_bytes, entries, total_bytes, .. } = *self;
        SkillBounds { file_bytes, text_bytes, component_bytes, entries, total_bytes }
    }

    /// The directories, with the one for new skills first and the home's tools last. A relative path would mean another place for each command,
    /// so it is below the home.
    #[must_use]
    pub fn roots(&self, home: &Home) -> Vec<SkillsRoot> {
        let named = |path: &PathBuf| {
            let path = home.path().join(path);
            SkillsRoot { id: path.to_string_lossy().into_owned(), path }
        };
        let first =
            self.directory.as_ref().map_or_else(|| SkillsRoot { id: HOME.to_owned(), path: home.skills() }, named);
        let mut roots = vec![first];
        for root in self.roots.iter().map(named) {
            if !roots.iter().any(|known| known.path == root.path) {
                roots.push(root);
            }
        }
        roots.push(SkillsRoot::tools(home.tools()));
        roots
    }
}

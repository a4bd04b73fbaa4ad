//! Tools and files of approved skills, for other programs (SPEC MCP-1): from the kept bytes that the owner approved,
//! never from a directory.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use base::{ContentHash, ContentHasher, Refusal, RefusalCode};
use parking_lot::Mutex;
use skills::snapshot::{is_component, is_manifest};
use skills::{Policy, SkillForm, SkillName, SkillPlace, SkillStatus};
use tokio::sync::watch;
use toolbox::SkillTool;

use super::{Skills, harmless, names, tools_of};
use crate::api::offers::{OfferedFile, OfferedSkill, OfferedTool};

/// Versions of skills whose offers stay in memory.
const MAX_CACHED: usize = 1_024;
/// Bytes of a file that is offered.
const MAX_FILE_BYTES: usize = 1 << 20;

/// An approved skill that no other approved skill shares its name with.
pub(super) struct ApprovedSkill {
    pub name: SkillName,
    pub place: SkillPlace,
    pub hash: ContentHash,
    pub description: String,
    form: Option<SkillForm>,
}

/// The offers of versions of skills, by content.
#[derive(Default)]
pub(crate) struct Offers {
    tools: Memory<ContentHash, Vec<DeclaredTool>>,
    files: Memory<ContentHash, Vec<OfferedFile>>,
}

/// A tool as its component declares it, made harmless.
pub(super) struct DeclaredTool {
    /// Its name within the skill.
    pub name: String,
    description: String,
    pub input_schema: serde_json::Value,
    pub output_schema: Option<serde_json::Value>,
    effects: runtime::Effects,
}

impl DeclaredTool {
    /// The tool for other programs; `None` if its schema of arguments cannot be shown as it is.
    pub(super) fn of(name: &str, tool: &SkillTool) -> Option<Self> {
        let declared = &tool.tool;
        Some(Self {
            name: name.to_owned(),
            description: harmless::description(&declared.description),
            input_schema: harmless::schema(&declared.parameters)?,
            output_schema: declared.output.as_ref().and_then(harmless::schema),
            effects: declared.effects,
        })
    }

    fn offered(&self, skill: &SkillName) -> OfferedTool {
        OfferedTool {
            name: names::offered(skill, &self.name),
            skill: skill.clone(),
            tool: self.name.clone(),
            description: self.description.clone(),
            input_schema: self.input_schema.clone(),
            output_schema: self.output_schema.clone(),
            read_only: self.effects.read_only,
            destructive: self.effects.destructive,
            idempotent: self.effects.idempotent,
            open_world: self.effects.open_world,
        }
    }
}

impl Skills {
    /// The tools of approved skills, by name. A skill with a component that cannot be used has none.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn tools(&self) -> Result<Vec<OfferedTool>, Refusal> {
        let mut tools: Vec<OfferedTool> = Vec::new();
        for skill in self.approved().await? {
            let policy = self.policy_in_force(&skill)?;
            // Without its packages the skill does not run.
            if policy.is_none_or(|policy| !policy.dependencies.is_empty()) {
                continue;
            }
            match self.declared(&skill).await {
                Ok(declared) => tools.extend(declared.iter().map(|tool| tool.offered(&skill.name))),
                Err(refusal) => tracing::warn!(skill = %skill.name, reason = %refusal, "its tools are not offered"),
            }
        }
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        // Only shortened names can be equal, if an author searched for two of them.
        tools.dedup_by(|b, a| a.name == b.name);
        Ok(tools)
    }

    /// The files of approved skills, by name. A bare component has none.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn resources(&self) -> Result<Vec<OfferedSkill>, Refusal> {
        let mut skills = Vec::new();
        for skill in self.approved().await? {
            if skill.form == Some(SkillForm::Component) {
                continue;
            }
            match self.files(skill.hash).await {
                Ok(files) => skills.push(OfferedSkill {
                    name: skill.name,
                    description: harmless::description(&skill.description),
                    hash: skill.hash,
                    files: files.to_vec(),
                }),
                Err(refusal) => tracing::warn!(skill = %skill.name, reason = %refusal, "its files are not offered"),
            }
        }
        Ok(skills)
    }

    /// A file of an approved skill: exactly the approved bytes.
    ///
    /// # Errors
    /// If there is no such skill or file among those offered.
    pub async fn resource(&self, skill: &str, path: &str) -> Result<Arc<[u8]>, Refusal> {
        let missing = || {
            Refusal::new(RefusalCode::NotFound, "no approved skill offers this file")
                .with_remedy("list the files of approved skills")
        };
        let found = self.approved().await?.into_iter().find(|approved| approved.name.as_str() == skill);
        let found = found.filter(|found| found.form != Some(SkillForm::Component)).ok_or_else(missing)?;
        if !self.files(found.hash).await?.iter().any(|file| file.path == path) {
            return Err(missing());
        }
        let snapshot = self.kept(found.hash).await?;
        let file = snapshot.files.iter().find(|(name, _)| shown_path(name) == path);
        file.map(|(_, file)| file.bytes.clone()).ok_or_else(missing)
    }

    /// Follows the approved skills: see [`SkillFollower::next`].
    #[must_use]
    pub fn follow(&self) -> SkillFollower {
        let library = &self.environment.skills;
        let (decisions, files) = (library.trust().changed(), library.changed());
        SkillFollower { skills: self.clone(), decisions, files, last: None }
    }

    /// Approved skills, by name. Skills that share a name are left out: the name would not tell which one is meant.
    pub(super) async fn approved(&self) -> Result<Vec<ApprovedSkill>, Refusal> {
        let library = &self.environment.skills;
        library.refresh().await?;
        let mut approved: Vec<(usize, ApprovedSkill)> = Vec::new();
        for listed in library.list().await? {
            if listed.status != SkillStatus::Approved {
                continue;
            }
            let name = listed.name.as_deref().and_then(|name| SkillName::parse(name).ok());
            let (Some(name), Some(hash)) = (name, listed.hash) else { continue };
            match approved.last_mut() {
                // Lists are by name.
                Some((places, skill)) if skill.name == name => *places += 1,
                _ => {
                    let (place, description, form) = (listed.place, listed.description, listed.form);
                    approved.push((1, ApprovedSkill { name, place, hash, description, form }));
                }
            }
        }
        Ok(approved.into_iter().filter(|(places, _)| *places == 1).map(|(_, skill)| skill).collect())
    }

    fn policy_in_force(&self, skill: &ApprovedSkill) -> Result<Option<Policy>, Refusal> {
        let record = self.environment.skills.trust().get(&skill.name, &skill.place, skill.hash)?;
        Ok(record.and_then(|record| record.policy))
    }

    pub(super) async fn declared(&self, skill: &ApprovedSkill) -> Result<Arc<Vec<DeclaredTool>>, Refusal> {
        if let Some(known) = self.offers.tools.get(&skill.hash) {
            return Ok(known);
        }
        let snapshot = self.kept(skill.hash).await?;
        let tools = match tools_of(&self.environment.sandboxes, &snapshot).await {
            Ok(tools) => tools.iter().filter_map(|(name, tool)| declared(&skill.name, name, tool)).collect(),
            // It stays unusable: these bytes do not change.
            Err(refusal) if refusal.code == RefusalCode::InvalidComponent => {
                tracing::warn!(skill = %skill.name, reason = %refusal, "its tools are not offered");
                Vec::new()
            }
            Err(refusal) => return Err(refusal),
        };
        Ok(self.offers.tools.keep(skill.hash, tools))
    }

    async fn files(&self, hash: ContentHash) -> Result<Arc<Vec<OfferedFile>>, Refusal> {
        if let Some(known) = self.offers.files.get(&hash) {
            return Ok(known);
        }
        let snapshot = self.kept(hash).await?;
        let offered =
            snapshot.files.iter().filter(|(path, file)| !is_component(path) && file.bytes.len() <= MAX_FILE_BYTES);
        let mut files: Vec<OfferedFile> = offered
            .map(|(path, file)| OfferedFile {
                path: shown_path(path).to_owned(),
                bytes: file.bytes.len() as u64,
                digest: file.hash,
                is_text: std::str::from_utf8(&file.bytes).is_ok(),
            })
            .collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(self.offers.files.keep(hash, files))
    }
}

fn declared(skill: &SkillName, name: &str, tool: &SkillTool) -> Option<DeclaredTool> {
    let declared = DeclaredTool::of(name, tool);
    if declared.is_none() {
        tracing::warn!(%skill, tool = name, "the tool is not offered: its schema hides characters or reaches out");
    }
    declared
}

/// The path under which a file is offered: the description has one name, in any letter case.
fn shown_path(path: &str) -> &str {
    if is_manifest(path) { "SKILL.md" } else { path }
}

/// Follows the approved skills.
pub struct SkillFollower {
    skills: Skills,
    decisions: watch::Receiver<u64>,
    files: watch::Receiver<u64>,
    last: Option<ContentHash>,
}

impl SkillFollower {
    /// A hash over names and contents of all approved skills: at once, and then each time it differs. `None` if skills
    /// can no longer be read.
    pub async fn next(&mut self) -> Option<ContentHash> {
        loop {
            if self.last.is_some() {
                tokio::select! {
                    changed = self.decisions.changed() => changed.ok()?,
                    changed = self.files.changed() => changed.ok()?,
                }
            }
            self.decisions.mark_unchanged();
            self.files.mark_unchanged();
            let now = self.digest().await?;
            if self.last != Some(now) {
                self.last = Some(now);
                return Some(now);
            }
        }
    }

    async fn digest(&self) -> Option<ContentHash> {
        let approved = match self.skills.approved().await {
            Ok(approved) => approved,
            Err(refusal) => {
                tracing::warn!(%refusal, "skills cannot be followed");
                return None;
            }
        };
        let mut hasher = ContentHasher::default();
        for skill in approved {
            hasher.update(format!("{}\n{}\n", skill.name, skill.hash).as_bytes());
        }
        Some(hasher.finish())
    }
}

/// A bounded memory of values that follow from their keys.
struct Memory<K, V>(Mutex<HashMap<K, Arc<V>>>);

impl<K, V> Default for Memory<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V> Memory<K, V> {
    fn get(&self, key: &K) -> Option<Arc<V>> {
        self.0.lock().get(key).cloned()
    }

    fn keep(&self, key: K, value: V) -> Arc<V> {
        let mut known = self.0.lock();
        if known.len() >= MAX_CACHED {
            known.clear();
        }
        let value = Arc::new(value);
        known.insert(key, value.clone());
        value
    }
}

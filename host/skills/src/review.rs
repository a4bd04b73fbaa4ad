//! What can be said of a skill without running any of it: facts for the owner (SPEC SKILL-9).
//!
//! Made of a skill that is in memory, so what is shown is what is decided about. It knows no wasm: what a component can do
//! is told by the caller. What it survives: text that is made to look like another, to fill a screen or to keep a program
//! busy. Every text of a skill is shown through [`visible`].

use base::ContentHash;
use serde::{Deserialize, Serialize};

use crate::policy::{ExtractedFrom, Policy, SkillProvenance, read_proposal};
use crate::trust::Advisory;
use crate::{SkillForm, SkillName, SkillPlace, SkillStatus, Snapshot, Taken};

mod changes;
mod credentials;
mod diff;
mod domains;
mod facts;
mod hidden;
mod text;

pub use changes::power_changes;
pub use diff::{FileDiff, FileSide, diff};
pub use facts::Inspect;
pub use hidden::{visible, visible_name};

/// Reviews a skill. `approved` is the version that was approved last with what it was approved for, if one was.
#[must_use]
pub fn review(current: &Taken, approved: Option<(&Snapshot, &Policy)>, inspect: &Inspect<'_>) -> SkillReview {
    let Taken { place, manifest, snapshot, standing } = current;
    let facts = facts::find(snapshot, inspect);
    let changes = approved.map(|approved| changes::against(approved, snapshot, &facts, inspect));
    let proposal = snapshot.proposal.as_deref().map(read_proposal);
    let (proposal, claims) = proposal.map_or((None, Vec::new()), |proposal| (proposal.policy, proposal.claims));
    let record = standing.record.as_ref();
    SkillReview {
        changes,
        name: manifest.name.clone(),
        place: place.clone(),
        form: snapshot.form,
        description: manifest.description.clone(),
        hash: snapshot.hash,
        status: standing.status,
        reason: standing.reason.clone(),
        provenance: record.and_then(|record| record.provenance.clone()),
        extracted_from: record.and_then(|record| record.extracted_from.clone()),
        strict: manifest.strict.clone(),
        credentials: facts::references(&facts.credentials),
        domains: facts::references(&facts.domains),
        hidden: facts.shown_hidden(),
        files: facts.files,
        components: facts.components,
        instructions: None,
        policy: record.and_then(|record| record.policy.clone()),
        proposal,
        claims,
        advisory: record.and_then(|record| record.advisory.clone()),
    }
}

/// The review of a skill. camelCase JSON; `changes` come first wherever it is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillReview {
    /// Against the version that was approved last: powers first, then files. None: none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<SkillChanges>,
    /// The skill.
    pub name: SkillName,
    /// Where it lies.
    pub place: SkillPlace,
    /// What it is.
    pub form: SkillForm,
    /// What it says it is for.
    pub description: String,
    /// The bytes that this is about.
    pub hash: ContentHash,
    /// Where they stand.
    pub status: SkillStatus,
    /// Why.
    pub reason: String,
    /// Where they came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<SkillProvenance>,
    /// The run that made them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extracted_from: Option<ExtractedFrom>,
    /// Where it departs from the standard.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strict: Vec<String>,
    /// Every file.
    pub files: Vec<FileFact>,
    /// Names of credentials that its text mentions.
    pub credentials: Vec<Reference>,
    /// Domains that its text mentions.
    pub domains: Vec<Reference>,
    /// Characters that are not what they look like.
    pub hidden: Vec<Hidden>,
    /// What its components can do.
    pub components: Vec<ComponentFact>,
    /// What a bare component would tell the model, when it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The policy in force, or the one kept for the next approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// What its author asks for, in `policy.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Policy>,
    /// What is odd about `policy.json`: it cannot be read, or it claims a status, hash or approval, which counts for nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<String>,
    /// What a read-only run of the motor thought of these bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advisory: Option<Advisory>,
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// Text that was searched.
    Text,
    /// Something else.
    Binary,
    /// A WebAssembly component.
    Component,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileFact {
    /// Its path.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Its hash.
    pub hash: ContentHash,
    /// What it is.
    pub kind: FileKind,
    /// Permission bits.
    pub mode: u32,
}

/// Something that text mentions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// The domain or the credential's name.
    pub name: String,
    /// `path:line`, at most 20.
    pub at: Vec<String>,
}

/// A hidden, bidirectional or confusable character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hidden {
    /// The file.
    pub path: String,
    /// From 1; 0: in the path itself.
    pub line: u64,
    /// What it is: `U+202E RIGHT-TO-LEFT OVERRIDE`.
    pub what: String,
    /// The line with each such character written out as `<U+202E>`, cut around the first one.
    pub shown: String,
    /// How many there are of it in this file.
    pub count: u64,
}

/// What a component can do (SPEC HOST-7). Made by the caller, who knows components.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentFact {
    /// The file.
    pub path: String,
    /// Its hash.
    pub hash: ContentHash,
    /// Stable words: `network`, `workspace`, `clock`, `random`, `credentials`, `command_line`, …; empty: nothing.
    pub capabilities: Vec<String>,
    /// What it imports.
    pub imports: Vec<String>,
    /// Its tools, as far as they are known without running it.
    pub tools: Vec<ToolFact>,
    /// Why it cannot be used, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A tool of a component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolFact {
    /// Its name.
    pub name: String,
    /// What it says it is for.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: serde_json::Value,
}

/// What changed against the approved version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillChanges {
    /// The approved version.
    pub against: ContentHash,
    /// What it could do or asks for that it did not before, and what it no longer does; added ones first.
    pub powers: Vec<PowerChange>,
    /// Files, scripts and components first.
    pub files: Vec<FileChange>,
}

/// A power that was added or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PowerChange {
    /// Whether it is new.
    pub added: bool,
    /// One phrase: ``imports network (`tools.wasm`)``, ``asks for domain `x.example` ``, ``mentions domain `x.example` (SKILL.md:12)``.
    pub what: String,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    /// It is new.
    Added,
    /// Its bytes are others.
    Changed,
    /// It is gone.
    Removed,
    /// Its permission bits are others.
    Mode,
}

/// A file that is not as it was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    /// The file.
    pub path: String,
    /// What happened.
    pub kind: FileChangeKind,
    /// Lines added and removed, for text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<(u64, u64)>,
}

#[cfg(test)]
mod tests;

//! Facts about a skill for the owner, found without running any of it (SPEC SKILL-9).
//!
//! Reviews a snapshot in memory, so the owner decides about exactly the bytes shown. It knows no wasm: the caller
//! describes components. Robust against text that imitates other text, fills a screen or keeps a program busy. Every
//! text of a skill is shown through [`visible`].

use base::ContentHash;
use base::text::cut_bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policy::{ExtractedFrom, Policy, SkillProvenance, read_proposal};
use crate::snapshot::is_manifest;
use crate::trust::Advisory;
use crate::{SkillError, SkillForm, SkillName, SkillPlace, SkillStatus, Snapshot, Taken};

mod changes;
mod credentials;
mod diff;
mod domains;
mod facts;
mod hidden;
mod registry;
mod risks;
mod text;
mod unavailable;

pub use changes::power_changes;
pub use diff::{Comparison, FileDiff, FileSide, TextChange, diff};
pub use facts::Inspect;
pub(crate) use hidden::disguise;
pub use hidden::{visible, visible_name};
pub(crate) use unavailable::find as unavailable;
pub use unavailable::needs_python;

/// The file with a skill's instructions.
pub const MANIFEST: &str = "SKILL.md";
/// Maximum bytes of `SKILL.md` in a review.
const MAX_TEXT: usize = 256 << 10;

/// Reviews a skill. `approved` is the last approved version and the policy it was approved with, if any.
///
/// # Errors
/// If the text cannot be searched for lines to read first: a review without them would look harmless.
pub fn review(
    current: &Taken,
    approved: Option<(&Snapshot, &Policy)>,
    inspect: &Inspect<'_>,
) -> Result<SkillReview, SkillError> {
    let Taken { place, manifest, snapshot, standing } = current;
    let facts = facts::find(snapshot, inspect);
    let changes = approved.map(|approved| changes::against(approved, snapshot, &facts, inspect));
    let proposal = snapshot.proposal.as_deref().map(read_proposal);
    let (proposal, claims) = proposal.map_or((None, Vec::new()), |proposal| (proposal.policy, proposal.claims));
    let record = standing.record.as_ref();
    let text = text_of(snapshot, MANIFEST);
    Ok(SkillReview {
        risks: risks::of_skill(snapshot, &facts.hidden)?,
        changes,
        name: manifest.name.clone(),
        written_name: manifest.written.as_deref().map(visible_name),
        has_history: snapshot.has_history,
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
        text_is_cut: text.as_ref().is_some_and(|text| text.len() > MAX_TEXT),
        text: text.map(|text| cut_bytes(&text, MAX_TEXT)),
        unavailable: unavailable::find(snapshot),
        policy: record.and_then(|record| record.policy.clone()),
        proposal,
        claims,
        advisory: record.and_then(|record| record.advisory.clone()),
    })
}

/// The lines of a skill to read first.
#[cfg(test)]
pub(crate) fn risks_of(snapshot: &Snapshot) -> Vec<Risk> {
    let texts = snapshot.files.iter().filter_map(|(path, file)| Some((path, text::read(path, &file.bytes).text?)));
    let hidden: Vec<Hidden> = texts.flat_map(|(path, text)| hidden::in_text(path, &text)).collect();
    risks::of_skill(snapshot, &hidden).unwrap()
}

/// The credentials and domains that a skill's text mentions.
#[cfg(test)]
pub(crate) fn references_of(snapshot: &Snapshot) -> (Vec<Reference>, Vec<Reference>) {
    let nothing = |path: &str, bytes: &[u8]| ComponentFact {
        path: path.to_owned(),
        hash: ContentHash::of(bytes),
        capabilities: Vec::new(),
        imports: Vec::new(),
        tools: Vec::new(),
        problem: None,
    };
    let facts = facts::find(snapshot, &nothing);
    (facts::references(&facts.credentials), facts::references(&facts.domains))
}

/// The text of a file with hidden characters written out; `None` if the skill has no such file or it is not text.
#[must_use]
pub fn text_of(snapshot: &Snapshot, path: &str) -> Option<String> {
    // `skill.md` is read as the manifest too.
    let same = |(known, _): &(&String, _)| *known == path || (is_manifest(known) && is_manifest(path));
    let (path, file) = snapshot.files.iter().find(same)?;
    let text::Text { kind, text, .. } = text::read(path, &file.bytes);
    (kind == FileKind::Text).then_some(text).flatten().map(|text| visible(text.trim_start_matches('\u{feff}')))
}

/// The review of a skill. camelCase JSON; `risks` and then `changes` come first wherever it is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillReview {
    /// Lines that tell a reader to run hidden or fetched programs, or to switch a check off; the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<Risk>,
    /// Against the last approved version: powers first, then files. `None` if no version was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<SkillChanges>,
    /// Name from the skill's manifest.
    pub name: SkillName,
    /// The name as its author wrote it, if `name` is a slug of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_name: Option<String>,
    /// Root and entry of the skill.
    pub place: SkillPlace,
    /// Directory, archive or bare component.
    pub form: SkillForm,
    /// Purpose, as the skill states it.
    pub description: String,
    /// Hash of the reviewed bytes.
    pub hash: ContentHash,
    /// Trust status of these bytes.
    pub status: SkillStatus,
    /// Why they have this status.
    pub reason: String,
    /// Origin of the bytes, if recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<SkillProvenance>,
    /// The run that made them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extracted_from: Option<ExtractedFrom>,
    /// Where it departs from the standard.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strict: Vec<String>,
    /// Every file of the skill.
    pub files: Vec<FileFact>,
    /// Whether `.git` lies beside them. It is no part of the skill: not hashed, not given to runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_history: bool,
    /// Names of credentials that its text mentions.
    pub credentials: Vec<Reference>,
    /// Domains that its text mentions.
    pub domains: Vec<Reference>,
    /// Hidden characters and look-alikes in its text and paths.
    pub hidden: Vec<Hidden>,
    /// Abilities of its components.
    pub components: Vec<ComponentFact>,
    /// Instructions that a bare component would give the model, if it was asked for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// `SKILL.md` with hidden characters written out; at most 256 KiB of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether `text` is only the beginning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub text_is_cut: bool,
    /// Commands and languages that it uses and that no tool here runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<Unavailable>,
    /// The policy in force, or the one kept for the next approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Policy that its author asks for, from `policy.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Policy>,
    /// Oddities of `policy.json`: it is unreadable, or it claims a status, hash or approval, which has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<String>,
    /// Opinion of a read-only motor run about these bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advisory: Option<Advisory>,
}

/// Kind of file content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// Text that was searched.
    Text,
    /// Neither text nor a component.
    Binary,
    /// WebAssembly component, by extension or first bytes.
    Component,
}

/// A file of a reviewed skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileFact {
    /// Path relative to the skill's root.
    pub path: String,
    /// File size in bytes.
    pub bytes: u64,
    /// Hash of the file's bytes.
    pub hash: ContentHash,
    /// Text, binary or WebAssembly component.
    pub kind: FileKind,
    /// Unix permission bits of the file.
    pub mode: u32,
}

/// A command or language of a skill that no tool here runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unavailable {
    /// The command's name, or `Python scripts`.
    pub name: String,
    /// The reason, or the replacement.
    pub instead: String,
    /// `path:line` or `path`, at most 20.
    pub at: Vec<String>,
}

/// A credential or domain mentioned in the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// The domain or the credential's name.
    pub name: String,
    /// `path:line`, at most 20.
    pub at: Vec<String>,
    /// The line of the first place, with hidden characters written out; long ones are cut.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shown: String,
}

/// Why a line of a skill's text is shown to the owner first; the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RiskKind {
    /// A text is decoded and run.
    DecodeAndRun,
    /// A program is downloaded and run, without being kept or looked at.
    DownloadAndRun,
    /// A shell is connected to another machine.
    RemoteShell,
    /// A shell runs its standard input.
    PipeToShell,
    /// Encoded text that has a command or an address in it.
    EncodedText,
    /// A part of the text that was not searched, since that would take too long.
    NotSearched,
    /// An archive is opened with a password, so that scanners cannot look into it.
    LockedArchive,
    /// Characters that do not show carry text, or change the order of the text.
    HiddenText,
    /// An address of the internet without a name.
    RawAddress,
    /// A site where anybody can leave text or collect requests.
    PasteSite,
    /// An order to switch a check off, or to keep something from people.
    DisablesChecks,
}

impl RiskKind {
    /// Continues the words "its text".
    #[must_use]
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::DecodeAndRun => "decodes something and runs it",
            Self::DownloadAndRun => "downloads something and runs it",
            Self::RemoteShell => "connects a shell to another machine",
            Self::PipeToShell => "gives the output of another command to a shell",
            Self::EncodedText => "has encoded text with a command or an address in it",
            Self::NotSearched => "is too long or too deeply encoded to be searched to its end",
            Self::LockedArchive => "opens an archive with a password, which no scanner can look into",
            Self::HiddenText => "has characters that do not show",
            Self::RawAddress => "names an internet address by its number",
            Self::PasteSite => "names a site where anybody can leave text or collect requests",
            Self::DisablesChecks => "tells its reader to switch a check off, or to hide something from people",
        }
    }
}

/// A line that an owner should read first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Risk {
    /// The pattern that the line matches.
    pub kind: RiskKind,
    /// Path of the file.
    pub path: String,
    /// Line number from 1.
    pub line: u64,
    /// The line, on one line, with hidden characters written out as `<U+202E>`; long ones are cut.
    pub shown: String,
    /// The decoded text of [`RiskKind::EncodedText`]; the characters of [`RiskKind::HiddenText`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoded: Option<String>,
    /// 1, or the number of further findings in this file that this one stands for.
    pub count: u64,
}

/// A hidden, bidirectional or confusable character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hidden {
    /// Path of the file in which it was found.
    pub path: String,
    /// Line number from 1; 0: the path or the whole file.
    pub line: u64,
    /// The finding, such as `U+202E RIGHT-TO-LEFT OVERRIDE`.
    pub what: String,
    /// The line with each such character written out as `<U+202E>`, cut around the first one.
    pub shown: String,
    /// How often it occurs in this file.
    pub count: u64,
}

/// Abilities of a component (SPEC HOST-7). Made by the caller, who knows components.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentFact {
    /// Path of the component's file.
    pub path: String,
    /// Hash of the component's bytes.
    pub hash: ContentHash,
    /// Stable words: `network`, `workspace`, `clock`, `random`, `credentials`, `command_line`, …; empty: nothing.
    pub capabilities: Vec<String>,
    /// Names of the component's imports.
    pub imports: Vec<String>,
    /// Its tools, as far as they are known without running it.
    pub tools: Vec<ToolFact>,
    /// Why it cannot be used, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A tool of a component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolFact {
    /// Name of the tool.
    pub name: String,
    /// Purpose, as the component states it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: serde_json::Value,
}

/// Changes against the approved version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillChanges {
    /// Content hash of the approved version.
    pub against: ContentHash,
    /// Abilities and requests that the approved version did not have, and those that are gone; added ones first.
    pub powers: Vec<PowerChange>,
    /// Files, scripts and components first.
    pub files: Vec<FileChange>,
}

/// A power that was added or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PowerChange {
    /// `true` if added, `false` if removed.
    pub added: bool,
    /// One phrase: ``imports network (`tools.wasm`)``, ``asks for domain `x.example` ``, ``mentions domain `x.example` (SKILL.md:12)``.
    pub what: String,
}

/// Kind of change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    /// The new version adds the file.
    Added,
    /// The file's bytes changed.
    Changed,
    /// The new version lacks the file.
    Removed,
    /// Only the permission bits changed.
    Mode,
}

/// A file that differs from the approved version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    /// Path relative to the skill's root.
    pub path: String,
    /// How the file changed.
    pub kind: FileChangeKind,
    /// Lines added and removed, for text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<(u64, u64)>,
}

#[cfg(test)]
mod tests;

//! Requests and replies about skills (SPEC SKILL-6, SKILL-9, SKILL-12). camelCase JSON.

use base::{ContentHash, RunId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skills::policy::{PolicyChange, SkillProvenance};
use skills::review::{ComponentFact, PowerChange, SkillChanges, SkillReview};
use skills::trust::Advisory;
use skills::{Policy, SkillName, SkillPlace, SkillStatus, SkillSummary};
use vault::CredentialInfo;

use super::PendingDecision;

/// Names a single skill.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WhichSkill {
    /// The skill's name, or its place as lists show it.
    pub skill: String,
}

/// Asks for the text of a file of a skill.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShowSkillRequest {
    /// The skill's name or place.
    pub skill: String,
    /// Path of the file within the skill. Default: `SKILL.md`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// The text of a file of a skill.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillText {
    /// The skill's own name.
    pub name: SkillName,
    /// Its skills directory and entry.
    pub place: SkillPlace,
    /// The hash of the bytes that were read.
    pub hash: ContentHash,
    /// The status of these bytes.
    pub status: SkillStatus,
    /// Path of the file.
    pub file: String,
    /// The whole text, with hidden characters written out as `<U+202E>`.
    pub text: String,
}

/// Asks for a skill review.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReviewRequest {
    /// The skill's name or place.
    pub skill: String,
    /// Also has a read-only run of the motor look at it; the skill is `reviewed` only if that finds nothing against it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub advisory: bool,
}

/// The facts, and the advisory run if one was started.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillReviewReply {
    /// The facts about the skill.
    pub review: SkillReview,
    /// The advisory run, if one was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}

/// Approves a skill, or asks for the effect of an approval.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApproveRequest {
    /// The skill's name or place.
    pub skill: String,
    /// The hash of the bytes shown to the owner. Required to approve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<ContentHash>,
    /// Changes to the policy that would be granted otherwise.
    #[serde(default)]
    pub policy: PolicyChange,
    /// Uses the policy that the author proposes in `policy.json` instead of the one approved earlier.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proposed: bool,
    /// The powers shown to the owner. If other powers would be granted by now, the approval is refused: the author's
    /// proposal is in no hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Policy>,
    /// The saved credentials shown with the question, accepted with the approval. Others keep waiting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub saved: Vec<PendingDecision>,
}

/// The effect of an approval: shown to the owner, who then answers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalQuestion {
    /// The skill's own name.
    pub name: SkillName,
    /// Its skills directory and entry.
    pub place: SkillPlace,
    /// The hash of the bytes that would be approved.
    pub hash: ContentHash,
    /// The current status of these bytes.
    pub status: SkillStatus,
    /// The powers that would be granted.
    pub policy: Policy,
    /// Starting point of these powers, before the owner's changes.
    #[serde(default)]
    pub basis: PolicyBasis,
    /// Changes since the version approved last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<SkillChanges>,
    /// The powers of its components.
    pub components: Vec<ComponentFact>,
    /// Instructions of a bare component for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The origin of the skill, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<SkillProvenance>,
    /// The result of the advisory review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advisory: Option<Advisory>,
    /// The credentials that runs of the skill saved and that these powers declare: they wait for the owner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub saved: Vec<CredentialInfo>,
    /// Domains, credentials and commands that its text mentions; those that would not be granted come first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mentions: Vec<Mention>,
    /// Warnings for the owner: hidden characters, a missing credential, a proposal that is not granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A name in a skill's text, and whether the powers of the approval cover it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Mention {
    /// Domain, credential or command.
    pub kind: MentionKind,
    /// The name as the text has it.
    pub name: String,
    /// Whether a run by the skill could reach, use or call it.
    pub granted: bool,
}

/// The kind of a name in a skill's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MentionKind {
    /// A domain of an address.
    Domain,
    /// A variable or placeholder of a secret.
    Credential,
    /// A command or language that no tool here runs.
    Command,
}

/// Starting point of the powers that an approval would grant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyBasis {
    /// The policy of an earlier approval, or the one kept for the next.
    Approved,
    /// The policy that the author asks for in `policy.json`.
    Proposal,
    /// Nothing, since `policy.json` cannot be read.
    Unreadable,
    /// Tools that see only the workspace of a run.
    #[default]
    Default,
}

/// Rejects a single skill.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RejectRequest {
    /// The skill's name or place.
    pub skill: String,
    /// The owner's reason, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Changes only the policy of an approved skill.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpdateRequest {
    /// The skill's name or place.
    pub skill: String,
    /// The changes to the policy.
    pub policy: PolicyChange,
}

/// A version of a skill.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillVersion {
    /// The hash of its bytes.
    pub hash: ContentHash,
    /// Its status when it was last current.
    pub status: SkillStatus,
    /// Whether another version was approved or made since.
    pub superseded: bool,
    /// Whether these bytes are in place now.
    pub in_place: bool,
    /// Whether the bytes are kept for a rollback.
    pub kept: bool,
    /// Time of the owner's approval, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_at: Option<Timestamp>,
    /// The source of the bytes, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The run that made this version, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Time of the last change.
    pub changed_at: Timestamp,
}

/// Compares two versions of a skill.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DiffRequest {
    /// The skill's name or place.
    pub skill: String,
    /// The beginning of a version's hash. Default: the version approved last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The beginning of a version's hash. Default: the bytes in place now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// The differences between two versions.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillDiff {
    /// Hash of the older version.
    pub from: ContentHash,
    /// Hash of the newer version.
    pub to: ContentHash,
    /// Changed powers, added ones first.
    pub powers: Vec<PowerChange>,
    /// Changed files with their text.
    pub files: Vec<skills::review::FileDiff>,
}

/// Rolls a skill back to a version.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RollbackRequest {
    /// The skill's name or place.
    pub skill: String,
    /// The beginning of the version's hash. Default: the version approved before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// The skill after a rollback.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillRollback {
    /// The skill as lists show it.
    #[serde(flatten)]
    pub skill: SkillSummary,
    /// Path of the replaced files, if they could not be read as a skill. They are kept until a person removes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put_aside: Option<String>,
}

/// Verifies one skill, or all.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerifySkills {
    /// The skill's name or place. Default: all skills.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
}

/// The result of verifying a skill: every byte was read.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillVerification {
    /// The skill's name, if it can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its skills directory and entry.
    pub place: SkillPlace,
    /// The status of its bytes.
    pub status: SkillStatus,
    /// Reason for this status.
    pub reason: String,
    /// The hash of its bytes, if they can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<ContentHash>,
    /// Whether the owner approved a version in this place: these bytes should match it.
    pub was_approved: bool,
    /// Duration of the verification in milliseconds.
    pub millis: f64,
}

/// Adds a skill to the home's own.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AddRequest {
    /// An absolute path of a directory, archive, `SKILL.md` or component; or an `http(s)` URL of an archive, a
    /// `SKILL.md` or a component.
    pub source: String,
}

/// Updates a skill from the source that it was added from.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FetchRequest {
    /// The skill's name or place.
    pub skill: String,
    /// Only compares with the source, and changes nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub check: bool,
}

/// The result of comparing a skill with its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FetchOutcome {
    /// The source has the same bytes.
    Unchanged,
    /// The source has other bytes, and the skill was left as it is.
    Newer,
    /// The bytes of the source were put in place.
    Updated,
}

/// A skill compared with its source, and updated if that was asked for.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillFetch {
    /// The skill's own name.
    pub name: SkillName,
    /// Its skills directory and entry.
    pub place: SkillPlace,
    /// The path or URL that was read.
    pub source: String,
    /// The outcome of the update.
    pub outcome: FetchOutcome,
    /// Hash of the files before.
    pub from: ContentHash,
    /// Hash of the source's files.
    pub to: ContentHash,
    /// The status of the files that are in place now. An update never approves.
    pub status: SkillStatus,
    /// Whether the files had been changed here since they came from the source.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed_here: bool,
    /// The differences between them, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<SkillDiff>,
}

//! What surfaces ask about skills and what they get (SPEC SKILL-6, SKILL-9, SKILL-12). camelCase JSON.

use base::{ContentHash, RunId, Timestamp};
use serde::{Deserialize, Serialize};
use skills::policy::{PolicyChange, Provenance};
use skills::review::{Changes, ComponentFact, PowerChange, Review};
use skills::trust::Advisory;
use skills::{Place, Policy, SkillName, SkillStatus};

use super::Caller;

/// Names a skill.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WhichSkill {
    /// Its name, or its place as lists show it.
    pub skill: String,
}

/// Asks for a review.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReviewRequest {
    /// Its name, or its place.
    pub skill: String,
    /// Also has a read-only run of the motor look at it; the skill is `reviewed` only when that finds nothing against it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub advisory: bool,
    /// Who asks: an advisory run costs energy.
    #[serde(default)]
    pub by: Caller,
}

/// The facts, and the run that was started to look at them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillReviewReply {
    /// The facts.
    pub review: Review,
    /// The advisory run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}

/// Approves, or asks what approving would do.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApproveRequest {
    /// Its name, or its place.
    pub skill: String,
    /// The bytes that the owner was shown. Needed to approve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<ContentHash>,
    /// What is to be different from the policy that would be granted otherwise.
    #[serde(default)]
    pub policy: PolicyChange,
    /// Takes what the author proposes in `policy.json` instead of the policy approved earlier.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proposed: bool,
    /// The powers that the owner was shown. When others would be granted by now, the approval is refused: what the author
    /// proposes is in no hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Policy>,
}

/// What an approval would grant: shown to the owner, who then answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalQuestion {
    /// The skill.
    pub name: SkillName,
    /// Where it lies.
    pub place: Place,
    /// The bytes that would be approved.
    pub hash: ContentHash,
    /// Where they stand now.
    pub status: SkillStatus,
    /// The powers that they would be given.
    pub policy: Policy,
    /// Against the version approved last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
    /// What its components can do.
    pub components: Vec<ComponentFact>,
    /// What a bare component would tell the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Where it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// What the advisory review said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advisory: Option<Advisory>,
    /// What the owner should know: hidden characters, a credential that is missing, a proposal that is not granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Rejects a skill.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RejectRequest {
    /// Its name, or its place.
    pub skill: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Changes the policy of an approved skill, and nothing else of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpdateRequest {
    /// Its name, or its place.
    pub skill: String,
    /// What is to be different.
    pub policy: PolicyChange,
}

/// A version of a skill.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillVersion {
    /// Its bytes.
    pub hash: ContentHash,
    /// Where they stood when they last counted.
    pub status: SkillStatus,
    /// Another version was approved or made since.
    pub superseded: bool,
    /// They are what lies there now.
    pub in_place: bool,
    /// They are kept, so that one can go back to them.
    pub kept: bool,
    /// When the owner approved them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_at: Option<Timestamp>,
    /// Where they came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The run that made them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// When this was last changed.
    pub changed_at: Timestamp,
}

/// Compares two versions.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DiffRequest {
    /// Its name, or its place.
    pub skill: String,
    /// The beginning of a version's hash; none: the version approved last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The beginning of a version's hash; none: what lies there now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// What is different between two versions.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillDiff {
    /// The older one.
    pub from: ContentHash,
    /// The newer one.
    pub to: ContentHash,
    /// Powers, added ones first.
    pub powers: Vec<PowerChange>,
    /// Files with their text.
    pub files: Vec<skills::review::FileDiff>,
}

/// Goes back to a version.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RollbackRequest {
    /// Its name, or its place.
    pub skill: String,
    /// The beginning of the version's hash; none: the version approved before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// Verifies one skill, or all.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerifySkills {
    /// Its name, or its place; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
}

/// What verifying a skill found: every byte was read.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillVerification {
    /// Its name, when it can be read that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it lies.
    pub place: Place,
    /// Where its bytes stand.
    pub status: SkillStatus,
    /// Why.
    pub reason: String,
    /// The hash of its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<ContentHash>,
    /// The owner approved a version of what lies in this place: these bytes should be it.
    pub was_approved: bool,
    /// How long it took.
    pub millis: f64,
}

/// Adds a skill to the home's own.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AddRequest {
    /// An absolute path of a directory, archive, `SKILL.md` or component; or an `http(s)` URL of an archive, a `SKILL.md` or a
    /// component.
    pub source: String,
}

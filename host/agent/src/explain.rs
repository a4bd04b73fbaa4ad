//! What a run would be allowed to touch, in words and numbers, from the plan that the run itself would start from
//! (SPEC RUN-13).

use base::{AgentName, ContentHash, CredentialName, Refusal};
use network::{Pattern, Shape, TaintedWrite};
use runtime::Limits;
use serde::{Deserialize, Serialize};
use skills::{Place, SkillName, SkillStatus};
use vault::CredentialSource;

/// Everything a run could touch. JSON in camel case.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Whose run it would be.
    pub agent: AgentName,
    /// The model it would talk to; none when none is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tools, in the order the model is told of them.
    pub tools: Vec<ExplainedTool>,
    /// The skill it would work by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<ExplainedSkill>,
    /// The commands that `bash` would be narrowed to; none: all it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<String>>,
    /// What it could reach.
    pub network: ExplainedNetwork,
    /// The credentials it could use.
    pub credentials: Vec<ExplainedCredential>,
    /// The files it could see.
    pub files: ExplainedFiles,
    /// The limits of each tool call.
    pub limits: Limits,
    /// Model calls it may take.
    pub max_iterations: u32,
    /// Milliseconds it may take.
    pub timeout_ms: u64,
    /// What it would cost.
    pub energy: ExplainedEnergy,
    /// Why it could not start now, with the way to mend it.
    pub problems: Vec<Refusal>,
    /// What the owner should know.
    pub warnings: Vec<String>,
}

/// The skill that a run would work by.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedSkill {
    /// Its name.
    pub name: SkillName,
    /// Where it lies.
    pub place: Place,
    /// The bytes that the run would be given.
    pub hash: ContentHash,
    /// Where they stand.
    pub status: SkillStatus,
    /// Why.
    pub reason: String,
    /// The tools it brings.
    pub tools: Vec<String>,
}

/// A tool that would be granted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedTool {
    /// Its name.
    pub name: String,
    /// What it could do to the world, as it declares: `changes nothing`, `writes files`, `reaches out`, …
    pub effects: String,
    /// Milliseconds one call may take.
    pub timeout_ms: u64,
    /// The component behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<ContentHash>,
}

/// What a run could reach.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedNetwork {
    /// The hosts granted: ports 80 and 443 unless a pattern names one.
    pub domains: Vec<Pattern>,
    /// Those that the owner refused.
    pub refused: Vec<Pattern>,
    /// The requests that may be sent after the run has read from the web; a host alone is all that can be sent there.
    pub writes: Vec<Shape>,
    /// What becomes of such a write to any other.
    pub tainted_write: TaintedWrite,
    /// Private addresses that exactly granted hosts may lead to.
    pub private: Vec<String>,
}

/// A credential that a run could use, never its value.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedCredential {
    /// Its name.
    pub name: CredentialName,
    /// Where it comes from; none: it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<CredentialSource>,
    /// Where it may be sent.
    pub domains: Vec<String>,
    /// A component may be given the value itself.
    pub raw: bool,
}

/// The files a run could see.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedFiles {
    /// Whether it has a workspace at all, and may write to it.
    pub access: FileAccess,
    /// What would be copied into it.
    pub inputs: Vec<String>,
    /// Bytes it may hold.
    pub most_bytes: u64,
    /// Files and directories it may hold.
    pub most_files: u64,
}

/// What a run may do with its workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileAccess {
    /// No granted tool sees files.
    None,
    /// Its tools only read.
    Read,
    /// Its tools read and write.
    ReadWrite,
}

/// What a run would cost.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedEnergy {
    /// The agent's level now.
    pub level: f64,
    /// What the start costs.
    pub base: f64,
    /// What each model call beyond the free ones costs.
    pub per_iteration: f64,
    /// Model calls that the start pays for.
    pub free_iterations: u32,
    /// The most the whole run could cost.
    pub most: f64,
    /// Whether the model of energy is switched on.
    pub enabled: bool,
}

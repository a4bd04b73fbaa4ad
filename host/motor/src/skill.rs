//! The labels of skills in a run's history. The loop passes them on and does not look inside.

use base::ContentHash;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The skill that a run was given to work by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillLabel {
    /// The name of the skill.
    pub name: String,
    /// The bytes that the run was given.
    pub hash: ContentHash,
}

/// A skill that a finished run left behind (SPEC SKILL-10), or why it could not be taken over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstalledSkill {
    /// The name of the skill; its name in the workspace if it has no other.
    pub name: String,
    /// Where it lies now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The hash over its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<ContentHash>,
    /// There was none before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub created: bool,
    /// Why it was not taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl InstalledSkill {
    /// One that was not taken over, and why.
    #[must_use]
    pub fn lost(name: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { name: name.into(), place: None, hash: None, created: false, problem: Some(problem.into()) }
    }
}

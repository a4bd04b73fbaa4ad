//! What a run's history says of skills: labels. The loop passes them on and looks into neither.

use base::ContentHash;
use serde::{Deserialize, Serialize};

/// The skill that a run was given to work by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillLabel {
    /// Its name.
    pub name: String,
    /// The bytes that the run was given.
    pub hash: ContentHash,
}

/// A skill that a finished run left behind (SPEC SKILL-10), or why it could not be taken over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstalledSkill {
    /// Its name; what it was called in the workspace when it has none.
    pub name: String,
    /// Where it lies now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Its bytes.
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

//! The permissions of an approved skill (SPEC SKILL-4).
//!
//! It must not know which tools, limits or domains there are: callers say, or check. It survives policies and proposals
//! of any size and content, schemas made to be slow or to reach out, and `policy.json` files that claim to be approved.

mod bounds;
mod file;
mod inputs;
mod proposal;

pub use file::{render, write_file, wrote};
pub use inputs::check_inputs;
pub use proposal::{Proposal, read_proposal};

use std::collections::BTreeMap;

use base::CredentialName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::SkillError;

/// The powers that the owner gave a skill. Empty means none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Policy {
    /// Patterns of domains it may reach.
    pub domains: Vec<String>,
    /// Patterns of domains it may also write to after it has read from the web.
    pub writes: Vec<String>,
    /// Bundled tools its runs get, exact names.
    pub tools: Vec<String>,
    /// Credentials its runs are granted.
    pub required_credentials: Vec<CredentialName>,
    /// Packages it needs, by name, exact versions with integrity.
    pub dependencies: BTreeMap<String, Value>,
    /// JSON Schema (an object's) that `inputs` have to match; `None`: it takes no inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Value>,
    /// Limits of its calls by the names of the configuration's `[limits]`; they only lower.
    #[serde(deserialize_with = "base::whole::map")]
    pub limits: BTreeMap<String, u64>,
}

impl Policy {
    /// Checks that it is within bounds, that `inputs` is a usable schema, and that its limits are among `limit_names`.
    /// The caller checks that its domains are patterns and its tools exist.
    ///
    /// # Errors
    /// If it is out of bounds, its schema is unusable, or a limit is unknown.
    pub fn validate(&self, limit_names: &[&str]) -> Result<(), SkillError> {
        self.check_bounds()?;
        match self.limits.keys().find(|name| !limit_names.contains(&name.as_str())) {
            Some(unknown) => {
                let known = limit_names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                let reason = format!("there is no limit `{}`: there are {known}", bounds::shown(unknown));
                Err(SkillError::Invalid { reason })
            }
            None => Ok(()),
        }
    }

    /// As [`Policy::validate`], without the names of limits.
    pub(crate) fn check_bounds(&self) -> Result<(), SkillError> {
        bounds::check(self).map_err(|reason| SkillError::Invalid { reason })
    }
}

/// Changes to a policy; a field that is `None` keeps its old value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PolicyChange {
    /// Replaces the domains, if present.
    pub domains: Option<Vec<String>>,
    /// Replaces the domains that may be written to.
    pub writes: Option<Vec<String>>,
    /// Replaces the tools, if present.
    pub tools: Option<Vec<String>>,
    /// Replaces the credentials, if present.
    pub required_credentials: Option<Vec<CredentialName>>,
    /// Replaces the schema of inputs; an empty object: it takes none.
    pub inputs: Option<Value>,
    /// Replaces the limits, if present.
    #[serde(deserialize_with = "base::whole::option_map")]
    pub limits: Option<BTreeMap<String, u64>>,
}

impl PolicyChange {
    /// The policy with the changes in it.
    #[must_use]
    pub fn apply(self, policy: Policy) -> Policy {
        let inputs = match self.inputs {
            Some(Value::Object(schema)) if schema.is_empty() => None,
            Some(schema) => Some(schema),
            None => policy.inputs,
        };
        Policy {
            domains: self.domains.unwrap_or(policy.domains),
            writes: self.writes.unwrap_or(policy.writes),
            tools: self.tools.unwrap_or(policy.tools),
            required_credentials: self.required_credentials.unwrap_or(policy.required_credentials),
            dependencies: policy.dependencies,
            inputs,
            limits: self.limits.unwrap_or(policy.limits),
        }
    }
}

/// Where a skill came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillProvenance {
    /// A URL or a path, as it was given.
    pub source: String,
    /// When it was fetched or copied.
    pub fetched_at: base::Timestamp,
    /// Content hash of the fetched skill.
    pub content_hash: base::ContentHash,
}

/// The run that made or changed a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExtractedFrom {
    /// The id of that run.
    pub run_id: base::RunId,
    /// When it made or changed the skill.
    pub at: base::Timestamp,
    /// Paths of files it added or changed.
    pub changed_files: Vec<String>,
    /// Paths of files it removed.
    pub deleted_files: Vec<String>,
}

#[cfg(test)]
mod tests;

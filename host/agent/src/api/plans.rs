//! Plans of runs as callers see them (SPEC LAND-6). camelCase JSON.

use base::ContentHash;
use grants::Drafting;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ActRequest;
use crate::Explanation;

/// The plan that the owner agreed to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgreedPlan {
    /// The hash of the plan. A run that would have other access is refused.
    pub hash: ContentHash,
    /// The cost of drafting it, if a model did. Kept with the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drafting: Option<Drafting>,
}

/// A run that the owner may agree to, with all that it could do. Nothing is started.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskPlan {
    /// The request that starts exactly this run, together with the owner's token. Its `plan` names the hash.
    pub request: ActRequest,
    /// The access of the run.
    pub explanation: Explanation,
    /// The harm that the run could do, worst first, one sentence each.
    pub at_worst: Vec<String>,
    /// The entries of the draft that were dropped, and other remarks, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The model's reason for the access, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

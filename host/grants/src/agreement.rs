//! The owner's agreement to a plan: the access of its run is the plan's, and it asks for no more (SPEC LAND-6).
//!
//! Evidence for the run's record. The right to start such a run is a `consent::Consent`, which no record turns into.

use base::{ConsentRecord, ContentHash};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The plan that a run is held to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Agreement {
    /// The hash of the task and of all access that the owner was shown.
    pub plan: ContentHash,
    /// The owner's consent to exactly this plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<ConsentRecord>,
    /// The cost of drafting the plan, if a model did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drafting: Option<Drafting>,
}

/// The cost of drafting a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Drafting {
    /// `provider/model` that drafted it.
    pub model: String,
    /// Number of requests to the model: 2 if its first draft could not be read.
    #[serde(deserialize_with = "base::whole::number")]
    pub requests: u32,
    /// Tokens of the prompts.
    #[serde(deserialize_with = "base::whole::number")]
    pub input_tokens: u64,
    /// Tokens of the replies.
    #[serde(deserialize_with = "base::whole::number")]
    pub output_tokens: u64,
    /// US dollars, if prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

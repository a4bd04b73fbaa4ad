//! Where something of a run came from, as callers see it. camelCase JSON, read from the run's record and nothing else.

use base::{ConsentRecord, ContentHash, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The part of a run that is asked about: a file, a request, or the answer if neither is named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WhyQuery {
    /// A file: its path below `/workspace`, or the absolute path of a file in a directory that the run works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The number of a line of the file, from 1. Default: the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The number of a network request of the run, from 1, in the order of the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<usize>,
}

/// The origin of a part of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhyReply {
    /// Id of the run.
    pub run_id: RunId,
    /// The part that was asked about, in words.
    pub subject: String,
    /// The text of the line that was asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// The calls that it came from, the last one first. For an answer: the calls whose results it could draw on.
    pub calls: Vec<WhyCall>,
    /// The sources that the run had read before: at most 100, the latest.
    pub read_before: Vec<WhySource>,
    /// The facts that the record lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_recorded: Vec<String>,
}

/// A call that something came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhyCall {
    /// Number of the step.
    pub step: u32,
    /// The model's id of the call.
    pub call_id: String,
    /// Name of the tool.
    pub tool: String,
    /// The arguments as executed, cut to 300 characters.
    pub arguments: String,
    /// `ok`, the code of the failure, or `no result`.
    pub outcome: String,
    /// How it is known that this call is an origin.
    pub because: String,
    /// The component that made it; absent if the host made it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<WhyComponent>,
    /// `provider/model` whose reply asked for it.
    pub model: String,
    /// The words of that reply, cut to 300 characters; empty if it only made calls.
    pub reply: String,
    /// The grant, approval or rule that allowed it.
    pub allowed: Vec<WhyPermission>,
}

/// A component that made a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhyComponent {
    /// The hash of its bytes.
    pub hash: ContentHash,
    /// Its name and version, if it is one that comes with this program. The record has only the hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Something that a run had read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhySource {
    /// Number of the step; 0: with the task.
    pub step: u32,
    /// The page, file or message.
    pub what: String,
    /// Whether it is content from outside, which is not trusted.
    pub is_untrusted: bool,
}

/// A permission that a call had.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhyPermission {
    /// The permission in words.
    pub what: String,
    /// Whose word it is, if it was given during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<ConsentRecord>,
}

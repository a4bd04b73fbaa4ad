//! The tools and files that approved skills offer to other programs. camelCase JSON.

use base::{AgentName, ContentHash, ErrorCode, Provenance};
use motor::OutgoingRequest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use skills::SkillName;

/// A tool of an approved skill. Its texts come from the component, with every hidden character written out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedTool {
    /// Name for [`CallSkillTool`], unique among all skills.
    pub name: String,
    /// The skill that brings it.
    pub skill: SkillName,
    /// Its name within the skill.
    pub tool: String,
    /// Its purpose, as the component describes it: at most 1,024 characters.
    pub description: String,
    /// JSON Schema of an object: the arguments.
    pub input_schema: Value,
    /// JSON Schema of an object: the output, if the component promises one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Whether a call changes nothing.
    pub read_only: bool,
    /// Whether a call may destroy something.
    pub destructive: bool,
    /// Whether a repeated call changes nothing more.
    pub idempotent: bool,
    /// Whether it reaches beyond the host.
    pub open_world: bool,
}

/// The files of an approved skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedSkill {
    /// Name of the skill, unique among those offered.
    pub name: SkillName,
    /// Its description of itself.
    pub description: String,
    /// Hash of all its bytes, as the owner approved them.
    pub hash: ContentHash,
    /// The files, by path; components and files over 1 MiB are left out.
    pub files: Vec<OfferedFile>,
}

/// A file of an approved skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedFile {
    /// Path within the skill; its description is always `SKILL.md`.
    pub path: String,
    /// Its size, in bytes.
    pub bytes: u64,
    /// SHA-256 of the bytes.
    pub digest: ContentHash,
    /// Whether it is UTF-8.
    pub is_text: bool,
}

/// Calls a tool of an approved skill.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallSkillTool {
    /// Name of the tool, as the list of tools has it.
    pub name: String,
    /// The arguments: an object that matches its schema. Default: none.
    #[serde(default = "no_arguments")]
    pub arguments: Value,
    /// The agent that pays the energy. Default: the one of the caller's token, else `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
}

fn no_arguments() -> Value {
    Value::Object(serde_json::Map::new())
}

/// The result of a call.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillToolReply {
    /// Whether the tool succeeded.
    pub ok: bool,
    /// Its output, or why it failed.
    pub output: String,
    /// The output as JSON, if the tool promises an output schema; it matches that schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// The error of a failed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    /// The next step after a failed call, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Provenance of the output: `web` if the tool read anything from there.
    pub provenance: Provenance,
    /// Its network requests, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<OutgoingRequest>,
    /// Wall-clock time in milliseconds.
    pub duration_ms: u64,
    /// Units of work it used.
    pub fuel: u64,
    /// Peak memory use in bytes.
    pub peak_memory_bytes: u64,
    /// Warnings for the owner, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

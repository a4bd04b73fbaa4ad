//! Requests from callers to the host, and its replies. Serialised as camelCase JSON between processes.
//!
//! The facade and the wire share these records: each is plain data made for callers. Stored data has records of its own
//! (`motor::record`, `motor::event`, `signals`).

pub mod changes;
pub mod commits;
pub mod cortex;
pub mod neurons;
pub mod offers;
pub mod plans;
pub mod skills;
pub mod staged;
pub mod tasks;
pub mod why;

use std::path::PathBuf;

use base::{AgentName, CredentialName, Provenance, RunId, Timestamp};
use llm::MicroUsd;
use motor::{Preparing, RunStatus};
use network::RequestTrace;
use plans::AgreedPlan;
use runtime::Language;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The caller of a request, as the surface authenticated it. Energy binds models; the owner is only warned (SPEC EN-3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Caller {
    /// A model. The default: an unauthenticated caller gets the fewest rights.
    #[default]
    Model,
    /// A program of the owner's user on this machine that does not speak for a model. Energy binds it as a model.
    Local,
    /// The holder of the owner's token.
    Owner,
}

/// A task for the loop (SPEC RUN-1). A program alone is an [`ExecuteRequest`].
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActRequest {
    /// The task in plain language.
    pub task: String,
    /// Names and aliases of the tools granted: exactly these.
    #[serde(default)]
    pub tools: Vec<String>,
    /// The agent that the run belongs to.
    #[serde(default)]
    pub agent: AgentName,
    /// Patterns of the domains granted: `example.com`, `*.example.com`, `*`, each with an optional `:port`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// Patterns of domains that the run may still write to after reading web content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// Names of the credentials granted. Credentials with placeholders in the task are always granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<String>,
    /// Commands that `bash` is narrowed to. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<String>>,
    /// Whether irreversible and outward actions wait for the owner's consent (SPEC APPR-1).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approval_required: bool,
    /// Whether the run's writes to the network are held until the owner sends them (SPEC LAND-5).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stage: bool,
    /// The run cannot ask questions, and actions that need consent are refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
    /// The run is left alone: its questions wait until they are answered or it is cancelled (`motor.detached_timeout_seconds`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detached: bool,
    /// A skill to work by: its name or place (SPEC SKILL-8). If it is approved, the grants of its policy apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Inputs of the skill: an object that matches the schema of its policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<serde_json::Value>,
    /// Files to copy into the workspace.
    #[serde(default)]
    pub files: Vec<FileInput>,
    /// Directories to work on (SPEC LAND-1): the run sees them as `/workspace`, and its changes are kept aside until
    /// the owner lands them. Without tools, such a run has `bash` and the file tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<DirectoryInput>,
    /// Model calls it may take. Default 20, at most 50.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "base::whole::option")]
    pub max_iterations: Option<u32>,
    /// Milliseconds it may take. Default 600,000.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "base::whole::option")]
    pub timeout_ms: Option<u64>,
    /// US dollars that it may spend on models, over all its attempts. Default: `budget.usd`, which only the owner can exceed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<MicroUsd>,
    /// `provider/model` instead of the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// A file to record the model's turns in, for `replay/FILE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
    /// Whether the code tool's static guard is on. Default: as configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<bool>,
    /// Seeds the random numbers of the run's programs and tools, and sets their clock by its steps: with the same replies of
    /// the model and the same answers from outside, the same seed gives the same results (SPEC SIM-1). Default: the system's.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "base::whole::option")]
    pub seed: Option<u32>,
    /// The plan that the owner agreed to: the run has exactly its access and asks for no more (SPEC LAND-6). Such a
    /// request takes the owner's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<AgreedPlan>,
    /// Idempotency key: the same key names the same run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// A file for the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileInput {
    /// Absolute path on this machine.
    pub path: PathBuf,
    /// Its path in the workspace. Default: its file name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A directory to work on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DirectoryInput {
    /// Absolute path on this machine.
    pub path: PathBuf,
    /// Whether the run may only read it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// Paths in it that the run may see although `.gitignore`, `.motorignore` or the rules for secrets hide them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<String>,
}

/// The reply for an accepted run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActReply {
    /// Id of the run.
    pub run_id: RunId,
    /// `created`, or the current status of an earlier run with the same key.
    pub status: RunStatus,
    /// Its workspace on this machine.
    pub workspace: PathBuf,
    /// Warnings for the owner, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The network access of a program outside runs (SPEC CODE-5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// No network access at all.
    #[default]
    Isolated,
    /// The domains of `network.code_domains`, with `fetch`.
    Network,
}

/// A credential to store. The one request that carries a secret; it is never logged.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetCredential {
    /// Name of the credential.
    pub name: CredentialName,
    /// The secret value, never logged.
    pub value: String,
    /// Patterns of the domains it may be sent to. If empty, it is sent nowhere and serves computing only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// The skill that owns it. Default: shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Whether a component may be given the value itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
}

/// The saved credential that the owner decides about.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PendingDecision {
    /// Name of the credential.
    pub name: CredentialName,
    /// The skill whose run saved it. Default: the only one that has a pending credential of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// When the shown one was saved. If another was saved since, nothing is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_at: Option<Timestamp>,
}

/// A program to run in the sandbox (SPEC CODE-5).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecuteRequest {
    /// Source text of the program.
    pub code: String,
    /// The language of the source. Default: JavaScript.
    #[serde(default)]
    pub language: Language,
    /// The program's purpose, for the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// Its network access. Default: isolated.
    #[serde(default)]
    pub tier: Tier,
    /// Milliseconds it may take; clamped to 100..=5000, in the network tier to 100..=30000. Default: as configured.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "base::whole::option")]
    pub timeout_ms: Option<u64>,
    /// Whether the static guard is on. Default: as configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<bool>,
    /// The agent that pays the energy.
    #[serde(default)]
    pub agent: AgentName,
    /// Seeds its random numbers; random if absent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "base::whole::option")]
    pub seed: Option<u64>,
}

/// The result of a program.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecuteReply {
    /// Whether it returned a value.
    pub ok: bool,
    /// The value as JSON text, or `EXECUTION_…: sentence`.
    pub output: String,
    /// The code alone, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// Line of the source where it failed, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column of that line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// Whether the value was longer than 32 KiB and was cut.
    pub truncated: bool,
    /// The provenance of its output: `web` if it read anything from there.
    #[serde(default = "internal")]
    pub provenance: Provenance,
    /// The network requests it made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestTrace>,
    /// Its console output, at most 8 KiB.
    pub console: String,
    /// Whether console output was cut.
    pub console_truncated: bool,
    /// Wall-clock time in the sandbox, in milliseconds.
    pub duration_ms: f64,
    /// Units of work it used.
    pub fuel: u64,
    /// Peak memory use in bytes.
    pub peak_memory_bytes: u64,
    /// Warnings for the owner, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Filter for listing runs, newest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskFilter {
    /// Only runs with this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    /// Only runs of this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// Only runs that were accepted before this one: the last run of a list leads to the next part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<RunId>,
    /// Maximum number of runs. Default 20, at most 1,000.
    #[serde(default = "default_limit")]
    pub limit: usize,
}

/// Maximum number of runs in one list.
pub const MAX_LISTED_RUNS: usize = 1_000;

fn internal() -> Provenance {
    Provenance::Internal
}

fn default_limit() -> usize {
    20
}

/// The status of a running host.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostStatus {
    /// Process id of the host.
    pub pid: u32,
    /// Version of the host's program.
    pub version: String,
    /// Directory of the host's home.
    pub home: PathBuf,
    /// Time the host was started.
    pub started_at: Timestamp,
    /// Runs that are not over.
    pub running: Vec<RunId>,
    /// The component being compiled, if that takes long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preparing: Option<Preparing>,
}

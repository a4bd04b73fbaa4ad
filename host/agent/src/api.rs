//! What callers ask of the host and what they get. Serialised as camelCase JSON wherever it crosses a process.
//!
//! These are the facade's own records and the wire's alike: each is plain data made for callers, and a second set
//! beside them would say the same. What is stored has records of its own (`motor::event`, `signals`).

pub mod skills;

use std::path::PathBuf;

use base::{AgentName, CredentialName, Provenance, RunId, Timestamp};
use motor::{Preparing, RunStatus};
use network::RequestTrace;
use serde::{Deserialize, Serialize};

/// Who asks. Energy binds models; the owner is only warned (SPEC EN-3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caller {
    /// A model. The default: who says nothing gets the fewest rights.
    #[default]
    Model,
    /// The owner's own command.
    Owner,
}

/// How to act.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The loop: returns a run id at once.
    #[default]
    Agentic,
    /// One program in the sandbox: returns its value (SPEC CODE-5).
    Oneshot,
}

/// A task to do (SPEC RUN-1).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActRequest {
    /// The task in plain language; JavaScript when the mode is oneshot.
    pub task: String,
    /// Agentic or oneshot.
    #[serde(default)]
    pub mode: Mode,
    /// Names and aliases of the tools granted: exactly these. Agentic only.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Whose run it is.
    #[serde(default)]
    pub agent: AgentName,
    /// Patterns of the domains granted: `example.com`, `*.example.com`, `*`, each with an optional `:port`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// Patterns of domains that it may write to also after it has read from the web.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// Names of the credentials granted. Those that the task has placeholders of are granted anyway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<String>,
    /// Commands that `bash` is narrowed to; none: all it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<String>>,
    /// Says what the run would be allowed to touch, and starts nothing (SPEC RUN-13).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub explain: bool,
    /// Whether irreversible and outward actions wait for the owner's consent (SPEC APPR-1).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approval_required: bool,
    /// Nobody can be asked: the run has no questions, and what would need consent is refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
    /// A skill to work by: its name, or its place (SPEC SKILL-8). What its policy grants is granted, when it is approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// What the skill takes: an object that matches the schema of its policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<serde_json::Value>,
    /// The run only reads the skill and says what it thinks of it (SPEC SKILL-9).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skill_review: bool,
    /// Files to copy into the workspace.
    #[serde(default)]
    pub files: Vec<FileInput>,
    /// Model calls it may take. Default 20, at most 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u32>,
    /// Milliseconds it may take. Default 600,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// `provider/model` instead of the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// A file to record the model's turns in, for `replay/FILE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
    /// Whether the code tool's static guard is on. Default: as configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<bool>,
    /// Idempotency key: the same key names the same run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Who asks.
    #[serde(default)]
    pub by: Caller,
}

/// A file for the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileInput {
    /// Where it is on this machine: absolute.
    pub path: PathBuf,
    /// Its path in the workspace. Default: its file name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// An accepted run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActReply {
    /// The run.
    pub run_id: RunId,
    /// `created`, or what an earlier run with the same key has become.
    pub status: RunStatus,
    /// Its workspace on this machine.
    pub workspace: PathBuf,
    /// What the owner should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What a program outside runs may reach (SPEC CODE-5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Nothing.
    #[default]
    Isolated,
    /// The domains of `network.code_domains`, with `fetch`.
    Network,
}

/// A credential to keep. The one request that carries a secret; it is never logged.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetCredential {
    /// Its name.
    pub name: CredentialName,
    /// Its value.
    pub value: String,
    /// Patterns of the domains it may be sent to; none: nowhere, it is for computing only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// The skill it belongs to; none: shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Whether a component may be given the value itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
}

/// A program to run in the sandbox (SPEC CODE-5).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecuteRequest {
    /// JavaScript.
    pub code: String,
    /// What it is for, for the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// What it may reach. Default: nothing.
    #[serde(default)]
    pub tier: Tier,
    /// Milliseconds it may take; clamped to 100..=5000, in the network tier to 100..=30000. Default: as configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether the static guard is on. Default: as configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<bool>,
    /// Whose energy it costs.
    #[serde(default)]
    pub agent: AgentName,
    /// Seeds its random numbers; random when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Who asks.
    #[serde(default)]
    pub by: Caller,
}

/// What became of a program.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecuteReply {
    /// It has a value.
    pub ok: bool,
    /// The value as JSON text, or `EXECUTION_…: sentence`.
    pub output: String,
    /// The code alone, when it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// Where in the source it failed, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Where in that line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The value was longer than 32 KiB and was cut.
    pub truncated: bool,
    /// Where what it gave may have come from: `web` as soon as it read anything from there.
    #[serde(default = "internal")]
    pub provenance: Provenance,
    /// What it asked of the network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestTrace>,
    /// What it wrote to the console, at most 8 KiB.
    pub console: String,
    /// It wrote more.
    pub console_truncated: bool,
    /// Wall-clock time in the sandbox.
    pub duration_ms: f64,
    /// Units of work.
    pub fuel: u64,
    /// The most memory it had.
    pub peak_memory_bytes: u64,
    /// What the owner should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Which runs to list: newest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskFilter {
    /// Only those in this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    /// Only this agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// At most so many. Default 20.
    #[serde(default = "default_limit")]
    pub limit: usize,
}

fn internal() -> Provenance {
    Provenance::Internal
}

fn default_limit() -> usize {
    20
}

/// An agent's energy (SPEC EN-1).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnergyReport {
    /// Whose.
    pub agent: AgentName,
    /// From 0.05 to 1.
    pub level: f64,
    /// Whether the model is switched on.
    pub enabled: bool,
    /// What the level allows a model: `oneshot`, `agentic`, `browser`.
    pub allows: Vec<String>,
}

/// What a running host says of itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostStatus {
    /// Its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// Its home.
    pub home: PathBuf,
    /// Since when.
    pub started_at: Timestamp,
    /// Runs that are not over.
    pub running: Vec<RunId>,
    /// The component that is being compiled, if that takes long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preparing: Option<Preparing>,
}
